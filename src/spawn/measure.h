/* measure: the size of a volume, for holtd, which may not read it.  A volume on disk is added up in
 * a child; one in memory is known at once. */
#pragma once

#include "wire/spawn.h"

void measure_begin(const struct spawn_measure *ask, uint32_t tag);
