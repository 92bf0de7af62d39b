/* event_hash: the canonical bytes of an event and the hash that chains it (docs/events.md).
 * Thread: any. */
#pragma once

#include "core/event/event.h"

#define EVENT_HASH_SIZE 32
#define EVENT_EPOCH "system.epoch" /* the only type allowed after a gap in seq */
#define EVENT_EPOCH_JUMP 1000000

/* Hashes everything in ev but its hash. */
void event_hash(const struct event *ev, unsigned char to[EVENT_HASH_SIZE]);
