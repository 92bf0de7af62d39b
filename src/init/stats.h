/* stats: resource use as init sees it on its own machine.  For native sandboxes holtd asks
 * holt-spawn instead. */
#pragma once

#include "wire/guest.h"

void stats_fill(struct guest_stats *s);
