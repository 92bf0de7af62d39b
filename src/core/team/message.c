/* message: mail between agents: send, inbox, acknowledge, history. */
#include "core/team/message.h"

#define RATE_WINDOW_MS 60000
#define EVERYBODY STR("*")

/* --- sending --- */

static int forget_times(struct team *t, struct err *e)
{
    return tx_run(t->tx, "DELETE FROM message_times WHERE sent_ms <= :since",
                  PARAMS(P_INT("since", t->now_ms - RATE_WINDOW_MS)), e) < 0
               ? -1
               : 0;
}

static int note_time(struct team *t, struct str sender, struct err *e)
{
    return tx_run(t->tx, "INSERT INTO message_times (sender, sent_ms) VALUES (:sender, :now)",
                  PARAMS(P_TEXT("sender", sender), P_INT("now", t->now_ms)), e) < 0
               ? -1
               : 0;
}

/* Counts each message it allows. */
static int check_rate(struct team *t, struct str sender, struct err *e)
{
    struct store_rows *rows;
    int64_t count = 0, first = 0;
    int r;

    if (t->conf.message_rate == 0)
        return 0;
    if (forget_times(t, e) < 0 ||
        tx_query(t->tx, "SELECT COUNT(*), MIN(sent_ms) FROM message_times WHERE sender = :sender",
                 PARAMS(P_TEXT("sender", sender)), &rows, e) < 0)
        return -1;
    r = rows_step(rows, e);
    if (r > 0) {
        count = rows_int(rows, 0);
        first = rows_int(rows, 1);
    }
    rows_end(rows);
    if (r < 0 || count < t->conf.message_rate)
        return r < 0 ? -1 : note_time(t, sender, e);
    t->retry_ms = i64_max(first + RATE_WINDOW_MS - t->now_ms, 1);
    err_set(e, ERR_LIMIT, 0, "'" STR_FMT "' sent %lld messages within a minute", STR_ARG(sender),
            (long long)count);
    return err_limit(e, "message_rate", t->conf.message_rate,
                     "send later; the limit is per minute");
}

static int check_message(struct team *t, struct message *m, struct err *e)
{
    if (agent_act_as(t, m->from, &m->from, e) < 0 ||
        team_check_name("a sender's name", m->from, e) < 0 ||
        team_check_name("a receiver's name", m->to, e) < 0 ||
        team_check_name("a message's type", m->type, e) < 0)
        return -1;
    if ((int64_t)m->content.n > t->conf.message_bytes)
        return err_set(e, ERR_TOO_LARGE, 0, "the message has more than %lld bytes",
                       (long long)t->conf.message_bytes);
    t->blocked = !message_is_safe(m->content);
    if (t->blocked)
        return err_set(e, ERR_INVALID, 0,
                       "Sandbox: message content blocked (external URL "
                       "detected)");
    return check_rate(t, m->from, e);
}

static int no_room(const struct team *t, struct str name, struct err *e)
{
    err_set(e, ERR_LIMIT, 0, "the inbox of '" STR_FMT "' is full", STR_ARG(name));
    return err_limit(e, "inbox_max", t->conf.inbox_max, "its owner must acknowledge messages");
}

/* Drops the oldest acknowledged message; of broadcasts, which are never acknowledged, the
 * oldest.  Adds its id to `dropped`, comma-separated. */
static int drop_oldest(struct team *t, struct str name, struct buf *dropped, struct err *e)
{
    struct store_rows *rows;
    struct str id = STR("");
    int r;

    if (tx_query(t->tx,
                 str_eq(name, EVERYBODY)
                     ? "SELECT MIN(id) FROM (SELECT MIN(id) AS id FROM messages WHERE "
                       "receiver = :name AND acked = 0 UNION ALL SELECT MIN(id) FROM messages "
                       "WHERE receiver = :name AND acked = 1) AS x"
                     : "SELECT id FROM messages WHERE receiver = :name AND acked = 1 "
                       "ORDER BY id LIMIT 1",
                 PARAMS(P_TEXT("name", name)), &rows, e) < 0)
        return -1;
    r = rows_step(rows, e);
    if (r > 0)
        id = team_column(t, rows, 0);
    rows_end(rows);
    if (r <= 0)
        return r < 0 ? -1 : no_room(t, name, e);
    if (buf_len(dropped) > 0)
        buf_add_char(dropped, ',');
    buf_add_str(dropped, id);
    return tx_run(t->tx, "DELETE FROM messages WHERE id = :id", PARAMS(P_TEXT("id", id)), e) < 0
               ? -1
               : 0;
}

static int make_room(struct team *t, struct str name, struct buf *dropped, struct err *e)
{
    int64_t there = 0, boxes = 0;
    int64_t changed =
        tx_run(t->tx, "UPDATE mailboxes SET total = total + 1 WHERE name = :name AND total < :max",
               PARAMS(P_TEXT("name", name), P_INT("max", t->conf.inbox_max)), e);

    if (changed != 0)
        return changed < 0 ? -1 : 0;
    if (team_number(t, "SELECT COUNT(*) FROM mailboxes WHERE name = :name",
                    PARAMS(P_TEXT("name", name)), &there, e) < 0)
        return -1;
    if (there > 0)
        return drop_oldest(t, name, dropped, e);
    if (team_number(t, "SELECT COUNT(*) FROM mailboxes", NO_PARAMS, &boxes, e) < 0)
        return -1;
    if (boxes >= t->conf.objects_max) {
        err_set(e, ERR_LIMIT, 0, "there are %lld inboxes already", (long long)boxes);
        return err_limit(e, "team_max", t->conf.objects_max, "send to an agent that has an inbox");
    }
    return tx_run(t->tx, "INSERT INTO mailboxes (name, total) VALUES (:name, 1)",
                  PARAMS(P_TEXT("name", name)), e) < 0
               ? -1
               : 0;
}

static int put(struct team *t, struct message *m, struct str receiver, struct str broadcast,
               struct buf *dropped, struct err *e)
{
    if (make_room(t, receiver, dropped, e) < 0)
        return -1;
    m->id = team_id(t, "ms");
    return tx_run(t->tx,
                  "INSERT INTO messages (id, sender, receiver, kind, content, broadcast, "
                  "delivered, acked, sent_ms) VALUES (:id, :sender, :receiver, :kind, :content, "
                  ":broadcast, 0, 0, :now)",
                  PARAMS(P_TEXT("id", m->id), P_TEXT("sender", m->from),
                         P_TEXT("receiver", receiver), P_TEXT("kind", m->type),
                         P_TEXT("content", m->content), P_TEXT("broadcast", broadcast),
                         P_INT("now", t->now_ms)),
                  e) < 0
               ? -1
               : 0;
}

static int count_edge(struct team *t, struct str from, struct str to, struct err *e)
{
    return tx_run(t->tx,
                  "INSERT INTO message_edges (sender, receiver, messages) SELECT :from, :to, 1 "
                  "WHERE EXISTS (SELECT 1 FROM agents WHERE name = :from) AND EXISTS (SELECT 1 "
                  "FROM agents WHERE name = :to) ON CONFLICT (sender, receiver) DO UPDATE SET "
                  "messages = message_edges.messages + 1",
                  PARAMS(P_TEXT("from", from), P_TEXT("to", to)), e) < 0
               ? -1
               : 0;
}

/* One full inbox does not stop delivery to the others. */
static int copy_to_all(struct team *t, const struct message *m, struct jw *w, struct buf *dropped,
                       struct err *e)
{
    struct agent_list all;

    if (agent_all(t, &all, e) < 0)
        return -1;
    for (size_t i = 0; i < all.n; i++) {
        struct message copy = *m;

        if (str_eq(all.v[i].name, m->from))
            continue;
        if (put(t, &copy, all.v[i].name, m->id, dropped, e) < 0) {
            if (e->code != ERR_LIMIT)
                return -1;
            continue;
        }
        if (count_edge(t, m->from, all.v[i].name, e) < 0)
            return -1;
        jw_object(w);
        jw_kstr(w, "id", copy.id);
        jw_kstr(w, "to", all.v[i].name);
        jw_object_end(w);
    }
    return 0;
}

int message_send(struct team *t, struct message *m, struct err *e)
{
    AUTO(buf_done) struct buf data = {0};
    AUTO(buf_done) struct buf dropped = {0};
    struct jw w = {.to = &data};

    if (check_message(t, m, e) < 0 || put(t, m, m->to, STR(""), &dropped, e) < 0)
        return -1;
    m->sent_ms = t->now_ms;
    jw_object(&w);
    jw_kstr(&w, "id", m->id);
    jw_kstr(&w, "from", m->from);
    jw_kstr(&w, "to", m->to);
    jw_kstr(&w, "type", m->type);
    jw_kstr(&w, "content", m->content);
    jw_ktime(&w, "sent_at", m->sent_ms);
    jw_key(&w, "copies");
    jw_array(&w);
    if (str_eq(m->to, EVERYBODY)) {
        if (copy_to_all(t, m, &w, &dropped, e) < 0)
            return -1;
    } else if (count_edge(t, m->from, m->to, e) < 0) {
        return -1;
    }
    jw_array_end(&w);
    jw_key(&w, "dropped");
    team_write_tags(&w, buf_str(&dropped));
    jw_object_end(&w);
    team_event(t, "message.sent", "message", m->id, &data);
    return 0;
}

/* --- reading --- */

#define MESSAGE_SELECT                                                                             \
    "SELECT id, sender, receiver, kind, content, delivered, acked, sent_ms FROM messages "

static void read_message(const struct team *t, const struct store_rows *r, void *to)
{
    *(struct message *)to = (struct message){
        .id = team_column(t, r, 0),
        .from = team_column(t, r, 1),
        .to = team_column(t, r, 2),
        .type = team_column(t, r, 3),
        .content = team_column(t, r, 4),
        .delivered = rows_int(r, 5) != 0,
        .acknowledged = rows_int(r, 6) != 0,
        .sent_ms = rows_int(r, 7),
    };
}

static int read_messages(struct team *t, const char *sql, const struct store_param *p, size_t n,
                         struct message_list *ret, struct err *e)
{
    struct team_rows l = {.size = sizeof *ret->v, .read = read_message};
    int r = team_read(t, sql, p, n, &l, e);

    *ret = (struct message_list){l.v, l.n};
    return r;
}

static void reverse(struct message_list *l)
{
    for (size_t i = 0; i < l->n / 2; i++) {
        struct message m = l->v[i];

        l->v[i] = l->v[l->n - 1 - i];
        l->v[l->n - 1 - i] = m;
    }
}

/* The messages that a reader of the list gets, newest first.  Acknowledged ones count as
 * delivered. */
static int mark_delivered(struct team *t, struct str name, struct message_list *l, struct err *e)
{
    bool any = false;

    for (size_t i = 0; i < l->n; i++) {
        any |= !l->v[i].delivered;
        l->v[i].delivered = true;
    }
    if (!any)
        return 0;
    return tx_run(t->tx,
                  "UPDATE messages SET delivered = 1 WHERE receiver = :name AND acked = 0 AND "
                  "id >= :oldest AND delivered = 0",
                  PARAMS(P_TEXT("name", name), P_TEXT("oldest", l->v[l->n - 1].id)), e) < 0
               ? -1
               : 0;
}

int message_inbox(struct team *t, struct str name, bool unread, int64_t limit,
                  struct message_list *ret, struct err *e)
{
    int64_t n = i64_min(limit, TEAM_PAGE_MAX);

    if (!str_eq(name, EVERYBODY) && team_act_as(t, name, &name, e) < 0)
        return -1;
    if (unread)
        return read_messages(
            t, MESSAGE_SELECT "WHERE receiver = :name AND acked = 0 ORDER BY id LIMIT :n",
            PARAMS(P_TEXT("name", name), P_INT("n", n)), ret, e);
    /* Both halves use the index, so that the length of the inbox does not matter. */
    if (read_messages(t,
                      "SELECT * FROM (" MESSAGE_SELECT "WHERE receiver = :name AND acked = 0 "
                      "ORDER BY id DESC LIMIT :n) AS x UNION ALL SELECT * FROM (" MESSAGE_SELECT
                      "WHERE receiver = :name AND acked = 1 ORDER BY id DESC LIMIT :n) AS y "
                      "ORDER BY id DESC LIMIT :n",
                      PARAMS(P_TEXT("name", name), P_INT("n", n)), ret, e) < 0)
        return -1;
    if (mark_delivered(t, name, ret, e) < 0)
        return -1;
    reverse(ret);
    return 0;
}

int message_acknowledge(struct team *t, struct str id, struct err *e)
{
    AUTO(buf_done) struct buf data = {0};
    struct jw w = {.to = &data};
    struct message_list found;

    if (read_messages(t, MESSAGE_SELECT "WHERE id = :id", PARAMS(P_TEXT("id", id)), &found, e) < 0)
        return -1;
    /* Messages for others do not exist for the caller. */
    if (found.n == 0 || (!team_is_person(t) && !str_eq(found.v[0].to, t->who.agent)))
        return team_missing(t, "message", id, e);
    if (found.v[0].acknowledged)
        return 0;
    if (tx_run(t->tx, "UPDATE messages SET acked = 1, delivered = 1 WHERE id = :id",
               PARAMS(P_TEXT("id", id)), e) < 0)
        return -1;
    jw_object(&w);
    jw_kstr(&w, "id", id);
    jw_kstr(&w, "from", found.v[0].from);
    jw_kstr(&w, "to", found.v[0].to);
    jw_kbool(&w, "acknowledged", true);
    jw_object_end(&w);
    team_event(t, "message.acknowledged", "message", id, &data);
    return 0;
}

int message_history(struct team *t, struct str a, struct str b, int64_t limit,
                    struct message_list *ret, struct err *e)
{
    if (!team_is_person(t) && !str_eq(a, t->who.agent) && !str_eq(b, t->who.agent))
        return err_set(e, ERR_FORBIDDEN, 0, "agent '" STR_FMT "' can read only its own messages",
                       STR_ARG(t->who.agent));
    /* The index has both columns: a merge of two inboxes that reads only the rows it returns. */
    return read_messages(
        t,
        MESSAGE_SELECT
        "WHERE id IN (SELECT id FROM messages WHERE receiver = :b AND sender = :a "
        "UNION ALL SELECT id FROM messages WHERE receiver = :a AND sender = :b AND :a <> :b "
        "ORDER BY id DESC LIMIT :n) ORDER BY id DESC",
        PARAMS(P_TEXT("a", a), P_TEXT("b", b), P_INT("n", i64_min(limit, TEAM_PAGE_MAX))), ret, e);
}

static void read_edge(const struct team *t, const struct store_rows *r, void *to)
{
    *(struct message_edge *)to = (struct message_edge){
        .from = team_column(t, r, 0), .to = team_column(t, r, 1), .count = rows_int(r, 2)};
}

int message_graph(struct team *t, struct message_graph *ret, struct err *e)
{
    struct team_rows l = {.size = sizeof *ret->edges, .read = read_edge};

    if (agent_all(t, &ret->nodes, e) < 0 ||
        team_read(t,
                  "SELECT sender, receiver, messages FROM message_edges WHERE sender IN (SELECT "
                  "name FROM agents) AND receiver IN (SELECT name FROM agents) "
                  "ORDER BY sender, receiver LIMIT 10000",
                  NO_PARAMS, &l, e) < 0)
        return -1;
    ret->edges = l.v;
    ret->edge_count = l.n;
    return 0;
}
