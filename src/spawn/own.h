/* own: own directories of a sandbox with a limit, each an image on a loop device (disk.h) at
 * sb/ID/own-N/disk.img, where N is its index among the declared mounts.  They are removed with the
 * sandbox, and kept with its other files when it is stopped. */
#pragma once

#include "spawn/sandbox.h"

/* A detached, mapped mount of it, made if it does not exist.  -EOPNOTSUPP: not possible on this
 * host, and nothing is left; another -errno. */
CHECKED int own_mount(struct sandbox *s, size_t n, uint64_t bytes);
/* 0 when no loop device holds one any more, and, unless the sandbox's files are kept, all are
 * removed; -EBUSY: call again later. */
CHECKED int own_end(struct sandbox *s);
uint64_t own_used(const struct sandbox *s); /* their size on the host */
