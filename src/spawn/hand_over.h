/* hand_over: gives the state directory that root has used alone (`make run` as root, or a release
 * before) to the user that holtd runs as in the installed service.  Only what is holtd's: what
 * holt-spawn keeps, and the files of sandboxes, layers and volumes, stay as they are. */
#pragma once

#include "base/err.h"

#include <sys/types.h>

/* state: a directory of root's, locked by spawn.lock; path is for messages.  Refused while a holtd
 * serves it.  Nothing is done where it belongs to another user already. */
CHECKED int hand_over_state(int state, const char *path, uid_t to, gid_t group, struct err *e);
