/* revocable_stream: private to src/api: replies without an end of their own (attached terminals,
 * followed output, watches, proxied connections).  They end when their token is revoked or expires,
 * their agent is revoked, or the daemon stops. */
#pragma once

#include "api/request.h"

struct revocable_stream {
    struct list link;
    char token[ID_SIZE]; /* "": none */
    char agent[PRINCIPAL_AGENT];
    /* Set by the caller before revocable_stream_begin: the stream acts for its caller, so it ends
     * when an agent is revoked; streams that only read continue. */
    bool acts;
    /* Ends the reply; revocable_stream_end is called then or later. */
    void (*end)(struct revocable_stream *l, int ws_code, const char *why);
};

void revocable_stream_begin(struct revocable_stream *l, struct request *r,
                            void (*end)(struct revocable_stream *l, int ws_code, const char *why));
void revocable_stream_end(
    struct revocable_stream *l);             /* harmless before revocable_stream_begin and twice */
void revocable_streams_check(struct api *a); /* ends those that lost their permission */
void revocable_streams_end(struct api *a);   /* ends all */
