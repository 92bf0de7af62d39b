#include "api/live.h"

#include "proto/ws.h"

#include <stdio.h>

void live_begin(struct live *l, struct request *r,
                void (*end)(struct live *l, int ws_code, const char *why))
{
    struct str actor = str_of(r->who.actor);

    l->end = end;
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
static struct live *first_dead(struct api *a, bool all)
{
    LIST_EACH (&a->lives, at) {
        struct live *l = LIST_ENTRY(at, struct live, link);

        if (all || (l->token[0] && !identity_get(a->c.identity, str_of(l->token))))
            return l;
    }
    return NULL;
}

void lives_check(struct api *a)
{
    struct live *l;

    while ((l = first_dead(a, false))) {
        live_end(l);
        l->end(l, WS_POLICY, "the token is revoked or expired");
    }
}

void lives_end(struct api *a)
{
    struct live *l;

    while ((l = first_dead(a, true))) {
        live_end(l);
        l->end(l, WS_GOING_AWAY, "holtd is stopping");
    }
}
