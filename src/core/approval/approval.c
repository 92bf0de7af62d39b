/* approval: the queue of questions to people. */
#include "core/approval/approval.h"

#include "base/omit.h"
#include "base/sm.h"
#include "core/approval/approval_internal.h"

#define QUESTIONS_KEPT 1000 /* decided ones, per sandbox */

static const struct sm_state approval_states[APPROVAL_STATES] = {
    [APPROVAL_PENDING] = {"pending", SM_TO(APPROVAL_APPROVED) | SM_TO(APPROVAL_REJECTED) |
                                         SM_TO(APPROVAL_CLOSED) | SM_TO(APPROVAL_EXPIRED) |
                                         SM_TO(APPROVAL_CANCELLED)},
    [APPROVAL_APPROVED] = {"approved", 0},
    [APPROVAL_REJECTED] = {"rejected", 0},
    [APPROVAL_CLOSED] = {"closed", 0},
    [APPROVAL_EXPIRED] = {"expired", 0},
    [APPROVAL_CANCELLED] = {"cancelled", 0},
};
const char *const approval_scopes[] = {"once", "sandbox", "always", "time", "rule", NULL};
const char *const approval_urgencies[] = {"low", "medium", "high", NULL};

const char *approval_state_name(enum approval_state s)
{
    assert(s < APPROVAL_STATES);
    return approval_states[s].name;
}

bool approval_state_parse(struct str s, enum approval_state *ret)
{
    int i;

    if (!sm_find(approval_states, APPROVAL_STATES, s, &i))
        return false;
    *ret = (enum approval_state)i;
    return true;
}

void approval_event(struct team *t, const char *type, const struct approval *a)
{
    AUTO(buf_done) struct buf data = {0};
    struct jw w = {.to = &data};

    jw_object(&w);
    jw_kstr(&w, "id", a->id);
    jw_kstr(&w, "kind", a->kind);
    approval_kind(a->kind)->put(&w, a);
    jw_kc(&w, "state", approval_state_name(a->state));
    jw_kstr(&w, "decided_by", a->decided_by);
    jw_kstr(&w, "reason", a->reason);
    jw_ktime(&w, "created_at", a->created_ms);
    jw_ktime(&w, "decided_at", a->decided_ms);
    jw_object_end(&w);
    team_event(t, type, "approval", a->id, &data);
}

/* --- rows --- */

static void read_approval(const struct team *t, const struct store_rows *r, void *to)
{
    *(struct approval *)to = (struct approval){
        .id = team_column(t, r, 0),
        .kind = team_column(t, r, 1),
        .agent = team_column(t, r, 2),
        .action = team_column(t, r, 3),
        .project = team_column(t, r, 4),
        .card = team_column(t, r, 5),
        .move = {.note = team_column(t, r, 6),
                 .blocked_reason = team_column(t, r, 7),
                 .blocked_by = team_column(t, r, 8),
                 .to = (enum card_status)rows_int(r, 11)},
        .decided_by = team_column(t, r, 9),
        .reason = team_column(t, r, 10),
        .state = (enum approval_state)rows_int(r, 12),
        .created_ms = rows_int(r, 13),
        .decided_ms = rows_int(r, 14),
        .sandbox = team_column(t, r, 15),
        .tenant = team_column(t, r, 16),
        .host = team_column(t, r, 17),
        .port = rows_int(r, 18),
        .scope = (enum approval_scope)rows_int(r, 19),
        .expires_ms = rows_int(r, 20),
        .asker = team_column(t, r, 21),
        .person = team_column(t, r, 22),
        .key = team_column(t, r, 23),
        .question = team_column(t, r, 24),
        .urgency = rows_int(r, 25),
        .alternatives = team_column(t, r, 26),
        .choice = team_column(t, r, 27),
        .attachments = team_column(t, r, 28),
        .arguments = team_column(t, r, 29),
        .hash = team_column(t, r, 30),
        .people = rows_int(r, 31),
        .exec = team_column(t, r, 32),
        .way = team_column(t, r, 33),
        .owed = rows_int(r, 34) != 0,
        .votes = rows_int(r, 35),
    };
}

int approval_read(struct team *t, const char *sql, const struct store_param *p, size_t n,
                  struct approval_list *ret, struct err *e)
{
    struct team_rows l = {.size = sizeof *ret->v, .read = read_approval};
    int r = team_read(t, sql, p, n, &l, e);

    *ret = (struct approval_list){l.v, l.n};
    return r;
}

int approval_need(struct team *t, const char *kind, struct str id, struct approval *ret,
                  struct err *e)
{
    struct approval_list found;

    if (approval_read(t, APPROVAL_SELECT "WHERE id = :id AND (:kind = '' OR kind = :kind)",
                      PARAMS(P_TEXT("id", id), P_C("kind", kind ? kind : "")), &found, e) < 0)
        return -1;
    if (found.n > 0 && approval_sees(t, &found.v[0])) {
        *ret = found.v[0];
        return 0;
    }
    return team_missing(t, kind ? kind : "approval", id, e);
}

bool approval_sees(const struct team *t, const struct approval *a)
{
    bool own = a->asker.n > 0 && str_eq(a->asker, t->who.owner);

    if (t->who.tenant.n > 0 && !str_eq(a->tenant, t->who.tenant))
        return false;
    return team_is_person(t) || own ||
           (str_eq_c(a->kind, APPROVAL_PROPOSAL) && t->who.tenant.n == 0);
}

/* As approval_sees. */
#define SEEN                                                                                       \
    "(:tenant = '' OR tenant = :tenant) AND (:person = 1 OR (asker <> '' AND asker = :owner) OR "  \
    "(:tenant = '' AND kind = '" APPROVAL_PROPOSAL "')) "

int approval_all(struct team *t, const struct approval_filter *f, struct approval_list *ret,
                 struct err *e)
{
    return approval_read(
        t,
        APPROVAL_SELECT "WHERE (:state < 0 OR state = :state) AND "
                        "(:agent = '' OR agent = :agent) AND "
                        "(:sandbox = '' OR sandbox = :sandbox) AND "
                        "(:key = '' OR (ask_key = :key AND asker = :owner)) AND "
                        "(:kind = '' OR kind = :kind) AND id > :after AND " SEEN
                        "ORDER BY id LIMIT :limit",
        PARAMS(P_INT("state", f->state), P_TEXT("agent", approval_text(f->agent)),
               P_TEXT("sandbox", approval_text(f->sandbox)), P_TEXT("key", approval_text(f->key)),
               P_C("kind", f->kind ? f->kind : ""), P_TEXT("after", approval_text(f->after)),
               P_TEXT("tenant", approval_text(t->who.tenant)), P_INT("person", team_is_person(t)),
               P_TEXT("owner", approval_text(t->who.owner)),
               P_INT("limit", f->limit > 0 ? f->limit : TEAM_PAGE_MAX)),
        ret, e);
}

/* --- asking --- */

int approval_new(struct team *t, struct approval *a, struct err *e)
{
    a->id = team_id(t, "ap");
    a->decided_by = a->reason = a->choice = STR("");
    a->created_ms = t->now_ms;
    a->people = a->people > 0 ? a->people : 1;
    a->alternatives = a->alternatives.n > 0 ? a->alternatives : STR("[]");
    if (tx_run(t->tx,
               "INSERT INTO approvals (id, kind, agent, action, project, card, status_to, note, "
               "blocked_reason, blocked_by, state, decided_by, reason, created_ms, decided_ms, "
               "sandbox, tenant, host, port, scope, expires_ms, asker, person, ask_key, question, "
               "urgency, alternatives, attachments, arguments, hash, people, exec, way) "
               "VALUES (:id, :kind, :agent, :action, :project, :card, :to, :note, :blocked_reason, "
               ":blocked_by, 0, '', '', :now, 0, :sandbox, :tenant, :host, :port, 0, :expires, "
               ":asker, :person, :key, :question, :urgency, :alternatives, :attachments, "
               ":arguments, :hash, :people, :exec, :way)",
               PARAMS(P_TEXT("id", a->id), P_TEXT("kind", a->kind),
                      P_TEXT("agent", approval_text(a->agent)),
                      P_TEXT("action", approval_text(a->action)),
                      P_TEXT("project", approval_text(a->project)),
                      P_TEXT("card", approval_text(a->card)), P_INT("to", a->move.to),
                      P_TEXT("note", approval_text(a->move.note)),
                      P_TEXT("blocked_reason", approval_text(a->move.blocked_reason)),
                      P_TEXT("blocked_by", approval_text(a->move.blocked_by)),
                      P_INT("now", t->now_ms), P_TEXT("sandbox", approval_text(a->sandbox)),
                      P_TEXT("tenant", approval_text(a->tenant)),
                      P_TEXT("host", approval_text(a->host)), P_INT("port", a->port),
                      P_INT("expires", a->expires_ms), P_TEXT("asker", approval_text(a->asker)),
                      P_TEXT("person", approval_text(a->person)),
                      P_TEXT("key", approval_text(a->key)),
                      P_TEXT("question", approval_text(a->question)), P_INT("urgency", a->urgency),
                      P_TEXT("alternatives", a->alternatives),
                      P_TEXT("attachments", a->attachments.n > 0 ? a->attachments : STR("[]")),
                      P_TEXT("arguments", approval_text(a->arguments)),
                      P_TEXT("hash", approval_text(a->hash)), P_INT("people", a->people),
                      P_TEXT("exec", approval_text(a->exec)), P_TEXT("way", approval_text(a->way))),
               e) < 0)
        return -1;
    approval_event(t, "approval.created", a);
    return 0;
}

/* A sandbox may ask as often as it likes. */
int approval_make_room(struct team *t, const struct approval *a, struct err *e)
{
    int64_t pending;

    if (team_number(t, "SELECT COUNT(*) FROM approvals WHERE state = 0 AND sandbox = :sandbox",
                    PARAMS(P_TEXT("sandbox", a->sandbox)), &pending, e) < 0)
        return -1;
    if (pending >= APPROVAL_QUESTIONS_MAX) {
        err_set(e, ERR_LIMIT, 0, "%d questions of this sandbox are undecided",
                APPROVAL_QUESTIONS_MAX);
        return err_limit_fixed(e, APPROVAL_QUESTIONS_MAX, "decide some (holt approval ls)");
    }
    if (tx_run(t->tx,
               "DELETE FROM approvals WHERE sandbox = :sandbox AND state <> 0 AND id NOT IN "
               "(SELECT id FROM approvals WHERE sandbox = :sandbox ORDER BY id DESC LIMIT :kept)",
               PARAMS(P_TEXT("sandbox", a->sandbox), P_INT("kept", QUESTIONS_KEPT)), e) < 0)
        return -1;
    return 0;
}

int approval_ask(struct team *t, struct approval *a, struct err *e)
{
    struct approval_list same;

    if (approval_read(
            t,
            APPROVAL_SELECT "WHERE sandbox = :sandbox AND state = 0 AND host = :host AND "
                            "port = :port",
            PARAMS(P_TEXT("sandbox", a->sandbox), P_TEXT("host", a->host), P_INT("port", a->port)),
            &same, e) < 0)
        return -1;
    if (same.n > 0) {
        *a = same.v[0];
        return 0;
    }
    if (approval_make_room(t, a, e) < 0)
        return -1;
    a->kind = STR(APPROVAL_EGRESS);
    a->action = STR("connect");
    return approval_new(t, a, e);
}

/* --- deciding --- */

/* Takes the state first: a concurrent decision then changes no row and executes nothing. */
static int take_state(struct team *t, const struct approval *a, struct err *e)
{
    int64_t n = tx_run(t->tx,
                       "UPDATE approvals SET state = :state, decided_by = :by, reason = :reason, "
                       "scope = :scope, choice = :choice, decided_ms = :now "
                       "WHERE id = :id AND state = 0",
                       PARAMS(P_INT("state", a->state), P_TEXT("by", a->decided_by),
                              P_TEXT("reason", a->reason), P_INT("scope", a->scope),
                              P_TEXT("choice", approval_text(a->choice)), P_INT("now", t->now_ms),
                              P_TEXT("id", a->id)),
                       e);

    if (n < 0)
        return -1;
    return n > 0 ? 0
                 : err_set(e, ERR_CONFLICT, 0, "it was decided by somebody else at the same time");
}

int approval_end(struct team *t, struct approval *a, struct err *e)
{
    a->decided_by = arena_str(t->arena, str_of(t->who.actor));
    a->decided_ms = t->now_ms;
    return take_state(t, a, e);
}

int approvals_close(struct team *t, const struct approval_list *l, const char *reason,
                    struct err *e)
{
    for (size_t i = 0; i < l->n; i++) {
        struct approval *a = &l->v[i];

        a->state = APPROVAL_CLOSED;
        a->reason = str_of(reason);
        if (approval_end(t, a, e) < 0)
            return -1;
        approval_event(t, "approval.closed", a);
    }
    return 0;
}

/* --- who may decide --- */

/* The name that counts where two people must agree. */
static struct str person_of(const struct team *t)
{
    return t->who.person.n > 0  ? t->who.person
           : t->who.owner.n > 0 ? t->who.owner
                                : arena_str(t->arena, str_of(t->who.actor));
}

static int check_decider(struct team *t, const struct approval_kind *k, const struct approval *a,
                         struct str by, struct err *e)
{
    struct agent named;
    int by_agent = board_actor(t, by, &named, e);

    if (by_agent < 0)
        return -1;
    if (by_agent > 0)
        return err_set(e, ERR_FORBIDDEN, 0,
                       "only people may decide about a proposal; '" STR_FMT "' is an agent",
                       STR_ARG(by));
    if (k->ask && !t->who.named) {
        err_set(e, ERR_FORBIDDEN, 0, "only people with a token of their own may answer a question");
        return err_hint(e, "send a token: holt token create NAME --role operator --person NAME");
    }
    if (rule_is_omitted("asker") || a->asker.n == 0 ||
        (!str_eq(a->asker, t->who.owner) &&
         (a->person.n == 0 || !str_eq(a->person, t->who.person))))
        return 0;
    err_set(e, ERR_FORBIDDEN, 0, "you asked this question: somebody else has to answer it");
    return err_hint(e, "ask another operator or admin");
}

static int check_choice(const struct approval *a, struct str choice, struct err *e)
{
    AUTO(json_decref) json_t *all = NULL;

    if (choice.n == 0)
        return 0;
    if (json_read(a->alternatives, &all, e) < 0)
        return -1;
    for (size_t i = 0; i < json_array_size(all); i++)
        if (str_eq_c(choice, json_string_value(json_array_get(all, i))))
            return 0;
    return err_set(e, ERR_INVALID, 0, "field 'choice': it is none of the alternatives");
}

static int check_scope(const struct approval_kind *k, const struct approval *a,
                       const struct approval_decision *d, struct err *e)
{
    bool wide = d->scope != APPROVAL_ONCE;

    if (wide && k->scopes == 1U << APPROVAL_ONCE)
        return err_set(e, ERR_INVALID, 0, "an answer to a %s has no scope", k->noun);
    if (wide && k->ask && (a->hash.n == 0 || !d->yes))
        return err_set(e, ERR_INVALID, 0,
                       "field 'scope': only a yes to a question about an action has one");
    if (!(k->scopes & (1U << d->scope)))
        return err_set(e, ERR_INVALID, 0, "field 'scope': a question of kind '%s' has no '%s'",
                       k->name, approval_scopes[d->scope]);
    return 0;
}

/* --- deciding --- */

/* Adds a yes; returns 1 if more people must say it. */
static int count_yes(struct team *t, const struct approval_kind *k, struct approval *a,
                     struct err *e)
{
    struct str person = person_of(t);
    int64_t need = i64_max(a->people, approval_needs_two(t, k) ? 2 : 1);
    int64_t n;

    if (need <= 1 && a->votes == 0)
        return 0;
    n = tx_run(t->tx,
               "INSERT INTO approval_votes (approval, person, actor, comment, at_ms) VALUES (:id, "
               ":person, :actor, :comment, :now) ON CONFLICT (approval, person) DO NOTHING",
               PARAMS(P_TEXT("id", a->id), P_TEXT("person", person), P_C("actor", t->who.actor),
                      P_TEXT("comment", a->reason), P_INT("now", t->now_ms)),
               e);
    if (n < 0)
        return -1;
    if (n == 0) {
        err_set(e, ERR_CONFLICT, 0, "you said yes already: %lld people have to agree",
                (long long)need);
        return err_hint(e, "another person answers: holt approval approve " STR_FMT,
                        STR_ARG(a->id));
    }
    return ++a->votes < need;
}

static int decide_now(struct team *t, const struct approval_kind *k, struct approval *a,
                      struct grant *g, struct err *e)
{
    if (approval_end(t, a, e) < 0 || (k->execute && k->execute(t, a, e) < 0) ||
        (g->asker.n > 0 && grant_make(t, g, e) < 0))
        return -1;
    approval_event(t, a->state == APPROVAL_APPROVED ? "approval.approved" : "approval.rejected", a);
    return 0;
}

/* The approval and its kind, once the caller may decide about it. */
static int open_decision(struct team *t, struct str id, const struct approval_decision *d,
                         struct approval *ret, const struct approval_kind **ret_kind, struct err *e)
{
    struct sm life = {.table = approval_states};
    const struct approval_kind *k;

    if (team_need_person(t, "decide about a proposal", e) < 0 ||
        approval_need(t, d->kind, id, ret, e) < 0)
        return -1;
    *ret_kind = k = approval_kind(ret->kind);
    if (check_decider(t, k, ret, d->by, e) < 0)
        return -1;
    life.state = (int)ret->state;
    if (!sm_try(&life, d->yes ? APPROVAL_APPROVED : APPROVAL_REJECTED))
        return err_set(e, ERR_CONFLICT, 0, "the %s is %s already", k->noun,
                       approval_state_name(ret->state));
    return check_scope(k, ret, d, e) < 0 || (!k->free && check_choice(ret, d->choice, e) < 0) ? -1
                                                                                              : 0;
}

int approval_decide(struct team *t, struct str id, const struct approval_decision *d,
                    struct approval *ret, struct grant *ret_grant, struct err *e)
{
    const struct approval_kind *k;
    struct approval a;
    struct grant g = {0};
    int more;

    if (open_decision(t, id, d, &a, &k, e) < 0 ||
        (d->yes && a.hash.n > 0 && grant_plan(t, &a, d, &g, e) < 0))
        return -1;
    if (!d->preview) {
        a.scope = d->scope;
        a.reason = approval_text(d->reason);
        a.choice =
            d->answered || d->choice.n > 0 || !k->free ? approval_text(d->choice) : (struct str){0};
        more = d->yes ? count_yes(t, k, &a, e) : 0;
        if (more < 0)
            return -1;
        if (more > 0) {
            approval_event(t, "approval.voted", &a);
        } else {
            a.state = d->yes ? APPROVAL_APPROVED : APPROVAL_REJECTED;
            if (decide_now(t, k, &a, &g, e) < 0)
                return -1;
        }
    }
    *ret = a;
    *ret_grant = g;
    return 0;
}

int approval_close(struct team *t, struct str sandbox, const char *reason, struct err *e)
{
    struct approval_list all;

    if (approval_read(t,
                      APPROVAL_SELECT
                      "WHERE state = 0 AND kind = '" APPROVAL_EGRESS "' AND "
                      "(sandbox = :sandbox OR (:sandbox = '' AND expires_ms <= :now)) "
                      "ORDER BY id LIMIT :limit",
                      PARAMS(P_TEXT("sandbox", sandbox), P_INT("now", t->now_ms),
                             P_INT("limit", TEAM_PAGE_MAX)),
                      &all, e) < 0)
        return -1;
    return approvals_close(t, &all, reason, e);
}
