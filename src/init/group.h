/* group: one cgroup per command, in the group that spawn handed over; where there is none
 * (rootless, no cgroup v2), a command's session stands in for it. */
#pragma once

#include "base/macro.h"

void group_setup(int work); /* takes the directory's fd; -1: there is none */
/* A fresh group's number and directory (0 and -1 where there are none at all), or -errno: a command
 * is not run outside of one.  A killed group kills whatever enters it later, so none is used twice.
 */
CHECKED int group_make(uint32_t *ret_number, int *ret_fd);
/* False: there is no such group, signal the session. */
bool group_signal(uint32_t number, int signal);
bool group_had_oom(uint32_t number); /* the kernel killed one of it for lack of memory */
void group_remove(uint32_t number);  /* soon, if it is empty; else with a later one */
/* Making and removing take 0.3 ms: that is done ahead and after, while init has nothing else to do.
 */
int group_timeout_ms(void); /* until group_idle; -1: there is nothing to do */
void group_idle(void);
