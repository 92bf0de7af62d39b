#include "api/share/live.h"

#include "core/team/revoked.h"
#include "proto/ws.h"

#include <stdio.h>

void live_begin(struct live *l, struct request *r,
                void (*end)(struct live *l, int ws_code, const char *why))
{
    struct str actor = str_of(r->who.actor), agent = request_agent(r);

    l->end = end;
    (void)snprintf(l->agent, sizeof l->agent, STR_FMT, STR_ARG(agent));
    if (str_starts(actor, STR("token/"))) /* who.token may be gone by now */
        (void)snprintf(l->token, sizeof l->token, "%s", r->who.actor + strlen("token/"));
    list_push(&r->api->lives, &l->link);
}

void live_end(struct live *l)
{
    if (l->link.next)
        list_unlink(&l->link);
}

/* One that ends may end others (a controller that goes, a sandbox that is destroyed): the list is
 * walked anew after each. */
static bool is_dead(const struct api *a, const struct live *l, const char **ret_why)
{
    struct err e = {0};

    *ret_why = "the token is revoked or expired";
    if (l->token[0] && !identity_get(a->c.identity, str_of(l->token)))
        return true;
    *ret_why = "the agent is revoked";
    return l->acts && revoked_check(a->c.revoked, str_of(l->agent), PERM_SANDBOX_WRITE, &e) < 0;
}

static struct live *first_dead(struct api *a, bool all, const char **ret_why)
{
    LIST_EACH (&a->lives, at) {
        struct live *l = LIST_ENTRY(at, struct live, link);

        if (all || is_dead(a, l, ret_why))
            return l;
    }
    return NULL;
}

void lives_check(struct api *a)
{
    struct live *l;
    const char *why;

    while ((l = first_dead(a, false, &why))) {
        live_end(l);
        l->end(l, WS_POLICY, why);
    }
}

void lives_end(struct api *a)
{
    struct live *l;
    const char *why;

    while ((l = first_dead(a, true, &why))) {
        live_end(l);
        l->end(l, WS_GOING_AWAY, "holtd is stopping");
    }
}
