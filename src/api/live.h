/* live: private to src/api: replies that may go on for ever (attached terminals, followed output,
 * watches, proxied connections).  They end when their token dies or the daemon stops. */
#pragma once

#include "api/request.h"

struct live {
    struct list link;
    char token[ID_SIZE]; /* "": nobody's */
    /* Ends the reply; live_end comes from there or later. */
    void (*end)(struct live *l, int ws_code, const char *why);
};

void live_begin(struct live *l, struct request *r,
                void (*end)(struct live *l, int ws_code, const char *why));
void live_end(struct live *l);   /* harmless before live_begin and twice */
void lives_check(struct api *a); /* ends those whose token is revoked or expired */
void lives_end(struct api *a);   /* ends all */
