/* claim: the wish for one sandbox made from a template, under a name in a namespace, and what has
 * become of it.  It is there before its sandbox is, and may stay after it: refused and expired
 * claims say why.  The room keeps claims, their names and their times; dialects make the sandboxes
 * and report how they are.  A name is unique among the claims that its maker sees; the owner
 * decides who else sees it (core/identity/owner.h).  Rows are class 2; every change is an event
 * with the whole claim but the values of its environment. Ownership: the registry's; a claim is
 * borrowed until the loop turns.  Thread: the loop's. */
#pragma once

#include "core/identity/named.h"
#include "proto/json.h"

#define CLAIMS_MAX 4096
#define CLAIM_NAME_MAX 190 /* with its namespace it is an alias of its sandbox */
#define CLAIM_SPACE_MAX 63
#define CLAIMS_OWNER_MAX 1024      /* of one owner */
#define CLAIM_TEXT_MAX (16 * 1024) /* of spec, and of meta */

struct claims;
struct claim;

struct claim_times {     /* wall clock; 0: never */
    int64_t shutdown_ms; /* it expires then */
    int64_t keep_ms;     /* it is removed this long after its end, if `forget` */
    bool forget,
        removes; /* removes: at its shutdown it goes too, instead of saying that it expired */
};
struct claim_spec { /* valid during the call */
    struct str space, name, template;
    struct str spec, meta; /* JSON objects of the dialect's; meta has its labels and annotations */
    struct claim_times times;
};
struct claim_state {
    bool ready, ended; /* ended: nothing will become of it */
    struct str reason, message;
    struct str sandbox; /* its id; empty: none yet */
};
struct claim_info {
    const char *id;
    struct str name, space, template, tenant, owner, spec, meta;
    struct claim_state state;
    struct claim_times times;
    int64_t created_ms, moved_ms, ended_ms; /* moved: since when it is ready, or is not */
    int64_t generation;                     /* of its spec */
};

/* Reads the rows (blocking: at start-up only). */
CHECKED int claims_open(struct store *store, struct claims **ret, struct err *e);
struct claims *claims_free(struct claims *l); /* after store_close; takes NULL; returns NULL */

struct claim *claim_of(struct named *n); /* NULL of NULL */
/* In order of id; by: those that it may see; NULL: the end. */
struct claim *claim_next(struct claims *l, const struct principal *by, struct str after);
struct claim *claim_get(struct claims *l, struct str id); /* for any caller; or NULL */
/* The caller's own before others'.  NULL: none, or several of others (ERR_CONFLICT). */
struct claim *claim_find(struct claims *l, const struct principal *by, enum owner_use use,
                         struct str space, struct str name, struct err *e);
struct claim *claim_of_sandbox(struct claims *l, struct str sandbox); /* or NULL */
void claim_info(const struct claim *c, struct claim_info *ret);
/* Removes what only its owner may know: the values of variables, also in the copy of the whole
 * claim that one client keeps in an annotation. */
#define CLAIM_APPLIED "kubectl.kubernetes.io/last-applied-configuration"
void claim_hide(json_t *spec, json_t *meta);
/* Its maker, for the work that goes on after the request. */
struct principal claim_maker(const struct claim *c);

/* All: -1 with *e, and done is not called; or 0, and it is called later. */
CHECKED int claim_create(struct claims *l, const struct claim_spec *spec,
                         const struct named_call *c, struct err *e);
/* New spec, meta and times.  relabelled: it may fit other selections than before. */
CHECKED int claim_change(struct claim *c, const struct claim_spec *spec, bool relabelled,
                         const struct named_call *call, struct err *e);
CHECKED int claim_remove(struct claim *c, const struct named_call *call, struct err *e);
/* Reports how it is; writes it if that is new. */
void claim_report(struct claim *c, const struct claim_state *s);

enum claim_due { CLAIM_DUE_NOTHING, CLAIM_DUE_EXPIRY, CLAIM_DUE_REMOVAL };
enum claim_due claim_due(const struct claim *c, int64_t now_ms);
