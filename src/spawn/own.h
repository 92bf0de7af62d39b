/* own: directories of a sandbox's own with a limit, each an image on a loop device (disk.h) at
 * sb/ID/own-N/disk.img, N being its place among the declared mounts.  They go with the sandbox, and
 * stay with its other files when it is stopped. */
#pragma once

#include "spawn/sandbox.h"

/* A detached, mapped mount of it, made if it is not there.  -EOPNOTSUPP: this host has none, and
 * nothing is left; another -errno. */
CHECKED int own_mount(struct sandbox *s, size_t n, uint64_t bytes);
/* 0 when no loop device holds one any more, and, unless the sandbox's files are kept, none is left;
 * -EBUSY: call again later. */
CHECKED int own_end(struct sandbox *s);
uint64_t own_used(const struct sandbox *s); /* what they take outside */
