/* conn: init's connection to holtd, and its channels.  There is one; the newest replaces it.
 * Channels are embedded in their owner (exec, file, dial); conn calls back. */
#pragma once

#include "base/list.h"
#include "wire/flow.h"

struct channel;
struct channel_ops {
    void (*on_msg)(struct channel *c, const struct guest_msg *m);
    /* Queues one frame of its stream with conn_data, if it has data and window.  False: nothing to
     * send. */
    bool (*fill)(struct channel *c);
    /* The channel was closed (and unlinked): by the peer, by channel_close, or with the
     * connection. */
    void (*on_gone)(struct channel *c);
};
struct channel {
    struct list node;
    const struct channel_ops *ops;
    uint32_t number; /* 0: closed */
};

void conn_listen(int fd); /* takes fd: a listening socket */
/* Takes fd: a socket over which connections come (wire/init_order.h); the rest is on_order's. */
void conn_receive(int fd, void (*on_order)(char what));
void conn_serve(int fd, bool scan); /* takes fd: a connected stream */
int conn_timeout_ms(void);          /* until conn_tick is due; -1: never */
void conn_tick(void);

void conn_spare_accept(int fd); /* closes the next connection when no descriptor is left */
/* Queues m, sent by conn_flush; false: not connected. */
bool conn_send(const struct guest_msg *m);
/* Once a turn, before waiting: sends queued frames and the channels' data in one call. */
void conn_flush(void);
/* For fill: queues bytes at offset; returns the number queued. */
size_t conn_data(struct channel *c, enum guest_stream stream, uint64_t offset, struct str bytes,
                 bool eof);

void channel_open(struct channel *c, uint32_t number, const struct channel_ops *ops);
/* A number for a channel that init opens; 0: not connected, or too many are open. */
CHECKED uint32_t channel_number(void);
void channel_close(struct channel *c, const struct err *e); /* e: sends reset; NULL: sends close */
void channel_end(struct channel *c); /* our last frame has ended it for the peer */
