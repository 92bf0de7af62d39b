/* throttle: recent failures by name (a peer's address).
 * Memory is bounded: names past the bound share one count.  Thread: the loop's. */
#pragma once

#include "base/map.h"

struct throttle {
    struct map peers;  /* to struct throttle_count */
    int64_t failures;  /* this many … */
    int64_t window_ms; /* … within this time make the peer wait for the rest of it; 0: off */
};

#define THROTTLE_PEERS_MAX 4096

void throttle_done(struct throttle *t);
void throttle_failed(struct throttle *t, struct str peer);
/* true while the peer must wait; *ret_ms is how long. */
bool throttle_active(const struct throttle *t, struct str peer, int64_t *ret_ms);
