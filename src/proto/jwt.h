/* jwt: the credentials of the TCP proxy: JSON web tokens signed with HMAC-SHA-256 (RFC 7519), as
 * clients of the described systems use them.  No I/O.  Errors: -1 with *e set (never with a part of
 * the token). */
#pragma once

#include "base/err.h"
#include "base/str.h"

#define JWT_TEXT_MAX 8192
#define JWT_SESSION_MAX 255
#define JWT_SANDBOX_MAX 63

struct jwt {
    char session[JWT_SESSION_MAX + 1]; /* the member session_id */
    char sandbox[JWT_SANDBOX_MAX + 1]; /* sandbox_id; empty: none */
    int64_t exp_s;                     /* seconds since 1970 */
};

#define JWT_LIFE_S (4 * 3600)

/* A token for a session.  hosts are informative, joined by commas; the session's policy
 * decides.  The sandbox is holt's addition: session ids are reused, and a token must not work for a
 * later session. */
struct jwt_claims {
    struct str session, sandbox, tenant; /* tenant empty: null */
    struct str hosts;
    int64_t exp_s;
};
struct buf;
void jwt_mint(const struct jwt_claims *c, struct str key, struct buf *to);
/* The algorithm must be HS256, the signature correct, the token not expired; exp is required. */
CHECKED int jwt_check(struct str token, struct str key, int64_t now_s, struct jwt *ret,
                      struct err *e);
/* From "Basic …": the token in a password "jwt_TOKEN", for any user.  The buffer holds it. */
CHECKED int jwt_from_basic(struct str authorization, struct buf *hold, struct str *ret,
                           struct err *e);
