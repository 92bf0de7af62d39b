/* map: a hash map with open addressing and a hash keyed per process. */
#include "base/map.h"

#include "base/mem.h"
#include "base/rnd.h"

#include <pthread.h>
#include <stdlib.h>

struct map_entry {
    char *key; /* NULL: free slot */
    size_t n;
    uint64_t hash;
    void *value; /* NULL with the key `tombstone`: removed */
};

static char tombstone[1];

static uint64_t hash_key[2];

static void make_hash_key(void)
{
    rnd_bytes(hash_key, sizeof hash_key);
}

#define ROTL(x, b) (((x) << (b)) | ((x) >> (64 - (b))))

static inline void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = ROTL(v[1], 13) ^ v[0];
    v[0] = ROTL(v[0], 32);
    v[2] += v[3];
    v[3] = ROTL(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = ROTL(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = ROTL(v[1], 17) ^ v[2];
    v[2] = ROTL(v[2], 32);
}

uint64_t map_hash(struct str key)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    uint64_t v[4], word, last = (uint64_t)key.n << 56;
    size_t i;

    (void)pthread_once(&once, make_hash_key);
    v[0] = hash_key[0] ^ 0x736f6d6570736575U;
    v[1] = hash_key[1] ^ 0x646f72616e646f6dU;
    v[2] = hash_key[0] ^ 0x6c7967656e657261U;
    v[3] = hash_key[1] ^ 0x7465646279746573U;
    for (i = 0; i + 8 <= key.n; i += 8) {
        memcpy(&word, key.p + i, 8);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    for (size_t j = 0; i + j < key.n; j++)
        last |= (uint64_t)(unsigned char)key.p[i + j] << (8 * j);
    v[3] ^= last;
    sip_round(v);
    v[0] ^= last;
    v[2] ^= 0xff;
    for (int j = 0; j < 3; j++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static bool is_live(const struct map_entry *e)
{
    return e->key && e->key != tombstone;
}

void map_done(struct map *m)
{
    for (size_t i = 0; i < m->size; i++)
        if (is_live(&m->entries[i]))
            free(m->entries[i].key);
    free(m->entries);
    *m = (struct map){0};
}

static struct map_entry *find(const struct map *m, struct str key, uint64_t hash)
{
    if (m->size == 0)
        return NULL;
    for (size_t i = hash & (m->size - 1); m->entries[i].key; i = (i + 1) & (m->size - 1)) {
        struct map_entry *e = &m->entries[i];

        if (e->hash == hash && is_live(e) && str_eq(str_make(e->key, e->n), key))
            return e;
    }
    return NULL;
}

static void place(struct map *m, struct map_entry e)
{
    size_t i = e.hash & (m->size - 1);

    while (is_live(&m->entries[i]))
        i = (i + 1) & (m->size - 1);
    if (!m->entries[i].key)
        m->used++;
    m->entries[i] = e;
    m->count++;
}

static void grow(struct map *m)
{
    struct map old = *m;
    size_t size = 16;

    while (size < old.count * 2 + 2)
        size *= 2;
    *m = (struct map){.entries = xzalloc(size * sizeof *m->entries), .size = size};
    for (size_t i = 0; i < old.size; i++)
        if (is_live(&old.entries[i]))
            place(m, old.entries[i]);
    free(old.entries);
}

void *map_get(const struct map *m, struct str key)
{
    struct map_entry *e = find(m, key, map_hash(key));

    return e ? e->value : NULL;
}

void *map_set(struct map *m, struct str key, void *value)
{
    uint64_t hash = map_hash(key);
    struct map_entry *e = find(m, key, hash);
    void *old;

    assert(value);
    if (e) {
        old = e->value;
        e->value = value;
        return old;
    }
    if ((m->used + 1) * 4 > m->size * 3)
        grow(m);
    place(m, (struct map_entry){str_dup(key), key.n, hash, value});
    return NULL;
}

void *map_remove(struct map *m, struct str key)
{
    struct map_entry *e = find(m, key, map_hash(key));
    void *old;

    if (!e)
        return NULL;
    old = e->value;
    free(e->key);
    *e = (struct map_entry){.key = tombstone};
    m->count--;
    return old;
}

bool map_next(const struct map *m, size_t *at, struct str *key, void **value)
{
    for (; *at < m->size; (*at)++) {
        const struct map_entry *e = &m->entries[*at];

        if (!is_live(e))
            continue;
        if (key)
            *key = str_make(e->key, e->n);
        *value = e->value;
        (*at)++;
        return true;
    }
    return false;
}
