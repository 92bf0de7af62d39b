/* secret: values that sandboxes use without seeing them (docs/secrets.md).  A sandbox has a
 * placeholder; holt-egress replaces it by the value in requests that match the secret's rule.  A
 * value is written and never read back: it is kept sealed (proto/seal.h), in rows and in memory,
 * and opened only to be sent to holt-egress.  The key is secret.key in the state directory, made
 * with the first secret.  Rows are class 1; changes are events, without values.  The sandboxes
 * record which secrets they have.  Ownership: the registry's; a secret is borrowed until the loop
 * turns.  Thread: the loop's. */
#pragma once

#include "core/identity/identity.h"
#include "ops/op.h"

struct secrets;
struct secret;
struct buf;

#define SECRET_NAME_MAX 63

struct secret_spec { /* valid during the call; in a change, absent members stay unchanged */
    struct str name;
    struct str value;              /* p NULL: absent */
    struct op_list hosts;          /* n 0: absent */
    const struct op_list *methods; /* NULL: absent; none: every method */
    struct str path;               /* p NULL: absent; empty: every path */
    struct op_list places;         /* "header", "query", "basic"; n 0: absent */
    const bool *plain;             /* NULL: absent */
};

struct secret_info {
    const char *id;
    struct str name, owner, tenant;
    const json_t *rule; /* hosts, in, plain, and methods and path if set */
    int64_t created_ms, updated_ms, rotated_ms;
    size_t used_by; /* sandboxes, including stopped ones */
};

/* Reads the rows (blocking: at start-up only).  An unusable key is no failure: it is logged, and
 * reported by operations that need it. */
CHECKED int secrets_open(struct store *store, const char *state, struct secrets **ret,
                         struct err *e);
void secrets_set_max(struct secrets *l, int64_t max); /* the setting 'secrets_max' */
/* The users of secrets, set by their registry (sandboxes_set_secrets). */
struct sandbox_secret;
struct secret_user {
    const char *id; /* of the sandbox */
    const struct sandbox_secret *secrets;
    size_t count;
};
struct secret_users {
    /* The user at *at (0: the first), with *at moved on; false: there are no more. */
    bool (*next)(void *arg, size_t *at, struct secret_user *ret);
    /* A secret was changed or removed: done when all its users have the new one. */
    void (*tell)(void *arg, const char *id, store_done done, void *done_arg);
};
void secrets_set_users(struct secrets *l, const struct secret_users *ops, void *arg); /* or NULL */
/* After sandboxes_close and store_close.  Takes NULL; returns NULL. */
struct secrets *secrets_free(struct secrets *l);

/* Both: -1 with *e, and done is not called; or 0, and done is called when the change is on disk and
 * holt-egress has it. */
typedef void (*secret_cb)(void *arg, struct secret *s, const struct err *e); /* s: of a set */
struct secret_call {
    const struct principal *by;
    secret_cb done;
    void *arg;
};
enum secret_how { SECRET_MAKE, SECRET_CHANGE, SECRET_MAKE_OR_CHANGE };
CHECKED int secret_set(struct secrets *l, const struct secret_spec *spec, enum secret_how how,
                       const struct secret_call *c, struct err *e);
CHECKED int secret_remove(struct secret *s, const struct secret_call *c, struct err *e);
/* Finds a secret that this caller may use (core/identity/owner.h): by id, name or OWNER/NAME; a
 * plain name means one of its own tenant.  NULL: *e has the reason. */
struct secret *secret_find(struct secrets *l, const struct principal *by, struct str ref,
                           struct err *e);
/* Secrets that it may see, in order of id; NULL: the end. */
struct secret *secret_next(struct secrets *l, const struct principal *by, struct str after);
void secret_info(const struct secret *s, struct secret_info *ret);

/* --- for sandboxes --- */

struct secret_use {       /* part of a create request */
    struct str name, env; /* env empty: derived from the name */
};
#define PLACEHOLDER_SIZE 48
struct sandbox_secret { /* a secret of a sandbox */
    char id[ID_SIZE];   /* another secret of the same name is a different one */
    char name[SECRET_NAME_MAX + 1], env[SECRET_NAME_MAX + 1];
    char placeholder[PLACEHOLDER_SIZE];
};
/* The secrets of one sandbox in the form for holt-egress: a JSON list with values, to be
 * wiped.  Leaves out removed ones and those that cannot be opened: their placeholders are not
 * replaced. */
void secrets_print(const struct secrets *l, const struct sandbox_secret *v, size_t n,
                   struct buf *to);
/* Whether they fit into one message. */
CHECKED int secrets_fit(const struct secrets *l, const struct sandbox_secret *v, size_t n,
                        struct err *e);
/* Whether a new sandbox can use it.  intercept: TLS is intercepted. */
CHECKED int secret_check(const struct secret *s, bool intercept, struct err *e);
