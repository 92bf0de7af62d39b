/* spawn_link: the connection to holt-spawn: its socket, and starting it where none answers.
 * Packets only; what they mean is native.c's.  Errors: -1 with *e set. */
#pragma once

#include "base/err.h"
#include "wire/spawn.h"

struct spawn_link_home {
    int state;          /* the state directory, O_PATH */
    const char *path;   /* its path */
    const char *bindir; /* of holt-spawn and holt-init */
    char **allowed;     /* further arguments of holt-spawn: what the operator allows; or NULL */
    size_t allowed_n;
};

/* A connected, non-blocking socket; -1 with e->code ERR_UNAVAILABLE: nobody listens. */
CHECKED int spawn_link_connect(const struct spawn_link_home *h, struct err *e);
CHECKED int spawn_link_start(const struct spawn_link_home *h, struct err *e); /* it outlives us */
/* Connects; starts holt-spawn if nobody listens and waits until it does, 5 s at most. */
CHECKED int spawn_link_open(const struct spawn_link_home *h, struct err *e);
/* Says hello and waits for the answer, 5 s at most. */
CHECKED int spawn_link_greet(int fd, const char *installation, struct spawn_welcome *ret,
                             struct err *e);
/* 1: sent; 0: the socket is full. */
CHECKED int spawn_link_send(int fd, struct str packet, struct err *e);
/* 1: a packet, decoded into bytes of SPAWN_PACKET_MAX; its descriptor, if any, is closed: the
 * driver learns of ends by events.  0: none is there. */
CHECKED int spawn_link_receive(int fd, char *bytes, struct spawn_msg *ret, struct err *e);
/* A socket to where an init listens; `socket` is relative to the state directory. */
int spawn_link_connect_init(const struct spawn_link_home *h, const char *id); /* or -errno */
