/* event_hash: the canonical bytes and the chained hash of an event. */
#include "core/event/event_hash.h"

#include "base/buf.h"
#include "proto/digest.h"

#include <stdlib.h>

#define TAG "holt-event-1"
#define FIXED (EVENT_HASH_SIZE + sizeof TAG - 1 + 8 + 8 + 1 + 8)

static unsigned char *put_int(unsigned char *at, uint64_t v, int bytes)
{
    for (int i = bytes - 1; i >= 0; i--)
        *at++ = (unsigned char)(v >> (8 * i));
    return at;
}

static unsigned char *put(unsigned char *at, const void *p, size_t n)
{
    memcpy(at, p, n);
    return at + n;
}

void event_hash(const struct event *ev, unsigned char to[EVENT_HASH_SIZE])
{
    const struct str texts[] = {ev->type, ev->object, ev->actor, ev->data};
    unsigned char fixed[FIXED], *at = fixed;
    AUTO(buf_done) struct buf b = {0};
    size_t total = sizeof fixed;
    char *room;

    at = put(at, ev->prev, sizeof ev->prev);
    at = put(at, TAG, sizeof TAG - 1);
    at = put_int(at, (uint64_t)ev->seq, 8);
    at = put_int(at, (uint64_t)ev->time_ms, 8);
    at = put_int(at, ev->audit, 1);
    at = put_int(at, (uint64_t)ev->count, 8);
    assert(at == fixed + sizeof fixed);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        total += 8 + texts[i].n;
    if (buf_reserve(&b, total, &room) < 0)
        abort(); /* the buffer has no limit: it cannot fail */
    buf_add(&b, fixed, sizeof fixed);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        unsigned char length[8];

        (void)put_int(length, texts[i].n, sizeof length);
        buf_add(&b, length, sizeof length);
        buf_add_str(&b, texts[i]);
    }
    sha256(buf_str(&b), to);
}
