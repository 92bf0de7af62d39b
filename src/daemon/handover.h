/* handover: the state directory, and what else settings name, is given to the user that holtd
 * becomes when it was started as root.  Errors: -1 with *e set. */
#pragma once

#include "base/account.h"
#include "conf/conf.h"

/* Makes the state directory if need be, locks it as state_open does and returns the lock; what an
 * earlier holtd left as root's, or as the preset user's, is taken over. */
CHECKED int handover_state(const struct config *c, const struct account *to, struct err *e);

/* The directories that settings name, while holtd may still make them anywhere, and give them to
 * the id that is root in all sandboxes. */
CHECKED int handover_make_dirs(const struct config *c, struct err *e);
