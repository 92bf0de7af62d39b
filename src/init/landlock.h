/* landlock: the system calls of landlock(7); linux/landlock.h of Debian 12 lacks some.
 * Errors: -errno. */
#pragma once

#include "base/macro.h"

#include <stdint.h>

enum landlock_fs {
    LANDLOCK_EXECUTE = 1 << 0,
    LANDLOCK_WRITE_FILE = 1 << 1,
    LANDLOCK_READ_FILE = 1 << 2,
    LANDLOCK_READ_DIR = 1 << 3,
    LANDLOCK_REMOVE_DIR = 1 << 4,
    LANDLOCK_REMOVE_FILE = 1 << 5,
    LANDLOCK_MAKE_CHAR = 1 << 6,
    LANDLOCK_MAKE_DIR = 1 << 7,
    LANDLOCK_MAKE_REG = 1 << 8,
    LANDLOCK_MAKE_SOCK = 1 << 9,
    LANDLOCK_MAKE_FIFO = 1 << 10,
    LANDLOCK_MAKE_BLOCK = 1 << 11,
    LANDLOCK_MAKE_SYM = 1 << 12,
    LANDLOCK_REFER = 1 << 13,
    LANDLOCK_TRUNCATE = 1 << 14,
    LANDLOCK_IOCTL_DEV = 1 << 15,
};
#define LANDLOCK_SCOPES 3ULL /* abstract Unix sockets, signals */

enum landlock_version {                         /* the first with … */
                        LANDLOCK_HAS_REFER = 2, /* without it, renames cannot be allowed */
                        LANDLOCK_HAS_TRUNCATE = 3,
                        LANDLOCK_HAS_IOCTL_DEV = 5,
                        LANDLOCK_HAS_SCOPES = 6,
};

int landlock_version(void); /* of this kernel; 0: none */
/* A ruleset that handles (forbids, until a rule allows them) these; an fd. */
CHECKED int landlock_set(uint64_t fs, uint64_t scopes);
/* Allows `what` for the file or directory, and everything below it. */
CHECKED int landlock_allow(int set, int at, uint64_t what);
CHECKED int landlock_enforce(int set); /* for this thread and what it starts */
