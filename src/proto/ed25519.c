/* ed25519: keys and signatures. */
#include "proto/ed25519.h"

#include <openssl/evp.h>

int ed25519_of_seed(struct ed25519 *ret, struct err *e)
{
    size_t n = sizeof ret->public_key;
    EVP_PKEY *key =
        EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, ret->seed, sizeof ret->seed);
    int ok = key && EVP_PKEY_get_raw_public_key(key, ret->public_key, &n) == 1;

    EVP_PKEY_free(key);
    return ok ? 0 : err_set(e, ERR_INTERNAL, 0, "OpenSSL makes no Ed25519 key");
}

int ed25519_sign(const struct ed25519 *k, struct str bytes, unsigned char ret[ED25519_SIGNATURE],
                 struct err *e)
{
    size_t n = ED25519_SIGNATURE;
    EVP_PKEY *key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, k->seed, sizeof k->seed);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    int ok = key && ctx && EVP_DigestSignInit(ctx, NULL, NULL, NULL, key) == 1 &&
             EVP_DigestSign(ctx, ret, &n, (const unsigned char *)bytes.p, bytes.n) == 1 &&
             n == ED25519_SIGNATURE;

    EVP_MD_CTX_free(ctx);
    EVP_PKEY_free(key);
    return ok ? 0 : err_set(e, ERR_INTERNAL, 0, "OpenSSL makes no Ed25519 signature");
}
