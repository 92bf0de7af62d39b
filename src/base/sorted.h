/* sorted: objects in the order of their ids, for lookups and for pages that continue after an id.
 * An owner has `struct thing **sorted; size_t count, size;`, each object its id as an array of
 * characters; pass SORTED(owner, id) to these functions.  The owner keeps the objects and frees the
 * array.  Thread: the owner's. */
#pragma once

#include "base/str.h"

#include <stddef.h>

struct sorted {
    void *things;         /* the address of the owner's array */
    size_t *count, *size; /* used, allocated */
    size_t id;            /* the offset of the id in an object */
};
#define SORTED(owner, member)                                                                      \
    ((struct sorted){.things = (void *)&(owner)->sorted,                                           \
                     .count = (size_t *)&(owner)->count,                                           \
                     .size = (size_t *)&(owner)->size,                                             \
                     .id = offsetof(typeof(**(owner)->sorted), member)})

void sorted_add(struct sorted s, void *thing);
void sorted_remove(struct sorted s, const void *thing); /* it must be in the array */
void *sorted_find(struct sorted s, struct str id);      /* NULL: no object has this id */
/* The index of the first object with a greater id, or the count.  An empty id sorts first. */
size_t sorted_after(struct sorted s, struct str id);
