/* hand_over: gives the state directory that root has used alone (`make run` as root, or an earlier
 * release) to holtd's user in the installed service.  Only holtd's part: files of holt-spawn, and
 * of sandboxes, layers and volumes, stay unchanged. */
#pragma once

#include "base/err.h"

#include <sys/types.h>

/* state: a directory of root, locked by spawn.lock; path is for messages.  Refused while a holtd
 * serves it.  Does nothing if it already belongs to another user. */
CHECKED int hand_over_state(int state, const char *path, uid_t to, gid_t group, struct err *e);
