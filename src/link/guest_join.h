/* guest_join: a connection from inside a guest (struct guest_ops, relay) joined with a socket:
 * bytes and ends of both directions are passed on until both have ended or one side breaks off.
 * Holds at most the guest's window in each direction.  Thread: the loop's. */
#pragma once

#include "link/guest.h"

/* Serves p; fd: a connected, non-blocking stream socket, taken in any case. */
CHECKED int guest_join(uv_loop_t *loop, struct guest_pipe *p, int fd, struct err *e);
