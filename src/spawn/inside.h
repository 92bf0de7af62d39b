/* inside: paths in a root that is being built.  Whoever was in it before, or made its image, has
 * chosen what its links say; so every path there is resolved by openat2(2) below a descriptor of
 * the root, never by the caller's own root, and never through /proc's links to descriptors.  No
 * other file of src/spawn uses a path in a root: tools/check-paths.  Errors: -errno. */
#pragma once

#include "base/macro.h"
#include "base/str.h"

/* flags: as open(2)'s; nothing is created. */
CHECKED int inside_open(int root, const char *path, int flags);
/* The same, but nothing on another mount: a volume is not ours to change. */
CHECKED int inside_open_plain(int root, const char *path, int flags);
/* The same, and no link on the way: what is mounted there must be where it seems to be. */
CHECKED int inside_open_strict(int root, const char *path, int flags);
/* An O_PATH descriptor.  Makes what is missing: directories, or a file at the end. */
CHECKED int inside_make(int root, const char *path, bool file);
/* A file with both texts in it takes the place of whatever is there; its directory must exist.
 * Follows no link at the end. */
CHECKED int inside_replace(int root, const char *path, struct str a, struct str b);
/* Where an open file of the root is, as a path in it. */
CHECKED int inside_path_of(int root, int fd, char *to, size_t size);
/* Mounts tree on path, which is made as above.  -EPERM: no mount may be there. */
CHECKED int inside_attach(int root, int tree, const char *path);
/* A mount there, below or, for the root, above would show or hide what guards the sandbox: /proc,
 * /sys, /dev, our own socket and file.  As written, without any link. */
bool inside_is_closed(struct str path);
