/* end_all: ends an installation for good, for `holt down` and `holt purge`.  Runs instead of
 * serving, in a holt-spawn of its own: sandboxes outlive the one that made them. */
#pragma once

#include "base/err.h"

enum end_kind {
    END_NONE,
    END_STOP,    /* ends every sandbox; files on disk stay, as of stopped ones */
    END_DESTROY, /* destroys every sandbox */
    END_REMOVE,  /* removes the state directory, including files of subordinate ids */
};
enum end_kind end_kind_of(const char *text); /* END_NONE: none of them */

/* After record_adopt_all.  *ret: the number of running sandboxes. */
CHECKED int end_sandboxes(enum end_kind kind, unsigned *ret, struct err *e);
/* As root, or root in a namespace; before host_init, which would mount in it. */
CHECKED int end_remove(const char *state, struct err *e);
