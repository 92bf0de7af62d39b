/* guest: holtd's end of the guest protocol (docs/protocol-guest.md): one connection to one init.
 * Every byte from the guest is hostile: a violation ends the connection (ops->lost), never the
 * process.  guest_open takes a connected socket and owns it; after lost the owner calls
 * guest_close, reconnects and attaches its execs.  Channels are owned by the guest; each channel's
 * last call is `gone` or `done`, exactly once.  Any call may be made from any callback; no callback
 * comes from within a call, except guest_close.  Flow: output counts against the window until it is
 * acknowledged.  Thread: the loop's. */
#pragma once

#include "base/err.h"
#include "wire/guest.h"

#include <uv.h>

struct guest;
struct guest_pipe;

struct guest_ops {
    void (*ready)(struct guest *g,
                  const struct guest_hello_init *h); /* epoch, version, its execs */
    /* the last call; all channels have been notified */
    void (*lost)(struct guest *g, const struct err *e);
    /* A connection from inside to the API.  0: guest_pipe_serve was called with p; -1: refused, and
     * *e has the reason.  NULL: none is served. */
    int (*relay)(struct guest *g, struct guest_pipe *p, const struct guest_relay *from,
                 struct err *e);
    /* Init holds rules that were sent after ready.  NULL: not used. */
    void (*ruled)(struct guest *g);
};

struct guest *guest_open(uv_loop_t *loop, int fd, const struct guest_ops *ops, void *arg);
/* Notifies the channels (gone, done: cancelled) and nothing else, then frees; the last call, also
 * after lost.  Takes NULL. */
void guest_close(struct guest *g);
void *guest_arg(const struct guest *g);
/* Path rules for all commands and file calls that follow.  After guest_open and before the loop
 * turns, `ready` waits until init holds them: nothing begins without.  -1: too many. */
CHECKED int guest_rules(struct guest *g, const struct guest_rules *r, struct err *e);
/* The version of Landlock by which init holds them for commands; 0: none. */
uint32_t guest_landlock(const struct guest *g);
typedef void (*guest_stats_cb)(void *arg, const struct guest_stats *s, const struct err *e);
/* Fails at once without a connection or with too many requests. */
void guest_stats(struct guest *g, guest_stats_cb done, void *arg);

/* --- a command --- */

struct guest_exec;
struct guest_exec_ops {
    void (*running)(struct guest_exec *x, const struct guest_exec_running *r);
    /* In order, without gaps; call guest_exec_ack when the bytes are stored. */
    void (*output)(struct guest_exec *x, enum guest_stream s, uint64_t offset, struct str bytes);
    /* there is room again after guest_exec_stdin took less than offered */
    void (*stdin_room)(struct guest_exec *x);
    void (*exited)(struct guest_exec *x,
                   const struct guest_exec_exit *how); /* then call guest_exec_forget */
    void (*gone)(struct guest_exec *x,
                 const struct err *e); /* detached: the command continues inside */
};
CHECKED int guest_exec_start(struct guest *g, const struct guest_exec_start *s,
                             const struct guest_exec_ops *ops, void *arg, struct guest_exec **ret,
                             struct err *e);
CHECKED int guest_exec_attach(struct guest *g, const struct guest_exec_attach *s,
                              const struct guest_exec_ops *ops, void *arg, struct guest_exec **ret,
                              struct err *e);
void *guest_exec_arg(const struct guest_exec *x);
void guest_exec_ack(struct guest_exec *x, enum guest_stream s, uint64_t upto);
/* Sends bytes from stdin offset `at`; returns the number taken, including bytes init already
 * has.  If it is less, stdin_room is called; none are taken before `running`.  Keep unacknowledged
 * bytes: after a reconnect stdin continues at running.in_at.  eof counts when all bytes were
 * taken. */
size_t guest_exec_stdin(struct guest_exec *x, uint64_t at, struct str bytes, bool eof);
uint64_t guest_exec_stdin_at(const struct guest_exec *x); /* acknowledged by init */
void guest_exec_resize(struct guest_exec *x, uint16_t rows, uint16_t cols);
void guest_exec_signal(struct guest_exec *x, int signal, enum guest_scope scope);
void guest_exec_forget(struct guest_exec *x); /* the end is committed; no call after it */
void guest_exec_drop(struct guest_exec *x);   /* detach; no call after it */

/* --- a file transfer, a dial, a relay: bytes both ways --- */

struct guest_pipe_ops {
    void (*opened)(struct guest_pipe *p); /* a dial has connected */
    /* call guest_pipe_consume to open the window */
    void (*data)(struct guest_pipe *p, struct str bytes);
    void (*eof)(struct guest_pipe *p); /* it has stopped sending */
    /* there is room again after guest_pipe_write took less than offered */
    void (*room)(struct guest_pipe *p);
    /* The last call.  info: of a successful file call, else NULL.  e->code ERR_NONE: a clean
     * end. */
    void (*done)(struct guest_pipe *p, const struct guest_file_done *info, const struct err *e);
};
CHECKED int guest_file(struct guest *g, const struct guest_file_call *c,
                       const struct guest_pipe_ops *ops, void *arg, struct guest_pipe **ret,
                       struct err *e);
CHECKED int guest_dial(struct guest *g, const struct guest_dial *d,
                       const struct guest_pipe_ops *ops, void *arg, struct guest_pipe **ret,
                       struct err *e);
#define GUEST_RELAYS_MAX 64 /* concurrent connections from inside one guest to holtd */
#define GUEST_LED_MAX 512   /* … and those that it leads out */
void guest_pipe_serve(struct guest_pipe *p, const struct guest_pipe_ops *ops, void *arg);
void *guest_pipe_arg(const struct guest_pipe *p);
/* returns the number of bytes taken */
size_t guest_pipe_write(struct guest_pipe *p, struct str bytes);
void guest_pipe_eof(struct guest_pipe *p);
void guest_pipe_consume(struct guest_pipe *p, size_t n);
void guest_pipe_cancel(struct guest_pipe *p); /* no call after it */
