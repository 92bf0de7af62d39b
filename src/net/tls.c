/* tls: server TLS between memory buffers, by OpenSSL. */
#include "net/tls.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/starter.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#define PEM_MAX (1 << 20)

struct tls {
    SSL *ssl;
    BIO *in, *out; /* owned by ssl */
};

static const unsigned char alpn_offer[] = "\x02h2\x08http/1.1";

static int choose_alpn(SSL *ssl, const unsigned char **ret, unsigned char *ret_n,
                       const unsigned char *in, unsigned n, void *arg)
{
    unsigned char *chosen;

    (void)ssl;
    (void)arg;
    if (SSL_select_next_proto(&chosen, ret_n, alpn_offer, sizeof alpn_offer - 1, in, n) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *ret = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static int ssl_error(struct err *e, enum err_code code, const char *what)
{
    char text[160] = "unknown reason";
    unsigned long n = ERR_get_error();

    if (n != 0)
        ERR_error_string_n(n, text, sizeof text);
    ERR_clear_error();
    return err_set(e, code, 0, "%s: %s", what, text);
}

DEFINE_AUTO(SSL_CTX *, SSL_CTX_free)
DEFINE_AUTO(BIO *, BIO_free)
DEFINE_AUTO(X509 *, X509_free)
DEFINE_AUTO(EVP_PKEY *, EVP_PKEY_free)

/* The files may belong to root, whose rights we have dropped: the starter opens them. */
static int read_pem(const char *path, struct buf *to, BIO **ret, struct err *e)
{
    int r = starter_read(path, PEM_MAX, to);

    if (r < 0)
        return err_set(e, ERR_INVALID, -r, "read it");
    *ret = BIO_new_mem_buf(buf_data(to), (int)buf_len(to));
    return *ret ? 0 : ssl_error(e, ERR_INTERNAL, "read it");
}

static int use_chain(SSL_CTX *ctx, const char *path, struct err *e)
{
    AUTO(buf_done) struct buf text = {0};
    AUTO(BIO_free) BIO *in = NULL;
    AUTO(X509_free) X509 *cert = NULL;
    X509 *above;

    if (read_pem(path, &text, &in, e) < 0)
        return -1;
    cert = PEM_read_bio_X509_AUX(in, NULL, NULL, NULL);
    if (!cert || SSL_CTX_use_certificate(ctx, cert) != 1 || SSL_CTX_clear_chain_certs(ctx) != 1)
        return ssl_error(e, ERR_INVALID, "read the certificate");
    while ((above = PEM_read_bio_X509(in, NULL, NULL, NULL)))
        if (SSL_CTX_add0_chain_cert(ctx, above) != 1) {
            X509_free(above);
            return ssl_error(e, ERR_INVALID, "read the chain of the certificate");
        }
    if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
        return ssl_error(e, ERR_INVALID, "read the chain of the certificate");
    ERR_clear_error(); /* the end of the file */
    return 0;
}

static int use_key(SSL_CTX *ctx, const char *path, struct err *e)
{
    AUTO(buf_wipe) struct buf text = {0};
    AUTO(BIO_free) BIO *in = NULL;
    AUTO(EVP_PKEY_free) EVP_PKEY *key = NULL;

    if (read_pem(path, &text, &in, e) < 0)
        return -1;
    key = PEM_read_bio_PrivateKey(in, NULL, NULL, NULL);
    if (!key || SSL_CTX_use_PrivateKey(ctx, key) != 1 || SSL_CTX_check_private_key(ctx) != 1)
        return ssl_error(e, ERR_INVALID, "read the key of the certificate");
    return 0;
}

int tls_context_new(const char *cert, const char *key, SSL_CTX **ret, struct err *e)
{
    AUTO(SSL_CTX_free) SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());

    if (!ctx)
        return ssl_error(e, ERR_INTERNAL, "make a TLS context");
    (void)SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    (void)SSL_CTX_set_options(ctx, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                                       SSL_OP_CIPHER_SERVER_PREFERENCE |
                                       SSL_OP_IGNORE_UNEXPECTED_EOF);
    (void)SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                    SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    if (use_chain(ctx, cert, e) < 0)
        return err_wrap(e, "TLS certificate '%s'", cert);
    if (use_key(ctx, key, e) < 0)
        return err_wrap(e, "TLS key '%s'", key);
    SSL_CTX_set_alpn_select_cb(ctx, choose_alpn, NULL);
    *ret = TAKE(ctx);
    return 0;
}

struct tls *tls_new(SSL_CTX *ctx)
{
    struct tls *t = xzalloc(sizeof *t);

    t->ssl = SSL_new(ctx);
    t->in = BIO_new(BIO_s_mem());
    t->out = BIO_new(BIO_s_mem());
    if (!t->ssl || !t->in || !t->out)
        abort(); /* fails only without memory, as xmalloc */
    BIO_set_mem_eof_return(t->in, -1);
    SSL_set_bio(t->ssl, t->in, t->out);
    SSL_set_accept_state(t->ssl);
    return t;
}

void tls_free(struct tls *t)
{
    if (!t)
        return;
    SSL_free(t->ssl);
    free(t);
}

void tls_input(struct tls *t, struct str cipher)
{
    assert(cipher.n <= INT32_MAX);
    if (cipher.n > 0 && BIO_write(t->in, cipher.p, (int)cipher.n) != (int)cipher.n)
        abort();
}

int tls_read(struct tls *t, char *to, size_t n, bool *ret_eof, struct err *e)
{
    int r;

    ERR_clear_error();
    r = SSL_read(t->ssl, to, (int)size_min(n, INT32_MAX));
    if (r > 0)
        return r;
    switch (SSL_get_error(t->ssl, r)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        return 0;
    case SSL_ERROR_ZERO_RETURN:
        *ret_eof = true;
        return 0;
    default:
        return ssl_error(e, ERR_INVALID, "TLS");
    }
}

int tls_write(struct tls *t, struct buf *plain, struct err *e)
{
    while (buf_len(plain) > 0 && tls_is_ready(t)) {
        int r;

        ERR_clear_error();
        r = SSL_write(t->ssl, buf_data(plain), (int)size_min(buf_len(plain), INT32_MAX));
        if (r <= 0 && SSL_get_error(t->ssl, r) == SSL_ERROR_WANT_READ)
            return 0; /* a key update: the next input continues it */
        if (r <= 0)
            return ssl_error(e, ERR_INVALID, "TLS");
        buf_take(plain, (size_t)r);
    }
    return 0;
}

void tls_shutdown(struct tls *t)
{
    ERR_clear_error();
    if (tls_is_ready(t))
        (void)SSL_shutdown(t->ssl);
    ERR_clear_error();
}

void tls_output(struct tls *t, struct buf *cipher)
{
    char *p;
    long n = BIO_get_mem_data(t->out, &p);

    if (n <= 0)
        return;
    buf_add(cipher, p, (size_t)n);
    (void)BIO_reset(t->out);
}

bool tls_is_ready(const struct tls *t)
{
    return SSL_is_init_finished(t->ssl);
}

const char *tls_alpn(const struct tls *t)
{
    const unsigned char *p;
    unsigned n;

    SSL_get0_alpn_selected(t->ssl, &p, &n);
    if (n == 2 && memcmp(p, "h2", 2) == 0)
        return "h2";
    return n > 0 ? "http/1.1" : NULL;
}
