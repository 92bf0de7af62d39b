/* agent_watch: status changes by time: missed heartbeats, cards of absent owners. */
#include "core/team/agent_internal.h"
#include "core/team/board.h"

static bool is_gone(const struct team *t, const struct agent *a, int64_t revoked_ms)
{
    int64_t offline_ms = i64_max(a->heartbeat_ms, t->since_ms) + t->conf.heartbeat_ms;

    return offline_ms + t->conf.grace_ms < t->now_ms ||
           (a->revoked && revoked_ms + t->conf.grace_ms < t->now_ms);
}

static int has_cards(struct team *t, struct str name, int64_t *ret, struct err *e)
{
    return team_number(t,
                       "SELECT COUNT(*) FROM cards WHERE assigned_to = :name "
                       "AND status IN (:ready, :progress, :blocked)",
                       PARAMS(P_TEXT("name", name), P_INT("ready", CARD_READY),
                              P_INT("progress", CARD_IN_PROGRESS), P_INT("blocked", CARD_BLOCKED)),
                       ret, e);
}

/* Whether this agent has cards that must be returned. */
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

/* The given time, or one before all others while we have been listening for less than that. */
static int64_t if_heard(const struct team *t, int64_t moment)
{
    return t->since_ms < moment ? moment : 0;
}

/* The same check in one query over the rows, every second: is there an agent whose status differs
 * from what time (or a changed setting) makes it, or one that is gone and has cards? */
int agent_watch_due(struct team *t, bool *ret, struct err *e)
{
    int64_t due, fresh = t->now_ms - t->conf.heartbeat_ms;

    if (team_number(
            t,
            "SELECT CASE WHEN EXISTS (SELECT 1 FROM agents WHERE "
            "(status IN (:online, :busy, :stalled) AND heartbeat_ms < :silent) OR "
            "(status = :offline AND heartbeat_ms >= :fresh) OR "
            "(status IN (:online, :busy) AND ticks >= :ticks) OR "
            "(status = :stalled AND ticks < :ticks)) "
            "OR EXISTS (SELECT 1 FROM agents a WHERE (a.heartbeat_ms < :gone OR "
            "(SELECT MAX(d.issued_ms) FROM directives d WHERE d.agent = a.name AND d.ended_ms = 0 "
            "AND d.kind = 'revoke') < :grace) AND EXISTS (SELECT 1 FROM cards c WHERE "
            "c.assigned_to = a.name AND c.status IN (:ready, :progress, :blocked))) "
            "THEN 1 ELSE 0 END",
            PARAMS(P_INT("online", AGENT_ONLINE), P_INT("busy", AGENT_BUSY),
                   P_INT("stalled", AGENT_STALLED), P_INT("offline", AGENT_OFFLINE),
                   P_INT("fresh", fresh), P_INT("silent", if_heard(t, fresh)),
                   P_INT("ticks", t->conf.cycle * t->conf.missed),
                   P_INT("gone", if_heard(t, fresh - t->conf.grace_ms)),
                   P_INT("grace", t->now_ms - t->conf.grace_ms), P_INT("ready", CARD_READY),
                   P_INT("progress", CARD_IN_PROGRESS), P_INT("blocked", CARD_BLOCKED)),
            &due, e) < 0)
        return -1;
    *ret = due != 0;
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
        if (release && board_release(t, a->name, STR("the agent stayed offline"), e) < 0)
            return -1;
    }
    return 0;
}
