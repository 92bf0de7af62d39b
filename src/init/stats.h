/* stats: what init can see of its own machine.  On native sandboxes holtd asks spawn instead. */
#pragma once

#include "wire/guest.h"

void stats_fill(struct guest_stats *s);
