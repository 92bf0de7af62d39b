/* door: a TCP port whose connections are not HTTP: each is given away as a stream.
 * Ownership: the caller's; it closes its doors and cuts their streams before server_stop.
 * Thread: the loop's. */
#pragma once

#include "net/server.h"
#include "net/stream.h"

struct door;
/* The stream is the callback's: it calls stream_handle or stream_cut. */
typedef void (*door_accepted)(void *arg, struct stream *s);
/* Address as in server_listen; port 0: a free one. */
CHECKED int door_open(struct server *s, const char *address, door_accepted accepted, void *arg,
                      struct door **ret, struct err *e);
int door_port(const struct door *d);
void door_close(struct door *d); /* takes NULL; no call after it */
