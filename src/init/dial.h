/* dial: connections from outside to a server inside the sandbox.  relay: connections from inside to
 * holtd's API, through a Unix socket that init listens on, or to its process_api, through a TCP
 * port. */
#pragma once

#include "wire/guest.h"

void dial_open(const struct guest_msg *m);
/* A connection from inside to a service of holtd's, or out (init/out.h); takes fd. */
void relay_to(int fd, const struct guest_relay *to);
CHECKED int relay_listen(const char *path); /* 0, or -errno */
CHECKED int process_listen(uint16_t port);  /* 0, or -errno */
CHECKED int
/* "127.0.0.80:8080"; the API again, for programs that only take a name and port */
hub_listen(const char *at);
