/* measure: how many bytes a volume holds, for holtd, which may not look.  A volume on disk is added
 * up in a child; one in memory says it at once. */
#pragma once

#include "wire/spawn.h"

void measure_begin(const struct spawn_measure *ask, uint32_t tag);
