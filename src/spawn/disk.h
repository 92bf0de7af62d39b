/* disk: a writable layer with a limit, as an ext4 image on a loop device (root only): full inside
 * is full there alone, in bytes and in files.  The image is DIR/disk.img, sparse, a copy of an
 * empty one of its size that was made before: a copy takes a fraction of a millisecond, mke2fs 10.
 * The loop device goes by itself with its last mount (LO_FLAGS_AUTOCLEAR), also when we are killed.
 * Errors: -errno. */
#pragma once

#include "base/macro.h"

#include <stdint.h>

/* Makes it; -EOPNOTSUPP: this host has no loop devices or no mke2fs, or the size cannot be had. */
CHECKED int disk_make(int dir, uint64_t bytes);
bool disk_is_there(int dir);
/* A detached mount of it.  -EBUSY: it is still mounted elsewhere. */
CHECKED int disk_mount(int dir);
/* 1: a loop device holds it yet; 0. */
CHECKED int disk_is_busy(int dir);
CHECKED int disk_remove(int dir);      /* 0 too when there is none */
uint64_t disk_used(int dir, int root); /* root: of disk_mount's, or -1: what it takes outside */
/* An empty image is made once per size, by a child: a create waits until all of its sizes are ready
 * (or cannot be made: disk_make says so), and holds up nobody else. */
#define DISK_SIZES_MAX 8 /* that are kept, and that one create may have */
bool disk_is_ready(uint64_t bytes);
void disk_prepare(uint64_t bytes, void (*done)(void)); /* done: look again */
bool disk_has_room(uint64_t bytes);                    /* false: more than the whole disk has */
