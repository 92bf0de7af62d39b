/* template: the description of a sandbox under a name, for creates to start from: fields of the
 * create operation as JSON, checked when the template is made.  Its owner decides who may use it
 * (core/identity/owner.h); a name is unique among its owner's in one tenant.  Rows are class 2;
 * creating and removing are events.  Its pool is added to what its runtime keeps ready.
 * Ownership: the registry's; a template is borrowed until the loop turns.  Thread: the loop's. */
#pragma once

#include "core/identity/named.h"
#include "core/sandbox/sandbox.h"

struct templates;
struct template;

struct template_spec { /* valid during the call */
    struct str name, tenant;
    struct str fields;  /* a JSON object */
    struct str runtime; /* of these; empty: the default */
    int64_t pool;       /* how many to keep ready */
    bool shared;        /* others may use it by its name; agents cannot set it */
};

struct template_info {
    const char *id;
    struct str name, tenant, owner, fields, runtime;
    int64_t pool, created_ms;
    bool shared;
    bool pooled; /* its runtime makes sandboxes ahead */
};

/* Reads the rows (blocking: at start-up only). */
CHECKED int templates_open(struct store *store, struct sandboxes *l, struct templates **ret,
                           struct err *e);
/* After sandboxes_close and store_close.  Takes NULL; returns NULL. */
struct templates *templates_free(struct templates *l);

struct template *template_of(struct named *n); /* of a create; NULL of NULL */
/* All: -1 with *e, and done is not called; or 0, and it is called later. */
CHECKED int template_create(struct templates *l, const struct template_spec *spec,
                            const struct named_call *c, struct err *e);
CHECKED int template_set_pool(struct template *t, int64_t pool, const struct named_call *c,
                              struct err *e);
CHECKED int template_remove(struct template *t, const struct named_call *c, struct err *e);

/* Finds one that this caller may see, or change: by id, name, OWNER/NAME; names of this tenant
 * (empty: any).  NULL: none, another owner's, or several (ERR_CONFLICT). */
enum template_want { TEMPLATE_SEE, TEMPLATE_CHANGE, TEMPLATE_USE };
struct template *template_find(struct templates *l, const struct principal *by,
                               enum template_want want, struct str tenant, struct str ref,
                               struct err *e);
/* Those that it may see, in order of id; NULL: the end. */
struct template *template_next(struct templates *l, const struct principal *by, struct str after);
void template_info(const struct template *t, struct template_info *ret);
