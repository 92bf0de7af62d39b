/* sorted: things in the order of their ids, for lookups and for pages that go on behind an id.
 * An owner has `struct thing **sorted; size_t count, size;`, each thing its id as an array of
 * characters; SORTED(owner, id) is what these functions take.  The things stay the owner's; it
 * frees the array.  Thread: the owner's. */
#pragma once

#include "base/str.h"

#include <stddef.h>

struct sorted {
    void *things;         /* the address of the owner's array */
    size_t *count, *size; /* used, allocated */
    size_t id;            /* where in a thing its id is */
};
#define SORTED(owner, member)                                                                      \
    ((struct sorted){.things = (void *)&(owner)->sorted,                                           \
                     .count = (size_t *)&(owner)->count,                                           \
                     .size = (size_t *)&(owner)->size,                                             \
                     .id = offsetof(typeof(**(owner)->sorted), member)})

void sorted_add(struct sorted s, void *thing);
void sorted_remove(struct sorted s, const void *thing); /* it is there */
void *sorted_find(struct sorted s, struct str id);      /* NULL: none has this id */
/* The place of the first with a greater id; the count: none has.  An empty id is before all. */
size_t sorted_after(struct sorted s, struct str id);
