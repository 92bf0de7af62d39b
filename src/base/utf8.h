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

/* The character at the start of s and how many bytes it has; 0: none begins there. */
size_t utf8_point(struct str s, uint32_t *ret);
/* Can it move a terminal's cursor or reorder the text around it?  Controls (C0, DEL, C1), line and
 * paragraph separators, marks, embeddings and isolates of direction. */
bool utf8_is_control(uint32_t point);
/* Is nothing drawn for it?  Fillers, joiners, variation selectors, tags. */
bool utf8_is_unseen(uint32_t point);
/* Adds s, a JSON text or a YAML one whose strings with such characters are double-quoted, with
 * those above ASCII's C0 as \uNNNN: the same value, safe to look at. */
void utf8_escape(struct buf *to, struct str s);
