/* target: a machine that playbooks are applied to (core/playbook/rollout.h): an address with a
 * pinned host key, or a sandbox of ours.  People make and remove targets; others see those that are
 * shared, and may ask to apply a playbook to them.  Nothing secret is kept: each rollout gets an
 * SSH certificate of minutes (core/access/access.h).  Rows are class 1; changes are events.
 * Ownership: the registry's; a target is borrowed until the loop turns.  Thread: the loop's. */
#pragma once

#include "core/identity/named.h"

#define TARGET_PEOPLE_MAX 5

struct targets;
struct target;
struct sandbox;
struct sandboxes;

struct target_spec { /* valid during the call */
    struct str name;
    struct str address;           /* an IP address or a host name; empty: a sandbox */
    struct str sandbox;           /* of ours, by id or name; empty: an address */
    struct str user;              /* to log in as */
    struct str host_key;          /* "ssh-ed25519 AAAA…": of an address, the only one it may have */
    const struct str *principals; /* of its certificates; none: the user */
    size_t principal_count;
    int64_t port, people; /* people: who must approve */
    bool become;          /* root by sudo */
    bool shared;          /* others may ask to apply to it */
};

struct target_info {
    const char *id;
    struct str name, tenant, owner, address, sandbox, user, host_key, principals;
    int64_t port, people, created_ms;
    bool become, shared;
};

/* Reads the rows (blocking: at start-up only). */
CHECKED int targets_open(struct store *store, struct sandboxes *sandboxes, struct targets **ret,
                         struct err *e);
struct targets *targets_free(struct targets *l); /* after store_close; takes NULL; returns NULL */

struct target *target_of(struct named *n); /* NULL of NULL */
/* Both: -1 with *e, and done is not called; or 0, and it is called later. */
CHECKED int target_create(struct targets *l, const struct target_spec *spec,
                          const struct named_call *c, struct err *e);
CHECKED int target_remove(struct target *t, const struct named_call *c, struct err *e);
struct target *target_find(struct targets *l, const struct principal *by, enum owner_use use,
                           struct str ref, struct err *e);
struct target *target_next(struct targets *l, const struct principal *by, struct str after);
void target_info(const struct target *t, struct target_info *ret);
/* The target that this sandbox is, for any caller; NULL: none. */
struct target *target_of_sandbox(struct targets *l, const char *sandbox);
