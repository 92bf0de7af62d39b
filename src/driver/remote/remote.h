/* remote: the runtime of machines that holt did not make (core/remote/remote.h).  A create waits
 * for nothing: the agent is there, or it is refused.  It isolates nothing, limits nothing and has
 * no files; which sandboxes there are is in STATE/remote, one file each. */
#pragma once

#include "core/sandbox/driver.h"

extern const struct driver_ops driver_remote;
