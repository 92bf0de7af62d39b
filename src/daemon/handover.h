/* handover: gives the state directory, and other places named by settings, to the user that holtd
 * changes to when it is started as root.  Errors: -1 with *e set. */
#pragma once

#include "base/account.h"
#include "conf/conf.h"

/* Makes the state directory if needed, locks it like state_open and returns the lock; takes over
 * what an earlier holtd left as root's, or as the preset user's. */
CHECKED int handover_state(const struct config *c, const struct account *to, struct err *e);

/* Makes the directories named by settings while holtd may still make them anywhere, and gives them
 * to the id that is root in all sandboxes. */
CHECKED int handover_make_dirs(const struct config *c, struct err *e);
