/* buf: a growing byte buffer with an optional limit. */
#include "base/buf.h"

#include "base/mem.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

void buf_done(struct buf *b)
{
    free(b->base);
    *b = (struct buf){.limit = b->limit};
}

void buf_wipe(struct buf *b)
{
    if (b->base)
        mem_wipe(b->base, b->size);
    buf_done(b);
}

/* Makes room for n more bytes and a NUL: moves the content to the front, or grows by half. */
static void make_room(struct buf *b, size_t n)
{
    size_t len = buf_len(b), need, size;

    if (b->size - b->end > n)
        return;
    if (__builtin_add_overflow(len, n + 1, &need) || need > SIZE_MAX / 2)
        abort();
    if (need <= b->size && b->start >= len) { /* the copy does not overlap: cheap */
        if (len)
            memcpy(b->base, b->base + b->start, len);
    } else {
        size = size_max(need, b->size + b->size / 2);
        if (b->start > 0) {
            char *fresh = xmalloc(size_max(size, 64));

            if (len)
                memcpy(fresh, b->base + b->start, len);
            free(b->base);
            b->base = fresh;
        } else {
            b->base = xrealloc(b->base, size_max(size, 64));
        }
        b->size = size_max(size, 64);
    }
    b->start = 0;
    b->end = len;
}

int buf_reserve(struct buf *b, size_t n, char **ret)
{
    if (b->limit && (n > b->limit || buf_len(b) > b->limit - n))
        return -ENOSPC;
    make_room(b, n);
    *ret = b->base + b->end;
    return 0;
}

void buf_added(struct buf *b, size_t n)
{
    assert(n <= b->size - b->end);
    b->end += n;
}

int buf_try_add(struct buf *b, const void *p, size_t n)
{
    char *to;
    int r;

    if (n == 0)
        return 0; /* adding nothing allocates nothing */
    r = buf_reserve(b, n, &to);
    if (r < 0)
        return r;
    memcpy(to, p, n);
    buf_added(b, n);
    return 0;
}

void buf_add(struct buf *b, const void *p, size_t n)
{
    int r = buf_try_add(b, p, n);

    assert(r == 0);
}

void buf_add_str(struct buf *b, struct str s)
{
    buf_add(b, s.p, s.n);
}

void buf_add_c(struct buf *b, const char *s)
{
    buf_add(b, s, strlen(s));
}

void buf_add_char(struct buf *b, char c)
{
    if (!b->limit && b->size - b->end > 1)
        b->base[b->end++] = c; /* keeps one byte free for the NUL of buf_cstr */
    else
        buf_add(b, &c, 1);
}

void buf_vprintf(struct buf *b, const char *fmt, va_list ap)
{
    va_list again;
    char *to;
    int n, r;

    va_copy(again, ap);
    n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    assert(n >= 0);
    r = buf_reserve(b, (size_t)n, &to); /* make_room leaves one more byte for the NUL */
    assert(r == 0);
    (void)vsnprintf(to, (size_t)n + 1, fmt, ap);
    buf_added(b, (size_t)n);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(b, fmt, ap);
    va_end(ap);
}

void buf_take(struct buf *b, size_t n)
{
    assert(n <= buf_len(b));
    b->start += n;
    if (b->start == b->end)
        b->start = b->end = 0;
}

void buf_clear(struct buf *b)
{
    b->start = b->end = 0;
}

void buf_truncate(struct buf *b, size_t len)
{
    assert(len <= buf_len(b));
    b->end = b->start + len;
}

char *buf_cstr(struct buf *b)
{
    make_room(b, 0);
    b->base[b->end] = '\0';
    return b->base + b->start;
}

char *buf_steal(struct buf *b)
{
    char *s;

    (void)buf_cstr(b);
    if (b->start > 0)
        memmove(b->base, b->base + b->start, buf_len(b) + 1);
    s = b->base;
    *b = (struct buf){.limit = b->limit};
    return s;
}

void buf_shrink(struct buf *b, size_t keep)
{
    if (buf_len(b) == 0 && b->size > keep)
        buf_done(b);
}
