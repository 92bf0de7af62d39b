/* owner: decides who may see and change an object, and finds objects by name. */
#include "core/identity/owner.h"

#include <stdio.h>

bool owner_is_own(const struct principal *by, const struct owned *o)
{
    return str_eq_c(o->owner, principal_owner(by));
}

bool owner_may(const struct principal *by, const struct owned *o, enum owner_use use)
{
    bool offered = o->shared && use == OWNER_SEE;

    if (by->role == ROLE_NONE)
        return false;
    if (principal_is_inside(by))
        return (o->sandbox.n > 0 && str_eq(o->sandbox, principal_sandbox(by))) ||
               (offered && o->tenant.n == 0);
    if (by->tenant[0] && !str_eq_c(o->tenant, by->tenant))
        return offered && o->tenant.n == 0;
    if (by->role != ROLE_AGENT)
        return true;
    return owner_is_own(by, o) || (offered && str_eq_c(o->tenant, by->tenant));
}

int owner_check(const struct principal *by, const struct owned *o, enum owner_use use,
                const char *kind, const char *id, struct err *e)
{
    if (owner_may(by, o, use))
        return 0;
    err_set(e, ERR_FORBIDDEN, 0,
            "%s '%s' is not yours: an agent may use only objects that it created", kind, id);
    if (by->role != ROLE_AGENT)
        err_set(e, ERR_FORBIDDEN, 0, "%s '%s' belongs to another tenant", kind, id);
    err_object(e, kind, id);
    return err_hint(e, "holt %s lists yours", strcmp(kind, "sandbox") == 0 ? "ls" : kind);
}

/* --- names --- */

/* "token/tk_x" is written in full, as "tk_x", or as the tenant. */
static bool owner_is(const struct owned *o, struct str said)
{
    struct str id;

    (void)str_cut(o->owner, '/', &id);
    return said.n > 0 && (str_eq(said, o->owner) || str_eq(said, id) || str_eq(said, o->tenant));
}

bool owner_look_split(struct owner_look *l)
{
    size_t at = l->text.n;

    while (at > 0 && l->text.p[at - 1] != '/')
        at--;
    if (at < 2 || at == l->text.n)
        return false;
    l->owner = str_make(l->text.p, at - 1);
    l->name = str_skip(l->text, at);
    l->own_only = false; /* the owner was named */
    return true;
}

static bool is_eligible(const struct owner_look *l, const struct owned *o)
{
    if (!owner_may(l->by, o, l->use) || (l->owner.p && !owner_is(o, l->owner)))
        return false;
    return !l->own_only || owner_is_own(l->by, o) || o->shared;
}

#define OTHERS 100 /* added to the rank of objects that are not the caller's own */

void owner_offer(struct owner_look *l, void *object, const char *id, const struct owned *o,
                 int rank)
{
    if (!is_eligible(l, o) || strcmp(l->id, id) == 0)
        return;
    if (!owner_is_own(l->by, o))
        rank += OTHERS;
    if (l->found && rank > l->rank)
        return;
    if (l->found && rank == l->rank) {
        (void)snprintf(l->other, sizeof l->other, "%s", id);
        (void)snprintf(l->owners[1], sizeof l->owners[1], STR_FMT, STR_ARG(o->owner));
        return;
    }
    l->found = object;
    l->rank = rank;
    l->other[0] = '\0';
    (void)snprintf(l->id, sizeof l->id, "%s", id);
    (void)snprintf(l->owners[0], sizeof l->owners[0], STR_FMT, STR_ARG(o->owner));
}

void *owner_found(const struct owner_look *l, const char *kind, struct err *e)
{
    if (!l->found || !l->other[0])
        return l->found;
    err_set(e, ERR_CONFLICT, 0, "two are named '" STR_FMT "': %s %s of %s and %s of %s",
            (int)size_min(l->text.n, 64), l->text.p, kind, l->id, l->owners[0], l->other,
            l->owners[1]);
    err_hint(e, "name it by its id, or as OWNER/NAME: %s/" STR_FMT, l->owners[0],
             (int)size_min(l->name.n, 64), l->name.p);
    return NULL;
}

/* --- tenants --- */

int owner_tenant(const struct principal *by, struct str asked, struct str *ret, struct err *e)
{
    bool chooses = by->role != ROLE_AGENT && !principal_is_inside(by) && !by->tenant[0];

    *ret = asked.n > 0 ? asked : str_of(by->tenant);
    if (chooses || asked.n == 0 || str_eq_c(asked, by->tenant))
        return 0;
    err_set(e, ERR_FORBIDDEN, 0, "the tenant '" STR_FMT "' is not your tenant",
            (int)size_min(asked.n, 64), asked.p);
    return err_hint(e,
                    "ask an admin for a token of that tenant: holt token create --tenant " STR_FMT,
                    (int)size_min(asked.n, 64), asked.p);
}
