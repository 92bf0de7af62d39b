/* change_internal: shared by the files of core/change. */
#pragma once

#include "base/buf.h"
#include "base/list.h"
#include "core/change/change.h"

#define CHANGE_TOOL "compare" /* the name of its throw-away sandboxes */
#define CHANGE_LAYERS_MAX                                                                          \
    30 /* of both states: SPAWN_MOUNTS_MAX of wire/spawn.h, less the others                        \
        */

struct changes {
    struct changes_config c;
    struct list running; /* struct change_diff */
    int64_t count, started_ms;
    struct buf program; /* read once */
    struct list merges; /* struct merge */
    struct list tars;   /* struct change_tar */
    bool swept;
};

/* One of the two things that are compared.  Zero-initialised is nothing. */
struct change_state {
    char (*layers)[ID_SIZE]; /* lowest first; held */
    size_t layer_count;
    bool on_host;
    struct sandbox *live; /* with its own files on top; NULL: no */
    /* of what ran in between */
    char sandbox[ID_SIZE];
    int64_t at_ms; /* when it was taken; 0: now, or not known */
};
void change_state_done(struct changes *l, struct change_state *s);
/* The state that a text names: see struct change_spec.  base: without its own files. */
CHECKED int change_state_find(struct changes *l, const struct change_spec *spec, struct str ref,
                              bool base, struct change_state *ret, struct err *e);

/* The mounts and the request of holt-compare for these. */
struct change_mounts {
    struct sandbox_mount v[32];
    size_t n;
    char targets[32][8];
    struct buf request;
};
/* m->request is the caller's. */
CHECKED int change_mounts_make(const struct change_state *before, const struct change_state *after,
                               struct change_mounts *ret, struct err *e);
CHECKED int change_mounts_onto(const struct change_state *onto, struct change_mounts *m,
                               struct err *e);
void change_put_path(struct buf *to, const char *key, struct str path); /* a line of a request */

CHECKED int change_check(struct changes *l, struct err *e); /* whether one more may run */
/* The states and the request of a diff; *before and *after are the caller's, also after -1. */
CHECKED int change_prepare(struct changes *l, const struct change_spec *s,
                           struct change_state *before, struct change_state *after,
                           struct change_mounts *m, struct err *e);

/* Runs holt-compare on these; takes m->request, unless it returns NULL. */
struct change_diff *change_run(struct changes *l, struct change_mounts *m, int64_t time_ms,
                               const struct change_events *ev, struct err *e);
struct tool;
struct tool_events;
/* request: borrowed until its end. */
struct tool *change_tool(struct changes *l, const struct change_mounts *m, struct str request,
                         int64_t time_ms, const struct tool_events *ev);

void change_tars_free(struct changes *l); /* change_tar.c */

/* merge.c */
CHECKED int merges_load(struct changes *l, struct err *e);
void merges_recover(struct changes *l);
void merges_free(struct changes *l);
