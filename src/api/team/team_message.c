/* team_message: the native operations on messages. */
#include "api/team/team_op.h"
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
    reply_list_begin(&c->page, &c->w, "messages", STR(""), limit);
    for (size_t i = 0; i < all->n; i++)
        if (reply_list_take(&c->page, all->v[i].id))
            write_message(&c->w, &all->v[i]);
    reply_list_end(&c->page);
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
    reply_list_begin(&c->page, &c->w, "edges", STR(""), INT64_MAX);
    for (size_t i = 0; i < g.edge_count; i++) {
        (void)reply_list_take(&c->page, g.edges[i].from);
        jw_object(&c->w);
        jw_kstr(&c->w, "from", g.edges[i].from);
        jw_kstr(&c->w, "to", g.edges[i].to);
        jw_kint(&c->w, "count", g.edges[i].count);
        jw_object_end(&c->w);
    }
    reply_list_end(&c->page);
    return 0;
}

const struct team_op team_message_ops[] = {
    {&op_message_send, TEAM_DURABLE, message_send_op},
    {&op_message_inbox, TEAM_RELAXED, message_inbox_op, .read_if = "unread"},
    {&op_message_ack, TEAM_DURABLE, message_ack_op},
    {&op_message_history, TEAM_READ, message_history_op},
    {&op_message_graph, TEAM_READ, message_graph_op},
};
const size_t team_message_op_count = ARRAY_LEN(team_message_ops);
