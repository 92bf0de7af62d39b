/* sha256: FIPS 180-4, implemented here for our static and small programs: libcrypto is neither.
 * holtd uses proto/digest.h. */
#pragma once

#include "base/str.h"

#define HASH_SIZE 32

struct hash {
    uint32_t h[8];
    uint64_t bytes;
    unsigned char block[64];
};

void hash_init(struct hash *s);
void hash_add(struct hash *s, const void *p, size_t n);
void hash_end(struct hash *s, unsigned char to[HASH_SIZE]);
