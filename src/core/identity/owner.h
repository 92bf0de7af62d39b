/* owner: the owner of an object and who may touch it: the one rule for every kind and every
 * interface.  A lookup (sandbox_find, volume_find, image_find, secret_find and their _next) takes
 * the caller and returns nothing that this rule refuses; every lookup uses it.  What it refuses is
 * not found by name; by id the error is ERR_FORBIDDEN.
 *
 *   inside a sandbox   that sandbox, and what people share
 *   of a tenant        what is of that tenant, and what the installation shares
 *   an agent           of that, what it made itself, and what people share
 *   people             all (of their tenant)
 *
 * Names are unique per owner.  A name that matches several objects means the caller's own;
 * otherwise, if the caller can see several, it must use OWNER/NAME or an id.  Pure.  Thread: the
 * loop's. */
#pragma once

#include "base/err.h"
#include "core/identity/identity.h"

struct owned { /* of one object */
    struct str owner, tenant;
    struct str sandbox; /* a sandbox's own id: for callers inside it */
    bool shared;        /* made by people for others to use, but not to change */
};

enum owner_use { OWNER_SEE, OWNER_CHANGE }; /* see: also mount, run from */
bool owner_may(const struct principal *by, const struct owned *o, enum owner_use use);
bool owner_is_own(const struct principal *by, const struct owned *o);
/* ERR_FORBIDDEN if not permitted: "volume 'vl_…' is not yours". */
CHECKED int owner_check(const struct principal *by, const struct owned *o, enum owner_use use,
                        const char *kind, const char *id, struct err *e);

/* One lookup of a name.  Each matching object is offered with its rank (0 before 1 …); the caller's
 * own come before others. */
struct owner_look {
    const struct principal *by;
    enum owner_use use;
    bool own_only; /* for creating by a name: never another owner's object, unless it is shared */
    struct str text;
    struct str owner; /* of OWNER/NAME; p NULL: any */
    struct str name;  /* the name an object must have */
    void *found;
    int rank;
    char id[ID_SIZE], other[ID_SIZE]; /* other: another one of the same rank */
    char owners[2][64];
};
/* Tries again with OWNER/NAME; false if the text is not of that form. */
bool owner_look_split(struct owner_look *l);
void owner_offer(struct owner_look *l, void *object, const char *id, const struct owned *o,
                 int rank);
/* The result; NULL: none (*e is not set), or several (ERR_CONFLICT). */
void *owner_found(const struct owner_look *l, const char *kind, struct err *e);

/* The tenant of an object this caller makes: the requested one (empty: its own).  ERR_FORBIDDEN:
 * not its tenant; an agent without a tenant cannot choose one. */
CHECKED int owner_tenant(const struct principal *by, struct str asked, struct str *ret,
                         struct err *e);
