/* snapshot: the writable layer of a sandbox becomes a layer.
 *   copy  running or stopped: its commands are frozen, a child copies it, they go on, the child
 *         hashes the copy
 *   move  stopped: a rename, after which its own is empty; from a disk image, a copy
 *   hash  of a layer that was moved
 * A file in sb/ID says that the freeze is ours, so that the next holt-spawn ends it. */
#pragma once

#include "spawn/sandbox.h"

/* s: NULL to hash.  Replies snapshotted, or done with the error. */
void snapshot_begin(const struct spawn_snapshot *ask, struct sandbox *s, uint32_t tag);
void snapshot_forget(struct sandbox *s);  /* it is about to be freed: ends its child */
void snapshot_forget_tags(void);          /* the client has disconnected */
void snapshot_recover(struct sandbox *s); /* one of the last holt-spawn's: ends our freeze */

/* --- snapshot_source.c --- */
/* The upper directory, wherever it is; or -errno: -EOPNOTSUPP: it is in memory, or in parts. */
CHECKED int snapshot_open_upper(struct sandbox *s);
/* The same, and writable mounts: of the directory that has "upper" in it. */
CHECKED int snapshot_open_disk(struct sandbox *s);
