/* path: resolves paths from outside inside the root, whatever symlinks a command plants
 * meanwhile.  No operation reaches procfs, sysfs and the like: there, init's own memory and
 * descriptors would be files (a symlink to /proc/self/mem is an ordinary one). */
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <sys/types.h>

#define PATH_DEPTH_MAX 200 /* directories a walk holds open */

/* open() inside the root; an fd, or -1 with *e set.  Adds O_NONBLOCK: a FIFO or a lease must not
 * block init.  Path rules (init/rules.h) are checked, but not for O_PATH: that is for the caller.
 */
CHECKED int path_open(struct str path, int flags, mode_t mode, struct err *e);
/* The same, for a regular file only; `truncate` empties it after that check. */
CHECKED int path_open_regular(struct str path, int flags, mode_t mode, bool truncate,
                              struct err *e);
/* open() of a name beneath a directory: no link or ".." leads out of it.  An fd, or -errno. */
CHECKED int path_beneath(int dir, const char *name, int flags);
/* -EACCES on a filesystem made by the kernel (procfs and the like), else 0. */
CHECKED int path_check_kernel(int fd);
/* The directory that holds the last component; *ret_name (256 bytes) is that component. */
CHECKED int path_parent(struct str path, char *ret_name, struct err *e);
/* mkdir -p; an existing directory is fine. */
CHECKED int path_make_all(struct str path, mode_t mode, struct err *e);
/* rm -r of one entry, below an open directory; does not follow links or leave the filesystem. */
CHECKED int path_remove_all(int dir, const char *name, struct err *e);
/* Sets *e to this errno and "what 'path'"; returns -1. */
int path_failed(const char *what, struct str path, int sys, struct err *e);
