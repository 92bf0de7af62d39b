/* barrier: Landlock (landlock(7)) as a second barrier around init and everything it starts, if the
 * kernel has it.  Should another protection fail, no block device can be made, no device outside
 * /dev takes an ioctl, and signals and abstract sockets end at the sandbox.  It does not restrict
 * ordinary files: that is for policies (init/fence.h). */
#pragma once

#include "base/macro.h"

/* Call it once the root is set up.  nests: a sandbox that may mount must not have rules on files,
 * which forbid mounts: signals and sockets only. */
void barrier_raise(bool nests);
