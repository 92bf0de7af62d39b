/* idtoken: checks ID tokens of OpenID Connect (Core 1.0 section 3.1.3.7): signed by the issuer with
 * RS256 or ES256, by a key of its set (RFC 7517).  Every byte is hostile until the signature fits.
 * No I/O.  Thread: any.  Errors: -1 with *e set (never with a part of the token). */
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <jansson.h>

#define IDTOKEN_MAX 16384
#define IDTOKEN_SKEW_S 60 /* clocks differ */

struct idtoken_expect {
    struct str issuer, client_id, nonce;
    int64_t now_s;
};

/* keys: the issuer's set, {"keys": […]}.  *ret: the claims; the caller frees them.
 * 1: no key of the set has the token's kid; a new set may. */
CHECKED int idtoken_check(struct str token, const json_t *keys, const struct idtoken_expect *want,
                          json_t **ret, struct err *e);
