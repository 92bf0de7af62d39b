/* ed25519: signatures of RFC 8032 (OpenSSL's).  No I/O.  Thread: any.  Errors: -1 with *e set. */
#pragma once

#include "base/err.h"
#include "base/str.h"

#define ED25519_KEY 32
#define ED25519_SIGNATURE 64

struct ed25519 { /* secret */
    unsigned char seed[ED25519_KEY], public_key[ED25519_KEY];
};

/* The key pair of ret->seed. */
CHECKED int ed25519_of_seed(struct ed25519 *ret, struct err *e);
CHECKED int ed25519_sign(const struct ed25519 *k, struct str bytes,
                         unsigned char ret[ED25519_SIGNATURE], struct err *e);
