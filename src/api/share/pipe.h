/* pipe: private to src/api: a request that is one file call inside a sandbox, with streamed bytes:
 * the request's body in, the reply's body out, both with back-pressure, in constant memory.  It
 * lives in the exchange's arena and takes the exchange over. */
#pragma once

#include "api/share/revocable_stream.h"
#include "link/guest.h"

struct pipe;
struct pipe_ops { /* any may be NULL */
    /* Bytes of the call; returns how many are consumed now, the rest by pipe_consume. */
    size_t (*data)(struct pipe *p, struct str bytes);
    /* The call has ended; info as in guest_pipe_ops.  NULL: an empty reply, or the failure. */
    void (*done)(struct pipe *p, const struct guest_file_done *info, const struct err *e);
    void (*drained)(struct pipe *p); /* the reply has room again */
    void (*closed)(struct pipe *p);
};

struct pipe {
    struct request *r;
    struct guest_pipe *g; /* NULL: no call in progress */
    const struct pipe_ops *ops;
    struct buf held; /* of the body: not yet taken by the guest */
    struct revocable_stream live;
    size_t owed;  /* bytes of the call that are not consumed yet */
    bool upload;  /* the request's body is the input */
    bool to_disk; /* and goes onto the disk of the state directory, which has a reserve */
    bool body_over;
    bool taken; /* we own the exchange */
};

/* Begins the call of the request; failures are replied.  May be called again from ops->done, for a
 * second call. */
void pipe_start(struct pipe *p, struct guest *g, const struct guest_file_call *c);
void pipe_consume(struct pipe *p);                   /* consumes everything owed */
const char *file_kind(uint8_t dirent_type);          /* as op_file_kinds has it */
void pipe_fail(struct pipe *p, const struct err *e); /* sends an error reply, or cuts the reply */
