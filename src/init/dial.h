/* dial: connections from outside to a server inside the sandbox, and relay: from inside to holtd's
 * API, through a Unix socket that init listens on, or to its process_api, through a TCP port. */
#pragma once

#include "wire/guest.h"

void dial_open(const struct guest_msg *m);
CHECKED int relay_listen(const char *path); /* 0, or -errno */
CHECKED int process_listen(uint16_t port);  /* … */
CHECKED int
hub_listen(const char *at); /* "127.0.0.80:8080"; the same for what knows names and ports only */
