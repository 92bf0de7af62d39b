/* loop: a small epoll loop for holt-init and holt-spawn (holtd has libuv).  One thread, no blocking
 * call.  A watch belongs to its owner and may be removed (and freed) from within any callback. */
#pragma once

#include "base/macro.h"

#include <sys/epoll.h>

struct watch {
    int fd; /* -1: not watched */
    uint32_t events;
    void (*on)(struct watch *w, uint32_t events);
};

void loop_init(void); /* aborts on failure */
void loop_add(struct watch *w, int fd, void (*on)(struct watch *, uint32_t)); /* no events yet */
/* For descriptors with which others can use up the kernel's memory for watches (epoll(7),
 * max_user_watches): 0, or -errno, and the fd is closed. */
CHECKED int loop_try_add(struct watch *w, int fd, void (*on)(struct watch *, uint32_t));
void loop_want(struct watch *w, uint32_t events); /* EPOLLIN | EPOLLOUT; 0: none */
void loop_remove(struct watch *w);                /* closes the fd; harmless when not watched */
void loop_turn(int timeout_ms);                   /* waits once and runs the callbacks */
bool loop_was_idle(void);                         /* the last turn ran no callback */
