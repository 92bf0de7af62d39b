/* owner: whose an object is, and who may touch it: the one rule for every kind and every interface.
 * A lookup (sandbox_find, volume_find, image_find, secret_find and their _next) takes who asks and
 * gives nothing that this rule refuses; none goes without it.
 *
 *   inside a sandbox   that sandbox, and what people share
 *   of a tenant        what is of that tenant, and what the installation shares
 *   an agent           of that, what it made itself, and what people share
 *   people             all (of their tenant)
 *
 * Names are unique per owner.  A text that fits several objects means the asker's own; else, where
 * it can see several, it must say OWNER/NAME or an id.  Pure.  Thread: the loop's. */
#pragma once

#include "base/err.h"
#include "core/identity/identity.h"

struct owned { /* of one object */
    struct str owner, tenant;
    struct str sandbox; /* a sandbox's own id: for who is inside */
    bool shared;        /* people made it for others: they use it, and do not change it */
};

enum owner_use { OWNER_SEE, OWNER_CHANGE }; /* see: also mount, run from */
bool owner_may(const struct principal *by, const struct owned *o, enum owner_use use);
bool owner_is_own(const struct principal *by, const struct owned *o);
/* ERR_FORBIDDEN when it may not: "volume 'vl_…' is not yours". */
CHECKED int owner_check(const struct principal *by, const struct owned *o, enum owner_use use,
                        const char *kind, const char *id, struct err *e);

/* One look for what a text names.  Each object that fits is offered with its rank (0 goes before
 * 1 …); own ones go before others'. */
struct owner_look {
    const struct principal *by;
    enum owner_use use;
    bool own_only; /* for who creates by a name: never another's, unless it is shared */
    struct str text;
    struct str owner; /* of OWNER/NAME; p NULL: any */
    struct str name;  /* what an object must be called */
    void *found;
    int rank;
    char id[ID_SIZE], other[ID_SIZE]; /* other: one more of the same rank */
    char owners[2][64];
};
/* Again with OWNER/NAME, if the text is one: false when there is no such form of it. */
bool owner_look_split(struct owner_look *l);
void owner_offer(struct owner_look *l, void *object, const char *id, const struct owned *o,
                 int rank);
/* What was found; NULL: nothing (*e is not set), or several, which *e says (ERR_CONFLICT). */
void *owner_found(const struct owner_look *l, const char *kind, struct err *e);

/* The tenant of what this asker makes: what it asked for (empty: its own).  ERR_FORBIDDEN: that is
 * not its tenant; an agent without one has none to choose. */
CHECKED int owner_tenant(const struct principal *by, struct str asked, struct str *ret,
                         struct err *e);
