/* creating: private to src/api: sandboxes that dialects are making under a name of their own, and
 * everybody who waits for one: a second request for the same name joins the first.
 * Ownership: each frees itself when its sandbox is there, or could not be made.  Thread: the
 * loop's. */
#pragma once

#include "api/request.h"
#include "core/sandbox.h"

typedef void (*creating_tell)(struct request *r, struct sandbox *s, const struct err *e);

/* tell: once, unless the asker goes.  False: nobody makes it just now. */
bool creating_join(struct request *r, struct alias_name n, creating_tell tell);
/* spec->aliases has n. */
void creating_start(struct request *r, struct alias_name n, const struct sandbox_spec *spec,
                    creating_tell tell);
