/* proposal: the kind of approvals that advisory agents make: claims and moves of cards. */
#include "core/team/proposal.h"
#include "core/approval/approval_internal.h"

static int find_same(struct team *t, struct approval *a, struct err *e)
{
    struct approval_list pending;

    if (approval_read(t, APPROVAL_SELECT "WHERE card = :card AND agent = :agent AND state = 0",
                      PARAMS(P_TEXT("card", a->card), P_TEXT("agent", a->agent)), &pending, e) < 0)
        return -1;
    for (size_t i = 0; i < pending.n; i++) {
        const struct card_move *m = &pending.v[i].move;

        if (!str_eq(pending.v[i].action, a->action) || m->to != a->move.to ||
            !str_eq(m->blocked_by, approval_text(a->move.blocked_by)))
            continue;
        a->id = pending.v[i].id;
        return 1;
    }
    return 0;
}

static int propose(struct team *t, struct approval *a, struct err *e)
{
    int64_t pending;
    int same = find_same(t, a, e);

    if (same != 0)
        return same;
    if (team_number(t, "SELECT COUNT(*) FROM approvals WHERE state = 0 AND agent = :agent",
                    PARAMS(P_TEXT("agent", a->agent)), &pending, e) < 0)
        return -1;
    if (pending >= t->conf.proposals_max) {
        err_set(e, ERR_LIMIT, 0, "agent '" STR_FMT "' has %lld undecided proposals",
                STR_ARG(a->agent), (long long)pending);
        return err_limit(e, "proposals_max", t->conf.proposals_max,
                         "decide some (holt approval ls)");
    }
    a->kind = STR(APPROVAL_PROPOSAL);
    if (approval_new(t, a, e) < 0)
        return -1;
    return 1;
}

int proposal_make(struct team *t, const struct proposal *p, struct str *ret_id, struct err *e)
{
    struct approval a = {.agent = p->agent,
                         .action = p->action,
                         .project = p->project,
                         .card = p->card,
                         .move = p->move};
    int r = propose(t, &a, e);

    *ret_id = a.id;
    return r;
}

int proposal_execute(struct team *t, struct approval *a, struct err *e)
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
    return r == 0 ? 0 : err_wrap(e, "the board does not allow it now");
}

int proposals_close(struct team *t, struct str agent, struct str project, const char *reason,
                    struct err *e)
{
    struct approval_list all;

    if (approval_read(t,
                      APPROVAL_SELECT "WHERE state = 0 AND kind = '" APPROVAL_PROPOSAL "' AND "
                                      "(:agent = '' OR agent = :agent) AND "
                                      "(:project = '' OR project = :project) ORDER BY id",
                      PARAMS(P_TEXT("agent", agent), P_TEXT("project", project)), &all, e) < 0)
        return -1;
    return approvals_close(t, &all, reason, e);
}
