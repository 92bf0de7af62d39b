/* dial_tls: client TLS between memory buffers. */
#include "net/dial_tls.h"

#include "base/mem.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#define CHAIN_MAX 16

struct dial_tls {
    SSL_CTX *ctx;
    char *name; /* expected of every server; NULL: its host */
};

struct tls_end {
    SSL *ssl;
    BIO *in, *out; /* owned by ssl */
    char host[256];
};

static int ssl_failed(struct err *e, enum err_code code, const char *what)
{
    const char *why = ERR_reason_error_string(ERR_peek_error());

    ERR_clear_error();
    return err_set(e, code, 0, "%s: %s", what, why ? why : "unexpected end of the connection");
}

static int context_make(struct dial_tls *t, struct err *e)
{
    t->ctx = SSL_CTX_new(TLS_client_method());
    if (!t->ctx)
        return ssl_failed(e, ERR_INTERNAL, "set up TLS");
    SSL_CTX_set_min_proto_version(t->ctx, TLS1_2_VERSION);
    SSL_CTX_set_verify(t->ctx, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_mode(t->ctx, SSL_MODE_RELEASE_BUFFERS);
    return 0;
}

/* One after another from a PEM text; the end of the text is not an error. */
static int add_certificates(struct str pem, struct err *e, int (*add)(SSL_CTX *, X509 *, int),
                            SSL_CTX *ctx)
{
    BIO *in = BIO_new_mem_buf(pem.p, (int)pem.n);
    X509 *cert;
    int n = 0, r = 0;

    while (r == 0 && n < CHAIN_MAX && (cert = PEM_read_bio_X509(in, NULL, NULL, NULL))) {
        r = add(ctx, cert, n++) == 1 ? 0 : -1;
        X509_free(cert);
    }
    BIO_free(in);
    if (r < 0 || n == 0)
        return ssl_failed(e, ERR_INVALID, "no certificate could be read");
    ERR_clear_error();
    return 0;
}

static int add_trusted(SSL_CTX *ctx, X509 *cert, int at)
{
    (void)at;
    return X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), cert);
}

static int add_own(SSL_CTX *ctx, X509 *cert, int at)
{
    return at == 0 ? SSL_CTX_use_certificate(ctx, cert) : (int)SSL_CTX_add1_chain_cert(ctx, cert);
}

static int use_key(SSL_CTX *ctx, struct str pem, struct err *e)
{
    BIO *in = BIO_new_mem_buf(pem.p, (int)pem.n);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(in, NULL, NULL, (void *)(uintptr_t)"");
    int r = key ? SSL_CTX_use_PrivateKey(ctx, key) : 0;

    BIO_free(in);
    EVP_PKEY_free(key);
    return r == 1 ? 0 : ssl_failed(e, ERR_INVALID, "the key does not fit the certificate");
}

int dial_tls_make(const struct dial_tls_config *c, struct dial_tls **ret, struct err *e)
{
    AUTO(dial_tls_free) struct dial_tls *t = xzalloc(sizeof *t);

    if (context_make(t, e) < 0)
        return -1;
    if (c->ca.n == 0)
        (void)SSL_CTX_set_default_verify_paths(t->ctx);
    else if (add_certificates(c->ca, e, add_trusted, t->ctx) < 0)
        return err_wrap(e, "trust an authority");
    if (c->cert.n > 0 &&
        (add_certificates(c->cert, e, add_own, t->ctx) < 0 || use_key(t->ctx, c->key, e) < 0))
        return err_wrap(e, "use a client certificate");
    if (c->unverified)
        SSL_CTX_set_verify(t->ctx, SSL_VERIFY_NONE, NULL);
    t->name = c->name ? xstrdup(c->name) : NULL;
    *ret = TAKE(t);
    return 0;
}

int dial_tls_new(const char *cacert, struct dial_tls **ret, struct err *e)
{
    AUTO(dial_tls_free) struct dial_tls *t = xzalloc(sizeof *t);

    if (context_make(t, e) < 0)
        return -1;
    (void)SSL_CTX_set_default_verify_paths(t->ctx);
    if (cacert && SSL_CTX_load_verify_file(t->ctx, cacert) != 1) {
        (void)ssl_failed(e, ERR_INVALID, "no certificate could be read");
        return err_wrap(e, "trust the authorities in '%s'", cacert);
    }
    *ret = TAKE(t);
    return 0;
}

struct dial_tls *dial_tls_free(struct dial_tls *t)
{
    if (t) {
        SSL_CTX_free(t->ctx);
        mem_free(t->name);
    }
    mem_free(t);
    return NULL;
}

/* RFC 6066 section 3: an address is not a server name; compare it with the certificate's list of
 * addresses instead. */
static bool expect_peer(SSL *ssl, const char *host)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);

    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    if (X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1)
        return true;
    ERR_clear_error();
    return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

int tls_end_new(struct dial_tls *tls, const char *host, struct tls_end **ret, struct err *e)
{
    static const unsigned char protocols[] = "\x08http/1.1";
    struct tls_end *t = xzalloc(sizeof *t);

    host = tls->name ? tls->name : host;
    (void)snprintf(t->host, sizeof t->host, "%s", host);
    t->ssl = SSL_new(tls->ctx);
    t->in = BIO_new(BIO_s_mem());
    t->out = BIO_new(BIO_s_mem());
    if (!t->ssl || !t->in || !t->out)
        abort(); /* out of memory */
    SSL_set_bio(t->ssl, t->in, t->out);
    SSL_set_connect_state(t->ssl);
    if (!expect_peer(t->ssl, host) ||
        SSL_set_alpn_protos(t->ssl, protocols, sizeof protocols - 1) != 0) {
        (void)tls_end_free(t);
        return ssl_failed(e, ERR_INVALID, "set up TLS");
    }
    *ret = t;
    return 0;
}

struct tls_end *tls_end_free(struct tls_end *t)
{
    if (t)
        SSL_free(t->ssl);
    mem_free(t);
    return NULL;
}

void tls_end_feed(struct tls_end *t, struct str bytes)
{
    if (BIO_write(t->in, bytes.p, (int)bytes.n) != (int)bytes.n)
        abort(); /* writing to a memory buffer fails only without memory */
}

int tls_end_handshake(struct tls_end *t, struct err *e)
{
    long verdict;
    int r;

    ERR_clear_error(); /* otherwise errors of other connections would be taken for ours */
    r = SSL_do_handshake(t->ssl);
    if (r == 1)
        return 1;
    if (SSL_get_error(t->ssl, r) == SSL_ERROR_WANT_READ)
        return 0;
    verdict = SSL_get_verify_result(t->ssl);
    if (verdict == X509_V_OK)
        return ssl_failed(e, ERR_UNAVAILABLE, "TLS handshake");
    ERR_clear_error();
    (void)err_set(e, ERR_FORBIDDEN, 0, "the certificate of %s is not trusted: %s", t->host,
                  X509_verify_cert_error_string(verdict));
    return err_hint(e, "name the authority that signed it: --cacert FILE or HOLT_CACERT");
}

int tls_end_read(struct tls_end *t, void *to, size_t n, bool *ret_eof, struct err *e)
{
    int r;

    ERR_clear_error();
    r = SSL_read(t->ssl, to, (int)n);
    *ret_eof = false;
    if (r > 0)
        return r;
    switch (SSL_get_error(t->ssl, r)) {
    case SSL_ERROR_WANT_READ:
        return 0;
    case SSL_ERROR_ZERO_RETURN:
        *ret_eof = true;
        return 0;
    default:
        return ssl_failed(e, ERR_UNAVAILABLE, "read from a TLS connection");
    }
}

int tls_end_write(struct tls_end *t, const void *p, size_t n, struct err *e)
{
    const char *at = p;

    while (n > 0) {
        int part = (int)size_min(n, 1 << 20);
        int r;

        ERR_clear_error();
        r = SSL_write(t->ssl, at, part);
        if (r <= 0)
            return ssl_failed(e, ERR_UNAVAILABLE, "write to a TLS connection");
        at += r;
        n -= (size_t)r;
    }
    return 0;
}

void tls_end_output(struct tls_end *t, struct buf *to)
{
    char *p;
    long n = BIO_get_mem_data(t->out, &p);

    if (n > 0)
        buf_add(to, p, (size_t)n);
    (void)BIO_reset(t->out);
}
