/* board_move: claims, assigns and moves cards. */
#include "core/team/board_internal.h"
#include "core/team/proposal.h"

/* --- the actor --- */

int board_actor(struct team *t, struct str name, struct agent *ret, struct err *e)
{
    return name.n > 0 ? agent_find(t, name, ret, e) : 0;
}

static int is_coordinator(struct team *t, struct err *e)
{
    struct agent a;
    int known = board_actor(t, t->who.agent, &a, e);

    if (known <= 0)
        return known;
    return agent_may_act(t, &a, e) < 0 ? -1 : team_tags_have(a.tags, STR("coordinator"));
}

int board_may_assign(struct team *t, struct err *e)
{
    int r = team_is_person(t) ? 1 : is_coordinator(t, e);

    if (r != 0)
        return r < 0 ? -1 : 0;
    err_set(e, ERR_FORBIDDEN, 0, "only people and coordinators can do this");
    return err_hint(e, "claim a task instead, or ask for the tag 'coordinator'");
}

/* --- limits --- */

/* A range of states, not a list: SQLite makes a temporary table for each list.  In ready only
 * claimed cards count: assigned ones are not begun yet. */
#define OPEN_CARDS                                                                                 \
    "SELECT COUNT(*) FROM cards WHERE assigned_to = :owner AND status BETWEEN :from AND :to "      \
    "AND (status <> 1 OR :from = :to OR claimed_by <> '') AND id <> :id"
_Static_assert(CARD_READY == 1, "OPEN_CARDS knows ready");
_Static_assert(CARD_IN_PROGRESS == CARD_READY + 1, "open cards are in two states side by side");

static int count_others(struct team *t, const struct card *c, enum card_status from,
                        enum card_status to, int64_t *ret, struct err *e)
{
    return team_number(t, OPEN_CARDS " AND project = :project",
                       PARAMS(P_TEXT("owner", c->assigned_to), P_INT("from", from), P_INT("to", to),
                              P_TEXT("project", c->project), P_TEXT("id", c->id)),
                       ret, e);
}

/* shown: the column's name in the error, or "" where a dialect's clients expect none. */
static int check_column(struct team *t, const struct card *c, enum card_status to, int64_t limit,
                        const char *shown, struct err *e)
{
    int64_t others;
    /* Claimed cards in ready count as in progress. */
    enum card_status from = to == CARD_IN_PROGRESS ? CARD_READY : to;

    if (limit < 0)
        return 0;
    if (count_others(t, c, from, to, &others, e) < 0)
        return -1;
    if (others < limit)
        return 0;
    err_set(e, ERR_PRECONDITION, 0, "WIP limit reached for " STR_FMT "%s%s (limit: %lld)",
            STR_ARG(c->assigned_to), *shown ? " in " : "", shown, (long long)limit);
    return err_hint(e, "finish or hand back a task first");
}

/* The agent's own limit counts its open cards on all boards. */
static int check_own_limit(struct team *t, const struct card *c, struct err *e)
{
    int64_t max, others;

    if (team_number(t, "SELECT task_max FROM agents WHERE name = :owner",
                    PARAMS(P_TEXT("owner", c->assigned_to)), &max, e) < 0)
        return -1;
    if (max == 0)
        return 0; /* it has no limit of its own, or is not an agent */
    if (team_number(t, OPEN_CARDS,
                    PARAMS(P_TEXT("owner", c->assigned_to), P_INT("from", CARD_READY),
                           P_INT("to", CARD_IN_PROGRESS), P_TEXT("id", c->id)),
                    &others, e) < 0)
        return -1;
    if (others < max)
        return 0;
    return err_set(e, ERR_PRECONDITION, 0,
                   "WIP limit reached for " STR_FMT " (its own limit: %lld)",
                   STR_ARG(c->assigned_to), (long long)max);
}

/* Whether this card, with its owner, may be in a column; counts the owner's other cards.  takes:
 * the owner gets it by this, or has claimed it. */
static int check_limits(struct team *t, const struct card *c, enum card_status to, bool takes,
                        struct err *e)
{
    int64_t limits[CARD_STATUSES];

    if (c->assigned_to.n == 0)
        return 0;
    if (board_limits(t, c->project, limits, e) < 0 ||
        check_column(t, c, to, limits[to], card_status_name(to), e) < 0)
        return -1;
    if (to == CARD_READY && !takes)
        return 0;
    if (to == CARD_READY &&
        check_column(t, c, CARD_IN_PROGRESS, limits[CARD_IN_PROGRESS], "", e) < 0)
        return -1;
    return to == CARD_READY || to == CARD_IN_PROGRESS ? check_own_limit(t, c, e) : 0;
}

/* --- claim --- */

/* The card to change.  If even the board does not exist, the error says that. */
static int card_of_board(struct team *t, struct str project, struct str id, struct card *ret,
                         struct err *e)
{
    struct err no_board = {0};

    if (card_need(t, project, id, ret, e) == 0)
        return 0;
    if (e->code == ERR_NOT_FOUND && board_need(t, project, &no_board) < 0)
        *e = no_board;
    return -1;
}

/* Whether this agent may have this card, apart from the board's limits. */
static int check_taker(struct team *t, const struct card *c, const struct agent *a, struct err *e)
{
    if (agent_may_take(t, a, e) < 0)
        return -1;
    if (a->mode == AGENT_MANUAL && c->assigned_to.n == 0) {
        err_set(e, ERR_FORBIDDEN, 0,
                "agent '" STR_FMT "' is manual: it works on what it was "
                "assigned",
                STR_ARG(a->name));
        return err_hint(e, "a person or coordinator must assign the task");
    }
    return agent_can_do(a, c->tags, e);
}

static int check_claim(struct team *t, const struct card *c, const struct agent *a, struct err *e)
{
    struct card wanted = *c;

    if (c->status != CARD_BACKLOG && c->status != CARD_READY)
        return err_set(e, ERR_PRECONDITION, 0, "Cannot claim task in %s status",
                       card_status_name(c->status));
    if (c->assigned_to.n > 0 && !str_eq(c->assigned_to, a->name)) {
        err_set(e, ERR_CONFLICT, 0, "the task belongs to '" STR_FMT "' already",
                STR_ARG(c->assigned_to));
        return err_hint(e, "take another one from the ready queue");
    }
    if (check_taker(t, c, a, e) < 0)
        return -1;
    wanted.assigned_to = a->name;
    return check_limits(t, &wanted, CARD_READY, true, e);
}

int card_claim(struct team *t, struct str project, struct str id, struct str agent,
               struct str *ret_proposal, struct err *e)
{
    struct agent a;
    struct card c;
    enum card_status from;

    if (team_act_as(t, agent, &agent, e) < 0 || card_of_board(t, project, id, &c, e) < 0 ||
        agent_need(t, agent, &a, e) < 0 || check_claim(t, &c, &a, e) < 0)
        return -1;
    if (str_eq(c.claimed_by, agent))
        return 0; /* it is already its own: a repeated request */
    if (agent_must_propose(&a) && !t->approved) {
        struct proposal wish = {
            .agent = agent, .action = STR("claim"), .project = project, .card = id};

        return proposal_make(t, &wish, ret_proposal, e);
    }
    from = c.status;
    c.assigned_to = c.claimed_by = agent;
    c.status = CARD_READY;
    if (card_save(t, &c, from, agent, STR("claimed"), "task.claimed", e) < 0)
        return -1;
    return agent_set_card(t, agent, id, e);
}

/* --- assign --- */

/* An agent may not unblock a card before its blocker is done. */
static int check_unblock(struct team *t, const struct card *c, struct err *e)
{
    struct card by;
    int64_t there;

    if (c->status != CARD_BLOCKED || c->blocked_by.n == 0)
        return 0;
    if (team_number(t, "SELECT COUNT(*) FROM cards WHERE id = :id",
                    PARAMS(P_TEXT("id", c->blocked_by)), &there, e) < 0)
        return -1;
    if (there == 0)
        return 0;
    if (card_need(t, c->project, c->blocked_by, &by, e) < 0)
        return -1;
    if (by.status == CARD_DONE)
        return 0;
    err_set(e, ERR_PRECONDITION, 0, "the task is blocked by '" STR_FMT "', which is not done",
            STR_ARG(c->blocked_by));
    return err_hint(e, "finish that one, or have a person move this one");
}

static int check_assign(struct team *t, const struct card *c, struct str agent, struct err *e)
{
    struct card wanted = *c;
    struct agent a;
    int known;

    if (team_check_name("an assignee", agent, e) < 0)
        return -1;
    if (c->status == CARD_DONE)
        return err_set(e, ERR_PRECONDITION, 0, "Cannot assign task in done status");
    if (!team_is_person(t) && check_unblock(t, c, e) < 0)
        return -1;
    known = board_actor(t, agent, &a, e);
    if (known < 0 || agent_may_be_given(t, agent, e) < 0)
        return -1;
    /* A coordinator assigns work; whether it may take some itself depends on its mode. */
    if (known > 0 && str_eq(agent, t->who.agent) && agent_may_choose(t, &a, c->tags, e) < 0)
        return -1;
    wanted.assigned_to = agent;
    return check_limits(t, &wanted, CARD_READY, true, e);
}

/* Clears the card from the agents that have it as their current one. */
static int forget_card(struct team *t, const struct card *c, struct err *e)
{
    struct agent a;

    if (c->assigned_to.n == 0)
        return 0;
    if (tx_run(t->tx, "UPDATE agents SET card = '' WHERE name = :name AND card = :card",
               PARAMS(P_TEXT("name", c->assigned_to), P_TEXT("card", c->id)), e) < 0)
        return -1;
    return agent_refresh(t, c->assigned_to, &a, e) < 0 ? -1 : 0;
}

int card_assign(struct team *t, struct str project, struct str id, struct str agent, struct str by,
                struct err *e)
{
    struct card c, before;

    if (board_may_assign(t, e) < 0 || card_of_board(t, project, id, &c, e) < 0 ||
        check_assign(t, &c, agent, e) < 0)
        return -1;
    before = c;
    if (!str_eq(c.assigned_to, agent))
        c.claimed_by = STR("");
    c.assigned_to = agent;
    c.status = CARD_READY;
    c.blocked_reason = c.blocked_by = STR("");
    if (card_save(t, &c, before.status, team_is_person(t) ? by : STR(""), STR("assigned"),
                  "task.assigned", e) < 0)
        return -1;
    return str_eq(before.assigned_to, agent) ? 0 : forget_card(t, &before, e);
}

int card_unassign(struct team *t, struct str project, struct str id, struct err *e)
{
    struct card c, before;

    if (board_may_assign(t, e) < 0 || card_of_board(t, project, id, &c, e) < 0 ||
        (!team_is_person(t) && check_unblock(t, &c, e) < 0))
        return -1;
    before = c;
    c.assigned_to = c.claimed_by = c.taken_from = STR("");
    c.status = CARD_BACKLOG;
    c.blocked_reason = c.blocked_by = STR("");
    if (card_save(t, &c, before.status, STR(""), STR("unassigned"), "task.unassigned", e) < 0)
        return -1;
    return forget_card(t, &before, e);
}

static int release_all(struct team *t, const struct card_list *all, struct str why, struct err *e)
{
    for (size_t i = 0; i < all->n; i++) {
        struct card c = all->v[i], before = c;

        if (c.status != CARD_BLOCKED)
            c.status = CARD_READY;
        c.taken_from = c.assigned_to;
        c.assigned_to = c.claimed_by = STR("");
        if (card_save(t, &c, before.status, STR("system"), why, "task.released", e) < 0 ||
            forget_card(t, &before, e) < 0)
            return -1;
    }
    return 0;
}

static int release_from(struct team *t, struct str agent, enum card_status s, struct str why,
                        struct err *e)
{
    const struct card_filter f = {.owner = agent, .status = (int)s};
    struct card_list all;

    return card_all(t, &f, &all, e) < 0 ? -1 : release_all(t, &all, why, e);
}

int board_release(struct team *t, struct str agent, struct str why, struct err *e)
{
    static const enum card_status held[] = {CARD_READY, CARD_IN_PROGRESS, CARD_BLOCKED};

    for (size_t i = 0; i < ARRAY_LEN(held); i++)
        if (release_from(t, agent, held[i], why, e) < 0)
            return -1;
    return 0;
}

int board_flush(struct team *t, struct str agent, struct str why, struct err *e)
{
    return release_from(t, agent, CARD_IN_REVIEW, why, e) < 0 ? -1
                                                              : board_release(t, agent, why, e);
}

/* --- move --- */

/* Checks the mover before the card. */
static int check_mover(struct team *t, const struct card *c, const struct agent *a, struct err *e)
{
    bool own = str_eq(c->assigned_to, a->name);

    if (agent_may_act(t, a, e) < 0)
        return -1;
    if (a->mode == AGENT_MANUAL && !own)
        return err_set(e, ERR_FORBIDDEN, 0,
                       "agent '" STR_FMT "' is manual: it moves only what it was assigned",
                       STR_ARG(a->name));
    /* Approving a proposal is not acting: the agent's rules apply. */
    if ((team_is_person(t) && !t->approved) || own || c->assigned_to.n == 0 ||
        team_tags_have(a->tags, STR("coordinator")) || team_tags_have(c->reviewers, a->name))
        return 0;
    err_set(e, ERR_FORBIDDEN, 0, "the task belongs to '" STR_FMT "'", STR_ARG(c->assigned_to));
    return err_hint(e, "review it, or ask a coordinator");
}

static int check_blocker(struct team *t, const struct card *c, struct str id, struct err *e)
{
    struct card on = {.blocked_by = id};

    /* A cycle of blockers would never end by itself. */
    for (int depth = 0; on.blocked_by.n > 0; depth++) {
        if (str_eq(on.blocked_by, c->id) || depth > 100)
            return err_set(e, ERR_PRECONDITION, 0, "the task would block itself");
        if (card_need(t, c->project, on.blocked_by, &on, e) < 0) {
            if (e->code != ERR_NOT_FOUND)
                return -1;
            if (depth > 0)
                return 0;
            return err_set(e, ERR_INVALID, 0, "blocked_by: there is no task '" STR_FMT "' here",
                           (int)size_min(id.n, TEAM_NAME_MAX), id.p);
        }
    }
    return 0;
}

static size_t reviews_of(const struct card *c)
{
    return team_tags_count(c->reviewers) - team_tags_have(c->reviewers, c->assigned_to);
}

static int check_done(struct team *t, const struct card *c, struct err *e)
{
    int64_t open;

    if (c->reviews_asked && (int64_t)reviews_of(c) < c->reviews)
        return err_set(e, ERR_PRECONDITION, 0, "the task has %zu of %lld required reviewers",
                       reviews_of(c), (long long)c->reviews);
    if (team_number(t, "SELECT COUNT(*) FROM cards WHERE parent = :id AND status <> :done",
                    PARAMS(P_TEXT("id", c->id), P_INT("done", CARD_DONE)), &open, e) < 0)
        return -1;
    if (open > 0)
        return err_set(e, ERR_PRECONDITION, 0, "%lld of its subtasks are not done",
                       (long long)open);
    return 0;
}

static int check_move(struct team *t, const struct card *c, const struct card_move *m, bool agent,
                      struct err *e)
{
    if (!card_may_move(c->status, m->to))
        return err_set(e, ERR_PRECONDITION, 0, "Invalid transition: %s → %s",
                       card_status_name(c->status), card_status_name(m->to));
    if (m->note.n > TEAM_TEXT_MAX || m->blocked_reason.n > TEAM_TEXT_MAX)
        return err_set(e, ERR_TOO_LARGE, 0, "a text has more than %d bytes", TEAM_TEXT_MAX);
    if (m->to == CARD_BLOCKED && m->blocked_by.n > 0 && check_blocker(t, c, m->blocked_by, e) < 0)
        return -1;
    if (agent && check_unblock(t, c, e) < 0)
        return -1;
    if (m->to == CARD_DONE && check_done(t, c, e) < 0)
        return -1;
    return check_limits(t, c, m->to, c->claimed_by.n > 0, e);
}

static void apply_move(struct team *t, struct card *c, const struct card_move *m)
{
    if (m->to == CARD_IN_PROGRESS && c->started_ms == 0)
        c->started_ms = t->now_ms;
    if (m->to == CARD_IN_REVIEW && c->review_ms == 0)
        c->review_ms = t->now_ms;
    if (m->to == CARD_DONE)
        c->completed_ms = t->now_ms;
    if (m->to == CARD_BACKLOG) /* a card in the backlog has no owner */
        c->assigned_to = c->claimed_by = c->taken_from = STR("");
    c->blocked_reason = c->blocked_by = STR("");
    if (m->to == CARD_BLOCKED) {
        c->blocked_reason = m->blocked_reason.p ? m->blocked_reason : STR("");
        c->blocked_by = m->blocked_by.p ? m->blocked_by : STR("");
    }
    c->status = m->to;
}

/* Moves cards that waited for this one to ready; without their owner if that has no room. */
static int unblock_others(struct team *t, const struct card *done, struct err *e)
{
    struct card_list all;
    const struct card_filter f = {.project = done->project, .status = CARD_BLOCKED};

    if (card_all(t, &f, &all, e) < 0)
        return -1;
    for (size_t i = 0; i < all.n; i++) {
        struct card *c = &all.v[i];
        const struct card before = *c;
        struct err full = {0};

        if (!str_eq(c->blocked_by, done->id))
            continue;
        if (check_limits(t, c, CARD_READY, c->claimed_by.n > 0, &full) < 0) {
            if (full.code != ERR_PRECONDITION) {
                *e = full;
                return -1;
            }
            c->assigned_to = c->claimed_by = STR("");
        }
        c->status = CARD_READY;
        c->blocked_reason = c->blocked_by = STR("");
        if (card_save(t, c, CARD_BLOCKED, STR("system"), STR("the task that blocked it is done"),
                      "task.moved", e) < 0 ||
            (c->assigned_to.n == 0 && forget_card(t, &before, e) < 0))
            return -1;
    }
    return 0;
}

static int card_moved(struct team *t, const struct card *c, const struct card *before,
                      struct err *e)
{
    struct agent a;

    if (c->status == CARD_DONE && unblock_others(t, c, e) < 0)
        return -1;
    if (c->status == CARD_DONE || c->status == CARD_BACKLOG)
        return forget_card(t, before, e);
    if (c->status == CARD_IN_PROGRESS && c->assigned_to.n > 0 &&
        agent_set_card(t, c->assigned_to, c->id, e) < 0)
        return -1;
    return c->assigned_to.n > 0 && agent_refresh(t, c->assigned_to, &a, e) < 0 ? -1 : 0;
}

int card_move(struct team *t, struct str project, struct str id, const struct card_move *m,
              struct card *ret, struct str *ret_proposal, struct err *e)
{
    struct str by;
    struct agent a;
    struct card c, before;
    int is_agent;

    if (team_act_as(t, m->agent, &by, e) < 0 || card_of_board(t, project, id, &c, e) < 0)
        return -1;
    is_agent = board_actor(t, by, &a, e);
    if (is_agent < 0 || (is_agent > 0 && check_mover(t, &c, &a, e) < 0))
        return -1;
    if (is_agent == 0 && (!team_is_person(t) || t->approved))
        /* the agent was removed, but its token or proposal still exists */
        return agent_need(t, by, &a, e);
    before = c;
    if (is_agent > 0 && c.assigned_to.n == 0 &&
        (m->to == CARD_IN_PROGRESS || m->to == CARD_IN_REVIEW)) {
        /* An agent that works on a card without an owner takes it: the checks of a claim apply, and
         * its own review does not count. */
        if (check_taker(t, &c, &a, e) < 0)
            return -1;
        c.assigned_to = c.claimed_by = by;
    }
    if (check_move(t, &c, m, is_agent > 0, e) < 0)
        return -1;
    if (is_agent > 0 && agent_must_propose(&a) && !t->approved) {
        struct proposal wish = {
            .agent = by, .action = STR("move"), .project = project, .card = id, .move = *m};

        *ret = before;
        return proposal_make(t, &wish, ret_proposal, e);
    }
    apply_move(t, &c, m);
    if (card_save(t, &c, before.status, by, m->note, "task.moved", e) < 0 ||
        card_moved(t, &c, &before, e) < 0)
        return -1;
    *ret = c;
    return 0;
}

int card_add_reviewer(struct team *t, struct str project, struct str id, struct str name,
                      struct err *e)
{
    struct card c;

    if (agent_act_as(t, name, &name, e) < 0 || team_check_name("a reviewer's name", name, e) < 0 ||
        card_of_board(t, project, id, &c, e) < 0)
        return -1;
    if (team_tags_have(c.reviewers, name))
        return 0;
    if (team_tags_count(c.reviewers) >= TEAM_TAGS_MAX) {
        err_set(e, ERR_LIMIT, 0, "the task has %d reviewers already", TEAM_TAGS_MAX);
        return err_limit_fixed(e, TEAM_TAGS_MAX, "one of those must decide");
    }
    c.reviewers = team_tags_add(t->arena, c.reviewers, name);
    return card_save(t, &c, c.status, name, STR(""), "task.reviewed", e);
}
