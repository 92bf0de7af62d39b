/* range: the ranges of user ids in use on this host, by any installation: a file per range in
 * RANGE_DIR, outside every state directory, that names the holt-spawn and the init which use it
 * (pid and start time).  A file whose processes have ended is void, so a crash needs no clean-up,
 * and nothing outlives a boot.  As root only: others have one range, their own. */
#pragma once

#include "base/macro.h"

#include <sys/types.h>

#define RANGE_DIR "/run/holt-ranges"

/* False: a process of another installation has it.  Where claims cannot be made, all are free. */
bool range_claim(uint32_t slot);
/* Adds the sandbox's init, which may outlive us and then keeps its range. */
void range_add_init(uint32_t slot, pid_t init, uint64_t started);
void range_give(uint32_t slot);
/* Field 22 of /proc/PID/stat: unique together with the pid.  0: no such process. */
uint64_t process_started(pid_t pid);
