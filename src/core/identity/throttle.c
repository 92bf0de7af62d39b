/* throttle: counts failed logins per peer. */
#include "core/identity/throttle.h"

#include "base/clock.h"
#include "base/mem.h"

struct throttle_count {
    int64_t since_ms;
    int64_t failures;
};

static const struct str everybody_else = {"", 0}; /* no peer has an empty name */

void throttle_done(struct throttle *t)
{
    size_t at = 0;
    struct str key;
    void *value;

    while (map_next(&t->peers, &at, &key, &value))
        mem_free(value);
    map_done(&t->peers);
}

static bool is_over(const struct throttle *t, const struct throttle_count *c)
{
    return clock_mono_ms() - c->since_ms >= t->window_ms;
}

static void forget_old(struct throttle *t)
{
    size_t at = 0;
    struct str key;
    void *value;

    while (map_next(&t->peers, &at, &key, &value)) {
        if (!is_over(t, value))
            continue;
        map_remove(&t->peers, key);
        mem_free(value);
    }
}

void throttle_failed(struct throttle *t, struct str peer)
{
    struct throttle_count *c = map_get(&t->peers, peer);

    if (!c && t->peers.count >= THROTTLE_PEERS_MAX) {
        forget_old(t);
        if (t->peers.count >= THROTTLE_PEERS_MAX) {
            peer = everybody_else;
            c = map_get(&t->peers, peer);
        }
    }
    if (!c) {
        c = xzalloc(sizeof *c);
        c->since_ms = clock_mono_ms();
        map_set(&t->peers, peer, c);
    }
    if (is_over(t, c))
        *c = (struct throttle_count){.since_ms = clock_mono_ms()};
    c->failures++;
}

bool throttle_active(const struct throttle *t, struct str peer, int64_t *ret_ms)
{
    const struct throttle_count *c = map_get(&t->peers, peer);

    if (!c && t->peers.count >= THROTTLE_PEERS_MAX)
        c = map_get(&t->peers, everybody_else);
    if (!c || t->failures <= 0 || c->failures < t->failures || is_over(t, c))
        return false;
    *ret_ms = c->since_ms + t->window_ms - clock_mono_ms();
    return true;
}
