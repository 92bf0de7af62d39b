/* barrier: Landlock (landlock(7)) as a second barrier of init and all that it starts, where the
 * kernel has it: should another guard fail, no block device can be made, no device outside /dev
 * takes an ioctl, and signals and abstract sockets end at the sandbox.  It says nothing of ordinary
 * files: Landlock knows no exceptions, so "all but /proc/sys" cannot be said. */
#pragma once

#include "base/macro.h"

/* Once the root stands.  nests: who may mount must not be bound by rules on files, which forbid it:
 * signals and sockets only. */
void barrier_raise(bool nests);
