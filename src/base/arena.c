/* arena: bump allocation from blocks that are freed together. */
#include "base/arena.h"

#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define ARENA_ALIGN 16U
#define ARENA_BLOCK 4000U /* just under a page with malloc's header */

struct arena_block {
    struct arena_block *next;
    size_t size;
    _Alignas(ARENA_ALIGN) char data[];
};

void arena_done(struct arena *a)
{
    struct arena_block *next;

    for (struct arena_block *b = a->blocks; b; b = next) {
        next = b->next;
        free(b);
    }
    *a = (struct arena){0};
}

void arena_reset(struct arena *a)
{
    struct arena_block *next, *keep = NULL;

    for (struct arena_block *b = a->blocks; b; b = next) {
        next = b->next;
        if (!keep && b->size == ARENA_BLOCK - sizeof *b)
            keep = b;
        else
            free(b);
    }
    if (keep)
        keep->next = NULL;
    *a = (struct arena){.blocks = keep};
}

void *arena_alloc(struct arena *a, size_t n)
{
    struct arena_block *b = a->blocks;
    void *p;

    assert(n < SIZE_MAX / 2);
    n = (n + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
    if (!b || b->size - a->used < n) {
        size_t size = size_max(n, ARENA_BLOCK - sizeof *b);

        b = xmalloc(sizeof *b + size);
        b->size = size;
        b->next = a->blocks;
        a->blocks = b;
        a->used = 0;
    }
    p = b->data + a->used;
    a->used += n;
    return p;
}

void *arena_zalloc(struct arena *a, size_t n)
{
    void *p = arena_alloc(a, n);

    memset(p, 0, n);
    return p;
}

char *arena_cstr(struct arena *a, struct str s)
{
    char *p = arena_alloc(a, s.n + 1);

    if (s.n)
        memcpy(p, s.p, s.n);
    p[s.n] = '\0';
    return p;
}

struct str arena_str(struct arena *a, struct str s)
{
    return str_make(arena_cstr(a, s), s.n);
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list ap, again;
    char *p;
    int n;

    va_start(ap, fmt);
    va_copy(again, ap);
    n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    assert(n >= 0);
    p = arena_alloc(a, (size_t)n + 1);
    (void)vsnprintf(p, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return p;
}
