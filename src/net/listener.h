/* listener: private to src/net: one bound address.  Thread: the loop's. */
#pragma once

#include "net/server.h"

struct listener {
    union {
        uv_handle_t any;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } h;
    struct listener_info info;
    bool is_unix;
    int64_t warned_ms;                 /* when a failed accept was last logged */
    void (*ready)(struct listener *l); /* a connection waits to be accepted */
    void (*closed)(struct listener *l);
    void *arg;
};

/* Binds and listens; address as in server_listen. */
CHECKED int listener_new(uv_loop_t *loop, const char *address, void (*ready)(struct listener *l),
                         void *arg, struct listener **ret, struct err *e);
void listener_close(struct listener *l, void (*closed)(struct listener *l));
void listener_free(struct listener *l); /* after closed */
