/* revocable_stream: private to src/api: replies that may go on for ever (attached terminals,
 * followed output, watches, proxied connections).  They end when their token dies, their agent may
 * act no more, or the daemon stops. */
#pragma once

#include "api/request.h"

struct revocable_stream {
    struct list link;
    char token[ID_SIZE]; /* "": nobody's */
    char agent[PRINCIPAL_AGENT];
    /* The caller's, before revocable_stream_begin: by it its asker acts, so it ends when an agent
     * is revoked; what only reads goes on. */
    bool acts;
    /* Ends the reply; revocable_stream_end comes from there or later. */
    void (*end)(struct revocable_stream *l, int ws_code, const char *why);
};

void revocable_stream_begin(struct revocable_stream *l, struct request *r,
                            void (*end)(struct revocable_stream *l, int ws_code, const char *why));
void revocable_stream_end(
    struct revocable_stream *l);             /* harmless before revocable_stream_begin and twice */
void revocable_streams_check(struct api *a); /* ends those that may not go on */
void revocable_streams_end(struct api *a);   /* ends all */
