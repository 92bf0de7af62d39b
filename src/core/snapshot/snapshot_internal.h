/* snapshot_internal: shared by the files of core/snapshot. */
#pragma once

#include "base/list.h"
#include "base/sorted.h"
#include "core/columns.h"
#include "core/identity/owner.h"
#include "core/snapshot/snapshot.h"

struct snapshots {
    struct snapshots_config c;
    char host[72];            /* the identity of the host image */
    struct snapshot **sorted; /* by id */
    size_t count, size;
    struct list restores; /* struct restore: those under way */
    bool recovered;       /* those of the last holtd are at work */
};

struct snapshot {
    struct snapshots *all;
    enum { SNAPSHOT_MAKING, SNAPSHOT_READY, SNAPSHOT_REMOVING } state;
    char id[ID_SIZE], sandbox[ID_SIZE], parent[ID_SIZE];
    char *name, *sandbox_name, *tenant, *image, *runtime, *spec, *labels, *digest, *host;
    char *defaults; /* of its image, for commands: JSON, or "" */
    char owner[64];
    const char **layers; /* one allocation */
    size_t layer_count;
    bool held; /* its layers are */
    bool on_host, automatic;
    int64_t bytes, entries, frozen_us, created_ms;
};

/* snapshot.c */
struct snapshot *snapshot_free(struct snapshot *s); /* takes NULL; returns NULL */
DEFINE_AUTO(struct snapshot *, snapshot_free)
void snapshot_read_defaults(struct snapshot *s);
void snapshot_list(struct snapshots *l, struct snapshot *s);
void snapshot_drop(struct snapshot *s); /* releases its layers */
struct snapshot *snapshot_by_id(struct snapshots *l, struct str id);

/* snapshot_make.c */
/* A new one of this sandbox, listed as being made; layer: its own, or NULL: not known yet. */
struct snapshot *snapshot_of(struct snapshots *l, struct sandbox *of, const char *id,
                             const struct snapshot_spec *spec);
void snapshot_set_top(struct snapshot *s, const char *layer); /* its own layer, above the others */
void snapshot_put_layers(const struct snapshot *s, struct buf *to); /* as JSON */
CHECKED int snapshot_set_layers(struct snapshot *s, struct str json, struct err *e);
void snapshot_retain(struct snapshots *l, const char *sandbox); /* drops old automatic ones */

/* snapshot_row.c */
CHECKED int snapshots_load(struct snapshots *l, struct err *e);
/* Inserts its row and event; with a restore of its sandbox, that ends. */
void snapshot_insert(struct snapshot *s, const char *actor, store_done done, void *arg);
void snapshot_delete(struct snapshot *s, const char *actor, store_done done, void *arg);

/* restore.c */
struct restore;
CHECKED int restores_load(struct snapshots *l, struct store_tx *tx, struct err *e);
CHECKED int restores_open(struct snapshots *l, struct err *e);
void restores_recover(struct snapshots *l);
void restores_free(struct snapshots *l);
bool restore_uses(const struct snapshots *l, const char *snapshot);

/* host_identity.c: "sha256:…" of the release and the list of packages of this machine. */
void host_identity(char to[72]);
