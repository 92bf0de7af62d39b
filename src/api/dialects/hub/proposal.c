/* proposal: the hub's routes on proposals. */
#include "api/dialects/hub/hub.h"
#include "core/approval/approval.h"
#include "core/approval/grant.h"

static void write_proposal(struct jw *w, const struct approval *a)
{
    bool move = str_eq_c(a->action, "move");

    jw_object(w);
    jw_kstr(w, "action", a->action);
    jw_kstr(w, "agent", a->agent);
    hub_ktime(w, "created_at", a->created_ms);
    hub_ktime(w, "decided_at", a->decided_ms);
    jw_ktext(w, "decided_by", a->decided_by);
    jw_kstr(w, "id", a->id);
    jw_kstr(w, "note", a->move.note);
    jw_kstr(w, "project_id", a->project);
    jw_kstr(w, "reason", a->reason);
    jw_kc(w, "status", approval_state_name(a->state));
    jw_kstr(w, "task_id", a->card);
    jw_kc(w, "to", move ? card_status_name(a->move.to) : NULL);
    jw_object_end(w);
}

int hub_proposal_list(struct hub_call *c, struct err *e)
{
    struct approval_list all;
    struct str agent, status;
    enum approval_state s = APPROVAL_PENDING;

    if (hub_query(c, "agent", &agent, e) < 0 || hub_query(c, "status", &status, e) < 0)
        return -1;
    if (status.n > 0 && !approval_state_parse(status, &s))
        return err_set(e, ERR_INVALID, 0, "Invalid status: " STR_FMT, (int)size_min(status.n, 64),
                       status.p);
    if (approval_all(&c->t,
                     &(struct approval_filter){.kind = APPROVAL_PROPOSAL,
                                               .agent = agent,
                                               .state = status.n > 0 ? (int)s : -1},
                     &all, e) < 0)
        return -1;
    jw_array(&c->w);
    for (size_t i = 0; i < all.n; i++)
        write_proposal(&c->w, &all.v[i]);
    jw_array_end(&c->w);
    return 0;
}

int hub_proposal_get(struct hub_call *c, struct err *e)
{
    struct approval a;

    if (approval_need(&c->t, APPROVAL_PROPOSAL, c->path.v[0], &a, e) < 0)
        return -1;
    write_proposal(&c->w, &a);
    return 0;
}

static int decide(struct hub_call *c, bool yes, struct err *e)
{
    struct approval a;
    struct grant none;
    struct str reason, by;

    if (hub_text(c, "reason", &reason, e) < 0 || hub_text(c, "by", &by, e) < 0)
        return -1;
    if (reason.n > TEAM_TEXT_MAX)
        return err_set(e, ERR_TOO_LARGE, 0, "the reason has more than %d bytes", TEAM_TEXT_MAX);
    if (approval_decide(&c->t, c->path.v[0],
                        &(struct approval_decision){
                            .kind = APPROVAL_PROPOSAL, .yes = yes, .by = by, .reason = reason},
                        &a, &none, e) < 0)
        return -1;
    write_proposal(&c->w, &a);
    return 0;
}

int hub_proposal_approve(struct hub_call *c, struct err *e)
{
    return decide(c, true, e);
}

int hub_proposal_reject(struct hub_call *c, struct err *e)
{
    return decide(c, false, e);
}
