/* volume: files shared by sandboxes: on disk, until it is removed; or in memory, shared by running
 * sandboxes and gone with the last.  Its owner decides who may use it (core/identity/owner.h); a
 * name is unique among its owner's in one tenant.  A tenant's volumes are for its sandboxes
 * only.  Rows are class 2; creating and removing are events.  The sandboxes record which volumes
 * they have.  Ownership: the registry's; a volume is borrowed until the loop turns.  Thread: the
 * loop's. */
#pragma once

#include "core/identity/named.h"
#include "core/sandbox/driver.h"

struct volumes;
struct volume;
struct sandboxes;

enum volume_kind { VOLUME_DISK, VOLUME_TMPFS, VOLUME_KIND_COUNT };

struct volume_spec { /* valid during the call */
    struct str name, tenant;
    enum volume_kind kind;
    int64_t size_bytes; /* of a tmpfs; 0: 64 MiB */
    bool shared;        /* others may mount it by its name; agents cannot set it */
};

struct volume_info {
    const char *id;
    struct str name, tenant, owner;
    enum volume_kind kind;
    int64_t size_bytes, created_ms;
    bool shared;
    size_t used_by; /* sandboxes, including stopped ones */
};

/* Reads the rows (blocking: at start-up only), and gives the sandboxes access to them. */
CHECKED int volumes_open(struct store *store, struct sandboxes *l, struct volumes **ret,
                         struct err *e);
void volumes_set_max(struct volumes *l, int64_t max); /* the setting 'volumes_max' */
/* After sandboxes_close and store_close.  Takes NULL; returns NULL. */
struct volumes *volumes_free(struct volumes *l);

struct volume *volume_of(struct named *n); /* of a callback; NULL of NULL */
/* All three: -1 with *e, and done is not called; or 0, and it is called later. */
CHECKED int volume_create(struct volumes *l, const struct volume_spec *spec,
                          const struct named_call *c, struct err *e);
/* Shares it, or no longer: for people only (ERR_FORBIDDEN). */
CHECKED int volume_share(struct volume *v, bool shared, const struct named_call *c, struct err *e);
/* ERR_CONFLICT while a sandbox has it. */
CHECKED int volume_remove(struct volume *v, const struct named_call *c, struct err *e);
/* Its size; false: no runtime can measure it. */
bool volume_measure(struct volume *v, driver_bytes_cb done, void *arg);
/* Finds a volume that this caller may see, or change: by id, name, OWNER/NAME; names of this tenant
 * (empty: any).  NULL: none, another owner's (ERR_FORBIDDEN, by id only), or several
 * (ERR_CONFLICT). */
enum volume_want { VOLUME_SEE, VOLUME_CHANGE };
struct volume *volume_find(struct volumes *l, const struct principal *by, enum volume_want want,
                           struct str tenant, struct str ref, struct err *e);
/* Those that it may see, in order of id; NULL: the end. */
struct volume *volume_next(struct volumes *l, const struct principal *by, struct str after);
void volume_info(const struct volume *v, struct volume_info *ret);

/* --- for sandboxes --- */

struct volume_use { /* part of a create request */
    struct str name, path;
    bool readonly;
};
struct volume_asker {
    struct str tenant; /* of the sandbox */
    const struct principal *by;
};
/* A name means the caller's own or a shared one; another owner's is mounted by id or OWNER/NAME
 * only. */
CHECKED int volume_mount(struct volumes *l, const struct volume_use *u,
                         const struct volume_asker *asker, struct sandbox_mount *ret,
                         struct err *e);
bool volume_is_there(struct volumes *l, struct str name, const struct volume_asker *asker);
bool volume_is_mount(const struct sandbox_mount *m); /* of a volume: its source is the id */
