/* scratch: a directory of a test's own, and its removal with all that is in it.
 * Errors: 0, or -1. */
#pragma once

#include "base/macro.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCRATCH_ROOT "/tmp/holt-"
#define SCRATCH_SIZE 64 /* of a path, its end included */

/* `what` stands in the name, for whoever finds one left over. */
static inline int scratch_make(char dir[SCRATCH_SIZE], const char *what)
{
    (void)snprintf(dir, SCRATCH_SIZE, SCRATCH_ROOT "%s-XXXXXX", what);
    return mkdtemp(dir) ? 0 : -1;
}

static inline int scratch_remove_one(const char *path, const struct stat *st, int kind,
                                     struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

static inline int scratch_remove(const char *dir)
{
    if (strncmp(dir, SCRATCH_ROOT, sizeof SCRATCH_ROOT - 1) != 0)
        return -1;
    return nftw(dir, scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
