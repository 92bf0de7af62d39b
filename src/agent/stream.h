/* stream: one gRPC call of this program's to its server, over HTTP/2 in clear text: messages up and
 * down until either side ends it.  No call blocks.  Thread: the loop's; only the connection is made
 * on another (connect.c).  Errors: the text that `ended` gets. */
#pragma once

#include "base/buf.h"

struct stream;

struct stream_ops {
    void (*opened)(void); /* messages may be sent */
    void (*message)(struct str bytes);
    void (*room)(void); /* stream_is_full was true, and is not any more */
    /* The last call.  refused: the server does not want us as we are. */
    void (*ended)(const char *why, bool refused);
};

struct stream_target {
    const char *host, *port;
    const char *id, *secret;
};

/* Begins to connect.  One at a time: only after `ended`, which is not called from within. */
void stream_open(const struct stream_target *to, const struct stream_ops *ops);
void stream_send(struct str message);
bool stream_is_full(void); /* enough waits to be sent */
bool stream_is_open(void);
void stream_local(char *to, size_t size); /* our address, as the server sees it; "": none */
void stream_finish(void);                 /* half-closes: what waits is sent */
void stream_abort(const char *why);
