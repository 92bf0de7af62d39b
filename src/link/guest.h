/* guest: holtd's end of the guest protocol (docs/protocol-guest.md): one connection to one init.
 * Every byte from the guest is hostile: a violation ends the connection (ops->lost), never the
 * process. guest_open takes a connected socket and owns it; after lost the owner calls guest_close,
 * connects anew and attaches its execs. Channels are owned by the guest; each channel's last call
 * is `gone` or `done`, exactly once. Any call may be made from any callback; no callback comes from
 * within a call, but from guest_close. Flow: output counts against the window until it is
 * acknowledged.  Thread: the loop's. */
#pragma once

#include "base/err.h"
#include "wire/guest.h"

#include <uv.h>

struct guest;
struct guest_pipe;

struct guest_ops {
    void (*ready)(struct guest *g,
                  const struct guest_hello_init *h);    /* epoch, version, its execs */
    void (*lost)(struct guest *g, const struct err *e); /* the last call; all channels were told */
    /* A connection from inside to the API.  0: guest_pipe_serve was called with p; -1: refused, and
     * *e says why.  NULL: none is served. */
    int (*relay)(struct guest *g, struct guest_pipe *p, const struct guest_relay *from,
                 struct err *e);
};

struct guest *guest_open(uv_loop_t *loop, int fd, const struct guest_ops *ops, void *arg);
/* Tells the channels (gone, done: cancelled) and nothing else, then frees; the last call, also
 * after lost.  Takes NULL. */
void guest_close(struct guest *g);
void *guest_arg(const struct guest *g);
typedef void (*guest_stats_cb)(void *arg, const struct guest_stats *s, const struct err *e);
/* At once with an error when there is no connection or too many ask. */
void guest_stats(struct guest *g, guest_stats_cb done, void *arg);

/* --- a command --- */

struct guest_exec;
struct guest_exec_ops {
    void (*running)(struct guest_exec *x, const struct guest_exec_running *r);
    /* In order, without gaps; guest_exec_ack when the bytes are in safe hands. */
    void (*output)(struct guest_exec *x, enum guest_stream s, uint64_t offset, struct str bytes);
    void (*stdin_room)(struct guest_exec *x); /* guest_exec_stdin took less than offered; go on */
    void (*exited)(struct guest_exec *x,
                   const struct guest_exec_exit *how); /* then guest_exec_forget */
    void (*gone)(struct guest_exec *x,
                 const struct err *e); /* detached: the command goes on inside */
};
CHECKED int guest_exec_start(struct guest *g, const struct guest_exec_start *s,
                             const struct guest_exec_ops *ops, void *arg, struct guest_exec **ret,
                             struct err *e);
CHECKED int guest_exec_attach(struct guest *g, const struct guest_exec_attach *s,
                              const struct guest_exec_ops *ops, void *arg, struct guest_exec **ret,
                              struct err *e);
void *guest_exec_arg(const struct guest_exec *x);
void guest_exec_ack(struct guest_exec *x, enum guest_stream s, uint64_t upto);
/* Bytes from stdin offset `at`; returns how many were taken: what init has already counts.  Less:
 * stdin_room comes; none are taken before `running`.  Keep what is not acknowledged: after a
 * reconnect stdin goes on at running.in_at.  eof counts when all bytes were taken. */
size_t guest_exec_stdin(struct guest_exec *x, uint64_t at, struct str bytes, bool eof);
uint64_t guest_exec_stdin_at(const struct guest_exec *x); /* what init has acknowledged */
void guest_exec_resize(struct guest_exec *x, uint16_t rows, uint16_t cols);
void guest_exec_signal(struct guest_exec *x, int signal, enum guest_scope scope);
void guest_exec_forget(struct guest_exec *x); /* the end is committed; no call after it */
void guest_exec_drop(struct guest_exec *x);   /* detach; no call after it */

/* --- a file transfer, a dial, a relay: bytes each way --- */

struct guest_pipe_ops {
    void (*opened)(struct guest_pipe *p);                 /* a dial has connected */
    void (*data)(struct guest_pipe *p, struct str bytes); /* guest_pipe_consume opens the window */
    void (*eof)(struct guest_pipe *p);                    /* it sends no more */
    void (*room)(struct guest_pipe *p); /* guest_pipe_write took less than offered; go on */
    /* The last call.  info: of a file call that succeeded, else NULL.  e->code ERR_NONE: a good
     * end. */
    void (*done)(struct guest_pipe *p, const struct guest_file_done *info, const struct err *e);
};
CHECKED int guest_file(struct guest *g, const struct guest_file_call *c,
                       const struct guest_pipe_ops *ops, void *arg, struct guest_pipe **ret,
                       struct err *e);
CHECKED int guest_dial(struct guest *g, const struct guest_dial *d,
                       const struct guest_pipe_ops *ops, void *arg, struct guest_pipe **ret,
                       struct err *e);
#define GUEST_RELAYS_MAX 64 /* connections from inside, of one guest, at once */
void guest_pipe_serve(struct guest_pipe *p, const struct guest_pipe_ops *ops, void *arg);
void *guest_pipe_arg(const struct guest_pipe *p);
size_t guest_pipe_write(struct guest_pipe *p, struct str bytes); /* how many were taken */
void guest_pipe_eof(struct guest_pipe *p);
void guest_pipe_consume(struct guest_pipe *p, size_t n);
void guest_pipe_cancel(struct guest_pipe *p); /* no call after it */
