/* merge_internal: shared by merge.c and merge_apply.c. */
#pragma once

#include "core/change/change_internal.h"
#include "core/change/merge.h"

struct guest_pipe;
struct tool;

struct merge_removal { /* followed by its path */
    uint32_t n;
    bool all, dir; /* with what is in it; it was a directory */
};

struct merge {
    struct list link; /* in changes->merges */
    struct changes *l;
    struct merge_events events;
    struct sandbox *s, *from; /* the target, the fork; NULL: gone, after a restart */
    struct principal by;
    char sandbox[ID_SIZE], fork[ID_SIZE], undo[ID_SIZE], actor[64];
    bool sandbox_ran, fork_ran, dry, has_row;
    bool left; /* by a holtd of before */
    int64_t created_ms;
    struct change_state before, after, onto;
    struct buf lines; /* of the request: choices, what is left out */
    struct change_diff *diff;
    struct merge_result result;
    struct err err;

    /* applying */
    struct buf removals; /* struct merge_removal, in the order of paths */
    size_t *removal_at, removal_count;
    struct buf request, pending; /* pending: of the archive, not taken by init yet */
    struct tool *tool;
    struct guest_pipe *pipe;
    bool tool_ended, tool_waits;
};

/* merge.c: both end it. */
void merge_fail(struct merge *m, const struct err *e);
void merge_applied(struct merge *m);
/* merge_apply.c: writes through the init of the target. */
void merge_apply(struct merge *m);
void merge_stop(struct merge *m); /* no call after it */
