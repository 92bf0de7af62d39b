/* collect: private to src/api: what a command wrote, gathered for one reply.
 * Ownership: the caller's memory; collect_done in any case. */
#pragma once

#include "api/request.h"
#include "core/exec/exec.h"

struct collect {
    struct exec *x;
    struct exec_reader *reader;
    struct buf streams[2]; /* stdout, stderr */
    size_t max;            /* bytes of each: of a longer one its beginning and its end */
    int64_t omitted[2];    /* bytes between these two */
    bool truncated;
    void (*done)(void *arg, const struct err *e);
    void *arg;
};

/* Reads the log from its start: the command has ended, or what is there is enough. */
void collect_start(struct collect *c, struct exec *x, size_t max,
                   void (*done)(void *arg, const struct err *e), void *arg);
void collect_done(struct collect *c);
/* The exec object with its output; c is NULL: without (it still runs). */
void collect_write(struct jw *w, const struct exec *x, const struct collect *c);
/* Also with what its sandbox is not. */
void collect_write_run(struct jw *w, const struct exec *x, const struct collect *c);
