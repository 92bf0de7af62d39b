/* run: makes a sandbox, runs one command in it, destroys it; whatever happens to the client.
 * Ownership: a run frees itself after its last call.  Thread: the loop's. */
#pragma once

#include "core/exec/console.h"
#include "core/exec/exec.h"

struct run_spec { /* texts are copied */
    const struct sandbox_spec *sandbox;
    const struct exec_spec *exec;
    struct str input;          /* for the command's standard input */
    bool input_eof;            /* and nothing more */
    struct consoles *consoles; /* NULL: there is no input */
};

struct run;
struct run_ops {
    bool reads; /* the output is read while the command runs: it may block on a full log */
    void (*started)(void *arg, struct exec *x);     /* it runs; take a reference to keep it */
    void (*failed)(void *arg, const struct err *e); /* it never ran; the caller must call run_end */
    void (*destroyed)(void *arg);                   /* after run_end; the last call */
};

struct run *run_start(struct sandboxes *all, const struct run_spec *spec,
                      const struct principal *by, const struct run_ops *ops, void *arg);
/* Destroys the sandbox: at once, or as soon as it is ready. */
void run_end(struct run *run);
void run_forget(struct run *run); /* as run_end, without further callbacks */
