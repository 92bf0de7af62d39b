/* helper: holtd's link to one helper program (holt-spawn, holt-egress, holt-virt), which outlives
 * holtd: tagged requests, a bounded queue, deadlines.  It reconnects when the connection is lost
 * and restarts the program when it has ended, with back-off.  The first packet carries a version,
 * which must be ours.  Ownership: a call is the caller's struct with struct helper_call first, made
 * by helper_call_new and freed by the link after its `end`, which comes exactly once, from the
 * loop, never from within a call.  Any function may be called from any callback.  Thread: the
 * loop's. */
#pragma once

#include "base/list.h"
#include "wire/packet.h"

#include <uv.h>

struct helper;

struct helper_fds { /* sent or received with a packet */
    int fd[PACKET_FDS_MAX];
    size_t n;
};
void helper_fds_close(struct helper_fds *f);

struct helper_ops {                      /* msg: a message struct of the protocol */
    void (*hello)(void *arg, void *msg); /* fills in the body of the first packet */
    /* It is connected.  Calls made here go before those that wait. */
    void (*welcomed)(void *arg, const void *msg);
    void (*up)(void *arg); /* right after: calls are sent from here on; NULL: not used */
    /* A packet that is no reply; also before welcomed.  fds that are not taken are closed. */
    void (*event)(void *arg, const void *msg, struct helper_fds *fds);
    /* The connection is lost (once each time), or the program does not start. */
    void (*down)(void *arg, const struct err *e);
};

struct helper_config {
    uv_loop_t *loop;
    const struct packet_protocol *protocol;
    const char *state;  /* the state directory: NAME.sock and NAME.log are in it */
    const char *bindir; /* of the program */
    const char *name;   /* "spawn": of holt-spawn; outlives it */
    size_t calls_max;   /* waiting or in progress */
    int64_t lack_ms;    /* how long a call waits for a missing helper; 0: for ever */
    const struct helper_ops *ops;
    void *arg;
};

enum helper_flag {
    /* fails if the connection is lost after it was sent; otherwise it is sent again */
    HELPER_ONCE = 1,
    HELPER_PATIENT = 2, /* waits for a missing helper for ever */
};

struct helper_call {
    struct list node;
    struct helper *h;
    uint32_t tag;
    unsigned flags; /* enum helper_flag */
    bool sent, over;
    int64_t since_ms, until_ms; /* until_ms: its deadline; 0: none */
    char *packet;               /* wiped when it is freed: it may hold a key */
    size_t size;
    struct helper_fds out; /* to be sent with it: set before helper_call_send, closed by the link */
    struct helper_fds in;  /* received with the reply; `end` may take them, the rest are closed */
    struct err err;        /* ERR_NONE, or why it failed; may be set before helper_call_send */
    /* msg: the reply, or NULL: an untagged request was sent, or err has the reason. */
    void (*end)(struct helper_call *c, const void *msg);
};

struct helper *helper_new(const struct helper_config *c);
/* Waiting calls end as cancelled; the program keeps running.  Takes NULL; returns NULL. */
struct helper *helper_free(struct helper *h);
/* Defines how to start it, for base/starter.h; before the seal.  argv ends with NULL. */
CHECKED int helper_define(struct helper *h, char *const *argv, struct err *e);
/* Connects from the loop; starts the program if it does not listen. */
void helper_start(struct helper *h);
/* The same, and blocks until it has sent welcome: at start-up only.  15 s for its start, 5 s for
 * its reply.  A program that ends at its start: ERR_UNSUPPORTED, with the reason from its log. */
CHECKED int helper_start_now(struct helper *h, struct err *e);
bool helper_is_up(const struct helper *h); /* it has sent welcome */
int helper_dir(const struct helper *h);    /* the state directory, O_PATH */

/* A zeroed struct of this size, in the queue; set `end` before sending it. */
void *helper_call_new(struct helper *h, size_t size, unsigned flags);
void helper_call_deadline(struct helper_call *c, int64_t ms); /* from now on */
/* msg: type and body; the tag is set.  Failures are reported on the loop's next turn. */
void helper_call_send(struct helper_call *c, void *msg);
/* A connected, non-blocking socket to a name below a directory; or -errno.  Through /proc: sun_path
 * holds 108 bytes, and the state directory may be anywhere. */
int helper_connect_below(int dir, int type, const char *name);
