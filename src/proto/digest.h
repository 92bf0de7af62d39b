/* digest: SHA-256 and HMAC-SHA-256 (OpenSSL's). */
#pragma once

#include "base/str.h"

#define SHA256_SIZE 32

void sha256(struct str s, unsigned char to[SHA256_SIZE]);

struct sha256_state; /* for input in several parts */
struct sha256_state *sha256_new(void);
void sha256_add(struct sha256_state *s, const void *p, size_t n);
void sha256_end(struct sha256_state *s, unsigned char to[SHA256_SIZE]); /* resets it */
void sha256_free(struct sha256_state *s);                               /* takes NULL */
void hmac_sha256(struct str key, struct str s, unsigned char to[SHA256_SIZE]);
