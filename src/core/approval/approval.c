/* approval: the queue of questions to people. */
#include "core/approval/approval.h"

#include "base/sm.h"
#include "core/approval/approval_internal.h"
#include "core/approval/egress_rule.h"

#define QUESTIONS_KEPT 1000 /* decided ones, per sandbox */

static const struct sm_state approval_states[APPROVAL_STATES] = {
    [APPROVAL_PENDING] = {"pending", SM_TO(APPROVAL_APPROVED) | SM_TO(APPROVAL_REJECTED) |
                                         SM_TO(APPROVAL_CLOSED)},
    [APPROVAL_APPROVED] = {"approved", 0},
    [APPROVAL_REJECTED] = {"rejected", 0},
    [APPROVAL_CLOSED] = {"closed", 0},
};
const char *const approval_scopes[] = {"once", "sandbox", "always", NULL};

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

static void put_wish(struct jw *w, const struct approval *a)
{
    jw_kstr(w, "agent", a->agent);
    jw_kstr(w, "action", a->action);
    jw_kstr(w, "project", a->project);
    jw_kstr(w, "task_id", a->card);
    jw_kc(w, "to", str_eq_c(a->action, "move") ? card_status_name(a->move.to) : NULL);
    jw_kstr(w, "note", a->move.note);
    jw_kstr(w, "blocked_reason", a->move.blocked_reason);
    jw_kstr(w, "blocked_by", a->move.blocked_by);
}

static void put_question(struct jw *w, const struct approval *a)
{
    jw_kstr(w, "sandbox", a->sandbox);
    jw_kstr(w, "tenant", a->tenant);
    jw_kstr(w, "host", a->host);
    jw_kint(w, "port", a->port);
    jw_kc(w, "scope", a->decided_ms > 0 ? approval_scopes[a->scope] : NULL);
    jw_ktime(w, "expires_at", a->expires_ms);
}

static void approval_event(struct team *t, const char *type, const struct approval *a)
{
    AUTO(buf_done) struct buf data = {0};
    struct jw w = {.to = &data};

    jw_object(&w);
    jw_kstr(&w, "id", a->id);
    jw_kstr(&w, "kind", a->kind);
    if (str_eq_c(a->kind, APPROVAL_EGRESS))
        put_question(&w, a);
    else
        put_wish(&w, a);
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
    if (found.n > 0) {
        *ret = found.v[0];
        return 0;
    }
    return team_missing(t, kind ? kind : "approval", id, e);
}

int approval_all(struct team *t, const struct approval_filter *f, struct approval_list *ret,
                 struct err *e)
{
    return approval_read(t,
                         APPROVAL_SELECT "WHERE (:state < 0 OR state = :state) AND "
                                         "(:agent = '' OR agent = :agent) AND "
                                         "(:sandbox = '' OR sandbox = :sandbox) AND "
                                         "(:kind = '' OR kind = :kind) AND id > :after "
                                         "ORDER BY id LIMIT :limit",
                         PARAMS(P_INT("state", f->state), P_TEXT("agent", approval_text(f->agent)),
                                P_TEXT("sandbox", approval_text(f->sandbox)),
                                P_C("kind", f->kind ? f->kind : ""),
                                P_TEXT("after", approval_text(f->after)),
                                P_INT("limit", f->limit > 0 ? f->limit : TEAM_PAGE_MAX)),
                         ret, e);
}

/* --- asking --- */

int approval_new(struct team *t, struct approval *a, struct err *e)
{
    a->id = team_id(t, "ap");
    a->decided_by = a->reason = STR("");
    a->created_ms = t->now_ms;
    if (tx_run(t->tx,
               "INSERT INTO approvals (id, kind, agent, action, project, card, status_to, note, "
               "blocked_reason, blocked_by, state, decided_by, reason, created_ms, decided_ms, "
               "sandbox, tenant, host, port, scope, expires_ms) "
               "VALUES (:id, :kind, :agent, :action, :project, :card, :to, :note, :blocked_reason, "
               ":blocked_by, 0, '', '', :now, 0, :sandbox, :tenant, :host, :port, 0, :expires)",
               PARAMS(P_TEXT("id", a->id), P_TEXT("kind", a->kind),
                      P_TEXT("agent", approval_text(a->agent)), P_TEXT("action", a->action),
                      P_TEXT("project", approval_text(a->project)),
                      P_TEXT("card", approval_text(a->card)), P_INT("to", a->move.to),
                      P_TEXT("note", approval_text(a->move.note)),
                      P_TEXT("blocked_reason", approval_text(a->move.blocked_reason)),
                      P_TEXT("blocked_by", approval_text(a->move.blocked_by)),
                      P_INT("now", t->now_ms), P_TEXT("sandbox", approval_text(a->sandbox)),
                      P_TEXT("tenant", approval_text(a->tenant)),
                      P_TEXT("host", approval_text(a->host)), P_INT("port", a->port),
                      P_INT("expires", a->expires_ms)),
               e) < 0)
        return -1;
    approval_event(t, "approval.created", a);
    return 0;
}

/* Deletes old decided ones: a sandbox may ask as often as it likes. */
static int make_room(struct team *t, const struct approval *a, struct err *e)
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
    if (make_room(t, a, e) < 0)
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
                       "scope = :scope, decided_ms = :now WHERE id = :id AND state = 0",
                       PARAMS(P_INT("state", a->state), P_TEXT("by", a->decided_by),
                              P_TEXT("reason", a->reason), P_INT("scope", a->scope),
                              P_INT("now", t->now_ms), P_TEXT("id", a->id)),
                       e);

    if (n < 0)
        return -1;
    return n > 0 ? 0 : err_set(e, ERR_CONFLICT, 0, "somebody else decided about it just now");
}

int approvals_close(struct team *t, const struct approval_list *l, const char *reason,
                    struct err *e)
{
    for (size_t i = 0; i < l->n; i++) {
        struct approval *a = &l->v[i];

        a->state = APPROVAL_CLOSED;
        a->decided_by = arena_str(t->arena, str_of(t->who.actor));
        a->reason = str_of(reason);
        a->decided_ms = t->now_ms;
        if (take_state(t, a, e) < 0)
            return -1;
        approval_event(t, "approval.closed", a);
    }
    return 0;
}

/* An answer for all sandboxes of a tenant also answers the others' questions. */
static int close_alike(struct team *t, const struct approval *a, struct err *e)
{
    struct approval_list l;

    if (approval_read(
            t,
            APPROVAL_SELECT "WHERE state = 0 AND tenant = :tenant AND host = :host AND "
                            "port = :port",
            PARAMS(P_TEXT("tenant", a->tenant), P_TEXT("host", a->host), P_INT("port", a->port)),
            &l, e) < 0)
        return -1;
    return approvals_close(t, &l, "it was answered for all sandboxes of the tenant", e);
}

static int execute(struct team *t, struct approval *a, struct err *e)
{
    bool yes = a->state == APPROVAL_APPROVED;

    if (!str_eq_c(a->kind, APPROVAL_EGRESS))
        return yes ? proposal_execute(t, a, e) : 0;
    if (a->scope == APPROVAL_ONCE)
        return 0;
    if (egress_rule_add(t,
                        &(struct egress_rule){
                            .sandbox = a->scope == APPROVAL_SANDBOX ? a->sandbox : STR(""),
                            .tenant = a->tenant,
                            .host = a->host,
                            .port = a->port,
                            .allow = yes,
                        },
                        e) < 0)
        return -1;
    /* subscribers then know the reason */
    return a->scope == APPROVAL_ALWAYS ? close_alike(t, a, e) : 0;
}

int approval_decide(struct team *t, struct str id, const struct approval_decision *d,
                    struct approval *ret, struct err *e)
{
    struct sm life = {.table = approval_states};
    struct approval a;
    struct agent named;
    int by_agent = board_actor(t, d->by, &named, e);

    if (by_agent < 0 || team_need_person(t, "decide about a proposal", e) < 0 ||
        approval_need(t, d->kind, id, &a, e) < 0)
        return -1;
    if (by_agent > 0)
        return err_set(e, ERR_FORBIDDEN, 0,
                       "only people may decide about a proposal; '" STR_FMT "' is an agent",
                       STR_ARG(d->by));
    life.state = (int)a.state;
    if (!sm_try(&life, d->yes ? APPROVAL_APPROVED : APPROVAL_REJECTED))
        return err_set(e, ERR_CONFLICT, 0, "the " STR_FMT " is %s already",
                       STR_ARG(str_eq_c(a.kind, APPROVAL_EGRESS) ? STR("question") : a.kind),
                       approval_state_name(a.state));
    if (d->scope != APPROVAL_ONCE && !str_eq_c(a.kind, APPROVAL_EGRESS))
        return err_set(e, ERR_INVALID, 0, "an answer to a " STR_FMT " has no scope",
                       STR_ARG(a.kind));
    a.state = (enum approval_state)life.state;
    a.scope = d->scope;
    a.decided_by = arena_str(t->arena, str_of(t->who.actor));
    a.reason = approval_text(d->reason);
    a.decided_ms = t->now_ms;
    if (take_state(t, &a, e) < 0 || execute(t, &a, e) < 0)
        return -1;
    approval_event(t, d->yes ? "approval.approved" : "approval.rejected", &a);
    *ret = a;
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
