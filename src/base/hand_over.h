/* hand_over: gives holtd's part of a state directory to the user that holtd runs as.  Root may have
 * used it (`make run`), or an earlier holtd with another user.  Files of holt-spawn and
 * holt-egress, and those of sandboxes, layers and volumes, keep their owners.  No link is followed;
 * a file with several names stays, for one of them may be elsewhere.  Ownership: none.  Errors:
 * -errno. */
#pragma once

#include "base/account.h"

struct hand_over {
    uid_t from; /* the former user of the files, besides root */
    struct account to;
};

/* state: its descriptor.  The directory itself comes last: an interrupted hand-over is repeated. */
CHECKED int hand_over_state(const struct hand_over *h, int state);
/* A file, or a directory and what is in it, that many levels deep. */
CHECKED int hand_over_entry(const struct hand_over *h, int dir, const char *name, int depth);
