/* utf8: makes well-formed text of any bytes.  Thread: any. */
#pragma once

#include "base/buf.h"

/* The length of the character at the start of s (1 to 4).  0: no character begins there, or it is
 * cut short; *ret_wrong is then the number of bytes that can never be part of one, or 0 if more
 * bytes could complete it. */
size_t utf8_next(struct str s, size_t *ret_wrong);
/* Appends s with U+FFFD for each maximal invalid part (Unicode, 3.9, "U+FFFD
 * Substitution").  Returns the number of bytes consumed: all, except an unfinished character at the
 * end unless `last`. */
size_t utf8_replace(struct buf *to, struct str s, bool last);

/* Decodes the character at the start of s and returns its length; 0: no character begins there. */
size_t utf8_point(struct str s, uint32_t *ret);
/* Appends one character; U+FFFD for what is none (surrogates, past U+10FFFF). */
void utf8_put(struct buf *to, uint32_t point);
/* Whether it can move a terminal's cursor or reorder the text around it: controls (C0, DEL, C1),
 * line and paragraph separators, direction marks, embeddings and isolates. */
bool utf8_is_control(uint32_t point);
/* Whether it is invisible: fillers, joiners, variation selectors, tags. */
bool utf8_is_unseen(uint32_t point);
/* Appends s, which is JSON, or YAML that double-quotes strings with such characters.  Invisible and
 * control characters above C0 become \uNNNN: the same value, safe to display. */
void utf8_escape(struct buf *to, struct str s);
