/* x509: makes and checks a certificate authority. */
#include "proto/x509.h"

#include "base/rnd.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#define HOUR 3600
#define SERIAL 16 /* RFC 5280 4.1.2.2: positive, at most 20 bytes */

static X509 *cert_free(X509 *x)
{
    X509_free(x);
    return NULL;
}
DEFINE_AUTO(X509 *, cert_free)

static EVP_PKEY *key_free(EVP_PKEY *k)
{
    EVP_PKEY_free(k);
    return NULL;
}
DEFINE_AUTO(EVP_PKEY *, key_free)

static BIO *bio_free(BIO *b)
{
    BIO_free(b); /* wipes its content: BUF_MEM_free */
    return NULL;
}
DEFINE_AUTO(BIO *, bio_free)

static bool set_serial(X509 *x)
{
    unsigned char bytes[SERIAL];
    BIGNUM *n;
    bool ok;

    rnd_bytes(bytes, sizeof bytes);
    bytes[0] &= 0x7f;
    bytes[0] |= 0x40;
    n = BN_bin2bn(bytes, sizeof bytes, NULL);
    ok = n && BN_to_ASN1_INTEGER(n, X509_get_serialNumber(x));
    BN_free(n);
    return ok;
}

static bool add_extension(X509 *x, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509_EXTENSION *ext;
    bool ok;

    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, x, x, NULL, NULL, 0);
    ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    ok = ext && X509_add_ext(x, ext, -1);
    X509_EXTENSION_free(ext);
    return ok;
}

static bool fill(X509 *x, EVP_PKEY *k, const char *name, int64_t days)
{
    X509_NAME *subject = X509_get_subject_name(x);

    return X509_set_version(x, X509_VERSION_3) && set_serial(x) &&
           X509_gmtime_adj(X509_getm_notBefore(x), -HOUR) &&
           X509_time_adj_ex(X509_getm_notAfter(x), (int)days, 0, NULL) &&
           X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, (const unsigned char *)name, -1,
                                      -1, 0) &&
           X509_set_issuer_name(x, subject) && X509_set_pubkey(x, k) &&
           add_extension(x, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
           add_extension(x, NID_key_usage, "critical,keyCertSign,cRLSign") &&
           add_extension(x, NID_subject_key_identifier, "hash") &&
           X509_sign(x, k, EVP_sha256()) > 0;
}

static void take(BIO *from, struct buf *to)
{
    char *p = NULL;
    long n = BIO_get_mem_data(from, &p);

    buf_add(to, p, (size_t)n);
}

int x509_make_authority(const char *name, int64_t days, struct buf *cert, struct buf *key,
                        struct err *e)
{
    AUTO(key_free) EVP_PKEY *k = EVP_EC_gen("P-256");
    AUTO(cert_free) X509 *x = X509_new();
    AUTO(bio_free) BIO *to_cert = BIO_new(BIO_s_mem()), *to_key = BIO_new(BIO_s_secmem());

    if (!k || !x || !to_cert || !to_key || !fill(x, k, name, days) ||
        !PEM_write_bio_X509(to_cert, x) ||
        !PEM_write_bio_PrivateKey(to_key, k, NULL, NULL, 0, NULL, NULL))
        return err_set(e, ERR_INTERNAL, 0, "OpenSSL cannot make the authority '%s'", name);
    take(to_cert, cert);
    take(to_key, key);
    return 0;
}

int x509_check_authority(struct str cert, struct str key, struct err *e)
{
    AUTO(bio_free)
    BIO *from_cert = BIO_new_mem_buf(cert.p, (int)cert.n),
        *from_key = BIO_new_mem_buf(key.p, (int)key.n);
    AUTO(cert_free) X509 *x = PEM_read_bio_X509(from_cert, NULL, NULL, NULL);
    AUTO(key_free) EVP_PKEY *k = PEM_read_bio_PrivateKey(from_key, NULL, NULL, NULL);

    if (!x || !k)
        return err_set(e, ERR_INVALID, 0, "the %s cannot be read", x ? "key" : "certificate");
    if (X509_check_ca(x) != 1)
        return err_set(e, ERR_INVALID, 0, "the certificate is not that of an authority");
    if (X509_check_private_key(x, k) != 1)
        return err_set(e, ERR_INVALID, 0, "the key does not belong to the certificate");
    if (X509_cmp_current_time(X509_get0_notAfter(x)) < 0)
        return err_set(e, ERR_INVALID, 0, "the certificate has expired");
    return 0;
}
