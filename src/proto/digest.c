/* digest: SHA-256 and HMAC-SHA-256, by OpenSSL. */
#include "proto/digest.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <pthread.h>
#include <stdlib.h>

/* SHA256() fetches the algorithm on each call (1 µs); a context per thread avoids that. */
struct sha256_state {
    EVP_MD_CTX *ctx;
};

static void must(int ok)
{
    if (!ok)
        abort(); /* fails only without memory, or with an OpenSSL that lacks SHA-256 */
}

struct sha256_state *sha256_new(void)
{
    struct sha256_state *s = calloc(1, sizeof *s);

    must(s != NULL);
    s->ctx = EVP_MD_CTX_new();
    must(s->ctx && EVP_DigestInit_ex(s->ctx, EVP_sha256(), NULL));
    return s;
}

void sha256_add(struct sha256_state *s, const void *p, size_t n)
{
    must(EVP_DigestUpdate(s->ctx, p, n));
}

void sha256_end(struct sha256_state *s, unsigned char to[SHA256_SIZE])
{
    must(EVP_DigestFinal_ex(s->ctx, to, NULL));
    must(EVP_DigestInit_ex(s->ctx, NULL, NULL));
}

void sha256_free(struct sha256_state *s)
{
    if (!s)
        return;
    EVP_MD_CTX_free(s->ctx);
    free(s);
}

/* Thread-local variables have no destructor; keys of pthread_key_create(3) have. */
static pthread_key_t state_key;

static void free_state(void *state)
{
    sha256_free(state);
}

static void make_key(void)
{
    must(pthread_key_create(&state_key, free_state) == 0);
}

static struct sha256_state *thread_state(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct sha256_state *state;

    must(pthread_once(&once, make_key) == 0);
    state = pthread_getspecific(state_key);
    if (!state) {
        state = sha256_new();
        must(pthread_setspecific(state_key, state) == 0);
    }
    return state;
}

void sha256(struct str s, unsigned char to[SHA256_SIZE])
{
    struct sha256_state *state = thread_state();

    sha256_add(state, s.p, s.n);
    sha256_end(state, to);
}

void hmac_sha256(struct str key, struct str s, unsigned char to[SHA256_SIZE])
{
    must(HMAC(EVP_sha256(), key.p, (int)key.n, (const unsigned char *)s.p, s.n, to, NULL) != NULL);
}
