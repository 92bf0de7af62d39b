/* preview: private to src/api: the preview listener: servers inside sandboxes, each sandbox and
 * port at an origin of its own, "http://PORT-ID.localhost" with '-' for the id's '_'.  Ids only: a
 * name may be another sandbox's tomorrow, and a browser keeps an origin's storage.  "/.holt/" of
 * each origin has holtd's own pages. */
#pragma once

#include "api/request.h"

void preview_handle(struct request *r);
