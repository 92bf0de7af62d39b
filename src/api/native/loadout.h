/* loadout: what a request takes from a loadout that it names. */
#pragma once

#include "api/request.h"

/* Puts the image, limits and network of the body's "loadout" into it, as far as it has none.  A
 * loadout that is not built is an error. */
CHECKED int loadout_apply(const struct request *r, const struct op *op, json_t *body,
                          struct err *e);
