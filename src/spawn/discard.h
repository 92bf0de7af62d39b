/* discard: removes a volume or a layer for holtd, and answers when it is gone (also when it was not
 * there).  Whether a sandbox still has it is holtd's to know. */
#pragma once

#include "wire/spawn.h"

void discard_begin(const struct spawn_discard *ask, uint32_t tag);
