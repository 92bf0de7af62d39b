/* range: which ranges of user ids are in use on this host, by any installation: a file per range in
 * RANGE_DIR, outside every state directory, that names the holt-spawn and the init which have it
 * (pid and start time).  A file whose processes are gone means nothing, so nothing has to be
 * cleaned up after a crash, and nothing outlives a boot.  As root only: others have one range,
 * their own. */
#pragma once

#include "base/macro.h"

#include <sys/types.h>

#define RANGE_DIR "/run/holt-ranges"

/* False: a process of another installation has it.  Where claims cannot be made, all are free. */
bool range_claim(uint32_t slot);
/* The sandbox's init, which may outlive us: its range then stays its own. */
void range_add_init(uint32_t slot, pid_t init, uint64_t started);
void range_give(uint32_t slot);
/* Field 22 of /proc/PID/stat: with the pid it names a process for good.  0: there is none. */
uint64_t process_started(pid_t pid);
