/* keys: named keys as the bytes that a terminal sends for them, with the names that tmux's
 * send-keys has: Enter, Escape, Up, F5, C-c, M-x, S-Tab.  Pure. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/* application: the program has switched the cursor keys (DECCKM), as full-screen programs do.
 * A text of one character is that character. */
CHECKED int keys_put(struct str name, bool application, struct buf *to, struct err *e);
