/* cors: which web pages of other origins may read replies (Fetch standard, "CORS protocol").
 * Call for each request before its handler.  Thread: the loop's. */
#pragma once

#include "net/xchg.h"

struct cors {
    const char *const *origins; /* "https://app.example", or "*" for all, then without cookies */
    size_t count;
    bool without_cookies; /* for none of them */
};

/* Is this origin of a list it?  Ports may be a range: "http://localhost:5173-5183". */
bool cors_fits(const char *pattern, struct str origin);
/* Adds the headers that the reply needs (with Vary: Origin); true: it was a preflight, which is
 * answered. */
CHECKED bool cors_apply(const struct cors *c, struct xchg *x);
