/* agent_oversight: checkpoints by agents, and directives by people. */
#include "core/team/agent_internal.h"
#include "core/team/board.h"

#include <inttypes.h>

#define CHECKPOINTS_KEPT 1000 /* per agent */

/* --- checkpoints --- */

static void checkpoint_event(struct team *t, const struct checkpoint *c)
{
    AUTO(buf_done) struct buf data = {0};
    struct jw w = {.to = &data};

    jw_object(&w);
    jw_kstr(&w, "id", c->id);
    jw_kstr(&w, "agent", c->agent);
    jw_kstr(&w, "task_id", c->card);
    jw_kstr(&w, "state", c->state);
    jw_kstr(&w, "rationale", c->rationale);
    jw_key(&w, "metadata");
    jw_raw(&w, c->metadata);
    jw_kint(&w, "sequence", c->sequence);
    jw_ktime(&w, "created_at", c->created_ms);
    jw_object_end(&w);
    team_event(t, "agent.checkpoint", "agent", c->agent, &data);
}

static int write_checkpoint(struct team *t, const struct checkpoint *c, struct err *e)
{
    if (tx_run(t->tx,
               "INSERT INTO checkpoints (id, agent, card, state, rationale, metadata, sequence, "
               "created_ms) VALUES (:id, :agent, :card, :state, :rationale, :metadata, :sequence, "
               ":now)",
               PARAMS(P_TEXT("id", c->id), P_TEXT("agent", c->agent), P_TEXT("card", c->card),
                      P_TEXT("state", c->state), P_TEXT("rationale", c->rationale),
                      P_TEXT("metadata", c->metadata), P_INT("sequence", c->sequence),
                      P_INT("now", c->created_ms)),
               e) < 0)
        return -1;
    return tx_run(t->tx,
                  "DELETE FROM checkpoints WHERE agent = :agent AND id <= (SELECT id FROM "
                  "checkpoints WHERE agent = :agent ORDER BY id DESC LIMIT 1 OFFSET :kept)",
                  PARAMS(P_TEXT("agent", c->agent), P_INT("kept", CHECKPOINTS_KEPT)), e) < 0
               ? -1
               : 0;
}

int agent_checkpoint(struct team *t, struct checkpoint *c, struct err *e)
{
    struct agent a;
    bool moved;

    if (team_act_as(t, c->agent, &c->agent, e) < 0 || agent_need(t, c->agent, &a, e) < 0)
        return -1;
    if (c->state.n > TEAM_TEXT_MAX || c->rationale.n > TEAM_TEXT_MAX ||
        c->metadata.n > TEAM_TEXT_MAX || c->card.n > TEAM_NAME_MAX)
        return err_set(e, ERR_TOO_LARGE, 0, "a text of the checkpoint has more than %d bytes",
                       TEAM_TEXT_MAX);
    c->id = team_id(t, "ck");
    c->sequence = ++a.sequence;
    c->created_ms = t->now_ms;
    a.ticks = 0;
    a.card = c->card;
    moved = agent_status_of(t, &a) != a.status;
    if (write_checkpoint(t, c, e) < 0)
        return -1;
    checkpoint_event(t, c);
    if (moved)
        return agent_save(t, &a, "agent.status", e);
    return tx_run(t->tx,
                  "UPDATE agents SET sequence = :sequence, ticks = 0, card = :card "
                  "WHERE name = :name",
                  PARAMS(P_INT("sequence", a.sequence), P_TEXT("card", a.card),
                         P_TEXT("name", a.name)),
                  e) < 0
               ? -1
               : 0;
}

static void read_checkpoint(const struct team *t, const struct store_rows *r, void *to)
{
    *(struct checkpoint *)to = (struct checkpoint){
        .id = team_column(t, r, 0),
        .agent = team_column(t, r, 1),
        .card = team_column(t, r, 2),
        .state = team_column(t, r, 3),
        .rationale = team_column(t, r, 4),
        .metadata = team_column(t, r, 5),
        .sequence = rows_int(r, 6),
        .created_ms = rows_int(r, 7),
    };
}

int agent_checkpoints(struct team *t, struct str agent, int64_t limit, struct checkpoint_list *ret,
                      struct err *e)
{
    struct team_rows l = {.size = sizeof *ret->v, .read = read_checkpoint};
    int r = team_read(
        t,
        "SELECT id, agent, card, state, rationale, metadata, sequence, created_ms FROM "
        "checkpoints WHERE agent = :agent ORDER BY id DESC LIMIT :limit",
        PARAMS(P_TEXT("agent", agent), P_INT("limit", i64_min(limit, TEAM_PAGE_MAX))), &l, e);

    *ret = (struct checkpoint_list){l.v, l.n};
    return r;
}

/* --- directives --- */

#define DIRECTIVE_SELECT                                                                           \
    "SELECT id, agent, kind, reason, actor, flush, issued_ms, ended_ms FROM directives "

static void read_directive(const struct team *t, const struct store_rows *r, void *to)
{
    *(struct directive *)to = (struct directive){
        .id = team_column(t, r, 0),
        .agent = team_column(t, r, 1),
        .kind = team_column(t, r, 2),
        .reason = team_column(t, r, 3),
        .actor = team_column(t, r, 4),
        .flush = rows_int(r, 5) != 0,
        .issued_ms = rows_int(r, 6),
        .ended_ms = rows_int(r, 7),
    };
}

static int read_directives(struct team *t, const char *sql, const struct store_param *p, size_t n,
                           struct directive_list *ret, struct err *e)
{
    struct team_rows l = {.size = sizeof *ret->v, .read = read_directive};
    int r = team_read(t, sql, p, n, &l, e);

    *ret = (struct directive_list){l.v, l.n};
    return r;
}

static void directive_event(struct team *t, const char *type, const struct directive *d)
{
    AUTO(buf_done) struct buf data = {0};
    struct jw w = {.to = &data};

    jw_object(&w);
    jw_kstr(&w, "id", d->id);
    jw_kstr(&w, "agent", d->agent);
    jw_kstr(&w, "kind", d->kind);
    jw_kstr(&w, "reason", d->reason);
    jw_kbool(&w, "flush", d->flush);
    jw_kstr(&w, "issued_by", d->actor);
    jw_ktime(&w, "issued_at", d->issued_ms);
    jw_ktime(&w, "ended_at", d->ended_ms);
    jw_object_end(&w);
    team_event(t, type, "agent", d->agent, &data);
}

static int write_directive(struct team *t, struct directive *d, struct err *e)
{
    d->id = team_id(t, "dv");
    d->actor = arena_str(t->arena, str_of(t->who.actor));
    d->issued_ms = t->now_ms;
    return tx_run(t->tx,
                  "INSERT INTO directives (id, agent, kind, reason, flush, actor, issued_ms, "
                  "ended_ms) VALUES (:id, :agent, :kind, :reason, :flush, :actor, :now, 0)",
                  PARAMS(P_TEXT("id", d->id), P_TEXT("agent", d->agent), P_TEXT("kind", d->kind),
                         P_TEXT("reason", d->reason), P_INT("flush", d->flush),
                         P_TEXT("actor", d->actor), P_INT("now", d->issued_ms)),
                  e) < 0
               ? -1
               : 0;
}

static int give(struct team *t, struct directive *d, const char *event, struct err *e)
{
    if (d->reason.n > TEAM_TEXT_MAX)
        return err_set(e, ERR_TOO_LARGE, 0, "the reason has more than %d bytes", TEAM_TEXT_MAX);
    if (write_directive(t, d, e) < 0)
        return -1;
    directive_event(t, event, d);
    return 0;
}

/* Ends open directives of a kind (id empty: all of it).  Returns the number. */
static int end_open(struct team *t, struct str agent, struct str id, const char *kind,
                    const char *event, struct err *e)
{
    struct directive_list open;
    int ended = 0;

    if (read_directives(t,
                        DIRECTIVE_SELECT "WHERE agent = :agent AND ended_ms = 0 AND kind = :kind",
                        PARAMS(P_TEXT("agent", agent), P_C("kind", kind)), &open, e) < 0)
        return -1;
    for (size_t i = 0; i < open.n; i++) {
        struct directive *d = &open.v[i];

        if (id.n > 0 && !str_eq(id, d->id))
            continue;
        d->ended_ms = t->now_ms;
        if (tx_run(t->tx, "UPDATE directives SET ended_ms = :now WHERE id = :id",
                   PARAMS(P_INT("now", t->now_ms), P_TEXT("id", d->id)), e) < 0)
            return -1;
        directive_event(t, event, d);
        ended++;
    }
    return ended;
}

int agent_refresh(struct team *t, struct str name, struct agent *ret, struct err *e)
{
    int r = agent_find(t, name, ret, e);

    if (r <= 0 || agent_status_of(t, ret) == ret->status)
        return r;
    return agent_save(t, ret, "agent.status", e) < 0 ? -1 : 1;
}

int agent_pause(struct team *t, struct str name, struct str reason, struct err *e)
{
    struct directive d = {.agent = name, .kind = STR("pause"), .reason = reason};
    struct agent a;

    if (team_need_person(t, "pause an agent", e) < 0 || agent_need(t, name, &a, e) < 0)
        return -1;
    if (a.paused)
        return 0;
    if (give(t, &d, "agent.paused", e) < 0)
        return -1;
    return agent_refresh(t, name, &a, e) < 0 ? -1 : 0;
}

int agent_resume(struct team *t, struct str name, struct agent *ret, struct err *e)
{
    if (team_need_person(t, "resume an agent", e) < 0 || agent_need(t, name, ret, e) < 0)
        return -1;
    if (end_open(t, name, STR(""), "pause", "agent.resumed", e) < 0)
        return -1;
    return agent_refresh(t, name, ret, e) < 0 ? -1 : 0;
}

int agent_revoke(struct team *t, struct str name, struct str reason, bool flush,
                 struct directive *ret, struct err *e)
{
    struct directive d = {.agent = name, .kind = STR("revoke"), .reason = reason, .flush = flush};
    struct agent a;

    if (team_need_person(t, "revoke an agent", e) < 0 ||
        team_check_name("an agent's name", name, e) < 0)
        return -1;
    if (give(t, &d, "agent.revoked", e) < 0 || agent_refresh(t, name, &a, e) < 0)
        return -1;
    if (flush && board_flush(t, name, STR("the agent was revoked"), e) < 0)
        return -1;
    *ret = d;
    return 0;
}

int agent_revocation(struct team *t, struct str name, struct directive *ret, struct err *e)
{
    struct directive_list open;

    if (read_directives(t,
                        DIRECTIVE_SELECT "WHERE agent = :agent AND ended_ms = 0 AND "
                                         "kind = 'revoke' ORDER BY id DESC LIMIT 1",
                        PARAMS(P_TEXT("agent", name)), &open, e) < 0)
        return -1;
    if (open.n > 0)
        *ret = open.v[0];
    return open.n > 0;
}

int agent_acknowledge(struct team *t, struct str name, struct str id, struct err *e)
{
    struct agent a;
    int ended;

    if (team_act_as(t, name, &name, e) < 0)
        return -1;
    ended = end_open(t, name, id, "revoke", "agent.recovered", e);
    if (ended <= 0)
        return ended;
    /* It starts afresh: alive, and with no checkpoint due. */
    if (tx_run(t->tx, "UPDATE agents SET heartbeat_ms = :now, ticks = 0 WHERE name = :name",
               PARAMS(P_INT("now", t->now_ms), P_TEXT("name", name)), e) < 0)
        return -1;
    return agent_refresh(t, name, &a, e) < 0 ? -1 : ended;
}

int agent_directives(struct team *t, const char *kind, int64_t limit, struct directive_list *ret,
                     struct err *e)
{
    return read_directives(t, DIRECTIVE_SELECT "WHERE kind = :kind ORDER BY id DESC LIMIT :limit",
                           PARAMS(P_C("kind", kind), P_INT("limit", i64_min(limit, TEAM_PAGE_MAX))),
                           ret, e);
}

/* --- limits kept while the agent is not registered --- */

/* "mode task_max type" */
static struct str bounds_text(struct team *t, enum agent_mode m, int64_t task_max, struct str type)
{
    return str_of(arena_printf(t->arena, "%s %" PRId64 " " STR_FMT, agent_mode_name(m), task_max,
                               STR_ARG(type)));
}

static int read_bounds(const struct directive *d, struct agent *ret, struct err *e)
{
    struct str rest, mode = str_cut(d->reason, ' ', &rest), max = str_cut(rest, ' ', &rest);

    if (!agent_mode_parse(mode, &ret->mode_max) || str_parse_i64(max, &ret->task_max) < 0)
        return err_set(e, ERR_INTERNAL, 0, "the bounds of agent '" STR_FMT "' are damaged",
                       STR_ARG(d->agent));
    ret->type = rest;
    return 0;
}

int agent_keep_bounds(struct team *t, const struct agent *a, struct err *e)
{
    struct directive d = {.agent = a->name, .kind = STR("bounds")};

    if (team_is_person(t)) /* a person who set them removes them */
        return 0;
    d.reason = bounds_text(t, a->mode_max, a->task_max, a->type);
    return write_directive(t, &d, e);
}

int agent_take_bounds(struct team *t, struct agent *a, struct err *e)
{
    struct directive_list kept;
    struct agent before = {0};

    if (read_directives(t,
                        DIRECTIVE_SELECT "WHERE agent = :agent AND ended_ms = 0 AND "
                                         "kind = 'bounds' ORDER BY id DESC LIMIT 1",
                        PARAMS(P_TEXT("agent", a->name)), &kept, e) < 0)
        return -1;
    if (kept.n == 0)
        return 0;
    if (read_bounds(&kept.v[0], &before, e) < 0)
        return -1;
    a->mode = a->mode_max = before.mode_max;
    a->task_max = before.task_max;
    return tx_run(t->tx,
                  "DELETE FROM directives WHERE agent = :agent AND ended_ms = 0 AND "
                  "kind = 'bounds'",
                  PARAMS(P_TEXT("agent", a->name)), e) < 0
               ? -1
               : 1;
}

int agent_change_bounds(struct team *t, enum agent_mode m, struct str type, struct err *e)
{
    struct directive_list kept;

    if (read_directives(t, DIRECTIVE_SELECT "WHERE ended_ms = 0 AND kind = 'bounds' ORDER BY id",
                        NO_PARAMS, &kept, e) < 0)
        return -1;
    for (size_t i = 0; i < kept.n; i++) {
        struct agent a = {0};

        if (read_bounds(&kept.v[i], &a, e) < 0)
            return -1;
        if (type.n > 0 && !str_eq(a.type, type))
            continue;
        if (tx_run(t->tx, "UPDATE directives SET reason = :reason WHERE id = :id",
                   PARAMS(P_TEXT("reason", bounds_text(t, m, a.task_max, a.type)),
                          P_TEXT("id", kept.v[i].id)),
                   e) < 0)
            return -1;
    }
    return 0;
}
