/* agent: registered agents: rows, modes, heartbeats, permissions to act. */
#include "core/team/agent.h"

#include "base/clock.h"
#include "base/sm.h"
#include "base/utf8.h"
#include "core/team/agent_internal.h"
#include "core/team/board.h"
#include "core/team/proposal.h"

static const char *const mode_names[AGENT_MODES] = {
    [AGENT_MANUAL] = "manual",
    [AGENT_ADVISORY] = "advisory",
    [AGENT_AUTONOMOUS] = "fully_autonomous",
};

/* The moves of an agent's status.  Stalled, busy and online follow each other by heartbeats and
 * checkpoints; people pause and revoke from any status. */
#define ALIVE (SM_TO(AGENT_ONLINE) | SM_TO(AGENT_BUSY) | SM_TO(AGENT_STALLED))
#define TOLD (SM_TO(AGENT_PAUSED) | SM_TO(AGENT_REVOKED))
static const struct sm_state agent_states[AGENT_STATUSES] = {
    [AGENT_OFFLINE] = {"offline", ALIVE | TOLD},
    [AGENT_ONLINE] = {"online", ALIVE | TOLD | SM_TO(AGENT_OFFLINE)},
    [AGENT_BUSY] = {"busy", ALIVE | TOLD | SM_TO(AGENT_OFFLINE)},
    [AGENT_STALLED] = {"stalled", ALIVE | TOLD | SM_TO(AGENT_OFFLINE)},
    [AGENT_PAUSED] = {"paused", ALIVE | TOLD | SM_TO(AGENT_OFFLINE)},
    [AGENT_REVOKED] = {"revoked", ALIVE | TOLD | SM_TO(AGENT_OFFLINE)},
};

const char *agent_mode_name(enum agent_mode m)
{
    assert(m < AGENT_MODES);
    return mode_names[m];
}

bool agent_mode_parse(struct str s, enum agent_mode *ret)
{
    for (int m = 0; m < AGENT_MODES; m++) {
        if (!str_eq_c(s, mode_names[m]))
            continue;
        *ret = (enum agent_mode)m;
        return true;
    }
    return false;
}

const char *agent_status_name(enum agent_status s)
{
    assert(s < AGENT_STATUSES);
    return agent_states[s].name;
}

static bool is_silent(const struct team *t, const struct agent *a)
{
    int64_t fresh = t->now_ms - t->conf.heartbeat_ms;

    return a->heartbeat_ms < fresh && (a->status == AGENT_OFFLINE || t->since_ms < fresh);
}

enum agent_status agent_status_of(const struct team *t, const struct agent *a)
{
    if (a->revoked)
        return AGENT_REVOKED;
    if (a->paused)
        return AGENT_PAUSED;
    if (is_silent(t, a))
        return AGENT_OFFLINE;
    if (a->ticks >= t->conf.cycle * t->conf.missed)
        return AGENT_STALLED;
    return a->in_hand > 0 ? AGENT_BUSY : AGENT_ONLINE;
}

/* --- rows --- */

#define AGENT_SELECT                                                                               \
    "SELECT name, kind, description, tags, metadata, card, mode, mode_max, status, task_max, "     \
    "ticks, sequence, registered_ms, heartbeat_ms, "                                               \
    "(SELECT COUNT(*) FROM directives d WHERE d.agent = agents.name AND d.ended_ms = 0 "           \
    "AND d.kind = 'pause'), "                                                                      \
    "(SELECT COUNT(*) FROM directives d WHERE d.agent = agents.name AND d.ended_ms = 0 "           \
    "AND d.kind = 'revoke'), "                                                                     \
    "(SELECT COUNT(*) FROM cards c WHERE c.assigned_to = agents.name AND c.status = 2) "           \
    "FROM agents "
_Static_assert(CARD_IN_PROGRESS == 2, "AGENT_SELECT counts cards in progress");

static void read_agent(const struct team *t, const struct store_rows *r, void *to)
{
    *(struct agent *)to = (struct agent){
        .name = team_column(t, r, 0),
        .type = team_column(t, r, 1),
        .description = team_column(t, r, 2),
        .tags = team_column(t, r, 3),
        .metadata = team_column(t, r, 4),
        .card = team_column(t, r, 5),
        .mode = (enum agent_mode)rows_int(r, 6),
        .mode_max = (enum agent_mode)rows_int(r, 7),
        .status = (enum agent_status)rows_int(r, 8),
        .task_max = rows_int(r, 9),
        .ticks = rows_int(r, 10),
        .sequence = rows_int(r, 11),
        .registered_ms = rows_int(r, 12),
        .heartbeat_ms = rows_int(r, 13),
        .paused = rows_int(r, 14) > 0,
        .revoked = rows_int(r, 15) > 0,
        .in_hand = rows_int(r, 16),
    };
}

int agent_find(struct team *t, struct str name, struct agent *ret, struct err *e)
{
    struct store_rows *rows;
    int r;

    if (tx_query(t->tx, AGENT_SELECT "WHERE name = :name", PARAMS(P_TEXT("name", name)), &rows, e) <
        0)
        return -1;
    r = rows_step(rows, e);
    if (r > 0)
        read_agent(t, rows, ret);
    rows_end(rows);
    return r;
}

int agent_need(struct team *t, struct str name, struct agent *ret, struct err *e)
{
    int r = agent_find(t, name, ret, e);

    if (r != 0)
        return r < 0 ? -1 : 0;
    team_missing(t, "agent", name, e);
    return err_hint(e, "holt agent ls lists the agents; an agent must register first");
}

int agent_all(struct team *t, struct agent_list *ret, struct err *e)
{
    struct team_rows l = {.size = sizeof *ret->v, .read = read_agent};
    int r = team_read(t, AGENT_SELECT "ORDER BY name", NO_PARAMS, &l, e);

    *ret = (struct agent_list){l.v, l.n};
    return r;
}

static void write_event(struct team *t, const struct agent *a, const char *type)
{
    AUTO(buf_done) struct buf data = {0};
    struct jw w = {.to = &data};

    jw_object(&w);
    jw_kstr(&w, "name", a->name);
    jw_kstr(&w, "type", a->type);
    jw_kstr(&w, "description", a->description);
    jw_key(&w, "capabilities");
    team_write_tags(&w, a->tags);
    jw_key(&w, "metadata");
    jw_raw(&w, a->metadata);
    jw_kc(&w, "mode", agent_mode_name(a->mode));
    jw_kc(&w, "mode_max", agent_mode_name(a->mode_max));
    jw_kc(&w, "status", agent_status_name(a->status));
    jw_kbool(&w, "paused", a->paused);
    jw_kbool(&w, "revoked", a->revoked);
    jw_kint(&w, "task_max", a->task_max);
    jw_kstr(&w, "task_id", a->card);
    jw_kint(&w, "sequence", a->sequence);
    jw_ktime(&w, "registered_at", a->registered_ms);
    jw_ktime(&w, "heartbeat_at", a->heartbeat_ms);
    jw_object_end(&w);
    team_event(t, type, "agent", a->name, &data);
}

static int write_row(struct team *t, const struct agent *a, struct err *e)
{
    int64_t n = tx_run(
        t->tx,
        "INSERT INTO agents (name, kind, description, tags, metadata, mode, mode_max, status, "
        "task_max, card, ticks, sequence, registered_ms, heartbeat_ms) VALUES (:name, :kind, "
        ":description, :tags, :metadata, :mode, :mode_max, :status, :task_max, :card, :ticks, "
        ":sequence, :registered, :heartbeat) ON CONFLICT (name) DO UPDATE SET "
        "kind = excluded.kind, description = excluded.description, tags = excluded.tags, "
        "metadata = excluded.metadata, mode = excluded.mode, mode_max = excluded.mode_max, "
        "status = excluded.status, task_max = excluded.task_max, card = excluded.card, "
        "ticks = excluded.ticks, sequence = excluded.sequence, "
        "registered_ms = excluded.registered_ms, heartbeat_ms = excluded.heartbeat_ms",
        PARAMS(P_TEXT("name", a->name), P_TEXT("kind", a->type),
               P_TEXT("description", a->description), P_TEXT("tags", a->tags),
               P_TEXT("metadata", a->metadata), P_INT("mode", a->mode),
               P_INT("mode_max", a->mode_max), P_INT("status", a->status),
               P_INT("task_max", a->task_max), P_TEXT("card", a->card), P_INT("ticks", a->ticks),
               P_INT("sequence", a->sequence), P_INT("registered", a->registered_ms),
               P_INT("heartbeat", a->heartbeat_ms)),
        e);

    return n < 0 ? -1 : 0;
}

int agent_save(struct team *t, struct agent *a, const char *event, struct err *e)
{
    struct sm life = {.table = agent_states, .state = (int)a->status};
    enum agent_status now = agent_status_of(t, a);

    if (now != a->status)
        sm_move(&life, (int)now);
    a->status = now;
    if (write_row(t, a, e) < 0)
        return -1;
    write_event(t, a, event);
    return 0;
}

/* --- life --- */

#define DEFAULT_MODE "agent_mode"

static int default_mode(struct team *t, enum agent_mode *ret, struct err *e)
{
    struct store_rows *rows;
    int r;

    *ret = AGENT_AUTONOMOUS;
    if (tx_query(t->tx, "SELECT value FROM meta WHERE name = '" DEFAULT_MODE "'", NO_PARAMS, &rows,
                 e) < 0)
        return -1;
    r = rows_step(rows, e);
    if (r > 0)
        (void)agent_mode_parse(rows_text(rows, 0), ret);
    rows_end(rows);
    return r < 0 ? -1 : 0;
}

/* An agent's own request is limited by what people allow; a person's request sets both. */
static void choose_mode(struct agent *a, const struct agent_spec *s, bool known,
                        enum agent_mode preset)
{
    if (!known)
        a->mode_max = a->mode = preset;
    if (s->mode && s->by_itself)
        a->mode = *s->mode < a->mode_max ? *s->mode : a->mode_max;
    else if (s->mode)
        a->mode = a->mode_max = *s->mode;
    else if (known)
        a->mode = a->mode_max;
}

static int is_told(struct team *t, struct str name, const char *kind, bool *ret, struct err *e)
{
    int64_t open;

    if (team_number(t,
                    "SELECT COUNT(*) FROM directives WHERE agent = :a AND ended_ms = 0 "
                    "AND kind = :kind",
                    PARAMS(P_TEXT("a", name), P_C("kind", kind)), &open, e) < 0)
        return -1;
    *ret = open > 0;
    return 0;
}

/* With tokens, the coordinator tag lets an agent assign work to others, so only people grant it. */
static int check_coordinator(const struct team *t, struct str before, struct str after,
                             struct err *e)
{
    if (team_is_person(t) || !team_tags_have(after, STR("coordinator")) ||
        team_tags_have(before, STR("coordinator")))
        return 0;
    return err_set(e, ERR_FORBIDDEN, 0, "only people can make an agent a coordinator");
}

/* Full-width letters (U+FF01 to U+FF5E) as the ASCII letters they look like. */
static struct str plain_letters(struct team *t, struct str name)
{
    AUTO(buf_done) struct buf plain = {0};
    uint32_t point;

    for (size_t n; name.n > 0; name = str_skip(name, n)) {
        n = utf8_point(name, &point);
        if (n == 0)
            break;
        if (point > 0xff00 && point < 0xff5f)
            buf_add_char(&plain, (char)(point - 0xfee0));
        else
            buf_add(&plain, name.p, n);
    }
    return arena_str(t->arena, str_trim(buf_str(&plain)));
}

/* Names for everybody, people and holtd itself, and words in paths of dialects where a name could
 * be. */
static bool is_reserved(struct team *t, struct str name)
{
    static const char *const words[] = {"*", "register", "send", "graph"};
    static const char *const actors[] = {"human", "system", "anonymous"};
    struct str plain = plain_letters(t, name);

    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (str_eq_c(name, words[i]))
            return true;
    for (size_t i = 0; i < ARRAY_LEN(actors); i++)
        if (str_case_eq_c(plain, actors[i]))
            return true;
    return false;
}

static int check_spec(struct team *t, const struct agent_spec *s, bool known, struct err *e)
{
    int64_t count = 0;

    if (team_check_name("an agent's name", s->name, e) < 0 ||
        (s->type.n > 0 && team_check_name("an agent's type", s->type, e) < 0))
        return -1;
    if (is_reserved(t, s->name))
        return err_set(e, ERR_INVALID, 0, "'" STR_FMT "' is not a name for an agent",
                       STR_ARG(s->name));
    if (s->metadata.n > TEAM_TEXT_MAX)
        return err_set(e, ERR_TOO_LARGE, 0, "the metadata have more than %d bytes", TEAM_TEXT_MAX);
    if (!known && team_number(t, "SELECT COUNT(*) FROM agents", NO_PARAMS, &count, e) < 0)
        return -1;
    if (count >= t->conf.objects_max) {
        err_set(e, ERR_LIMIT, 0, "there are %lld agents already", (long long)count);
        return err_limit(e, "team_max", t->conf.objects_max, "remove some (holt agent ls)");
    }
    return 0;
}

int agent_register(struct team *t, const struct agent_spec *s, struct agent *ret, struct err *e)
{
    struct agent a = {0};
    enum agent_mode preset;
    struct str name;
    int known = agent_find(t, s->name, &a, e), bound;

    if (known < 0 || team_act_as(t, s->name, &name, e) < 0 || check_spec(t, s, known, e) < 0 ||
        check_coordinator(t, a.tags, s->tags, e) < 0 || default_mode(t, &preset, e) < 0)
        return -1;
    a.name = s->name;
    a.type = s->type.n > 0 ? s->type : STR("unknown");
    a.description = STR("");
    a.tags = s->tags.p ? s->tags : STR("");
    a.metadata = s->metadata.n > 0 ? s->metadata : STR("{}");
    a.card = STR("");
    bound = known ? 1 : agent_take_bounds(t, &a, e);
    if (bound < 0)
        return -1;
    choose_mode(&a, s, bound, preset);
    /* The limit that people set is kept when the agent names none. */
    if (bound == 0 && s->task_max < 0)
        a.task_max = t->conf.agent_tasks;
    else if (s->task_max > 0 && (a.task_max == 0 || s->task_max < a.task_max))
        a.task_max = s->task_max;
    a.ticks = a.sequence = 0;
    a.registered_ms = a.heartbeat_ms = t->now_ms;
    if (is_told(t, a.name, "pause", &a.paused, e) < 0 ||
        is_told(t, a.name, "revoke", &a.revoked, e) < 0 ||
        agent_save(t, &a, "agent.registered", e) < 0)
        return -1;
    *ret = a;
    return 0;
}

int agent_heartbeat(struct team *t, struct str name, struct agent *ret, struct err *e)
{
    if (team_act_as(t, name, &name, e) < 0 || agent_need(t, name, ret, e) < 0)
        return -1;
    ret->heartbeat_ms = t->now_ms;
    ret->ticks++;
    t->beat = ret->name;
    t->beat_ticks = ret->ticks;
    if (agent_status_of(t, ret) != ret->status)
        return agent_save(t, ret, "agent.status", e);
    return tx_run(t->tx, "UPDATE agents SET heartbeat_ms = :now, ticks = :ticks WHERE name = :name",
                  PARAMS(P_INT("now", t->now_ms), P_INT("ticks", ret->ticks), P_TEXT("name", name)),
                  e) < 0
               ? -1
               : 0;
}

int agent_heard(struct team *t, struct str name, struct err *e)
{
    struct agent a;

    if (tx_run(t->tx, "UPDATE agents SET heartbeat_ms = :now WHERE name = :name",
               PARAMS(P_INT("now", t->now_ms), P_TEXT("name", name)), e) < 0)
        return -1;
    return agent_refresh(t, name, &a, e) < 0 ? -1 : 0;
}

int agent_remove(struct team *t, struct str name, struct err *e)
{
    struct agent a;

    if (team_act_as(t, name, &name, e) < 0 || agent_need(t, name, &a, e) < 0)
        return -1;
    if (board_release(t, name, STR("the agent was removed"), e) < 0 ||
        proposals_close(t, name, STR(""), "the agent was removed", e) < 0 ||
        agent_keep_bounds(t, &a, e) < 0)
        return -1;
    if (tx_run(t->tx, "DELETE FROM agents WHERE name = :name", PARAMS(P_TEXT("name", name)), e) < 0)
        return -1;
    a.status = AGENT_OFFLINE;
    write_event(t, &a, "agent.removed");
    return 0;
}

int agent_set_card(struct team *t, struct str name, struct str card, struct err *e)
{
    return tx_run(t->tx, "UPDATE agents SET card = :card WHERE name = :name",
                  PARAMS(P_TEXT("card", card), P_TEXT("name", name)), e) < 0
               ? -1
               : 0;
}

/* --- tags and modes --- */

int agent_set_mode(struct team *t, struct str name, enum agent_mode m, struct err *e)
{
    struct agent a;

    if (team_act_as(t, name, &name, e) < 0 || agent_need(t, name, &a, e) < 0)
        return -1;
    if (!team_is_person(t) && m > a.mode_max) {
        err_set(e, ERR_FORBIDDEN, 0, "agent '" STR_FMT "' may go up to '%s', not to '%s'",
                STR_ARG(name), agent_mode_name(a.mode_max), agent_mode_name(m));
        return err_hint(e, "only people can raise an agent's mode");
    }
    a.mode = m;
    if (team_is_person(t))
        a.mode_max = m;
    return agent_save(t, &a, "agent.mode", e);
}

static void write_default_event(struct team *t, enum agent_mode m, struct str type,
                                const struct agent_list *changed)
{
    AUTO(buf_done) struct buf data = {0};
    struct jw w = {.to = &data};

    jw_object(&w);
    jw_kc(&w, "mode", agent_mode_name(m));
    jw_kstr(&w, "type", type);
    jw_key(&w, "agents");
    jw_array(&w);
    for (size_t i = 0; i < changed->n; i++)
        jw_str(&w, changed->v[i].name);
    jw_array_end(&w);
    jw_object_end(&w);
    team_event(t, "agent.default_mode", "agents", type.n > 0 ? type : STR("*"), &data);
}

int agent_set_default_mode(struct team *t, enum agent_mode m, struct str type,
                           struct agent_list *ret, struct err *e)
{
    struct agent_list all;

    *ret = (struct agent_list){0};
    if (team_need_person(t, "set the default mode", e) < 0 || agent_all(t, &all, e) < 0)
        return -1;
    for (size_t i = 0; i < all.n; i++) {
        struct agent *a = &all.v[i];

        if (type.n > 0 && !str_eq(a->type, type))
            continue;
        a->mode = a->mode_max = m;
        if (agent_save(t, a, "agent.mode", e) < 0)
            return -1;
        ret->v = team_grow(t->arena, ret->v, ret->n, sizeof *ret->v);
        ret->v[ret->n++] = *a;
    }
    if (type.n == 0 && tx_run(t->tx,
                              "INSERT INTO meta (name, value) VALUES ('" DEFAULT_MODE "', :mode) "
                              "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                              PARAMS(P_C("mode", agent_mode_name(m))), e) < 0)
        return -1;
    write_default_event(t, m, type, ret);
    return agent_change_bounds(t, m, type, e);
}

int agent_set_tags(struct team *t, struct str name, struct str tags, struct str description,
                   int64_t task_max, struct err *e)
{
    struct agent a;

    if (team_act_as(t, name, &name, e) < 0 || agent_need(t, name, &a, e) < 0)
        return -1;
    if (description.n > TEAM_TEXT_MAX)
        return err_set(e, ERR_TOO_LARGE, 0, "the description has more than %d bytes",
                       TEAM_TEXT_MAX);
    if (check_coordinator(t, a.tags, tags, e) < 0)
        return -1;
    if (!team_is_person(t) && task_max >= 0 && a.task_max > 0 &&
        (task_max == 0 || task_max > a.task_max))
        return err_set(e, ERR_FORBIDDEN, 0, "only people can raise an agent's task limit");
    a.tags = tags;
    a.description = description.p ? description : STR("");
    if (task_max >= 0)
        a.task_max = task_max;
    return agent_save(t, &a, "agent.capabilities", e);
}

/* --- permission to act --- */

int agent_refuse_revoked(const struct directive *d, struct err *e)
{
    char at[CLOCK_TEXT];

    err_set(e, ERR_FORBIDDEN, 0, "agent '" STR_FMT "' is revoked, by " STR_FMT " at %s%s" STR_FMT,
            STR_ARG(d->agent), STR_ARG(d->actor), clock_text(d->issued_ms, at),
            d->reason.n > 0 ? ": " : "", STR_ARG(d->reason));
    return err_hint(e,
                    "it can only read and acknowledge the revocation; a person can acknowledge for "
                    "it: holt agent ack " STR_FMT,
                    STR_ARG(d->agent));
}

int agent_may_act(struct team *t, const struct agent *a, struct err *e)
{
    struct directive d;
    int r = a->revoked ? agent_revocation(t, a->name, &d, e) : 0;

    return r > 0 ? agent_refuse_revoked(&d, e) : r;
}

int agent_may_take(struct team *t, const struct agent *a, struct err *e)
{
    if (agent_may_act(t, a, e) < 0)
        return -1;
    if (!a->paused)
        return 0;
    err_set(e, ERR_FORBIDDEN, 0, "agent '" STR_FMT "' is paused and takes no new tasks",
            STR_ARG(a->name));
    return err_hint(e, "a person can resume it: holt agent resume");
}

int agent_may_be_given(struct team *t, struct str name, struct err *e)
{
    struct agent a = {.name = name};

    if (is_told(t, name, "pause", &a.paused, e) < 0 ||
        is_told(t, name, "revoke", &a.revoked, e) < 0)
        return -1;
    return agent_may_take(t, &a, e);
}

int agent_can_do(const struct agent *a, struct str needed_tags, struct err *e)
{
    if (team_tags_cover(a->tags, needed_tags))
        return 0;
    return err_set(e, ERR_PRECONDITION, 0,
                   "Capabilities insufficient. Required: " STR_FMT ", have: " STR_FMT,
                   STR_ARG(needed_tags), STR_ARG(a->tags));
}

int agent_may_choose(struct team *t, const struct agent *a, struct str needed_tags, struct err *e)
{
    if (agent_may_take(t, a, e) < 0)
        return -1;
    if (a->mode != AGENT_AUTONOMOUS) {
        err_set(e, ERR_FORBIDDEN, 0, "agent '" STR_FMT "' is %s: it gives itself no work",
                STR_ARG(a->name), agent_mode_name(a->mode));
        return err_hint(e, "a person or coordinator must assign the task");
    }
    return agent_can_do(a, needed_tags, e);
}

/* Advisory, or manual but made advisory by people: a manual agent moves its assigned cards without
 * asking. */
bool agent_must_propose(const struct agent *a)
{
    return a->mode == AGENT_ADVISORY || a->mode_max == AGENT_ADVISORY;
}

int agent_act_as(struct team *t, struct str name, struct str *ret, struct err *e)
{
    struct agent a = {0};

    if (team_act_as(t, name, &a.name, e) < 0 ||
        (a.name.n > 0 && is_told(t, a.name, "revoke", &a.revoked, e) < 0) ||
        agent_may_act(t, &a, e) < 0)
        return -1;
    *ret = a.name;
    return 0;
}
