/* local: a holtd of this command's own, for the time it takes, where none runs.  What is made lives
 * on: the next holtd finds it in the database as if it had made it itself.  Errors: -1 with *e
 * set. */
#pragma once

#include "cli/cli.h"

#include <sys/types.h>

struct local {
    pid_t pid; /* 0: there is a server already */
    char *server;
};
/* args: "state", "config".  Points c at it.  A server that was named (--server, HOLT_SERVER, a
 * context), or that has this state directory, is used instead. */
CHECKED int local_open(struct cli *c, const json_t *args, struct local *ret, struct err *e);
void local_close(struct local *l); /* ends it; machines and sandboxes go on */
