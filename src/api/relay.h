/* relay: private to src/api: connections from inside sandboxes to the API.  Each is a pipe of the
 * guest's on one side and a socket of the server's on the other; its requests are its sandbox's and
 * carry no rights of their own (AUTH_INSIDE).
 * process_api's lead to that only (dialects/agentbox/process.c).  Thread: the loop's. */
#pragma once

#include "api/request.h"

struct guest_pipe;
int relay_serve(void *api, const char *sandbox, bool process_api, struct guest_pipe *p,
                struct err *e);
