/* live: the screen of a command, computed from its output log.  It is made when the first watcher
 * comes, follows the output while there is one, and is dropped a few seconds after the last has
 * left: the log has all of it, so that a screen costs nothing while nobody looks, and is the same
 * after holtd was killed.  Watchers of one command share one screen.
 * Ownership: a watch is the caller's memory, from live_watch to live_leave; it holds the command.
 * Thread: the loop's. */
#pragma once

#include "core/exec/exec.h"
#include "core/session/screen.h"
#include "link/timers.h"

#define LIVE_HISTORY 1000 /* lines kept above a screen */

struct lives;
struct live;

struct live_watch {
    struct list link;
    struct live *live; /* NULL: not watching */
    struct timer soon;
    /* The screen is there, or differs from the last call.  May leave. */
    void (*changed)(struct live_watch *w);
    /* The log cannot be read; only before the first `changed`.  May leave. */
    void (*failed)(struct live_watch *w, const struct err *e);
};

struct lives *lives_new(uv_loop_t *loop);
struct lives *lives_free(struct lives *all); /* no watch may be left; takes NULL; returns NULL */
/* The daemon stops: nothing is kept for a next look any more. */
void lives_close(struct lives *all);
/* x has a terminal.  until: the screen as it was at this offset of its output; INT64_MAX: now. */
void live_watch(struct lives *all, struct exec *x, int64_t until, struct live_watch *w);
void live_leave(struct live_watch *w); /* harmless if not watching */

/* NULL: the log is still being read. */
const struct screen *live_screen(const struct live_watch *w);
int64_t live_offset(const struct live_watch *w); /* of the output that it shows */
/* Whether it was made from all output: nothing of it had been dropped. */
bool live_is_whole(const struct live_watch *w);
/* Whether all output of an ended command is in it. */
bool live_is_over(const struct live_watch *w);
struct timers *lives_timers(struct lives *all);
size_t lives_count(const struct lives *all);
