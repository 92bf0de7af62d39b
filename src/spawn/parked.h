/* parked: processes that wait in v1 cgroups made in advance, to clone a sandbox's first process
 * there.  A write to a v1 cgroup.procs waits for an RCU grace period (up to 14 ms cold), and no
 * clone can enter a v1 group; but a child starts in its parent's.  They share our memory and
 * descriptors, so the child is as if we had cloned it, and is our child (CLONE_PARENT).  Only with
 * v1 groups, and only once holtd requested things made ahead (SPAWN_POOL). */
#pragma once

#include "base/macro.h"

#include <linux/sched.h>

#define PARKED_MAX 4
#define PARKED_QUIET_MS 5

struct parked;

bool parked_lacks(void);
/* Begins to make missing ones.  After a while without work: an attach blocks every fork of the
 * machine while it waits. */
void parked_fill(void);
struct parked *parked_take(void); /* a ready one, or NULL; its groups are parked_group's */
const char *parked_group(const struct parked *p);
/* Clones through p, in a network namespace: a pid, or -errno.  The child runs born(arg), which does
 * not return. */
CHECKED long parked_clone(struct parked *p, const struct clone_args *args, int netns,
                          void (*born)(void *arg), void *arg);
void parked_drop(struct parked *p); /* ends it, used or not; takes NULL */
void parked_end_all(void);          /* and removes their groups: at our exit */
