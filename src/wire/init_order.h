/* init_order: what holt-spawn wants of an init where there is no cgroup to do it by
 * (docs/runtime.md). It stands in init's soft RLIMIT_LOCKS, which limits nothing, and a signal says
 * that it has changed. So a sandbox cannot drown an order by sending signals itself, nor give one:
 * no command may set init's limits. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

#define INIT_LOOK SIGUSR1

struct init_order {
    uint32_t kills; /* how often all work was to be killed */
    bool paused;
};

static inline struct init_order init_order_from(rlim_t soft)
{
    if (soft == RLIM_INFINITY) /* none was ever given */
        return (struct init_order){0, false};
    return (struct init_order){(uint32_t)(soft >> 1) & 0xffffff, soft & 1};
}

static inline rlim_t init_order_to(struct init_order o)
{
    return (rlim_t)(o.kills & 0xffffff) << 1 | o.paused;
}
