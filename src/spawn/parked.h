/* parked: processes that wait in v1 cgroups made ahead, to bear a sandbox's first process there.
 * A write to a v1 cgroup.procs waits for an RCU grace period (up to 14 ms cold), and no clone can
 * enter a v1 group; but a child is born in its parent's.  They share our memory and descriptors, so
 * that the child is as if we had cloned it, and is our child (CLONE_PARENT).  Only where there are
 * v1 groups, and only once holtd asked for things made ahead (SPAWN_POOL). */
#pragma once

#include "base/macro.h"

#include <linux/sched.h>

#define PARKED_MAX 4
#define PARKED_QUIET_MS 5

struct parked;

bool parked_lacks(void);
/* Begins to make those that lack.  After a while without work: an attach holds up every fork of the
 * machine while it waits. */
void parked_fill(void);
struct parked *parked_take(void); /* one that is ready, or NULL; its groups are parked_group's */
const char *parked_group(const struct parked *p);
/* Clones by way of p, in a network namespace: a pid, or -errno.  The child runs born(arg), which
 * does not return. */
CHECKED long parked_clone(struct parked *p, const struct clone_args *args, int netns,
                          void (*born)(void *arg), void *arg);
void parked_drop(struct parked *p); /* ends it, used or not; takes NULL */
void parked_end_all(void);          /* and removes their groups: at our end */
