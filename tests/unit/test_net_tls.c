/* TLS on the server's side against OpenSSL's own client, over loopback sockets: the client
 * never blocks, and the server's loop turns in between. */
#include "net/tls.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "net/server.h"
#include "unit.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

static char cert_path[] = "/tmp/holt-cert-XXXXXX", key_path[] = "/tmp/holt-key-XXXXXX";
static uv_loop_t loop;
static struct server *server;
static struct server_limits limits;
static bool stopped;
static SSL_CTX *client_ctx;

static void write_pair(long serial)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = X509_new();
    X509_NAME *name = X509_get_subject_name(cert);
    FILE *f;

    (void)ASN1_INTEGER_set(X509_get_serialNumber(cert), serial);
    (void)X509_gmtime_adj(X509_getm_notBefore(cert), 0);
    (void)X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
    (void)X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"localhost",
                                     -1, -1, 0);
    (void)X509_set_issuer_name(cert, name);
    (void)X509_set_pubkey(cert, key);
    assert_true(X509_sign(cert, key, EVP_sha256()) > 0);
    assert_non_null(f = fopen(cert_path, "w"));
    assert_int_equal(PEM_write_X509(f, cert), 1);
    (void)fclose(f);
    assert_non_null(f = fopen(key_path, "w"));
    assert_int_equal(PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL), 1);
    (void)fclose(f);
    X509_free(cert);
    EVP_PKEY_free(key);
}

static void echo(struct xchg *x, struct str body)
{
    xchg_reply(x, 200, "text/plain", body);
}

static void handler(struct xchg *x, void *arg)
{
    (void)arg;
    assert_true(str_eq_c(xchg_req(x)->scheme, "https") == xchg_peer(x)->tls);
    xchg_collect(x, 1 << 24, echo);
}

static int set_up(void **state)
{
    struct server_config c = {.loop = &loop, .limits = &limits, .handler = handler};
    struct err e;

    (void)state;
    (void)signal(SIGPIPE, SIG_IGN);
    limits = (struct server_limits){.header_max = 8192,
                                    .header_count_max = 50,
                                    .body_max = 1 << 24,
                                    .connections_max = 100,
                                    .connections_per_peer = 100,
                                    .requests_per_conn = 10,
                                    .idle_ms = 60000,
                                    .header_ms = 60000,
                                    .body_idle_ms = 60000,
                                    .write_ms = 60000};
    stopped = false;
    write_pair(1);
    c.tls_cert = cert_path;
    c.tls_key = key_path;
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(server_new(&c, &server, &e), 0);
    assert_int_equal(server_listen(server, "127.0.0.1:0", LISTEN_API, &e), 0);
    assert_int_equal(server_listen(server, "tls://127.0.0.1:0", LISTEN_API, &e), 0);
    client_ctx = SSL_CTX_new(TLS_client_method());
    return 0;
}

static void on_stopped(void *arg)
{
    (void)arg;
    stopped = true;
}

static int tear_down(void **state)
{
    (void)state;
    SSL_CTX_free(client_ctx);
    server_stop(server, 0, on_stopped, NULL);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_true(stopped);
    return uv_loop_close(&loop);
}

static int dial(size_t listener)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    a.sin_port = htons((uint16_t)server_listener(server, listener)->port);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    return fd;
}

/* Whether the handshake succeeded; *ret is to be freed either way. */
static bool shake(int fd, const char *alpn, SSL **ret)
{
    int64_t until = clock_mono_ms() + 5000;
    SSL *ssl = SSL_new(client_ctx);
    int r;

    *ret = ssl;
    if (alpn)
        assert_int_equal(
            SSL_set_alpn_protos(ssl, (const unsigned char *)alpn, (unsigned)strlen(alpn)), 0);
    (void)SSL_set_fd(ssl, fd);
    do {
        r = SSL_connect(ssl);
        (void)uv_run(&loop, UV_RUN_NOWAIT);
    } while (r < 0 && SSL_get_error(ssl, r) == SSL_ERROR_WANT_READ && clock_mono_ms() < until);
    return r == 1;
}

static void exchange(SSL *ssl, struct str out, struct buf *in, size_t want)
{
    int64_t until = clock_mono_ms() + 10000;
    char piece[16384];

    while ((out.n > 0 || buf_len(in) < want) && clock_mono_ms() < until) {
        int n = out.n > 0 ? SSL_write(ssl, out.p, (int)size_min(out.n, 16384)) : 0;

        if (n > 0)
            out = str_skip(out, (size_t)n);
        (void)uv_run(&loop, UV_RUN_NOWAIT);
        n = SSL_read(ssl, piece, sizeof piece);
        if (n > 0)
            buf_add(in, piece, (size_t)n);
    }
    assert_int_equal(out.n, 0);
    assert_true(buf_len(in) >= want);
}

static void a_large_echo_comes_back_whole(void **state)
{
    AUTO(fd_close) int fd = dial(0);
    AUTO(buf_done) struct buf out = {0}, in = {0};
    const size_t n = 3000000;
    SSL *ssl;

    (void)state;
    assert_true(shake(fd, NULL, &ssl));
    buf_printf(&out, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n", n);
    for (size_t i = 0; i < n; i++)
        buf_add_char(&out, (char)('a' + i % 23));
    exchange(ssl, buf_str(&out), &in, n + 50);
    while (buf_len(&in) < n + (size_t)(strstr(buf_cstr(&in), "\r\n\r\n") + 4 - buf_data(&in)))
        exchange(ssl, STR(""), &in, buf_len(&in) + 1);
    assert_memory_equal(strstr(buf_cstr(&in), "\r\n\r\n") + 4,
                        strstr(buf_cstr(&out), "\r\n\r\n") + 4, n);
    SSL_free(ssl);
}

static void alpn_prefers_h2(void **state)
{
    static const struct {
        const char *offer, *want;
    } cases[] = {{"\x08http/1.1\x02h2", "h2"}, {"\x08http/1.1", "http/1.1"}, {NULL, ""}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO(fd_close) int fd = dial(1);
        const unsigned char *p;
        unsigned n;
        SSL *ssl;

        assert_true(shake(fd, cases[i].offer, &ssl));
        SSL_get0_alpn_selected(ssl, &p, &n);
        assert_true(str_eq_c(str_make(p, n), cases[i].want));
        SSL_free(ssl);
    }
}

static void old_versions_are_refused(void **state)
{
    AUTO(fd_close) int fd = dial(0), next = dial(0);
    SSL *ssl, *ok;

    (void)state;
    (void)SSL_CTX_set_max_proto_version(client_ctx, TLS1_1_VERSION);
    SSL_CTX_set_security_level(client_ctx, 0);
    assert_false(shake(fd, NULL, &ssl));
    (void)SSL_CTX_set_max_proto_version(client_ctx, TLS1_2_VERSION);
    assert_true(shake(next, NULL, &ok));
    SSL_free(ssl);
    SSL_free(ok);
}

static void recv_all(int fd, struct buf *in)
{
    int64_t until = clock_mono_ms() + 5000;
    char piece[4096];
    ssize_t n = -1;

    while (n != 0 && clock_mono_ms() < until) {
        (void)uv_run(&loop, UV_RUN_NOWAIT);
        n = recv(fd, piece, sizeof piece, 0);
        if (n > 0)
            buf_add(in, piece, (size_t)n);
    }
}

static void clear_text_is_told_that_the_port_speaks_tls(void **state)
{
    AUTO(fd_close) int fd = dial(1);
    AUTO(buf_done) struct buf in = {0};
    const struct str text = STR("GET / HTTP/1.1\r\nHost: a\r\n\r\n");

    (void)state;
    assert_int_equal(send(fd, text.p, text.n, 0), (ssize_t)text.n);
    recv_all(fd, &in);
    assert_true(str_starts(buf_str(&in), STR("HTTP/1.1 400 ")));
    assert_non_null(strstr(buf_cstr(&in), "TLS"));
}

static void a_handshake_has_the_head_s_time(void **state)
{
    AUTO(fd_close) int fd = dial(0);
    AUTO(buf_done) struct buf in = {0};
    int64_t start = clock_mono_ms();

    (void)state;
    limits.header_ms = 200;
    assert_int_equal(send(fd, "\x16\x03\x01", 3, 0), 3);
    recv_all(fd, &in);
    assert_true(clock_mono_ms() - start < 30000);
}

static long serial_seen(void)
{
    AUTO(fd_close) int fd = dial(0);
    X509 *cert;
    SSL *ssl;
    long n;

    assert_true(shake(fd, NULL, &ssl));
    cert = SSL_get1_peer_certificate(ssl);
    n = ASN1_INTEGER_get(X509_get_serialNumber(cert));
    X509_free(cert);
    SSL_free(ssl);
    return n;
}

static void certificates_are_reloaded_and_bad_ones_are_not(void **state)
{
    struct err e;
    FILE *f;

    (void)state;
    assert_int_equal(serial_seen(), 1);
    write_pair(2);
    assert_int_equal(server_reload_tls(server, &e), 0);
    assert_int_equal(serial_seen(), 2);
    assert_non_null(f = fopen(cert_path, "w"));
    (void)fclose(f);
    assert_int_equal(server_reload_tls(server, &e), -1);
    assert_non_null(strstr(e.msg, cert_path));
    assert_int_equal(serial_seen(), 2);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_large_echo_comes_back_whole),   CASE(alpn_prefers_h2),
        CASE(old_versions_are_refused),        CASE(clear_text_is_told_that_the_port_speaks_tls),
        CASE(a_handshake_has_the_head_s_time), CASE(certificates_are_reloaded_and_bad_ones_are_not),
    };
    int r;

    fd_close(mkstemp(cert_path));
    fd_close(mkstemp(key_path));
    r = cmocka_run_group_tests(tests, NULL, NULL);
    (void)unlink(cert_path);
    (void)unlink(key_path);
    return r;
}
