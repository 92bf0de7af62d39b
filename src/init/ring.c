/* ring: the unacknowledged part of a command's output. */
#include "init/ring.h"

#include "base/mem.h"

#define SIZE_MIN 64

void ring_done(struct ring *r)
{
    mem_free(r->base);
    r->base = NULL;
    r->size = 0;
    r->from = r->end;
}

struct str ring_piece(const struct ring *r, uint64_t at)
{
    size_t start;

    assert(at >= r->from && at <= r->end);
    if (at == r->end)
        return str_make(NULL, 0);
    start = (size_t)(at & (r->size - 1));
    return str_make(r->base + start, size_min((size_t)(r->end - at), r->size - start));
}

static void grow(struct ring *r, size_t need)
{
    struct ring fresh = *r;

    fresh.size = size_max(r->size, SIZE_MIN);
    while (fresh.size < need)
        fresh.size *= 2;
    if (fresh.size == r->size)
        return;
    fresh.base = xmalloc(fresh.size);
    fresh.end = r->from;
    while (fresh.end < r->end) {
        struct str piece = ring_piece(r, fresh.end);

        ring_add(&fresh, piece.p, piece.n);
    }
    mem_free(r->base);
    *r = fresh;
}

/* The free bytes after the content, up to the seam. */
static size_t room_ahead(const struct ring *r, char **ret)
{
    size_t at = (size_t)(r->end & (r->size - 1));

    *ret = r->base + at;
    return size_min(r->size - ring_len(r), r->size - at);
}

size_t ring_room(struct ring *r, size_t n, char **ret)
{
    grow(r, ring_len(r) + n);
    return size_min(n, room_ahead(r, ret));
}

void ring_added(struct ring *r, size_t n)
{
    assert(n <= r->size - ring_len(r));
    r->end += n;
}

void ring_add(struct ring *r, const char *p, size_t n)
{
    grow(r, ring_len(r) + n);
    while (n > 0) {
        char *to;
        size_t k = size_min(n, room_ahead(r, &to));

        memcpy(to, p, k);
        r->end += k;
        p += k;
        n -= k;
    }
}

void ring_drop(struct ring *r, uint64_t upto)
{
    assert(upto >= r->from && upto <= r->end);
    r->from = upto;
}

void ring_shrink(struct ring *r, size_t keep)
{
    if (ring_len(r) == 0 && r->size > keep)
        ring_done(r);
}
