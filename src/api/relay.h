/* relay: private to src/api: connections from inside sandboxes to the API.  Each joins a pipe of
 * the guest and a socket of the server; its requests act as the sandbox and carry no rights of
 * their own (AUTH_INSIDE).  Connections to process_api reach only the dialect that serves it.
 * Thread: the loop's. */
#pragma once

#include "api/request.h"

struct guest_pipe;
int relay_serve(void *api, const char *sandbox, bool process_api, struct guest_pipe *p,
                struct err *e);
