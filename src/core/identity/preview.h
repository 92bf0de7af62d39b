/* preview: grants to view a server inside a sandbox in a browser.  A grant is for one port of one
 * sandbox; it begins as a one-time code (in the link that the API returns) and becomes the value of
 * a cookie for that preview's origin alone.  Kept in memory only: after a restart of holtd a new
 * link is needed.  When there are too many, the oldest are dropped.  Thread: the loop's. */
#pragma once

#include "core/identity/identity.h"

#define PREVIEW_CODE_MS (10 * 60 * 1000)

struct preview_grant {
    char sandbox[ID_SIZE];
    int port;
    struct principal who; /* whose rights apply; who.token is NULL, the actor names it */
};

struct previews;
struct previews *previews_new(void);
struct previews *previews_free(struct previews *p); /* takes NULL; returns NULL */
char *preview_code(struct previews *p, const struct preview_grant *g, char *to); /* TOKEN_TEXT */
/* Exchanges a code of this sandbox and port for a cookie's value (TOKEN_TEXT bytes); the code is
 * used up.  NULL: it is wrong, used, too old, or another preview's. */
const struct preview_grant *preview_redeem(struct previews *p, struct str code, const char *sandbox,
                                           int port, char *to);
/* NULL: no such cookie, or another preview's.  Valid until the next call. */
const struct preview_grant *preview_check(struct previews *p, struct str cookie,
                                          const char *sandbox, int port);
