/* sorted: an array of objects ordered by id. */
#include "base/sorted.h"

#include "base/mem.h"

static void **things_of(struct sorted s)
{
    void **things;

    memcpy(&things, s.things, sizeof things); /* memcpy: the owner's array has another type */
    return things;
}

static struct str id_of(struct sorted s, const void *thing)
{
    return str_of((const char *)thing + s.id);
}

static int compare(struct str a, struct str b)
{
    size_t n = size_min(a.n, b.n);
    int order = n > 0 ? memcmp(a.p, b.p, n) : 0;

    return order != 0 ? order : (a.n > b.n) - (a.n < b.n);
}

/* The index of the first object whose id is greater or, with `equal`, not less. */
static size_t place(struct sorted s, struct str id, bool equal)
{
    void **things = things_of(s);
    size_t low = 0, high = *s.count;

    while (low < high) {
        size_t mid = (low + high) / 2;
        int order = compare(id_of(s, things[mid]), id);

        if (order < 0 || (order == 0 && !equal))
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

void sorted_add(struct sorted s, void *thing)
{
    size_t at = place(s, id_of(s, thing), true);
    void **things = things_of(s);

    if (*s.count == *s.size) {
        *s.size = *s.size ? *s.size * 2 : 16;
        things = xrealloc(things, *s.size * sizeof *things);
        memcpy(s.things, &things, sizeof things);
    }
    memmove(things + at + 1, things + at, (*s.count - at) * sizeof *things);
    things[at] = thing;
    (*s.count)++;
}

void sorted_remove(struct sorted s, const void *thing)
{
    size_t at = place(s, id_of(s, thing), true);
    void **things = things_of(s);

    assert(at < *s.count && things[at] == thing);
    (*s.count)--;
    memmove(things + at, things + at + 1, (*s.count - at) * sizeof *things);
}

void *sorted_find(struct sorted s, struct str id)
{
    size_t at = place(s, id, true);
    void **things = things_of(s);

    return at < *s.count && str_eq(id_of(s, things[at]), id) ? things[at] : NULL;
}

size_t sorted_after(struct sorted s, struct str id)
{
    return place(s, id, false);
}
