/* tree: removes a directory with all that is in it.  Blocks: for a worker thread.  Follows no link,
 * crosses no mount point, and goes on after a failure, so that what can go is gone. */
#pragma once

#include "base/macro.h"

/* name below the directory dir; -errno of the first failure; 0 also if it is not there. */
int tree_remove(int dir, const char *name) CHECKED;
int64_t tree_bytes(int dir, const char *name); /* disk blocks in use; what cannot be read is 0 */
