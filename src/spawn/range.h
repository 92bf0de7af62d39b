/* range: which ranges of user ids are in use on this host, by any installation: a file per range in
 * RANGE_DIR, outside every state directory, that names the process which has it (pid and start
 * time).  A file whose process is gone means nothing, so nothing has to be cleaned up after a
 * crash, and nothing outlives a boot.  As root only: others have one range, their own. */
#pragma once

#include "base/macro.h"

#include <sys/types.h>

#define RANGE_DIR "/run/holt-ranges"

/* False: a process of another installation has it.  Where claims cannot be made, all are free. */
bool range_claim(uint32_t slot);
void range_hand_over(uint32_t slot, pid_t to, uint64_t started); /* to the sandbox's init */
void range_give(uint32_t slot);
/* Field 22 of /proc/PID/stat: with the pid it names a process for good.  0: there is none. */
uint64_t process_started(pid_t pid);
