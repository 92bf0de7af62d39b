/* merge: brings what a fork has changed into another sandbox, three-way: what the target has gained
 * since the fork stays, and a conflict is decided by the caller or stops everything.
 *
 *   row ─▶ pause both ─▶ plan (holt-compare) ─▶ automatic snapshot of the target ─▶ row has its id
 *       ─▶ removals, then a tar of the files, through the target's init ─▶ row gone, event ─▶
 * resume
 *
 * A crash before the snapshot: nothing has happened.  After: the next start resumes both and says
 * which snapshot has the files before (event merge.interrupted).
 * It runs to its end, whether or not its caller waits.  Thread: the loop's. */
#pragma once

#include "core/change/change.h"

struct merge;

struct merge_spec { /* valid during the call */
    struct sandbox *fork, *onto;
    bool dry; /* the plan alone: nothing is paused or changed */
    /* Absolute paths at and below which a conflict is decided; "/": all.  The longest counts. */
    const struct str *ours, *theirs; /* for the target; for the fork */
    size_t ours_count, theirs_count;
    const struct principal *by;
};
struct merge_result {
    int64_t applied, already, conflicts, kept; /* numbers of changes */
    bool done;                                 /* they are applied: there was no conflict */
    char undo[ID_SIZE];                        /* the snapshot before; "": nothing was changed */
};
struct merge_events {
    void (*change)(void *arg, const struct change *c); /* each with its verdict */
    void (*done)(void *arg, const struct merge_result *r, const struct err *e); /* the last call */
    void *arg;
};
/* NULL: *e has the reason, and nothing is called. */
struct merge *merge_start(struct changes *l, const struct merge_spec *s,
                          const struct merge_events *ev, struct err *e);
void merge_forget(struct merge *m); /* nobody waits any more: no call after it */
