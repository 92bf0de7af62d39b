/* volume: files that several sandboxes may have: on disk, until it is removed; or in memory, shared
 * by those that run, its content gone with the last.  A name is unique in its tenant; a tenant's
 * volumes are seen by its sandboxes only, those without a tenant by all.  An agent uses what it
 * made. Rows are class 2; making and removing are events.  Which sandboxes have one is read from
 * them. Ownership: the registry's; a volume is borrowed until the loop turns.  Thread: the loop's.
 */
#pragma once

#include "core/driver.h"
#include "core/identity.h"

struct volumes;
struct volume;
struct sandboxes;

enum volume_kind { VOLUME_DISK, VOLUME_TMPFS, VOLUME_KIND_COUNT };

struct volume_spec { /* valid during the call */
    struct str name, tenant;
    enum volume_kind kind;
    int64_t size_bytes; /* of a tmpfs; 0: 64 MiB */
};

struct volume_info {
    const char *id;
    struct str name, tenant, owner;
    enum volume_kind kind;
    int64_t size_bytes, created_ms;
    size_t used_by; /* sandboxes, stopped ones too */
};

/* Reads the rows (blocking: at start-up only), and lets the sandboxes have them. */
CHECKED int volumes_open(struct store *store, struct sandboxes *l, struct volumes **ret,
                         struct err *e);
/* After sandboxes_close and store_close.  Takes NULL; returns NULL. */
struct volumes *volumes_free(struct volumes *l);

/* Of both: -1 with *e, and done is not called; or 0, and it is called later. */
typedef void (*volume_cb)(void *arg, struct volume *v, const struct err *e); /* v: of a create */
struct volume_call {
    const struct principal *by;
    volume_cb done;
    void *arg;
};
CHECKED int volume_create(struct volumes *l, const struct volume_spec *spec,
                          const struct volume_call *c, struct err *e);
/* ERR_CONFLICT while a sandbox has it. */
CHECKED int volume_remove(struct volume *v, const struct volume_call *c, struct err *e);
/* How much it holds; false: no runtime can tell. */
bool volume_measure(struct volume *v, driver_bytes_cb done, void *arg);
/* By id, or by name in this tenant (empty: of those without one). */
struct volume *volume_find(struct volumes *l, struct str tenant, struct str ref, struct err *e);
struct volume *volume_next(struct volumes *l, struct str after); /* in order of id; NULL: the end */
CHECKED int volume_check(const struct volume *v, const struct principal *by, struct err *e);
void volume_info(const struct volume *v, struct volume_info *ret);

/* --- for sandboxes --- */

struct volume_use { /* what a create asks for */
    struct str name, path;
    bool readonly;
};
struct volume_asker {
    struct str tenant; /* of the sandbox */
    const struct principal *by;
};
CHECKED int volume_mount(struct volumes *l, const struct volume_use *u,
                         const struct volume_asker *asker, struct sandbox_mount *ret,
                         struct err *e);
bool volume_is_mount(const struct sandbox_mount *m); /* of a volume: its source is the id */
