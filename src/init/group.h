/* group: one cgroup per command, below the group that holt-spawn handed over.  Without cgroups
 * (rootless without a delegated one), processes are searched for: init/kin.h. */
#pragma once

#include "base/macro.h"

#include <sys/types.h>

void group_setup(int work); /* takes the directory's fd; -1: there is none */
/* The number and directory of a new group (-1 without cgroups), or -errno: a command never runs
 * outside of one.  A killed group kills everything that enters it later, so none is reused. */
CHECKED int group_make(uint32_t *ret_number, int *ret_fd);
/* the mark its processes carry instead of a cgroup; 0: none */
uint64_t group_mark(uint32_t number);
/* leader: its first process; gone: that has ended. */
void group_signal(uint32_t number, pid_t leader, bool gone, int signal);
/* OOM kills in this sandbox; 0 if cgroup v2 does not limit its memory. */
uint64_t group_ooms(void);
void group_remove(uint32_t number); /* soon, if it is empty; else together with a later one */
/* Making and removing take 0.3 ms each: init does both while it is idle. */
int group_timeout_ms(void); /* until group_idle or group_tick; -1: nothing to do */
void group_tick(void);      /* kills surviving processes again; may wait for the kernel */
bool group_is_due(void);    /* whether there is something to kill */
void group_idle(void);
