/* group: one cgroup per command, in the group that spawn handed over; where there is none
 * (rootless without a delegated one), its processes are looked for: init/kin.h. */
#pragma once

#include "base/macro.h"

#include <sys/types.h>

void group_setup(int work); /* takes the directory's fd; -1: there is none */
/* A fresh group's number and directory (-1 where there are none at all), or -errno: a command is
 * not run outside of one.  A killed group kills whatever enters it later, so none is used twice.
 */
CHECKED int group_make(uint32_t *ret_number, int *ret_fd);
uint64_t group_mark(uint32_t number); /* what its processes carry instead of a cgroup; 0: nothing */
/* leader: its first process, or 0 if that is gone. */
void group_signal(uint32_t number, pid_t leader, int signal);
/* How often the kernel killed one of this sandbox for lack of memory; 0 where v2 does not limit it.
 */
uint64_t group_ooms(void);
void group_remove(uint32_t number); /* soon, if it is empty; else with a later one */
/* Making and removing take 0.3 ms: that is done ahead and after, while init has nothing else to do.
 */
int group_timeout_ms(void); /* until group_idle or group_tick; -1: there is nothing to do */
void group_tick(void);      /* kills again what was killed and lives; may wait for the kernel */
bool group_is_due(void);    /* has it something to kill? */
void group_idle(void);
