/* pollset: readiness of connections, by an epoll instance of its own beneath the loop's: a
 * uv_poll_t costs six system calls before it is waited for, and one more at each change.  Changes
 * are passed to the kernel once a turn, just before the loop waits: a change that was undone
 * meanwhile costs nothing.  A descriptor that wants no events gets no hang-up either.
 * A polled belongs to its owner, and may be closed and freed from within any callback.
 * Thread: the loop's. */
#pragma once

#include "base/err.h"
#include "base/list.h"

#include <sys/epoll.h>
#include <uv.h>

struct polled {
    int fd; /* -1: none */
    uint32_t wanted, told;
    struct list changed;
    void (*on)(struct polled *p, uint32_t events); /* 0: the kernel does not watch it */
};

CHECKED int pollset_open(uv_loop_t *loop, struct err *e);
void polled_init(struct polled *p, void (*on)(struct polled *, uint32_t)); /* without a fd */
void polled_open(struct polled *p, int fd);          /* takes fd; it must not have one */
void polled_want(struct polled *p, uint32_t events); /* EPOLLIN | EPOLLOUT | EPOLLRDHUP; 0: none */
void polled_close(struct polled *p);                 /* harmless without an fd */
