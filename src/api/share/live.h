/* live: private to src/api: replies that may go on for ever (attached terminals, followed output,
 * watches, proxied connections).  They end when their token dies, their agent may
 * act no more, or the daemon stops. */
#pragma once

#include "api/request.h"

struct live {
    struct list link;
    char token[ID_SIZE]; /* "": nobody's */
    char agent[PRINCIPAL_AGENT];
    /* The caller's, before live_begin: by it its asker acts, so it ends when an agent is revoked;
     * what only reads goes on. */
    bool acts;
    /* Ends the reply; live_end comes from there or later. */
    void (*end)(struct live *l, int ws_code, const char *why);
};

void live_begin(struct live *l, struct request *r,
                void (*end)(struct live *l, int ws_code, const char *why));
void live_end(struct live *l);   /* harmless before live_begin and twice */
void lives_check(struct api *a); /* ends those that may not go on */
void lives_end(struct api *a);   /* ends all */
