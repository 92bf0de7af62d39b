/* remove: takes away a tree that a sandbox's root has made: any depth, any number of entries, in
 * bounded time and descriptors, so that nobody inside can keep holt-spawn busy or a destroy from
 * its end. */
#pragma once

#include "base/macro.h"

/* Removes some of `name` in `dir`: 0 when all of it is gone, -EBUSY: call again, else -errno.
 * Uses names "gone.N" in dir. */
int remove_some(int dir, const char *name);
