/* kin: the processes of a command where it has no cgroup (docs/runtime.md, "Without cgroups").
 * They are found by their parents, and orphans, whose parent is init, by a mark that every process
 * inherits and none can make up: a hard limit that means nothing to the kernel.  Only descendants
 * of init are ever touched. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The RLIMIT_LOCKS of command `number` (from 1 up); 0: marks do not work here. */
uint64_t kin_mark(uint32_t number);
/* leader: its first process, if it is not reaped; else 0.  SIGKILL is repeated until nobody new is
 * found. */
void kin_signal(uint32_t number, pid_t leader, int signal);
void kin_kill_all(void); /* exact: one call, which the kernel does as a whole */
/* By SIGSTOP and SIGCONT; what was stopped before stays so. */
void kin_pause(bool on);
bool kin_is_paused(void);
int kin_last_pid(void); /* the one that was given away last; INT32_MAX: it cannot be told */
