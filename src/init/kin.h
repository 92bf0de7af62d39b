/* kin: the processes of a command without a cgroup (docs/runtime.md, "Without cgroups").  They are
 * found by their parents; orphans, whose parent is init, by a mark that every process inherits and
 * none can forge: a hard limit without meaning to the kernel.  Where there are no marks (gVisor),
 * orphans are found by their session.  Only descendants of init are ever touched. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The RLIMIT_LOCKS of command `number` (from 1); 0: marks do not work here. */
uint64_t kin_mark(uint32_t number);
/* leader: its first process, which leads its session; gone: that was reaped.  SIGKILL is repeated
 * until no new process is found. */
void kin_signal(uint32_t number, pid_t leader, bool gone, int signal);
void kin_kill_all(void); /* waits a second at most until all have ended */
/* By SIGSTOP and SIGCONT; processes stopped before stay stopped. */
void kin_pause(bool on);
bool kin_is_paused(void);
int kin_last_pid(void); /* the last pid assigned; INT32_MAX: unknown */
