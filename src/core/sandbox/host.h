/* host: the hosts on which a runtime makes its machines: whether they answer, what they have, which
 * of them gets a new machine, and which get no more.  Each has a driver of its own, so one that
 * hangs holds up nobody else, and every later operation on a machine goes to its host.  A host is
 * asked every few seconds.  Changes of its health are events: host.up, host.down, host.drained,
 * host.opened.  Thread: the loop's. */
#pragma once

#include "core/sandbox/driver.h"

struct sandboxes;
struct principal;

enum host_state { HOST_UNKNOWN, HOST_UP, HOST_DOWN, HOST_STATE_COUNT };

struct host_info { /* borrowed until the loop turns */
    const struct driver_host *conf;
    const char *runtime;
    enum host_state state;
    bool drained;                             /* it gets no new machines */
    struct str reason;                        /* why it is down; empty: it is not */
    int64_t since_ms;                         /* it is in this state; 0: never asked */
    struct driver_capacity has;               /* as last measured */
    int64_t machines, cpus_used, memory_used; /* of our machines that are not off */
    int64_t memory_max, cpus_max;             /* that our machines may use; 0: not known */
};

bool host_next(const struct sandboxes *l, size_t n, struct host_info *ret); /* false: no more */
CHECKED int host_find(const struct sandboxes *l, struct str name, struct host_info *ret,
                      struct err *e);
typedef void (*host_cb)(void *arg, const struct err *e);
/* New machines are made elsewhere; those that are there go on.  done when it is stored. */
CHECKED int host_drain(struct sandboxes *l, struct str name, bool on, const struct principal *by,
                       host_cb done, void *arg, struct err *e);
