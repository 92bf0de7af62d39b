/* collect: private to src/api: the output of a command, collected for one reply.
 * Ownership: the caller's memory; call collect_done in any case. */
#pragma once

#include "api/request.h"
#include "core/exec/exec.h"

struct collect {
    struct exec *x;
    struct exec_reader *reader;
    struct buf streams[2]; /* stdout, stderr */
    size_t max;            /* limit per stream: beyond it, the beginning and the end are kept */
    int64_t omitted[2];    /* bytes left out between them */
    bool truncated;
    void (*done)(void *arg, const struct err *e);
    void *arg;
};

/* Reads the log from its start up to its present end. */
void collect_start(struct collect *c, struct exec *x, size_t max,
                   void (*done)(void *arg, const struct err *e), void *arg);
void collect_done(struct collect *c);
/* The exec object with its output; c is NULL: without (it is still running). */
void collect_write(struct jw *w, const struct exec *x, const struct collect *c);
/* Also with the warnings about its sandbox. */
void collect_write_run(struct jw *w, const struct exec *x, const struct collect *c);
