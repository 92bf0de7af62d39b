/* init_order: how holt-spawn gives orders to an init where no cgroup can do the work
 * (docs/runtime.md).  The order is stored in init's soft RLIMIT_LOCKS, which limits nothing, and a
 * signal announces a change.  So a sandbox can neither drown an order in signals of its own nor
 * give one: no command may set init's limits. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

#define INIT_LOOK SIGUSR1

/* Where init is no process of this kernel the same comes over a socket, one letter a packet; with
 * the first a connection of holtd's (SCM_RIGHTS). */
#define INIT_HAND_CONNECTION 'c'
#define INIT_HAND_KILL 'k'
#define INIT_HAND_PAUSE 'p'
#define INIT_HAND_RESUME 'r'

struct init_order {
    uint32_t kills; /* how many times all processes were to be killed */
    bool paused;
};

static inline struct init_order init_order_from(rlim_t soft)
{
    if (soft == RLIM_INFINITY) /* no order was ever given */
        return (struct init_order){0, false};
    return (struct init_order){(uint32_t)(soft >> 1) & 0xffffff, soft & 1};
}

static inline rlim_t init_order_to(struct init_order o)
{
    return (rlim_t)(o.kills & 0xffffff) << 1 | o.paused;
}
