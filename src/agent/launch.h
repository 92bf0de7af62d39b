/* launch: a process with pipes or a terminal, in a session of its own.  Errors: 0, or -1 with *e.
 */
#pragma once

#include "api/agentic.pb.h"

#include <sys/types.h>

struct launched { /* non-blocking descriptors; -1: none */
    pid_t pid;
    int in;       /* of a terminal: -1, out is both */
    int out, err; /* of a terminal, err: -1 */
    int failure;  /* an errno, if it could not be executed; else nothing */
};

CHECKED int launch(const struct agentic_command_request *q, struct launched *ret, struct err *e);
void launch_signal_session(pid_t session, int signal); /* every process of it */
