/* gauges: private to src/api: how many objects there are, for /metrics.  They are counted when
 * somebody asks; a counter per object would have to be right after every crash. */
#pragma once

#include "api/request.h"

void gauges_start(void);
/* Counts, then calls done with the request on the loop's thread; not called if the client has left.
 * Questions are counted in the store: while it fails, their gauges keep the last values. */
void gauges_count(struct request *r, void (*done)(struct request *r));
