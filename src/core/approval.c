#include "core/approval.h"

#include "base/sm.h"
#include "core/board_inside.h"

#define PENDING_MAX 1000 /* of one agent */

static const struct sm_state approval_states[APPROVAL_STATES] = {
    [APPROVAL_PENDING] = {"pending", SM_TO(APPROVAL_APPROVED) | SM_TO(APPROVAL_REJECTED)},
    [APPROVAL_APPROVED] = {"approved", 0},
    [APPROVAL_REJECTED] = {"rejected", 0},
};

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

static void approval_event(struct team *t, const char *type, const struct approval *a)
{
    AUTO(buf_done) struct buf data = {0};
    struct jw w = {.to = &data};

    jw_object(&w);
    jw_kstr(&w, "id", a->id);
    jw_kstr(&w, "kind", a->kind);
    jw_kstr(&w, "agent", a->agent);
    jw_kstr(&w, "action", a->action);
    jw_kstr(&w, "project", a->project);
    jw_kstr(&w, "task_id", a->card);
    jw_kc(&w, "to", str_eq_c(a->action, "move") ? card_status_name(a->move.to) : NULL);
    jw_kstr(&w, "note", a->move.note);
    jw_kstr(&w, "blocked_reason", a->move.blocked_reason);
    jw_kstr(&w, "blocked_by", a->move.blocked_by);
    jw_kc(&w, "state", approval_state_name(a->state));
    jw_kstr(&w, "decided_by", a->decided_by);
    jw_kstr(&w, "reason", a->reason);
    jw_ktime(&w, "created_at", a->created_ms);
    jw_ktime(&w, "decided_at", a->decided_ms);
    jw_object_end(&w);
    team_event(t, type, "approval", a->id, &data);
}

/* --- rows --- */

#define APPROVAL_SELECT                                                                            \
    "SELECT id, kind, agent, action, project, card, note, blocked_reason, blocked_by, "            \
    "decided_by, reason, status_to, state, created_ms, decided_ms FROM approvals "

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
    };
}

static int read_all(struct team *t, const char *sql, const struct store_param *p, size_t n,
                    struct approval_list *ret, struct err *e)
{
    struct team_rows l = {.size = sizeof *ret->v, .read = read_approval};
    int r = team_read(t, sql, p, n, &l, e);

    *ret = (struct approval_list){l.v, l.n};
    return r;
}

int approval_need(struct team *t, struct str id, struct approval *ret, struct err *e)
{
    struct approval_list found;

    if (read_all(t, APPROVAL_SELECT "WHERE id = :id", PARAMS(P_TEXT("id", id)), &found, e) < 0)
        return -1;
    if (found.n > 0) {
        *ret = found.v[0];
        return 0;
    }
    return team_missing(t, "proposal", id, e);
}

int approval_all(struct team *t, struct str agent, int state, struct approval_list *ret,
                 struct err *e)
{
    return read_all(t,
                    APPROVAL_SELECT "WHERE (:state < 0 OR state = :state) AND "
                                    "(:agent = '' OR agent = :agent) ORDER BY id LIMIT :limit",
                    PARAMS(P_INT("state", state), P_TEXT("agent", agent.p ? agent : STR("")),
                           P_INT("limit", TEAM_PAGE_MAX)),
                    ret, e);
}

/* --- asking --- */

static int find_same(struct team *t, struct approval *a, struct err *e)
{
    struct approval_list pending;

    if (read_all(t, APPROVAL_SELECT "WHERE card = :card AND agent = :agent AND state = 0",
                 PARAMS(P_TEXT("card", a->card), P_TEXT("agent", a->agent)), &pending, e) < 0)
        return -1;
    for (size_t i = 0; i < pending.n; i++) {
        if (!str_eq(pending.v[i].action, a->action) || pending.v[i].move.to != a->move.to)
            continue;
        a->id = pending.v[i].id;
        return 1;
    }
    return 0;
}

int approval_propose(struct team *t, struct approval *a, struct err *e)
{
    int64_t pending;
    int same = find_same(t, a, e);

    if (same != 0)
        return same;
    if (team_number(t, "SELECT COUNT(*) FROM approvals WHERE state = 0 AND agent = :agent",
                    PARAMS(P_TEXT("agent", a->agent)), &pending, e) < 0)
        return -1;
    if (pending >= PENDING_MAX)
        return err_set(e, ERR_LIMIT, 0, "agent '" STR_FMT "' has %d undecided proposals",
                       STR_ARG(a->agent), PENDING_MAX);
    a->id = team_id(t, "ap");
    a->kind = STR("proposal");
    a->decided_by = a->reason = STR("");
    a->created_ms = t->now_ms;
    if (tx_run(t->tx,
               "INSERT INTO approvals (id, kind, agent, action, project, card, status_to, note, "
               "blocked_reason, blocked_by, state, decided_by, reason, created_ms, decided_ms) "
               "VALUES (:id, :kind, :agent, :action, :project, :card, :to, :note, :blocked_reason, "
               ":blocked_by, 0, '', '', :now, 0)",
               PARAMS(P_TEXT("id", a->id), P_TEXT("kind", a->kind), P_TEXT("agent", a->agent),
                      P_TEXT("action", a->action), P_TEXT("project", a->project),
                      P_TEXT("card", a->card), P_INT("to", a->move.to),
                      P_TEXT("note", a->move.note.p ? a->move.note : STR("")),
                      P_TEXT("blocked_reason",
                             a->move.blocked_reason.p ? a->move.blocked_reason : STR("")),
                      P_TEXT("blocked_by", a->move.blocked_by.p ? a->move.blocked_by : STR("")),
                      P_INT("now", t->now_ms)),
               e) < 0)
        return -1;
    approval_event(t, "approval.created", a);
    return 1;
}

/* --- deciding --- */

static int execute(struct team *t, struct approval *a, struct err *e)
{
    struct card c;
    struct str none;
    int r;

    t->approved = true;
    if (str_eq_c(a->action, "claim")) {
        r = card_claim(t, a->project, a->card, a->agent, &none, e);
    } else {
        a->move.agent = a->agent;
        r = card_move(t, a->project, a->card, &a->move, &c, &none, e);
    }
    t->approved = false;
    return r;
}

int approval_decide(struct team *t, struct str id, bool yes, struct str reason,
                    struct approval *ret, struct err *e)
{
    struct sm life = {.table = approval_states};
    struct approval a;
    int64_t n;

    if (team_need_person(t, "decide about a proposal", e) < 0 || approval_need(t, id, &a, e) < 0)
        return -1;
    life.state = (int)a.state;
    if (!sm_try(&life, yes ? APPROVAL_APPROVED : APPROVAL_REJECTED))
        return err_set(e, ERR_CONFLICT, 0, "the proposal is %s already",
                       approval_state_name(a.state));
    a.state = (enum approval_state)life.state;
    a.decided_by = arena_str(t->arena, str_of(t->who.actor));
    a.reason = reason.p ? reason : STR("");
    a.decided_ms = t->now_ms;
    /* The state is taken first: whoever else decides now changes no row, and executes nothing. */
    n = tx_run(t->tx,
               "UPDATE approvals SET state = :state, decided_by = :by, reason = :reason, "
               "decided_ms = :now WHERE id = :id AND state = 0",
               PARAMS(P_INT("state", a.state), P_TEXT("by", a.decided_by),
                      P_TEXT("reason", a.reason), P_INT("now", t->now_ms), P_TEXT("id", id)),
               e);
    if (n < 0)
        return -1;
    if (n == 0)
        return err_set(e, ERR_CONFLICT, 0, "somebody else decided about it just now");
    if (yes && execute(t, &a, e) != 0)
        return err_wrap(e, "the board does not allow it now");
    approval_event(t, yes ? "approval.approved" : "approval.rejected", &a);
    *ret = a;
    return 0;
}
