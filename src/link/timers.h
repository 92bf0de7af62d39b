/* timers: many deadlines on one timer of the loop, by the clock that a test can set.
 * A timer is a member of its owner, zero-initialised; setting it again moves it, stopping one that
 * is not set is harmless.  fn is called from the loop, never from within timer_set; the timer is
 * then not set.  at_ms is in clock_mono_ms; TIMER_SOON: in the next turn.  After the whole process
 * was stopped, timers that fell due meanwhile are called two seconds later: the input that would
 * have stopped them may be unread.
 * Thread: the loop's. */
#pragma once

#include "base/list.h"

#include <uv.h>

#define TIMER_SOON 0

struct timers;
struct timer {
    struct list link; /* next NULL: never set */
    int64_t at_ms;
    void (*fn)(struct timer *t);
};

struct timers *timers_new(uv_loop_t *loop);
struct timers *timers_free(struct timers *t); /* drops all that are set; takes NULL, returns NULL */
/* all NULL (after shutdown): nothing is set. */
void timer_set(struct timers *all, struct timer *t, int64_t at_ms, void (*fn)(struct timer *t));
void timer_stop(struct timer *t);
bool timer_is_set(const struct timer *t);
void timers_run(struct timers *all); /* calls the due ones: for a test's clock */
