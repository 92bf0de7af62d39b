/* map: a hash map from byte strings to pointers; keys are copied.  The hash is keyed per process
 * (SipHash-1-3), so that a client cannot choose colliding keys.
 * Zero-initialised is empty.  The values belong to the caller.  Open addressing, grows by itself.
 */
#pragma once

#include "base/str.h"

struct map_entry;
struct map {
    struct map_entry *entries;
    size_t size; /* number of slots: a power of two, or 0 */
    size_t count;
    size_t used; /* count and tombstones */
};

void map_done(struct map *m);
static inline UNUSED void map_done_p(struct map *m)
{
    map_done(m);
}
void *map_get(const struct map *m, struct str key);        /* NULL: absent */
void *map_set(struct map *m, struct str key, void *value); /* returns the value it replaced */
void *map_remove(struct map *m, struct str key);           /* returns the value it had */
/* Iterates in no particular order: start with *at = 0; false at the end.  Do not add meanwhile;
 * removing the current key is fine. */
bool map_next(const struct map *m, size_t *at, struct str *key, void **value);
uint64_t map_hash(struct str key);
