/* run: make a sandbox, run one command in it, destroy it; whatever happens to who asked.
 * Thread: the loop's. */
#pragma once

#include "core/exec.h"

#define RUN_OUTPUT_MAX (8 << 20) /* bytes of each stream that a result holds */

struct run_result {        /* valid during the call */
    struct exec_info exec; /* of the command, which is gone by now */
    struct str out, err;   /* what it wrote: the first RUN_OUTPUT_MAX bytes */
    bool out_truncated, err_truncated;
};

/* r is NULL when there was nothing to run it in, or it could not be started: *e says why. */
typedef void (*run_cb)(void *arg, const struct run_result *r, const struct err *e);
struct run;
/* done comes when the sandbox is gone. */
struct run *sandbox_run(struct sandboxes *l, const struct sandbox_spec *ss,
                        const struct exec_spec *xs, const struct principal *by, run_cb done,
                        void *arg);
void run_abandon(struct run *r); /* who asked is gone: it ends now, done is not called */
