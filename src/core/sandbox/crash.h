/* crash: sandboxes whose init ends by itself again and again.  Several crashes within a while, the
 * last one soon after its start, are a crash loop: it is not started any more, until its cool-down
 * is over and it is rebuilt with fresh files (if the rules say so), a person resets it, or
 * reprovisions it.  After that many rebuilds holt gives up.
 * Ownership: a member of the sandbox, kept in its row.  Thread: the loop's. */
#pragma once

#include "base/macro.h"

#include <stdint.h>

#define CRASHES_KEPT 16
#define CRASH_WHY 96

struct crash_rules {     /* the settings of these names */
    int64_t crash_count; /* 0: no crash loops */
    int64_t crash_window_ms, crash_uptime_ms, crash_cooldown_ms, crash_rebuilds, crash_healthy_ms;
};

enum crash_state { CRASH_HEALTHY, CRASH_RECOVERING, CRASH_LOOP, CRASH_FAILED, CRASH_STATES };
const char *crash_state_name(enum crash_state s);

struct sandbox_crash {
    int64_t at_ms, uptime_ms; /* -1: not known */
    char why[CRASH_WHY];
};

struct sandbox_crashes {
    struct sandbox_crash v[CRASHES_KEPT]; /* the newest last */
    int64_t n, total;
    int64_t counted_ms;    /* earlier ones do not count: it was healthy, reset or rebuilt since */
    int64_t loop_ms;       /* since when it is in a crash loop; 0: it is in none */
    int64_t rebuild_at_ms; /* 0: it is not going to be rebuilt */
    int64_t rebuilds;      /* since it was last healthy or reset */
    bool given_up;
};

/* A crash now: true if that makes it a loop.  Pure. */
bool crash_add(struct sandbox_crashes *c, const struct crash_rules *r,
               const struct sandbox_crash *now);
int64_t crash_recent(const struct sandbox_crashes *c, const struct crash_rules *r, int64_t now_ms);
void crash_forgive(struct sandbox_crashes *c, int64_t now_ms); /* from here on it counts anew */
enum crash_state crash_state(const struct sandbox_crashes *c);
