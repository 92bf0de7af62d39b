/* conn: init's connection to holtd, and its channels.  There is one; the newest wins.
 * Channels belong to their kind (exec, file, dial), which embeds them; conn calls back. */
#pragma once

#include "base/list.h"
#include "wire/flow.h"

struct channel;
struct channel_ops {
    void (*on_msg)(struct channel *c, const struct guest_msg *m);
    /* Queues one frame of its stream, if it has and may: conn_data.  False: nothing to send. */
    bool (*fill)(struct channel *c);
    /* The channel is closed (already unlinked): by the peer, by channel_close, or with the
     * connection. */
    void (*on_gone)(struct channel *c);
};
struct channel {
    struct list node;
    const struct channel_ops *ops;
    uint32_t number; /* 0: closed */
};

void conn_listen(int fd);           /* takes fd: a listening socket */
void conn_serve(int fd, bool scan); /* takes fd: a stream that is connected */
int conn_timeout_ms(void);          /* until conn_tick is due; -1: never */
void conn_tick(void);

void conn_spare_accept(int fd); /* hangs up on the next one when no descriptor is left */
/* Queues m, sent by conn_flush; false: there is no connection. */
bool conn_send(const struct guest_msg *m);
/* Once a turn, before the wait: sends what was queued and what channels have, in one call. */
void conn_flush(void);
/* For fill: queues bytes at offset; returns how many were taken. */
size_t conn_data(struct channel *c, enum guest_stream stream, uint64_t offset, struct str bytes,
                 bool eof);

void channel_open(struct channel *c, uint32_t number, const struct channel_ops *ops);
/* One that init opens: the number, or 0: nobody is connected, or too many are open. */
CHECKED uint32_t channel_number(void);
void channel_close(struct channel *c, const struct err *e); /* e: reset; NULL: close */
void channel_end(struct channel *c); /* what was sent last has ended it for the peer */
