/* mem: heap memory for small, fixed sizes: allocations abort when memory runs out.
 * A size that a client controls is limited first and goes through buf, which may fail. */
#pragma once

#include "base/macro.h"

void *xmalloc(size_t n) __attribute__((malloc, returns_nonnull));
void *xzalloc(size_t n) __attribute__((malloc, returns_nonnull));
void *xrealloc(void *p, size_t n) __attribute__((returns_nonnull));
void *xmemdup(const void *p, size_t n) __attribute__((returns_nonnull));
char *xstrdup(const char *s) __attribute__((malloc, returns_nonnull));
char *xstrndup(const char *s, size_t n) __attribute__((malloc, returns_nonnull));
char *xasprintf(const char *fmt, ...) PRINTF_LIKE(1, 2) __attribute__((returns_nonnull));
void mem_wipe(void *p, size_t n); /* not optimised away */

/* AUTO(mem_free) works on any pointer type. */
void mem_free(void *p);
static inline UNUSED void mem_free_p(void *p)
{
    mem_free(*(void **)p);
}
