/* path: names from outside, resolved inside the root whatever symlinks a command plants meanwhile.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <sys/types.h>

#define PATH_NOFOLLOW 1 /* the last component is taken as it is */

/* open() inside the root; an fd, or -1 with *e set. */
CHECKED int path_open(struct str path, int flags, mode_t mode, struct err *e);
/* The directory that holds the last component; *ret_name (256 bytes) is that component. */
CHECKED int path_parent(struct str path, char *ret_name, struct err *e);
/* mkdir -p; an existing directory is fine. */
CHECKED int path_make_all(struct str path, mode_t mode, struct err *e);
/* rm -r of one entry, below an open directory; does not follow links or leave the filesystem. */
CHECKED int path_remove_all(int dir, const char *name, struct err *e);
