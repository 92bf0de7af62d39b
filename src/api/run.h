/* run: private to src/api: one command in a sandbox of its own, which is destroyed whatever
 * happens. The steps that the two forms of the operation share: make, start, destroy. */
#pragma once

#include "api/sandbox.h"

struct run;
struct run_ops {
    bool reads; /* the output is read while the command runs: it may be made to wait for that */
    void (*started)(void *arg, struct exec *x);     /* it runs; take a reference to keep it */
    void (*failed)(void *arg, const struct err *e); /* it never ran; run_end follows from you */
    void (*destroyed)(void *arg);                   /* after run_end; the last call */
};

/* Reads the input and begins; NULL: *e says what is wrong with it. */
struct run *run_start(struct request *r, const struct run_in *in, const struct run_ops *ops,
                      void *arg, struct err *e);
/* Destroys the sandbox: at once, or as soon as it is there. */
void run_end(struct run *run);
void run_forget(struct run *run); /* as run_end, and no call comes any more */
