/* seal: AES-256-GCM encryption of stored secrets. */
#include "proto/seal.h"

#include "base/mem.h"
#include "base/rnd.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>

#define VERSION 1
#define NONCE 12
#define TAG 16

static void must(int ok)
{
    if (!ok)
        abort(); /* fails only without memory, or with an OpenSSL that lacks AES-GCM */
}

/* buf grows by moving: plain text must not stay behind in freed memory. */
static unsigned char *room(struct buf *to, size_t n)
{
    char *p = NULL;

    must(buf_reserve(to, n, &p) == 0);
    return (unsigned char *)p;
}

void seal(const unsigned char key[static SEAL_KEY], struct str name, struct str plain,
          struct buf *to)
{
    EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
    unsigned char *p = room(to, plain.n + SEAL_EXTRA), *nonce = p + 1, *text = nonce + NONCE;
    int n = 0;

    must(c && plain.n <= INT32_MAX);
    p[0] = VERSION;
    rnd_bytes(nonce, NONCE);
    must(EVP_EncryptInit_ex(c, EVP_aes_256_gcm(), NULL, key, nonce));
    must(EVP_EncryptUpdate(c, NULL, &n, (const unsigned char *)name.p, (int)name.n));
    must(EVP_EncryptUpdate(c, text, &n, (const unsigned char *)plain.p, (int)plain.n));
    must(EVP_EncryptFinal_ex(c, text + plain.n, &n));
    must(EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG, TAG, text + plain.n));
    EVP_CIPHER_CTX_free(c);
    buf_added(to, plain.n + SEAL_EXTRA);
}

int seal_open(const unsigned char key[static SEAL_KEY], struct str name, struct str sealed,
              struct buf *to)
{
    const unsigned char *p = (const unsigned char *)sealed.p, *nonce = p + 1, *text = nonce + NONCE;
    unsigned char tag[TAG], *plain;
    EVP_CIPHER_CTX *c;
    int n = 0, ok;
    size_t size;

    if (sealed.n < SEAL_EXTRA || sealed.n > INT32_MAX || p[0] != VERSION)
        return -EBADMSG;
    size = sealed.n - SEAL_EXTRA;
    plain = room(to, size + 1);
    memcpy(tag, text + size, TAG);
    c = EVP_CIPHER_CTX_new();
    must(c && EVP_DecryptInit_ex(c, EVP_aes_256_gcm(), NULL, key, nonce));
    must(EVP_DecryptUpdate(c, NULL, &n, (const unsigned char *)name.p, (int)name.n));
    must(EVP_DecryptUpdate(c, plain, &n, text, (int)size));
    must(EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_SET_TAG, TAG, tag));
    ok = EVP_DecryptFinal_ex(c, plain + size, &n) > 0;
    EVP_CIPHER_CTX_free(c);
    if (!ok) {
        mem_wipe(plain, size);
        return -EBADMSG;
    }
    buf_added(to, size);
    return 0;
}
