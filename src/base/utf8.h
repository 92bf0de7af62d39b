/* utf8: well-formed text out of any bytes.  Thread: any. */
#pragma once

#include "base/buf.h"

/* How many bytes at the start of s are one character (1 to 4); 0: none begins there, or it is cut
 * short: then *ret_wrong bytes of it can never be part of one, 0 when more bytes could make it
 * whole. */
size_t utf8_next(struct str s, size_t *ret_wrong);
/* Adds s with U+FFFD for each maximal part that is no character (Unicode, 3.9, "U+FFFD
 * Substitution").  Returns how many bytes were taken: all, but for an unfinished character at the
 * end unless `last`. */
size_t utf8_replace(struct buf *to, struct str s, bool last);
