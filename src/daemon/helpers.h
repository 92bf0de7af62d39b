/* helpers: holt-spawn and holt-egress of an earlier holtd.  They outlive it; sandboxes outlive them
 * too, so one that this holtd cannot use is ended and started again.  Errors: none; one that cannot
 * be ended is reported when holtd connects to it. */
#pragma once

#include "base/macro.h"

#include <sys/types.h>

/* Ends those that serve another user than uid, and those of another release: they speak another
 * version of the protocol.  Before holtd gives up its rights; the state directory is locked. */
void helpers_end_old(const char *state, uid_t uid);
