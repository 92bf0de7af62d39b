/* ca: signs leaf certificates for intercepted hosts. */
#include "egress/ca.h"

#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/rnd.h"

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#define LEAVES_MAX 256
#define LEAF_S (24 * 3600)
#define LEAF_USED_MS (12 * 3600 * 1000LL) /* a new one is made well before the old expires */
#define BEFORE_S 3600                     /* for clocks that are slow */

struct leaf {
    SSL_CTX *ctx;
    int64_t made_ms, used_ms; /* wall clock; monotonic */
};

static struct {
    X509 *cert;
    EVP_PKEY *key, *leaf_key; /* one key for all leaves */
    struct map leaves;        /* struct leaf, by name */
} ca;

DEFINE_AUTO(X509 *, X509_free)
DEFINE_AUTO(EVP_PKEY *, EVP_PKEY_free)
DEFINE_AUTO(SSL_CTX *, SSL_CTX_free)
DEFINE_AUTO(BIO *, BIO_free)
DEFINE_AUTO(X509_EXTENSION *, X509_EXTENSION_free)
DEFINE_AUTO(BIGNUM *, BN_free)

static int tls_failed(struct err *e, enum err_code code, const char *what)
{
    const char *why = ERR_reason_error_string(ERR_peek_last_error());

    ERR_clear_error();
    return err_set(e, code, 0, "%s: %s", what, why ? why : "unknown reason");
}

bool ca_is_there(void)
{
    return ca.cert != NULL;
}

static struct leaf *leaf_free(struct leaf *l)
{
    if (l)
        SSL_CTX_free(l->ctx);
    mem_free(l);
    return NULL;
}

void ca_forget(void)
{
    struct str name;
    void *l;

    for (size_t at = 0; map_next(&ca.leaves, &at, &name, &l);)
        leaf_free(l);
    map_done(&ca.leaves);
    ca.leaves = (struct map){0};
    X509_free(TAKE(ca.cert));
    EVP_PKEY_free(TAKE(ca.key));
    EVP_PKEY_free(TAKE(ca.leaf_key));
}

int ca_set(struct str cert_pem, struct str key_pem, struct err *e)
{
    AUTO(BIO_free) BIO *cert_text = BIO_new_mem_buf(cert_pem.p, (int)cert_pem.n);
    AUTO(BIO_free) BIO *key_text = BIO_new_mem_buf(key_pem.p, (int)key_pem.n);
    AUTO(X509_free) X509 *cert = PEM_read_bio_X509(cert_text, NULL, NULL, NULL);
    AUTO(EVP_PKEY_free) EVP_PKEY *key = NULL, *leaf_key = NULL;

    if (!cert)
        return tls_failed(e, ERR_INVALID, "read the authority's certificate");
    key = PEM_read_bio_PrivateKey(key_text, NULL, NULL, NULL);
    if (!key || X509_check_private_key(cert, key) != 1 || X509_check_ca(cert) != 1)
        return tls_failed(e, ERR_INVALID, "read the key of an authority that fits its certificate");
    if (ca.cert && X509_cmp(ca.cert, cert) == 0)
        return 0;
    leaf_key = EVP_EC_gen("P-256");
    if (!leaf_key)
        return tls_failed(e, ERR_INTERNAL, "make a key");
    ca_forget();
    ca.cert = TAKE(cert);
    ca.key = TAKE(key);
    ca.leaf_key = TAKE(leaf_key);
    return 0;
}

/* ---- leaves ---- */

static bool extend(X509 *x, int nid, const char *value)
{
    X509V3_CTX ctx;
    AUTO(X509_EXTENSION_free) X509_EXTENSION *ext = NULL;

    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, ca.cert, x, NULL, NULL, 0);
    ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    return ext && X509_add_ext(x, ext, -1) == 1;
}

/* RFC 5280 section 4.1.2.2: positive, at most 20 bytes, unique. */
static bool set_serial(X509 *x)
{
    unsigned char bytes[16];
    AUTO(BN_free) BIGNUM *n = NULL;

    rnd_bytes(bytes, sizeof bytes);
    bytes[0] &= 0x7f;
    n = BN_bin2bn(bytes, sizeof bytes, NULL);
    return n && BN_to_ASN1_INTEGER(n, X509_get_serialNumber(x)) != NULL;
}

/* RFC 6125: the name is in subjectAltName; a common name holds only 64 bytes. */
static X509 *mint(const struct host *h)
{
    AUTO(X509_free) X509 *x = X509_new();
    AUTO(mem_free) char *alt = xasprintf("%s:%s", h->is_ip ? "IP" : "DNS", h->name);
    const char *common = strlen(h->name) <= 64 ? h->name : "holt";
    int64_t now_s = clock_wall_ms() / 1000;

    if (!x || X509_set_version(x, X509_VERSION_3) != 1 || !set_serial(x) ||
        !ASN1_TIME_set(X509_getm_notBefore(x), (time_t)(now_s - BEFORE_S)) ||
        !ASN1_TIME_set(X509_getm_notAfter(x), (time_t)(now_s + LEAF_S)) ||
        X509_set_issuer_name(x, X509_get_subject_name(ca.cert)) != 1 ||
        X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
                                   (const unsigned char *)common, -1, -1, 0) != 1 ||
        X509_set_pubkey(x, ca.leaf_key) != 1)
        return NULL;
    if (!extend(x, NID_basic_constraints, "critical,CA:FALSE") ||
        !extend(x, NID_key_usage, "critical,digitalSignature") ||
        !extend(x, NID_ext_key_usage, "serverAuth") ||
        !extend(x, NID_subject_key_identifier, "hash") ||
        !extend(x, NID_authority_key_identifier, "keyid") ||
        !extend(x, NID_subject_alt_name, alt) || X509_sign(x, ca.key, EVP_sha256()) == 0)
        return NULL;
    return TAKE(x);
}

/* Do not offer HTTP/2: it lets one connection carry requests for several hosts. */
static int choose_alpn(SSL *ssl, const unsigned char **ret, unsigned char *ret_n,
                       const unsigned char *in, unsigned n, void *arg)
{
    static const unsigned char offer[] = "\x08http/1.1";
    unsigned char *chosen;

    (void)ssl;
    (void)arg;
    if (SSL_select_next_proto(&chosen, ret_n, offer, sizeof offer - 1, in, n) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *ret = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static SSL_CTX *context(const struct host *h)
{
    AUTO(SSL_CTX_free) SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    AUTO(X509_free) X509 *x = mint(h);

    if (!ctx || !x || SSL_CTX_use_certificate(ctx, x) != 1 ||
        SSL_CTX_use_PrivateKey(ctx, ca.leaf_key) != 1 || SSL_CTX_add1_chain_cert(ctx, ca.cert) != 1)
        return NULL;
    (void)SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    (void)SSL_CTX_set_options(ctx, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                                       SSL_OP_NO_TICKET | SSL_OP_IGNORE_UNEXPECTED_EOF);
    (void)SSL_CTX_set_num_tickets(ctx, 0);
    (void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    (void)SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                    SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_alpn_select_cb(ctx, choose_alpn, NULL);
    return TAKE(ctx);
}

static void forget_longest_unused(void)
{
    struct str name, oldest = {0};
    int64_t used_ms = INT64_MAX;
    void *l;

    for (size_t at = 0; map_next(&ca.leaves, &at, &name, &l);)
        if (((struct leaf *)l)->used_ms < used_ms) {
            used_ms = ((struct leaf *)l)->used_ms;
            oldest = name;
        }
    leaf_free(map_remove(&ca.leaves, oldest));
}

int ca_context(const struct host *h, SSL_CTX **ret, struct err *e)
{
    struct str name = str_of(h->name);
    struct leaf *l = map_get(&ca.leaves, name);
    int64_t age_ms = l ? clock_wall_ms() - l->made_ms : 0;
    SSL_CTX *ctx;

    if (!ca.cert)
        return err_set(e, ERR_UNAVAILABLE, 0, "interception has no authority");
    if (l && age_ms >= 0 && age_ms < LEAF_USED_MS) {
        l->used_ms = clock_mono_ms();
        *ret = l->ctx;
        return 0;
    }
    ctx = context(h);
    if (!ctx)
        return tls_failed(e, ERR_INTERNAL, "make a certificate");
    leaf_free(map_remove(&ca.leaves, name));
    if (ca.leaves.count >= LEAVES_MAX)
        forget_longest_unused();
    l = xzalloc(sizeof *l);
    *l = (struct leaf){ctx, clock_wall_ms(), clock_mono_ms()};
    (void)map_set(&ca.leaves, name, l);
    *ret = ctx;
    return 0;
}
