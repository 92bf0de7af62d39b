/* cors: decides which web pages of other origins may read replies (Fetch standard, "CORS
 * protocol").
 * Call it for each request before its handler.  Thread: the loop's. */
#pragma once

#include "net/xchg.h"

struct cors {
    const char *const *origins; /* "https://app.example", or "*" for all without cookies */
    size_t count;
    bool without_cookies; /* never allow cookies */
};

/* Whether the origin matches this pattern.  Ports may be a range: "http://localhost:5173-5183". */
bool cors_fits(const char *pattern, struct str origin);
/* Adds the headers that the reply needs (with Vary: Origin); true: it was a preflight, and the
 * reply is sent. */
CHECKED bool cors_apply(const struct cors *c, struct xchg *x);
