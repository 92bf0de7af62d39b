/* socket_join: sessions that a client of the WebSocket has joined: frames, roles, input. */
#include "api/dialects/agentic/socket.h"

#include "base/enc.h"
#include "base/mem.h"
#include "core/exec/feed.h"

struct join {
    struct list link;
    struct socket_client *c;
    struct exec *x;
    char id[ID_SIZE];
    bool controls, paused;
    struct console_seat seat;
    struct live_watch watch; /* for the keyframe that a join without replay begins with */
    struct exec_reader *reader;
};

/* --- frames: their seq is the offset in the session's output, which survives every restart --- */

static struct jw frame_begin(struct buf *json, const struct join *j, int64_t seq, const char *kind)
{
    struct jw w = {.to = json};

    jw_object(&w);
    jw_kc(&w, "type", "session_frame");
    jw_kc(&w, "session_id", j->id);
    jw_kint(&w, "seq", seq);
    jw_kint(&w, "ts", clock_wall_ms());
    jw_kc(&w, "kind", kind);
    return w;
}

static int frame_end(struct join *j, struct jw *w)
{
    jw_object_end(w);
    return socket_tell(j->c, w->to);
}

static int tell_bytes(struct join *j, const char *kind, int64_t seq, struct str bytes)
{
    AUTO(buf_done) struct buf json = {0}, text = {0};
    struct jw w = frame_begin(&json, j, seq, kind);

    enc_base64(&text, bytes.p, bytes.n);
    jw_kc(&w, "stream", "stdout");
    jw_kstr(&w, "data", buf_str(&text));
    return frame_end(j, &w);
}

static int64_t seq_of(const struct join *j)
{
    struct exec_info i;

    exec_info(j->x, &i);
    return i.out_end;
}

static void tell_role(struct join *j)
{
    AUTO(buf_done) struct buf json = {0};
    struct jw w = frame_begin(&json, j, seq_of(j), "role_assigned");

    jw_kc(&w, "role", j->controls ? "controller" : "observer");
    (void)!frame_end(j, &w);
}

struct members {
    struct jw *w;
    enum console_role role;
};

static void write_member(void *arg, const struct console_seat *s)
{
    struct members *l = arg;

    if (s->role == l->role)
        jw_c(l->w, s->name);
}

static void members_changed(struct console_seat *s)
{
    struct join *j = CONTAINER_OF(s, struct join, seat);
    AUTO(buf_done) struct buf json = {0};
    struct jw w = frame_begin(&json, j, seq_of(j), "membership_changed");
    struct members l = {&w, CONSOLE_CONTROLLER};

    jw_key(&w, "controllers");
    jw_array(&w);
    console_each(j->c->api->consoles, j->id, write_member, &l);
    jw_array_end(&w);
    l.role = CONSOLE_OBSERVER;
    jw_key(&w, "observers");
    jw_array(&w);
    console_each(j->c->api->consoles, j->id, write_member, &l);
    jw_array_end(&w);
    (void)!frame_end(j, &w);
}

static void role_changed(struct console_seat *s)
{
    (void)s; /* many may control here: input is taken one piece after the other */
}

/* --- output --- */

static void join_free(struct join *j)
{
    list_unlink(&j->link);
    j->c->join_count--;
    live_leave(&j->watch);
    exec_reader_end(j->reader);
    console_leave(&j->seat);
    exec_unref(j->x);
    mem_free(j);
}

static int on_bytes(void *arg, enum exec_which stream, int64_t offset, int64_t time_us,
                    struct str bytes)
{
    struct join *j = arg;

    (void)stream, (void)time_us;
    j->paused = tell_bytes(j, "output", offset, bytes) != 0;
    return j->paused;
}

static int on_size(void *arg, int64_t offset, int64_t time_us, int rows, int cols)
{
    struct join *j = arg;
    AUTO(buf_done) struct buf json = {0};
    struct jw w = frame_begin(&json, j, offset, "resize");

    (void)time_us;
    jw_kint(&w, "cols", cols);
    jw_kint(&w, "rows", rows);
    (void)!frame_end(j, &w);
    return 0;
}

static int on_gap(void *arg, enum exec_which stream, int64_t from, int64_t to)
{
    struct join *j = arg;
    AUTO(buf_done) struct buf json = {0};
    struct jw w = frame_begin(&json, j, to, "error");

    (void)stream;
    jw_kc(&w, "message", "lagging: output was dropped");
    jw_kint(&w, "missed_bytes", to - from);
    (void)!frame_end(j, &w);
    return 0;
}

static void on_end(void *arg, const struct err *e)
{
    struct join *j = arg;
    AUTO(buf_done) struct buf json = {0};
    struct jw w = frame_begin(&json, j, seq_of(j), "closed");
    struct exec_info i;

    (void)e;
    exec_info(j->x, &i);
    jw_kint_if(&w, "exit_code", i.exit_code >= 0, i.exit_code);
    (void)!frame_end(j, &w);
    j->reader = NULL;
    join_free(j);
}

static void read_from(struct join *j, int64_t offset)
{
    static const struct exec_reader_ops ops = {
        .bytes = on_bytes, .gap = on_gap, .end = on_end, .size = on_size};

    j->reader = exec_read(j->x, EXEC_STDOUT, offset, 0, true, &ops, j);
}

static void screen_ready(struct live_watch *w)
{
    struct join *j = CONTAINER_OF(w, struct join, watch);
    AUTO(buf_done) struct buf bytes = {0};
    int64_t offset = live_offset(w);

    screen_put_repaint(live_screen(w), &bytes);
    (void)!tell_bytes(j, "keyframe", offset, buf_str(&bytes));
    live_leave(w);
    read_from(j, offset);
}

static void screen_failed(struct live_watch *w, const struct err *e)
{
    struct join *j = CONTAINER_OF(w, struct join, watch);

    socket_error(j->c, "%s", e->msg);
    join_free(j);
}

/* --- messages --- */

static struct join *join_of(struct socket_client *c, const json_t *m, bool controls)
{
    struct str id = agentic_member(m, "session_id");

    LIST_EACH (&c->joins, node) {
        struct join *j = LIST_ENTRY(node, struct join, link);

        if (!str_eq_c(id, j->id))
            continue;
        if (j->controls || !controls)
            return j;
        socket_error(c, "observers cannot type or resize; rejoin as controller");
        return NULL;
    }
    socket_error(c, "Session '" STR_FMT "' is not joined", (int)size_min(id.n, 64), id.p);
    return NULL;
}

static void tell_joined(struct join *j)
{
    AUTO(buf_done) struct buf json = {0};
    struct jw w = {.to = &json};

    jw_object(&w);
    jw_kc(&w, "type", "session_joined");
    jw_kc(&w, "session_id", j->id);
    jw_kc(&w, "role", j->controls ? "controller" : "observer");
    jw_kint(&w, "current_seq", seq_of(j));
    jw_object_end(&w);
    (void)!socket_tell(j->c, &json);
}

static struct join *join_new(struct socket_client *c, struct exec *x, bool controls)
{
    struct join *j = xzalloc(sizeof *j);
    struct exec_info i;
    struct err e;

    exec_info(x, &i);
    j->c = c;
    j->x = exec_ref(x);
    j->controls = controls;
    (void)snprintf(j->id, sizeof j->id, "%s", i.id);
    list_push(&c->joins, &j->link);
    c->join_count++;
    tell_joined(j);
    j->seat = (struct console_seat){.name = c->name,
                                    .by = c->who.actor,
                                    .may_control = controls,
                                    .changed = role_changed,
                                    .members = members_changed};
    (void)!console_sit(c->api->consoles, i.id, controls ? CONSOLE_ANY : CONSOLE_OBSERVER, false,
                       &j->seat, &e);
    tell_role(j);
    return j;
}

static void leave_quietly(struct socket_client *c, struct str id)
{
    LIST_EACH (&c->joins, node) {
        struct join *j = LIST_ENTRY(node, struct join, link);

        if (str_eq_c(id, j->id)) {
            join_free(j);
            return;
        }
    }
}

void join_session(struct socket_client *c, const json_t *m)
{
    struct str id = agentic_member(m, "session_id");
    const json_t *from = json_object_get(m, "replay_from");
    bool controls = str_eq_c(agentic_member(m, "role"), "controller");
    struct exec *x = c->content ? agentic_session_of(c->api, &c->who, id) : NULL;
    struct join *j;

    if (!x || c->join_count >= SOCKET_JOINS_MAX) {
        socket_error(
            c, x ? "Session '" STR_FMT "': too many are joined" : "Session '" STR_FMT "' not found",
            (int)size_min(id.n, 64), id.p);
        return;
    }
    leave_quietly(c, id);
    j = join_new(c, x, controls && request_may(c->r, PERM_SANDBOX_WRITE));
    if (json_is_integer(from)) {
        read_from(j, i64_max(json_integer_value(from), 0));
        return;
    }
    j->watch.changed = screen_ready;
    j->watch.failed = screen_failed;
    live_watch(c->api->screens, x, INT64_MAX, &j->watch);
}

void leave_session(struct socket_client *c, const json_t *m)
{
    struct join *j = join_of(c, m, false);
    AUTO(buf_done) struct buf json = {0};
    struct jw w = {.to = &json};

    if (!j)
        return;
    jw_object(&w);
    jw_kc(&w, "type", "session_left");
    jw_kc(&w, "session_id", j->id);
    jw_object_end(&w);
    join_free(j);
    (void)!socket_tell(c, &json);
}

void session_input(struct socket_client *c, const json_t *m)
{
    struct join *j = join_of(c, m, true);

    if (j && socket_may_write(c))
        feed_start(c->api->consoles, j->x, agentic_member(m, "data"), false);
}

static void resized(void *arg, struct exec *x, const struct err *e)
{
    (void)arg, (void)x, (void)e; /* the session may just have ended: that is told */
}

void session_resize(struct socket_client *c, const json_t *m)
{
    struct join *j = join_of(c, m, true);
    json_int_t rows = json_integer_value(json_object_get(m, "rows"));
    json_int_t cols = json_integer_value(json_object_get(m, "cols"));

    if (!j || !socket_may_write(c))
        return;
    if (rows < 1 || rows > 1000 || cols < 1 || cols > 1000)
        socket_error(c, "rows and cols must be from 1 to 1000");
    else
        exec_resize(j->x, (int)rows, (int)cols, resized, NULL);
}

void joins_room(struct socket_client *c)
{
    LIST_EACH (&c->joins, node) {
        struct join *j = LIST_ENTRY(node, struct join, link);

        if (j->paused && j->reader)
            exec_reader_resume(j->reader);
        j->paused = false;
    }
}

void joins_end(struct socket_client *c)
{
    while (!list_is_empty(&c->joins))
        join_free(LIST_ENTRY(c->joins.next, struct join, link));
}
