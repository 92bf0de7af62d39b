/* mnt: the new mount interface (Linux 5.2, 5.12), which libcs wrap differently or not at
 * all.  Errors: -errno. */
#pragma once

#include "base/macro.h"

struct mount_attr;

/* A detached copy of the mount at an open directory (with those below it, if recursive): an fd. */
CHECKED int mnt_clone(int dir, bool recursive);
CHECKED int mnt_attach(int tree, const char *path);
CHECKED int mnt_attach_fd(int tree, int at);
/* Sets MOUNT_ATTR_ bits on everything at and below path, or of a detached tree. */
CHECKED int mnt_set(const char *path, uint64_t attributes);
CHECKED int mnt_set_fd(int tree, struct mount_attr *a, bool recursive);
/* A detached tmpfs of at most size bytes: an fd. */
CHECKED int mnt_tmpfs(uint64_t size, const char *mode);
