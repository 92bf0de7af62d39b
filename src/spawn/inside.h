/* inside: paths in a root that is being built.  Former users of it, or the makers of its image,
 * have chosen its links; so every path is resolved by openat2(2) below a descriptor of the root,
 * never from the caller's own root, and never through /proc's links to descriptors.  No other file
 * of src/spawn uses a path in a root: tools/check-paths.  Errors: -errno. */
#pragma once

#include "base/macro.h"
#include "base/str.h"

/* flags: as for open(2); nothing is created. */
CHECKED int inside_open(int root, const char *path, int flags);
/* The same, but not on another mount: a volume is not ours to change. */
CHECKED int inside_open_plain(int root, const char *path, int flags);
/* The same, without any link: a mount there must be where it seems to be. */
CHECKED int inside_open_strict(int root, const char *path, int flags);
/* An O_PATH descriptor.  Creates missing parts: directories, or a file at the end. */
CHECKED int inside_make(int root, const char *path, bool file);
/* Replaces whatever is there by a file with both texts; its directory must exist.  Does not follow
 * a link at the end. */
CHECKED int inside_replace(int root, const char *path, struct str a, struct str b);
/* A new file with both texts, mode 0644; nothing may be there. */
CHECKED int inside_write_new(int dir, const char *name, struct str a, struct str b);
/* The path of an open file within the root. */
CHECKED int inside_path_of(int root, int fd, char *to, size_t size);
/* Mounts tree on path, which is created as above.  -EPERM: no mount is allowed there. */
CHECKED int inside_attach(int root, int tree, const char *path);
/* A mount there, below it or, for the root, above it would show or hide what protects the sandbox:
 * /proc, /sys, /dev, our own socket and file.  Checks the text, without links. */
bool inside_is_closed(struct str path);
