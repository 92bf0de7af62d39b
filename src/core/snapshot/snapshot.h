/* snapshot: the files of a sandbox at one moment: an immutable, content-addressed layer on those
 * that the sandbox lies on.  Sandboxes are restored to one in place, forked from one as often as
 * wanted, and committed to images.  A name is unique in its sandbox: SANDBOX@NAME elsewhere.  Its
 * owner is the sandbox's (core/identity/owner.h).  It outlives its sandbox, unless it was made
 * automatically.  Rows are class 1, and written last: half a snapshot is never listed.
 * Ownership: the registry's; a snapshot is borrowed until the loop turns.  Thread: the loop's. */
#pragma once

#include "core/identity/identity.h"
#include "core/image/image.h"
#include "core/sandbox/sandbox_layers.h"

struct snapshots;
struct snapshot;
struct space;

struct snapshots_config {
    struct store *store;
    struct sandboxes *sandboxes;
    struct images *images;
    struct space *space;      /* asked before files are copied; NULL: nothing is kept free */
    const char *state;        /* directory */
    const int64_t *count_max; /* of one sandbox, read at each use */
};
/* Reads the rows and holds their layers (blocking: at start-up only).  Before images_sweep. */
CHECKED int snapshots_open(const struct snapshots_config *c, struct snapshots **ret, struct err *e);
/* After sandboxes_close, store_close and the last turn of the loop.  Takes NULL; returns NULL. */
struct snapshots *snapshots_free(struct snapshots *l);
/* Once a second: finishes restores of the last holtd; drops automatic ones of gone sandboxes. */
void snapshots_tick(struct snapshots *l);

struct snapshot_info {
    const char *id;
    struct str name, sandbox, sandbox_name, owner, tenant, parent, image, runtime, host, labels;
    struct str digest, spec; /* spec: holds an environment; for sandbox_fork only */
    const char *const *layers;
    size_t layer_count;
    bool on_host, automatic;
    int64_t bytes, entries, frozen_us, created_ms;
};
void snapshot_info(const struct snapshot *s, struct snapshot_info *ret);

/* s: of a create or restore; otherwise NULL. */
typedef void (*snapshot_cb)(void *arg, struct snapshot *s, const struct err *e);
struct snapshot_call {
    const struct principal *by;
    snapshot_cb done;
    void *arg;
};
struct snapshot_spec { /* valid during the call */
    struct str name;   /* empty: "s1", "s2" … */
    struct str labels; /* a JSON object; empty: none */
    bool automatic;
};
/* All three: -1 with *e, and done is not called; or 0, and it is called later. */
CHECKED int snapshot_create(struct snapshots *l, struct sandbox *of,
                            const struct snapshot_spec *spec, const struct snapshot_call *c,
                            struct err *e);
CHECKED int snapshot_remove(struct snapshot *s, const struct snapshot_call *c, struct err *e);
/* In place: same id, name and address; its commands end.  done gets the automatic snapshot of the
 * files before.  It runs again if it ran. */
CHECKED int snapshot_restore(struct snapshot *to, struct sandbox *s, const struct snapshot_call *c,
                             struct err *e);

/* By id or SANDBOX@NAME; of: what a plain name belongs to, or NULL. */
enum snapshot_want { SNAPSHOT_SEE, SNAPSHOT_CHANGE };
struct snapshot *snapshot_find(struct snapshots *l, const struct principal *by,
                               enum snapshot_want want, const struct sandbox *of, struct str ref,
                               struct err *e);
/* Those that it may see, in order of id; NULL: the end. */
struct snapshot *snapshot_next(struct snapshots *l, const struct principal *by, struct str after);
bool snapshot_is_ref(struct str ref); /* it can only name a snapshot */
