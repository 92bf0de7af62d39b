/* spawn_link: the connection to holt-spawn: its socket, and starting it where none answers.
 * Packets only; what they mean is native.c's.  Errors: -1 with *e set. */
#pragma once

#include "base/err.h"
#include "wire/spawn.h"

#include <sys/types.h>

#define SPAWN_LINK_MS 5000 /* how long holt-spawn may take to answer */

struct spawn_link_home {
    int state;          /* the state directory, O_PATH */
    const char *path;   /* its path */
    const char *bindir; /* of holt-spawn and holt-init */
    char **allowed;     /* further arguments of holt-spawn: what the operator allows; or NULL */
    size_t allowed_n;
};

/* A connected, non-blocking socket; -1 with e->code ERR_UNAVAILABLE: nobody listens. */
CHECKED int spawn_link_connect(const struct spawn_link_home *h, struct err *e);
/* How it is started, for base/starter.h; before the seal. */
CHECKED int spawn_link_define(const struct spawn_link_home *h, struct err *e);
/* It outlives us; *pidfd is the caller's: starter_lives. */
CHECKED int spawn_link_start(const struct spawn_link_home *h, int *pidfd, struct err *e);
/* Connects; starts holt-spawn if nobody listens and waits until it does, 15 s at most.
 * *pidfd: as above, -1 if it was there already. */
CHECKED int spawn_link_open(const struct spawn_link_home *h, int *pidfd, struct err *e);
CHECKED int spawn_link_hello(int fd, const char *installation, struct err *e);
/* The answer: 1, 0: it is something else that needs no attention, or -1. */
CHECKED int spawn_link_welcomed(const struct spawn_msg *m, struct spawn_welcome *ret,
                                struct err *e);
/* Says hello and waits for the answer, 5 s at most: at start-up only. */
CHECKED int spawn_link_greet(int fd, const char *installation, struct spawn_welcome *ret,
                             struct err *e);
/* 1: sent; 0: the socket is full. */
CHECKED int spawn_link_send(int fd, struct str packet, struct err *e);
struct spawn_link_fds { /* that came with a packet: the receiver's */
    int fd[SPAWN_LISTENER_COUNT];
    size_t n;
};
void spawn_link_fds_done(struct spawn_link_fds *f);
/* 1: a packet, decoded into bytes of SPAWN_PACKET_MAX; 0: none is there. */
CHECKED int spawn_link_receive(int fd, char *bytes, struct spawn_msg *ret,
                               struct spawn_link_fds *fds, struct err *e);
/* A socket to where an init listens; `socket` is relative to the state directory. */
int spawn_link_connect_init(const struct spawn_link_home *h, const char *id); /* or -errno */
