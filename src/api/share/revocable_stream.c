/* revocable_stream: long replies that end when their caller loses its rights. */
#include "api/share/revocable_stream.h"

#include "core/team/revoked.h"
#include "proto/ws.h"

#include <stdio.h>

void revocable_stream_begin(struct revocable_stream *l, struct request *r,
                            void (*end)(struct revocable_stream *l, int ws_code, const char *why))
{
    struct str actor = str_of(r->who.actor), agent = request_agent(r);

    l->end = end;
    (void)snprintf(l->agent, sizeof l->agent, STR_FMT, STR_ARG(agent));
    if (str_starts(actor, STR("token/"))) /* who.token may be freed by now */
        (void)snprintf(l->token, sizeof l->token, "%s", r->who.actor + strlen("token/"));
    list_push(&r->api->lives, &l->link);
}

void revocable_stream_end(struct revocable_stream *l)
{
    if (l->link.next)
        list_unlink(&l->link);
}

/* Ending one may end others (a controller that leaves, a sandbox that is destroyed): the list is
 * walked from the start after each. */
static bool is_dead(const struct api *a, const struct revocable_stream *l, const char **ret_why)
{
    struct err e = {0};

    *ret_why = "the token is revoked or expired";
    if (l->token[0] && !identity_get(a->c.identity, str_of(l->token)))
        return true;
    *ret_why = "the agent is revoked";
    return l->acts && revoked_check(a->c.revoked, str_of(l->agent), PERM_SANDBOX_WRITE, &e) < 0;
}

static struct revocable_stream *first_dead(struct api *a, bool all, const char **ret_why)
{
    LIST_EACH (&a->lives, at) {
        struct revocable_stream *l = LIST_ENTRY(at, struct revocable_stream, link);

        if (all || is_dead(a, l, ret_why))
            return l;
    }
    return NULL;
}

void revocable_streams_check(struct api *a)
{
    struct revocable_stream *l;
    const char *why;

    while ((l = first_dead(a, false, &why))) {
        revocable_stream_end(l);
        l->end(l, WS_POLICY, why);
    }
}

void revocable_streams_end(struct api *a)
{
    struct revocable_stream *l;
    const char *why;

    while ((l = first_dead(a, true, &why))) {
        revocable_stream_end(l);
        l->end(l, WS_GOING_AWAY, "holtd is stopping");
    }
}
