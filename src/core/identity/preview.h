/* preview: who may look at what a server inside a sandbox shows in a browser.  A grant is for one
 * port of one sandbox; it begins as a one-time code (in the link that the API hands out) and
 * becomes the value of a cookie of that preview's origin alone.  Kept in memory only: after a
 * restart of holtd one asks for a new link.  Of more than fit, the oldest go.  Thread: the loop's.
 */
#pragma once

#include "core/identity/identity.h"

#define PREVIEW_CODE_MS (10 * 60 * 1000)

struct preview_grant {
    char sandbox[ID_SIZE];
    int port;
    struct principal who; /* whose right it is; who.token is NULL, the actor names it */
};

struct previews;
struct previews *previews_new(void);
struct previews *previews_free(struct previews *p); /* takes NULL; returns NULL */
char *preview_code(struct previews *p, const struct preview_grant *g, char *to); /* TOKEN_TEXT */
/* A code of this sandbox and port becomes a cookie's value (TOKEN_TEXT bytes); it is used up. NULL:
 * it is wrong, used, too old, or another preview's. */
const struct preview_grant *preview_redeem(struct previews *p, struct str code, const char *sandbox,
                                           int port, char *to);
/* NULL: no such cookie, or another preview's.  Valid until the next call. */
const struct preview_grant *preview_check(struct previews *p, struct str cookie,
                                          const char *sandbox, int port);
