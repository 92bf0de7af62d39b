/* arena: memory that is freed all at once, one per request.
 * Zero-initialised is empty.  Allocations are aligned for any type and never fail: limit sizes that
 * a client controls before allocating. */
#pragma once

#include "base/str.h"

struct arena_block;
struct arena {
    struct arena_block *blocks;
    size_t used; /* bytes used in the newest block */
};

void arena_done(struct arena *a);
void arena_reset(struct arena *a); /* empties it, but keeps one block of the usual size */
static inline UNUSED void arena_done_p(struct arena *a)
{
    arena_done(a);
}
void *arena_alloc(struct arena *a, size_t n) __attribute__((malloc, returns_nonnull));
void *arena_zalloc(struct arena *a, size_t n) __attribute__((malloc, returns_nonnull));
struct str arena_str(struct arena *a, struct str s); /* a NUL-terminated copy */
char *arena_cstr(struct arena *a, struct str s);
char *arena_printf(struct arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3);
