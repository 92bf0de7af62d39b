/* message: the hub's routes on messages. */
#include "core/team/message.h"
#include "api/dialects/hub/hub.h"

int hub_message_send(struct hub_call *c, struct err *e)
{
    struct message m = {0};

    if (hub_text(c, "from", &m.from, e) < 0 || hub_text(c, "to", &m.to, e) < 0 ||
        hub_text(c, "content", &m.content, e) < 0 || hub_text(c, "type", &m.type, e) < 0)
        return -1;
    if ((m.from.n == 0 && team_is_person(&c->t)) || m.to.n == 0)
        return err_set(e, ERR_INVALID, 0, "from and to required");
    if (!m.content.p)
        m.content = STR("");
    if (m.type.n == 0)
        m.type = STR("text");
    if (message_send(&c->t, &m, e) < 0)
        return -1;
    jw_object(&c->w);
    jw_kstr(&c->w, "from", m.from);
    jw_kstr(&c->w, "id", m.id);
    hub_ktime(&c->w, "timestamp", m.sent_ms);
    jw_kstr(&c->w, "to", m.to);
    jw_object_end(&c->w);
    return 0;
}

int hub_message_inbox(struct hub_call *c, struct err *e)
{
    struct message_list all;
    struct str unread;
    int64_t limit;

    if (hub_query(c, "unread", &unread, e) < 0 || hub_limit(c, 0, &limit, e) < 0 ||
        message_inbox(&c->t, c->path.v[0], str_case_eq_c(unread, "true"), limit, &all, e) < 0)
        return -1;
    jw_array(&c->w);
    for (size_t i = 0; i < all.n; i++) {
        const struct message *m = &all.v[i];

        jw_object(&c->w);
        jw_kbool(&c->w, "acknowledged", m->acknowledged);
        jw_kstr(&c->w, "content", m->content);
        jw_kbool(&c->w, "delivered", m->delivered);
        jw_kstr(&c->w, "from", m->from);
        jw_kstr(&c->w, "id", m->id);
        hub_ktime(&c->w, "timestamp", m->sent_ms);
        jw_kstr(&c->w, "type", m->type);
        jw_object_end(&c->w);
    }
    jw_array_end(&c->w);
    return 0;
}

int hub_message_ack(struct hub_call *c, struct err *e)
{
    if (message_acknowledge(&c->t, c->path.v[0], e) < 0)
        return -1;
    hub_ok(c);
    return 0;
}

int hub_message_history(struct hub_call *c, struct err *e)
{
    struct message_list all;
    int64_t limit;

    if (hub_limit(c, 50, &limit, e) < 0 ||
        message_history(&c->t, c->path.v[0], c->path.v[1], limit, &all, e) < 0)
        return -1;
    jw_array(&c->w);
    for (size_t i = 0; i < all.n; i++) {
        const struct message *m = &all.v[i];

        jw_object(&c->w);
        jw_kstr(&c->w, "content", m->content);
        jw_kstr(&c->w, "from", m->from);
        jw_kstr(&c->w, "id", m->id);
        hub_ktime(&c->w, "timestamp", m->sent_ms);
        jw_kstr(&c->w, "to", m->to);
        jw_object_end(&c->w);
    }
    jw_array_end(&c->w);
    return 0;
}

int hub_message_graph(struct hub_call *c, struct err *e)
{
    struct message_graph g;

    if (message_graph(&c->t, &g, e) < 0)
        return -1;
    jw_object(&c->w);
    jw_key(&c->w, "edges");
    jw_array(&c->w);
    for (size_t i = 0; i < g.edge_count; i++) {
        jw_object(&c->w);
        jw_kint(&c->w, "count", g.edges[i].count);
        jw_kstr(&c->w, "from", g.edges[i].from);
        jw_kstr(&c->w, "to", g.edges[i].to);
        jw_object_end(&c->w);
    }
    jw_array_end(&c->w);
    jw_key(&c->w, "nodes");
    jw_array(&c->w);
    for (size_t i = 0; i < g.nodes.n; i++) {
        jw_object(&c->w);
        jw_kstr(&c->w, "id", g.nodes.v[i].name);
        jw_kstr(&c->w, "type", g.nodes.v[i].type);
        jw_object_end(&c->w);
    }
    jw_array_end(&c->w);
    jw_object_end(&c->w);
    return 0;
}
