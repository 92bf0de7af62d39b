/* team_message: the native operations on messages and approvals. */
#include "api/team/team_op.h"
#include "core/approval/approval.h"
#include "core/team/message.h"
#include "ops/team.h"

static void write_message(struct jw *w, const struct message *m)
{
    jw_object(w);
    jw_kstr(w, "id", m->id);
    jw_kstr(w, "from", m->from);
    jw_kstr(w, "to", m->to);
    jw_kstr(w, "type", m->type);
    jw_kstr(w, "content", m->content);
    jw_kbool(w, "delivered", m->delivered);
    jw_kbool(w, "acknowledged", m->acknowledged);
    jw_ktime(w, "sent_at", m->sent_ms);
    jw_object_end(w);
}

static int message_send_op(struct team_call *c, struct err *e)
{
    const struct message_send_in *in = c->in;
    struct message m = {
        .from = team_name(c, in->from), .to = in->to, .type = in->type, .content = in->content};

    if (message_send(&c->t, &m, e) < 0)
        return -1;
    (void)snprintf(c->job.object, sizeof c->job.object, "message/" STR_FMT, STR_ARG(m.id));
    write_message(&c->w, &m);
    return 0;
}

static void write_messages(struct team_call *c, const struct message_list *all, int64_t limit)
{
    team_page_begin(c, "messages", STR(""), limit);
    for (size_t i = 0; i < all->n; i++)
        if (team_page_take(c, all->v[i].id))
            write_message(&c->w, &all->v[i]);
    team_page_end(c);
}

static int message_inbox_op(struct team_call *c, struct err *e)
{
    const struct message_inbox_in *in = c->in;
    struct message_list all;

    if (message_inbox(&c->t, team_name(c, in->agent), in->unread, in->limit, &all, e) < 0)
        return -1;
    write_messages(c, &all, in->limit);
    return 0;
}

static int message_ack_op(struct team_call *c, struct err *e)
{
    const struct message_id_in *in = c->in;

    return message_acknowledge(&c->t, in->id, e);
}

static int message_history_op(struct team_call *c, struct err *e)
{
    const struct message_history_in *in = c->in;
    struct message_list all;

    if (message_history(&c->t, in->a, in->b, in->limit, &all, e) < 0)
        return -1;
    write_messages(c, &all, in->limit);
    return 0;
}

static int message_graph_op(struct team_call *c, struct err *e)
{
    struct message_graph g;

    if (message_graph(&c->t, &g, e) < 0)
        return -1;
    team_page_begin(c, "edges", STR(""), INT64_MAX);
    for (size_t i = 0; i < g.edge_count; i++) {
        (void)team_page_take(c, g.edges[i].from);
        jw_object(&c->w);
        jw_kstr(&c->w, "from", g.edges[i].from);
        jw_kstr(&c->w, "to", g.edges[i].to);
        jw_kint(&c->w, "count", g.edges[i].count);
        jw_object_end(&c->w);
    }
    team_page_end(c);
    return 0;
}

/* --- approvals --- */

static void write_host(struct jw *w, const struct approval *a)
{
    team_ktext(w, "sandbox", a->sandbox);
    team_ktext(w, "host", a->host);
    jw_key(w, "port");
    if (a->port > 0)
        jw_int(w, a->port);
    else
        jw_null(w);
    jw_kc(w, "scope", a->port > 0 && a->decided_ms > 0 ? approval_scopes[a->scope] : NULL);
}

/* Questions of sandboxes are for people: an agent sees only proposals. */
static const char *kind_for(const struct team_call *c, int kind)
{
    if (!team_is_person(&c->t))
        return APPROVAL_PROPOSAL;
    return kind < 0 ? NULL : op_approval_kinds[kind];
}

static void write_approval(struct jw *w, const struct approval *a)
{
    jw_object(w);
    jw_kstr(w, "id", a->id);
    jw_kstr(w, "kind", a->kind);
    team_ktext(w, "agent", a->agent);
    jw_kstr(w, "action", a->action);
    write_host(w, a);
    team_ktext(w, "project", a->project);
    team_ktext(w, "task_id", a->card);
    jw_kc(w, "to", str_eq_c(a->action, "move") ? card_status_name(a->move.to) : NULL);
    jw_kstr(w, "note", team_text(a->move.note));
    jw_kc(w, "state", approval_state_name(a->state));
    team_ktext(w, "decided_by", a->decided_by);
    jw_kstr(w, "reason", a->reason);
    jw_ktime(w, "created_at", a->created_ms);
    jw_ktime(w, "decided_at", a->decided_ms);
    jw_ktime(w, "expires_at", a->expires_ms);
    jw_object_end(w);
}

static int approval_list_op(struct team_call *c, struct err *e)
{
    const struct approval_list_in *in = c->in;
    struct approval_list all;

    if (approval_all(&c->t,
                     &(struct approval_filter){.kind = kind_for(c, in->kind),
                                               .agent = in->agent,
                                               .sandbox = in->sandbox,
                                               .state = in->state,
                                               .after = in->cursor,
                                               .limit = in->limit + 1},
                     &all, e) < 0)
        return -1;
    team_page_begin(c, "approvals", STR(""), in->limit);
    for (size_t i = 0; i < all.n; i++)
        if (team_page_take(c, all.v[i].id))
            write_approval(&c->w, &all.v[i]);
    team_page_end(c);
    return 0;
}

static int approval_get_op(struct team_call *c, struct err *e)
{
    const struct approval_id_in *in = c->in;
    struct approval a;

    if (approval_need(&c->t, kind_for(c, -1), in->id, &a, e) < 0)
        return -1;
    write_approval(&c->w, &a);
    return 0;
}

static int decide(struct team_call *c, bool yes, struct err *e)
{
    const struct approval_decide_in *in = c->in;
    struct approval a;

    if (approval_decide(&c->t, in->id,
                        &(struct approval_decision){.yes = yes,
                                                    .reason = team_text(in->reason),
                                                    .scope = (enum approval_scope)in->scope},
                        &a, e) < 0)
        return -1;
    write_approval(&c->w, &a);
    return 0;
}

static int approval_approve_op(struct team_call *c, struct err *e)
{
    return decide(c, true, e);
}

static int approval_deny_op(struct team_call *c, struct err *e)
{
    return decide(c, false, e);
}

const struct team_op team_message_ops[] = {
    {&op_message_send, TEAM_DURABLE, message_send_op},
    {&op_message_inbox, TEAM_RELAXED, message_inbox_op, .read_if = "unread"},
    {&op_message_ack, TEAM_DURABLE, message_ack_op},
    {&op_message_history, TEAM_READ, message_history_op},
    {&op_message_graph, TEAM_READ, message_graph_op},
    {&op_approval_list, TEAM_READ, approval_list_op},
    {&op_approval_get, TEAM_READ, approval_get_op},
    {&op_approval_approve, TEAM_DURABLE, approval_approve_op},
    {&op_approval_deny, TEAM_DURABLE, approval_deny_op},
};
const size_t team_message_op_count = ARRAY_LEN(team_message_ops);
