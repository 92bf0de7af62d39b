/* group: one cgroup per command, in the group that spawn handed over; where there is none
 * (rootless, no cgroup v2), a command's session stands in for it. */
#pragma once

#include "base/macro.h"

void group_setup(int work); /* takes the directory's fd; -1: there is none */
/* The directory of a fresh group, or -1; *ret_number names it.  A killed group kills whatever
 * enters it later, so none is used twice. */
int group_make(uint32_t *ret_number);
/* False: there is no such group, signal the session. */
bool group_signal(uint32_t number, int signal);
void group_remove(uint32_t number); /* now if it is empty, else with a later one */
