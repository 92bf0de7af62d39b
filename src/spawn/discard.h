/* discard: removes a volume or a layer for holtd, and replies when it is removed (also if it did
 * not exist).  holtd knows whether a sandbox still uses it. */
#pragma once

#include "wire/spawn.h"

void discard_begin(const struct spawn_discard *ask, uint32_t tag);
