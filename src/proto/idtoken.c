/* idtoken: reads, verifies and judges ID tokens. */
#include "proto/idtoken.h"

#include "base/buf.h"
#include "base/enc.h"
#include "proto/json.h"

#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <string.h>

#define RSA_BITS_MIN 2048
#define RSA_BYTES_MAX 1024
#define P256_BYTES 32

static int wrong(struct err *e, const char *why)
{
    return err_set(e, ERR_UNAUTHENTICATED, 0, "the ID token %s", why);
}

static bool is_text(const json_t *object, const char *name, const char *text)
{
    const char *v = json_string_value(json_object_get(object, name));

    return v && strcmp(v, text) == 0;
}

static bool is_str(const json_t *v, struct str text)
{
    return json_is_string(v) && json_string_length(v) == text.n &&
           memcmp(json_string_value(v), text.p, text.n) == 0;
}

/* --- keys --- */

static int read_number(const json_t *key, const char *name, struct buf *to)
{
    const char *text = json_string_value(json_object_get(key, name));

    return text && dec_base64(to, str_of(text)) == 0 && buf_len(to) > 0 &&
                   buf_len(to) <= RSA_BYTES_MAX
               ? 0
               : -1;
}

static EVP_PKEY *make_key(const char *kind, OSSL_PARAM *params)
{
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, kind, NULL);
    EVP_PKEY *key = NULL;

    if (ctx && params && EVP_PKEY_fromdata_init(ctx) == 1)
        (void)EVP_PKEY_fromdata(ctx, &key, EVP_PKEY_PUBLIC_KEY, params);
    EVP_PKEY_CTX_free(ctx);
    OSSL_PARAM_free(params);
    return key;
}

static EVP_PKEY *rsa_key(const json_t *jwk)
{
    AUTO(buf_done) struct buf n = {0}, exponent = {0};
    OSSL_PARAM_BLD *b = OSSL_PARAM_BLD_new();
    OSSL_PARAM *params = NULL;
    EVP_PKEY *key = NULL;
    BIGNUM *bn = NULL, *be = NULL;

    if (b && read_number(jwk, "n", &n) == 0 && read_number(jwk, "e", &exponent) == 0) {
        bn = BN_bin2bn((const unsigned char *)buf_data(&n), (int)buf_len(&n), NULL);
        be = BN_bin2bn((const unsigned char *)buf_data(&exponent), (int)buf_len(&exponent), NULL);
        if (bn && be && BN_num_bits(bn) >= RSA_BITS_MIN &&
            OSSL_PARAM_BLD_push_BN(b, OSSL_PKEY_PARAM_RSA_N, bn) == 1 &&
            OSSL_PARAM_BLD_push_BN(b, OSSL_PKEY_PARAM_RSA_E, be) == 1)
            params = OSSL_PARAM_BLD_to_param(b);
    }
    if (params)
        key = make_key("RSA", params);
    OSSL_PARAM_BLD_free(b);
    BN_free(bn);
    BN_free(be);
    return key;
}

static EVP_PKEY *p256_key(const json_t *jwk)
{
    AUTO(buf_done) struct buf x = {0}, y = {0}, point = {0};
    OSSL_PARAM_BLD *b = OSSL_PARAM_BLD_new();
    OSSL_PARAM *params = NULL;
    EVP_PKEY *key = NULL;

    if (b && is_text(jwk, "crv", "P-256") && read_number(jwk, "x", &x) == 0 &&
        read_number(jwk, "y", &y) == 0 && buf_len(&x) == P256_BYTES && buf_len(&y) == P256_BYTES) {
        buf_add_char(&point, 4); /* uncompressed: SEC 1 section 2.3.3 */
        buf_add_str(&point, buf_str(&x));
        buf_add_str(&point, buf_str(&y));
        if (OSSL_PARAM_BLD_push_utf8_string(b, OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0) == 1 &&
            OSSL_PARAM_BLD_push_octet_string(b, OSSL_PKEY_PARAM_PUB_KEY, buf_data(&point),
                                             buf_len(&point)) == 1)
            params = OSSL_PARAM_BLD_to_param(b);
    }
    if (params)
        key = make_key("EC", params);
    OSSL_PARAM_BLD_free(b);
    return key;
}

/* --- signatures --- */

static bool verify(EVP_PKEY *key, struct str text, struct str signature)
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool ok = ctx && EVP_DigestVerifyInit(ctx, NULL, EVP_sha256(), NULL, key) == 1 &&
              EVP_DigestVerify(ctx, (const unsigned char *)signature.p, signature.n,
                               (const unsigned char *)text.p, text.n) == 1;

    EVP_MD_CTX_free(ctx);
    return ok;
}

/* RFC 7518 section 3.4: two numbers; OpenSSL takes them as DER. */
static bool verify_es256(EVP_PKEY *key, struct str text, struct str signature)
{
    ECDSA_SIG *sig = ECDSA_SIG_new();
    unsigned char *der = NULL;
    BIGNUM *r, *s;
    bool ok = false;
    int n;

    if (!sig || signature.n != 2 * P256_BYTES) {
        ECDSA_SIG_free(sig);
        return false;
    }
    r = BN_bin2bn((const unsigned char *)signature.p, P256_BYTES, NULL);
    s = BN_bin2bn((const unsigned char *)signature.p + P256_BYTES, P256_BYTES, NULL);
    if (ECDSA_SIG_set0(sig, r, s) == 1) {
        n = i2d_ECDSA_SIG(sig, &der);
        ok = n > 0 && verify(key, text, str_make(der, (size_t)n));
    } else {
        BN_free(r);
        BN_free(s);
    }
    OPENSSL_free(der);
    ECDSA_SIG_free(sig);
    return ok;
}

/* The one list of algorithms: none, and those with a shared secret, are not in it. */
static const struct algorithm {
    const char *name, *kind;
    EVP_PKEY *(*key)(const json_t *jwk);
    bool (*verify)(EVP_PKEY *key, struct str text, struct str signature);
} algorithms[] = {
    {"RS256", "RSA", rsa_key, verify},
    {"ES256", "EC", p256_key, verify_es256},
};

static const struct algorithm *algorithm_of(const json_t *head)
{
    for (size_t i = 0; i < ARRAY_LEN(algorithms); i++)
        if (is_text(head, "alg", algorithms[i].name))
            return &algorithms[i];
    return NULL;
}

/* A key without a kid, or a token without one, may fit; a key for encryption or of another
 * algorithm does not. */
static bool may_fit(const json_t *jwk, const json_t *head, const struct algorithm *a)
{
    const json_t *have = json_object_get(jwk, "kid"), *want = json_object_get(head, "kid");

    return is_text(jwk, "kty", a->kind) && (!have || !want || json_equal(have, want)) &&
           (!json_object_get(jwk, "use") || is_text(jwk, "use", "sig")) &&
           (!json_object_get(jwk, "alg") || is_text(jwk, "alg", a->name));
}

/* 0: a key of the set has signed it; 1: none has its kid. */
static int check_signature(const json_t *keys, const json_t *head, struct str text,
                           struct str signature, struct err *e)
{
    const struct algorithm *a = algorithm_of(head);
    const json_t *list = json_object_get(keys, "keys");
    bool tried = false, ok = false;

    if (!a)
        return wrong(e, "is not signed with RS256 or ES256");
    if (json_object_get(head, "crit"))
        return wrong(e, "demands an extension");
    for (size_t i = 0; i < json_array_size(list) && !ok; i++) {
        const json_t *jwk = json_array_get(list, i);
        EVP_PKEY *key = may_fit(jwk, head, a) ? a->key(jwk) : NULL;

        tried = tried || key;
        ok = key && a->verify(key, text, signature);
        EVP_PKEY_free(key);
    }
    if (ok)
        return 0;
    wrong(e, tried ? "has a wrong signature" : "is signed by a key that the issuer does not have");
    return tried ? -1 : 1;
}

/* --- claims --- */

static bool audience_fits(const json_t *claims, struct str client_id)
{
    const json_t *aud = json_object_get(claims, "aud"), *azp = json_object_get(claims, "azp");
    bool found = is_str(aud, client_id);

    for (size_t i = 0; i < json_array_size(aud); i++)
        found = found || is_str(json_array_get(aud, i), client_id);
    if (azp ? !is_str(azp, client_id) : json_array_size(aud) > 1)
        return false;
    return found;
}

static int check_times(const json_t *claims, int64_t now_s, struct err *e)
{
    const json_t *exp = json_object_get(claims, "exp"), *iat = json_object_get(claims, "iat");
    const json_t *nbf = json_object_get(claims, "nbf");

    if (!json_is_number(exp) || json_number_value(exp) <= (double)(now_s - IDTOKEN_SKEW_S))
        return wrong(e, "has expired");
    if (!json_is_number(iat) || json_number_value(iat) > (double)(now_s + IDTOKEN_SKEW_S))
        return wrong(e, "was issued in the future");
    if (nbf && (!json_is_number(nbf) || json_number_value(nbf) > (double)(now_s + IDTOKEN_SKEW_S)))
        return wrong(e, "is not valid yet");
    return 0;
}

static int check_claims(const json_t *claims, const struct idtoken_expect *want, struct err *e)
{
    if (!is_str(json_object_get(claims, "iss"), want->issuer))
        return wrong(e, "is of another issuer");
    if (!audience_fits(claims, want->client_id))
        return wrong(e, "is for another client");
    if (check_times(claims, want->now_s, e) < 0)
        return -1;
    if (want->nonce.n == 0 || !is_str(json_object_get(claims, "nonce"), want->nonce))
        return wrong(e, "belongs to another login");
    if (json_string_length(json_object_get(claims, "sub")) == 0)
        return wrong(e, "names nobody");
    return 0;
}

static int read_part(struct str part, json_t **ret, struct err *e)
{
    AUTO(buf_done) struct buf text = {0};

    if (dec_base64(&text, part) < 0 || json_read(buf_str(&text), ret, e) < 0 ||
        !json_is_object(*ret))
        return wrong(e, "is damaged");
    return 0;
}

int idtoken_check(struct str token, const json_t *keys, const struct idtoken_expect *want,
                  json_t **ret, struct err *e)
{
    AUTO(json_decref) json_t *head = NULL, *claims = NULL;
    AUTO(buf_done) struct buf signature = {0};
    struct str rest, signature_part, head_part = str_cut(token, '.', &rest);
    struct str claims_part = str_cut(rest, '.', &signature_part);
    int r;

    if (token.n > IDTOKEN_MAX || str_index(signature_part, '.') >= 0)
        return wrong(e, "is not a signed token");
    if (read_part(head_part, &head, e) < 0 || read_part(claims_part, &claims, e) < 0)
        return -1;
    if (dec_base64(&signature, signature_part) < 0)
        return wrong(e, "is damaged");
    r = check_signature(keys, head, str_make(token.p, head_part.n + 1 + claims_part.n),
                        buf_str(&signature), e);
    if (r != 0)
        return r;
    if (check_claims(claims, want, e) < 0)
        return -1;
    *ret = TAKE(claims);
    return 0;
}
