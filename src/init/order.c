/* order: the order in which the bytes of two streams arrived. */
#include "init/order.h"

#include "base/mem.h"

#include <assert.h>
#include <string.h>

void order_done(struct order *o)
{
    mem_free(o->runs);
    *o = (struct order){0};
}

static void order_grow(struct order *o)
{
    size_t size = o->size > 0 ? 2 * o->size : 4;
    struct order_run *runs = xmalloc(size * sizeof *runs);

    if (o->n > 0)
        memcpy(runs, o->runs, o->n * sizeof *runs);
    mem_free(o->runs);
    o->runs = runs;
    o->size = size;
}

void order_add(struct order *o, int stream, uint64_t end)
{
    struct order_run *last = o->n > 0 ? &o->runs[o->n - 1] : NULL;

    assert(stream == 0 || stream == 1);
    if (last && last->stream != stream && o->n == ORDER_MAX)
        last--;
    if (last && last->stream == stream) {
        assert(end >= last->end);
        last->end = end;
        return;
    }
    if (o->n == o->size)
        order_grow(o);
    o->runs[o->n++] = (struct order_run){end, stream};
}

int order_next(const struct order *o, uint64_t sent0, uint64_t sent1, uint64_t *ret_end)
{
    const uint64_t sent[2] = {sent0, sent1};

    for (size_t i = 0; i < o->n; i++)
        if (o->runs[i].end > sent[o->runs[i].stream]) {
            *ret_end = o->runs[i].end;
            return o->runs[i].stream;
        }
    return -1;
}

void order_drop(struct order *o, uint64_t acked0, uint64_t acked1)
{
    const uint64_t acked[2] = {acked0, acked1};
    size_t old = 0;

    while (old < o->n && o->runs[old].end <= acked[o->runs[old].stream])
        old++;
    o->n -= old;
    if (old > 0 && o->n > 0)
        memmove(o->runs, o->runs + old, o->n * sizeof *o->runs);
}
