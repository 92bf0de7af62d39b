/* sandbox_layers: a sandbox's own files as layers: copied (snapshot), put aside and replaced
 * (restore), and other sandboxes made like it (fork).  The rules of snapshots are core/snapshot's.
 * Thread: the loop's. */
#pragma once

#include "core/sandbox/sandbox.h"

struct sandbox_base {          /* what files lie on; borrowed */
    const char *const *layers; /* lowest first */
    size_t layer_count;
    bool on_host;
    const char *snapshot; /* its id */
};

/* Its layers as they are now, without its own files.  On the heap, one allocation. */
const char **sandbox_layers(const struct sandbox *s, size_t *ret_n, bool *ret_on_host);
/* What it was made as, its environment included: for sandbox_fork. */
void sandbox_spec_of(const struct sandbox *s, struct buf *to);
struct str sandbox_defaults_of(const struct sandbox *s); /* of its image, as JSON; or empty */

typedef void (*sandbox_snapped_cb)(void *arg, struct sandbox *s, const struct driver_snapped *m,
                                   const struct err *e);
/* Copies its files into layers/LAYER, whatever its state is; they go on as they are. */
void sandbox_snapshot(struct sandbox *s, const char *layer, int64_t bytes_max,
                      const struct principal *by, sandbox_snapped_cb done, void *arg);
void sandbox_is_at(struct sandbox *s, const char *snapshot); /* its files are those of it */
/* Of a stopped one: its files go to layers/LAYER, and it continues on another base.  May be
 * repeated after a crash. */
void sandbox_rebase(struct sandbox *s, const char *layer, const struct sandbox_base *on,
                    const struct principal *by, sandbox_cb done, void *arg);
/* The digest of a layer that a rebase has moved. */
void sandbox_hash_layer(struct sandbox *s, const char *layer, driver_snapped_cb done, void *arg);

/* Removes layers/LAYER: false: no runtime can, and done is not called. */
bool sandboxes_remove_layer(void *sandboxes, const char *layer, driver_done done, void *arg);

struct sandbox_fork { /* what is not as it was; valid during the call */
    struct str base;  /* a name that sandbox_bases knows */
    struct str name, runtime;
    const struct pair *labels, *env; /* env: added to its own */
    size_t label_count, env_count;
    struct sandbox_limits limits; /* members that are not 0 */
    int64_t ttl_ms, idle_ttl_ms;  /* 0: none: lifetimes are not inherited */
    struct str network;           /* empty: as it was */
    const struct volume_use *volumes;
    size_t volume_count;
    const struct secret_use *secrets; /* none are inherited */
    size_t secret_count;
    struct str dialect, note; /* as in sandbox_spec, with its names there */
    const struct alias_name *aliases;
    size_t alias_count;
};
/* A new sandbox like the one of this spec: with its image's defaults, environment, limits, network
 * and directories in memory, without its secrets, volumes, host directories, names and relay. */
void sandbox_fork(struct sandboxes *l, struct str spec, const struct sandbox_fork *f,
                  const struct principal *by, sandbox_cb done, void *arg);
