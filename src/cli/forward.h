/* forward: one TCP connection to this machine, joined to a port inside a sandbox by a WebSocket
 * (subprotocol holt.tcp.v1: binary messages are the bytes, an empty one ends its direction).
 * Ownership: a forward frees itself at its end.  Thread: the loop's. */
#pragma once

#include "cli/request.h"

struct forward_to { /* shared by all connections of one command; outlives them */
    uv_loop_t *loop;
    const struct target *t;
    const struct client_url *url;
    struct dial_tls *tls;
    const struct request_headers *headers;
    int64_t live; /* number of connections */
};

/* Accepts a connection from the listener; target is the port's path. */
void forward_accept(struct forward_to *to, uv_stream_t *listener, const char *target);
