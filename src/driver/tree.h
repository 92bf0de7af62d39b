/* tree: removes a directory with its content.  Blocks: for a worker thread.  Follows no link,
 * crosses no mount point, and continues after a failure, so that as much as possible is removed. */
#pragma once

#include "base/macro.h"

/* Removes name below the directory dir; -errno of the first failure; 0 also if it does not
 * exist. */
int tree_remove(int dir, const char *name) CHECKED;
int64_t tree_bytes(int dir, const char *name); /* disk blocks in use; 0 for unreadable parts */
