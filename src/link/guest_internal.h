/* guest_internal: shared by the parts of the guest: the connection (guest.c, its I/O in guest_io.c)
 * and its channels (guest_exec.c, guest_pipe.c).  Callbacks may do anything, also end the channel
 * or the guest they come from: a channel is held while its message is handled, and checked again
 * after each call.  guest_make and guest_feed run a guest without descriptors: its output is in
 * `out`. */
#pragma once

#include "base/list.h"
#include "link/guest.h"
#include "wire/flow.h"

#define GUEST_BUCKETS 32
#define GUEST_OUT_LOW (64 * 1024)   /* above: take no more data */
#define GUEST_OUT_HIGH (512 * 1024) /* above: no new channels, no pongs */
#define GUEST_OUT_MAX (1024 * 1024) /* above: the guest does not read; end the connection */
#define GUEST_STATS_WAITING 64

struct guest_channel;
struct guest_channel_ops {
    int (*msg)(struct guest_channel *c, const struct guest_msg *m, struct err *e); /* not reset */
    void (*room)(struct guest_channel *c); /* the connection has room again */
    void (*gone)(struct guest_channel *c, const struct err *e);
};

struct guest_channel { /* the first member of its owner, which is freed with it */
    const struct guest_channel_ops *ops;
    struct guest *g;
    struct list node;    /* in its bucket */
    struct list waiting; /* waits for the connection's room */
    uint32_t number;
    unsigned refs;
    uint32_t *counted; /* of the guest's counts; NULL: none */
    bool dead;         /* notified, or dropped */
};

struct guest_io;
/* ruling: it waits until init holds its rules; over: lost or closed */
enum guest_state { GUEST_GREETING, GUEST_RULING, GUEST_READY, GUEST_OVER };

struct guest {
    const struct guest_ops *ops;
    void *arg;
    enum guest_state state;
    unsigned refs;
    bool closed;
    bool corked; /* frames are being handled: output is sent together afterwards */
    struct guest_reader in;
    struct buf out;
    struct err doom; /* set outside the loop's calls: reported on its next turn */
    uint8_t nonce[16];
    uint32_t last_ours, last_theirs; /* channel numbers used so far */
    uint32_t channel_count;
    uint32_t relay_count; /* of them: opened by init, to holtd */
    uint32_t led_count;   /* … and to be led out */
    struct list channels[GUEST_BUCKETS];
    struct list waiting;
    struct list stats; /* struct stats_wait */
    size_t stats_count;
    uint32_t ruling;               /* rules that init has not answered */
    uint32_t landlock;             /* its last answer */
    struct guest_hello_init hello; /* of an init that has yet to answer */
    struct buf hello_rows;
    uint64_t ping_token;
    bool ping_out, heard;
    int silent;                    /* ticks without a byte after a ping */
    void (*kick)(struct guest *g); /* there is output or a report; NULL: not used */
    struct guest_io *io;           /* of guest_io.c */
};

/* ---- without descriptors ---- */

struct guest *guest_make(const struct guest_ops *ops, void *arg); /* its hello is in out */
struct guest *guest_ref(struct guest *g);
struct guest *guest_unref(struct guest *g); /* returns NULL */
DEFINE_AUTO(struct guest *, guest_unref)
/* Takes received bytes.  Violations end in lost. */
void guest_feed(struct guest *g, struct str bytes);
/* The same for n bytes that were put into g->in.  False: take no more. */
bool guest_added(struct guest *g, size_t n);
void guest_took(struct guest *g); /* out has shrunk: notifies channels that wait for room */
void guest_tick(struct guest *g); /* of the ping timer */
void guest_fail(struct guest *g, const struct err *e); /* from the loop's calls only */
void guest_doom(struct guest *g, enum err_code code, const char *why); /* from anywhere */

/* ---- for channels ---- */

/* Encodes and queues; -1 only for what cannot be encoded.  After the end it does nothing. */
CHECKED int guest_send(struct guest *g, const struct guest_msg *m, struct err *e);
void guest_say(struct guest_channel *c, enum guest_type type); /* a message without payload */
void guest_say_ack(struct guest_channel *c, enum guest_stream s, const struct guest_ack *a);
/* Sends all of `bytes`: the caller has checked guest_has_room and its window. */
void guest_send_data(struct guest_channel *c, uint64_t offset, struct str bytes, bool eof);
bool guest_has_room(const struct guest *g);
void guest_wait_room(struct guest_channel *c);

/* Sends m, whose channel number it sets, and makes c that channel.  The caller frees after -1. */
CHECKED int guest_channel_open(struct guest *g, struct guest_channel *c,
                               const struct guest_channel_ops *ops, struct guest_msg *m,
                               struct err *e);
/* Makes c the channel of that number, which init has opened; counted: the count it adds to. */
void guest_channel_take(struct guest *g, struct guest_channel *c,
                        const struct guest_channel_ops *ops, uint32_t number, uint32_t *counted);
bool guest_relay_leads_out(const struct guest_relay *r);
/* Of guest_pipe.c: init requests a connection.  -1: refused. */
CHECKED int guest_pipe_take(struct guest *g, const struct guest_msg *m, struct err *e);
void guest_channel_unref(struct guest_channel *c);
/* no more callbacks; false: it was already dead */
bool guest_channel_kill(struct guest_channel *c);
void guest_channel_end(struct guest_channel *c, const struct err *e); /* and notifies it */
