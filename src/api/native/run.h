/* run: private to src/api: shared by the two forms of the run operation. */
#pragma once

#include "api/share/sandbox.h"
#include "core/exec/run.h"

/* Reads the input and begins; NULL: *e names the wrong field. */
struct run *run_ask(struct request *r, const struct run_in *in, const struct run_ops *ops,
                    void *arg, struct err *e);
