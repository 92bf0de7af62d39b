/* text: unified diffs of texts, in memory, with bounds on work and size.  Pure. */
#pragma once

#include "base/buf.h"

bool text_is_binary(struct str s); /* it has a NUL: as git decides */
/* Appends the hunks that make b of a, from the first "@@" on.  1: they would be over max bytes, and
 * nothing is appended. */
CHECKED int text_diff(struct str a, struct str b, size_t max, struct buf *to);
