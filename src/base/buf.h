/* buf: a growing byte buffer with a limit; bytes are added at the end and taken from the front.
 * Zero-initialised is empty with no limit.  Ownership: buf_done frees.  Errors: -ENOSPC past the
 * limit, and nothing was added; without a limit, running out of memory aborts. */
#pragma once

#include "base/str.h"

#include <stdarg.h>

struct buf {
    char *base;
    size_t start; /* of the content */
    size_t end;
    size_t size;  /* allocated */
    size_t limit; /* most content bytes; 0: no limit */
};

void buf_done(struct buf *b); /* empty again, memory freed; the limit stays */
/* As buf_done, but overwrites secrets first.  Blocks that were freed while the buffer grew are not
 * overwritten: reserve enough at the start. */
void buf_wipe(struct buf *b);
static inline UNUSED void buf_done_p(struct buf *b)
{
    buf_done(b);
}
static inline UNUSED void buf_wipe_p(struct buf *b)
{
    buf_wipe(b);
}

static inline size_t buf_len(const struct buf *b)
{
    return b->end - b->start;
}

static inline char *buf_data(const struct buf *b)
{
    return b->base ? b->base + b->start : NULL;
}

static inline struct str buf_str(const struct buf *b)
{
    return str_make(buf_data(b), buf_len(b));
}

/* Room for n more bytes at the end; *ret points at it; pass the number used to buf_added. */
int buf_reserve(struct buf *b, size_t n, char **ret) CHECKED;
void buf_added(struct buf *b, size_t n);
int buf_try_add(struct buf *b, const void *p, size_t n) CHECKED;

/* For buffers without a limit: cannot fail. */
void buf_add(struct buf *b, const void *p, size_t n);
void buf_add_str(struct buf *b, struct str s);
void buf_add_c(struct buf *b, const char *s);
void buf_add_char(struct buf *b, char c);
void buf_printf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
void buf_vprintf(struct buf *b, const char *fmt, va_list ap) PRINTF_LIKE(2, 0);

void buf_take(struct buf *b, size_t n); /* drops n bytes from the front */
void buf_clear(struct buf *b);          /* keeps the memory */
void buf_truncate(struct buf *b, size_t len);
char *buf_cstr(struct buf *b);  /* the content, NUL-terminated in place; owned by b */
char *buf_steal(struct buf *b); /* moves the content out as a heap string and empties b */
/* Frees the memory of an empty buffer that grew past keep bytes. */
void buf_shrink(struct buf *b, size_t keep);
