/* disk: a writable layer with a limit, as an ext4 image on a loop device (root only): when it is
 * full, only this sandbox is affected, in bytes and in files.  The image is DIR/disk.img, sparse, a
 * copy of an empty one of its size made before: a copy takes a fraction of a millisecond, mke2fs
 * 10.  The loop device is removed with its last mount (LO_FLAGS_AUTOCLEAR), also if we are killed.
 * Errors: -errno. */
#pragma once

#include "base/macro.h"

#include <stdint.h>

/* Makes it; -EOPNOTSUPP: this host has no loop devices or no mke2fs, or the size is not
 * possible. */
CHECKED int disk_make(int dir, uint64_t bytes);
bool disk_is_there(int dir);
/* A detached mount of it.  -EBUSY: it is still mounted elsewhere. */
CHECKED int disk_mount(int dir);
/* The same; of one that is mounted already, another mount of the same filesystem. */
CHECKED int disk_mount_again(int dir);
/* 1: a loop device still holds it; 0: none does. */
CHECKED int disk_is_busy(int dir);
CHECKED int disk_remove(int dir);      /* 0 also if there is none */
uint64_t disk_used(int dir, int root); /* root: from disk_mount, or -1: its size on the host */
/* An empty image is made once per size, by a child: a create waits until all its sizes are ready
 * (or cannot be made: disk_make reports that), without delaying others. */
#define DISK_SIZES_MAX 8 /* kept, and allowed in one create */
bool disk_is_ready(uint64_t bytes);
void disk_prepare(uint64_t bytes, void (*done)(void)); /* done: check again */
bool disk_has_room(uint64_t bytes);                    /* false: more than the whole disk has */
