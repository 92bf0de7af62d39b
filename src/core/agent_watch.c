/* What time does to agents: missing heartbeats, and cards whose owner does not come back. */
#include "core/agent_inside.h"
#include "core/board.h"

static bool is_gone(const struct team *t, const struct agent *a, int64_t revoked_ms)
{
    int64_t offline_ms = a->heartbeat_ms + t->conf.heartbeat_ms;

    return offline_ms + t->conf.grace_ms < t->now_ms ||
           (a->revoked && revoked_ms + t->conf.grace_ms < t->now_ms);
}

static int has_cards(struct team *t, struct str name, int64_t *ret, struct err *e)
{
    return team_number(t,
                       "SELECT COUNT(*) FROM cards WHERE assigned_to = :name "
                       "AND status BETWEEN :ready AND :progress",
                       PARAMS(P_TEXT("name", name), P_INT("ready", CARD_READY),
                              P_INT("progress", CARD_IN_PROGRESS)),
                       ret, e);
}

/* Has this agent cards that must go back? */
static int must_release(struct team *t, const struct agent *a, bool *ret, struct err *e)
{
    struct directive d = {0};
    int64_t cards = 0;

    *ret = false;
    if (a->revoked && agent_revocation(t, a->name, &d, e) < 0)
        return -1;
    if (!is_gone(t, a, d.issued_ms))
        return 0;
    if (has_cards(t, a->name, &cards, e) < 0)
        return -1;
    *ret = cards > 0;
    return 0;
}

int agent_watch_due(struct team *t, bool *ret, struct err *e)
{
    struct agent_list all;

    *ret = false;
    if (agent_all(t, &all, e) < 0)
        return -1;
    for (size_t i = 0; i < all.n && !*ret; i++) {
        if (agent_status_of(t, &all.v[i]) != all.v[i].status)
            *ret = true;
        else if (must_release(t, &all.v[i], ret, e) < 0)
            return -1;
    }
    return 0;
}

int agent_watch(struct team *t, struct err *e)
{
    struct agent_list all;

    if (agent_all(t, &all, e) < 0)
        return -1;
    for (size_t i = 0; i < all.n; i++) {
        struct agent *a = &all.v[i];
        bool release;

        if (must_release(t, a, &release, e) < 0)
            return -1;
        if (agent_status_of(t, a) != a->status && agent_save(t, a, "agent.status", e) < 0)
            return -1;
        if (release && board_release(t, a->name, STR("the agent did not come back"), e) < 0)
            return -1;
    }
    return 0;
}
