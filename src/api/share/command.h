/* command: private to src/api: a command from its start to its collected output, for handlers that
 * reply when it has ended.  Ownership: it frees itself with its last callback, or by
 * command_drop.  Thread: the loop's. */
#pragma once

#include "api/share/collect.h"
#include "api/share/sandbox.h"

struct command;

struct command_ops {
    void (*started)(void *arg, struct exec *x); /* may be NULL */
    /* The last call: c has the output.  If the command could not be started, x is NULL or has state
     * failed. */
    void (*done)(void *arg, struct exec *x, const struct collect *c, const struct err *e);
};

/* Copies the input.  Collects up to body_max bytes of each stream. */
struct command *command_start(struct api *a, struct sandbox *s, const struct exec_spec *spec,
                              const struct exec_input *input, const struct principal *by,
                              const struct command_ops *ops, void *arg);
/* The client has disconnected: no call after it.  end: ends the command too, unless holtd is
 * stopping and has cut the client off: a command survives a restart, as it survives a crash. */
void command_drop(struct command *c, bool end);
