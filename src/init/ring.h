/* ring: the unacknowledged part of a command's output.  The byte at offset n of the stream lies at
 * n modulo the size, a power of two: nothing is ever moved but when the ring grows.
 * Zero-initialised is empty.  Ownership: ring_done frees.  Errors: running out of memory aborts. */
#pragma once

#include "base/str.h"

struct ring {
    char *base;
    size_t size;        /* allocated: 0 or a power of two */
    uint64_t from, end; /* offsets of the content in the stream */
};

static inline size_t ring_len(const struct ring *r)
{
    return (size_t)(r->end - r->from);
}

void ring_done(struct ring *r); /* empty, memory freed; the offsets stay */
/* Room for bytes at the end: at least one and at most n, n > 0, in one piece.  Pass the number used
 * to ring_added. */
size_t ring_room(struct ring *r, size_t n, char **ret);
void ring_added(struct ring *r, size_t n);
void ring_add(struct ring *r, const char *p, size_t n);
struct str ring_piece(const struct ring *r, uint64_t at); /* from offset `at` on, up to the seam */
void ring_drop(struct ring *r, uint64_t upto);            /* everything before that offset */
void ring_shrink(struct ring *r, size_t keep); /* frees the memory of an empty one past keep */
