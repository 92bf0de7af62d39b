/* stream: a sandbox's commands, live, over a WebSocket. */
#include "api/dialects/fluid/fluid.h"

#include "api/share/collect.h"
#include "api/share/revocable_stream.h"
#include "base/clock.h"
#include "base/mem.h"
#include "core/exec/journal.h"
#include "link/guest.h"
#include "net/ws.h"

#define HISTORY_MAX 50
#define OUTPUT_MAX (64 * 1024) /* of each stream of a command */
#define HEARTBEAT_TICKS 5
#define WATCHED "/root" /* files whose changes are told, unless ?watch= names others */

/* The history first; then the journal from the moment of the request on, so that nothing is missed.
 */
struct stream {
    struct list link;
    struct request *r;
    struct ws *ws;
    struct sandbox *s;
    struct revocable_stream live;
    struct journal *journal;
    struct exec *old[HISTORY_MAX]; /* oldest first */
    size_t old_count, old_at;
    struct exec *ended; /* its output is being collected */
    struct collect collect;
    bool collecting, waiting, closing, connected;
    int64_t from_us;
    struct guest_pipe *watch; /* of files; NULL: none */
    struct buf records;       /* of it, not told yet */
    size_t owed;              /* bytes of it that are not consumed: the client is slow */
};

static void stream_close(struct stream *t, int code, const char *why)
{
    if (t->closing)
        return;
    t->closing = true;
    ws_close(t->ws, code, why);
}

/* --- frames --- */

static void send_frame(struct stream *t, const char *type, struct str members)
{
    AUTO(buf_done) struct buf json = {0};
    struct jw w = {.to = &json};
    struct sandbox_info i;

    sandbox_info(t->s, &i);
    jw_object(&w);
    jw_kc(&w, "type", type);
    jw_ktime(&w, "timestamp", clock_wall_ms());
    jw_kstr(&w, "sandbox_id", fluid_sandbox_id(&i));
    if (members.n > 2) {
        jw_key(&w, "data");
        jw_raw(&w, members);
    }
    jw_object_end(&w);
    if (!t->closing && ws_send(t->ws, WS_TEXT, buf_str(&json)) != 0)
        t->waiting = true;
}

static void tell_connected(struct stream *t)
{
    AUTO(buf_done) struct buf json = {0};
    struct jw w = {.to = &json};
    struct sandbox_info i;
    struct fluid_note n;

    sandbox_info(t->s, &i);
    fluid_note_read(&i, &n);
    jw_object(&w);
    jw_kstr(&w, "sandbox_id", fluid_sandbox_id(&i));
    jw_kstr(&w, "sandbox_name", fluid_sandbox_name(&i));
    jw_kc(&w, "state", fluid_state(&i, &n));
    jw_kc(&w, "ip_address", i.state == SANDBOX_RUNNING ? FLUID_ADDRESS : NULL);
    jw_object_end(&w);
    json_decref(n.json);
    send_frame(t, "connected", buf_str(&json));
}

static void tell_command(struct stream *t, const char *type, const struct exec *x,
                         const struct collect *c)
{
    AUTO(buf_done) struct buf json = {0}, text = {0};
    struct jw w = {.to = &json};
    struct exec_info i;
    char id[FLUID_ID];

    exec_info(x, &i);
    fluid_command_text(&i, &text);
    jw_object(&w);
    jw_kc(&w, "command_id", fluid_id("CMD-", i.id, id));
    jw_kstr(&w, "command", buf_str(&text));
    jw_kstr(&w, "stdout", c ? buf_str(&c->streams[0]) : STR(""));
    jw_kstr(&w, "stderr", c ? buf_str(&c->streams[1]) : STR(""));
    jw_kint(&w, "exit_code", i.timed_out ? -1 : i.exit_code);
    jw_ktime(&w, "started_at", i.started_ms > 0 ? i.started_ms : i.created_ms);
    jw_ktime(&w, "ended_at", i.ended_ms);
    jw_object_end(&w);
    send_frame(t, type, buf_str(&json));
}

static void tell_start(struct stream *t, const struct exec_info *i)
{
    AUTO(buf_done) struct buf json = {0}, text = {0};
    struct jw w = {.to = &json};
    char id[FLUID_ID];

    fluid_command_text(i, &text);
    jw_object(&w);
    jw_kc(&w, "command_id", fluid_id("CMD-", i->id, id));
    jw_kstr(&w, "command", buf_str(&text));
    if (i->cwd.n > 0)
        jw_kstr(&w, "work_dir", i->cwd);
    jw_object_end(&w);
    send_frame(t, "command_start", buf_str(&json));
}

static void tell_output(struct stream *t, const struct exec_info *i, const struct journal_entry *n)
{
    AUTO(buf_done) struct buf json = {0};
    struct jw w = {.to = &json};
    char id[FLUID_ID];

    jw_object(&w);
    jw_kc(&w, "command_id", fluid_id("CMD-", i->id, id));
    jw_kstr(&w, "output", n->bytes);
    jw_kbool(&w, "is_stderr", n->stream == EXEC_STDERR);
    jw_object_end(&w);
    send_frame(t, "command_output", buf_str(&json));
}

static void tell_end(struct stream *t, const struct exec_info *i)
{
    AUTO(buf_done) struct buf json = {0};
    struct jw w = {.to = &json};
    char id[FLUID_ID];

    jw_object(&w);
    jw_kc(&w, "command_id", fluid_id("CMD-", i->id, id));
    jw_kint(&w, "exit_code", i->timed_out ? -1 : i->exit_code);
    jw_kint(&w, "duration", i->duration_ms * 1000000); /* Go's: nanoseconds */
    jw_object_end(&w);
    send_frame(t, "command_end", buf_str(&json));
}

/* --- files --- */

static void tell_change(struct stream *t, const struct guest_watch_event *ev)
{
    static const char *const names[] = {[GUEST_WATCH_MADE] = "created",
                                        [GUEST_WATCH_CHANGED] = "modified",
                                        [GUEST_WATCH_REMOVED] = "deleted"};
    AUTO(buf_done) struct buf json = {0};
    struct jw w = {.to = &json};

    if (ev->what >= ARRAY_LEN(names) || !names[ev->what])
        return;
    jw_object(&w);
    jw_kstr(&w, "path", ev->path);
    jw_kc(&w, "operation", names[ev->what]);
    jw_object_end(&w);
    send_frame(t, "file_change", buf_str(&json));
}

static void tell_changes(struct stream *t)
{
    struct guest_watch_event ev;
    struct err e = {0};

    while (!t->waiting && !t->closing) {
        struct str left = buf_str(&t->records);

        if (guest_record_next(&guest_watch_event_layout, &left, &ev, &e) <= 0)
            break;
        tell_change(t, &ev);
        buf_take(&t->records, buf_len(&t->records) - left.n);
    }
    if (!t->waiting && t->watch && t->owed > 0) {
        guest_pipe_consume(t->watch, t->owed);
        t->owed = 0;
    }
}

static void watch_data(struct guest_pipe *p, struct str bytes)
{
    struct stream *t = guest_pipe_arg(p);

    buf_add_str(&t->records, bytes);
    t->owed += bytes.n;
    tell_changes(t);
}

/* The sandbox has stopped, or cannot watch: its commands are told all the same. */
static void watch_done(struct guest_pipe *p, const struct guest_file_done *info,
                       const struct err *e)
{
    struct stream *t = guest_pipe_arg(p);

    (void)info, (void)e;
    t->watch = NULL;
}

static void watch_files(struct stream *t, struct str path)
{
    static const struct guest_pipe_ops ops = {.data = watch_data, .done = watch_done};
    struct err none = {0};
    struct guest *g = sandbox_guest(t->s, &none);

    if (g && guest_file(g,
                        &(struct guest_file_call){
                            .op = GUEST_FILE_WATCH, .path = path, .flags = GUEST_FILE_RECURSIVE},
                        &ops, t, &t->watch, &none) < 0)
        t->watch = NULL;
}

/* --- the journal --- */

static void next_old(struct stream *t);

static void output_collected(void *arg, const struct err *e)
{
    struct stream *t = arg;
    const char *type = t->ended ? "command_new" : "command_history";
    const struct exec *x = t->ended ? t->ended : t->old[t->old_at];

    tell_command(t, type, x, e->code == ERR_NONE ? &t->collect : NULL);
    t->collecting = false;
    collect_done(&t->collect);
    if (!t->ended) {
        t->old_at++;
        next_old(t);
        return;
    }
    t->ended = exec_unref(t->ended);
    if (t->journal && !t->waiting)
        journal_resume(t->journal);
}

static void collect_output(struct stream *t, struct exec *x)
{
    t->collecting = true;
    collect_start(&t->collect, x, OUTPUT_MAX, output_collected, t);
}

static int on_entry(void *arg, const struct journal_entry *n)
{
    struct stream *t = arg;
    struct exec_info i;

    if (!n->x)
        return 0;
    exec_info(n->x, &i);
    if (i.pty)
        return 0;
    if (n->kind == JOURNAL_START)
        tell_start(t, &i);
    else if (n->kind == JOURNAL_OUTPUT)
        tell_output(t, &i, n);
    if (n->kind != JOURNAL_END)
        return t->waiting;
    tell_end(t, &i);
    t->ended = exec_ref(n->x);
    collect_output(t, n->x);
    return 1; /* until its output is there */
}

static void on_journal_end(void *arg, const struct err *e)
{
    struct stream *t = arg;

    t->journal = NULL;
    stream_close(t, e->code == ERR_GONE ? WS_NORMAL : WS_INTERNAL, e->msg);
}

static void next_old(struct stream *t)
{
    static const struct journal_ops ops = {.entry = on_entry, .end = on_journal_end};

    if (t->waiting || t->closing)
        return; /* continues when there is room */
    if (t->old_at < t->old_count)
        collect_output(t, t->old[t->old_at]);
    else if (!t->journal)
        t->journal = journal_open(t->s, &(struct journal_from){.after_us = t->from_us}, &ops, t);
}

static void take_history(struct stream *t)
{
    struct exec_info i;

    for (struct exec *x = exec_next(t->s, STR("")); x; x = exec_next(t->s, str_of(i.id))) {
        exec_info(x, &i);
        if (!fluid_is_command(&i))
            continue;
        if (t->old_count == HISTORY_MAX) {
            exec_unref(t->old[0]);
            memmove(t->old, t->old + 1, (HISTORY_MAX - 1) * sizeof *t->old);
            t->old_count--;
        }
        t->old[t->old_count++] = exec_ref(x);
    }
}

/* --- the socket --- */

static void on_message(struct ws *w, enum ws_kind kind, struct str data)
{
    (void)w, (void)kind, (void)data; /* it only tells */
}

static void on_drained(struct ws *w)
{
    struct stream *t = ws_arg(w);

    t->waiting = false;
    tell_changes(t);
    if (t->collecting || t->waiting)
        return;
    if (t->journal)
        journal_resume(t->journal);
    else
        next_old(t);
}

static void on_closed(struct ws *w, int code, struct str reason)
{
    struct stream *t = ws_arg(w);

    (void)code, (void)reason;
    list_unlink(&t->link);
    revocable_stream_end(&t->live);
    if (t->watch)
        guest_pipe_cancel(t->watch);
    buf_done(&t->records);
    if (t->collecting)
        collect_done(&t->collect);
    exec_unref(t->ended);
    journal_close(t->journal);
    for (size_t i = 0; i < t->old_count; i++)
        exec_unref(t->old[i]);
    sandbox_unref(t->s);
    mem_free(t);
}

static void on_live_end(struct revocable_stream *l, int ws_code, const char *why)
{
    stream_close(CONTAINER_OF(l, struct stream, live), ws_code, why);
}

void fluid_streams_tick(struct api *a)
{
    struct fluid *f = fluid_of(a);

    if (++f->ticks % HEARTBEAT_TICKS != 0)
        return;
    LIST_EACH (&f->streams, node) {
        struct stream *t = LIST_ENTRY(node, struct stream, link);

        if (!t->waiting)
            send_frame(t, "heartbeat", STR(""));
    }
}

void fluid_stream(struct request *r)
{
    static const struct ws_ops ops = {
        .message = on_message, .drained = on_drained, .closed = on_closed};
    struct str watched = fluid_query(r, "watch");
    struct sandbox *s;
    struct sandbox_info i;
    struct stream *t;

    if (!ws_is_handshake(r->x)) {
        fluid_error(r, 400, "this is a WebSocket");
        return;
    }
    s = fluid_find(r);
    if (!s)
        return;
    sandbox_info(s, &i);
    t = xzalloc(sizeof *t);
    t->r = r;
    t->ws = ws_accept(r->x, NULL, &ops, t);
    if (!t->ws) {
        mem_free(t);
        return;
    }
    request_count(r, 101);
    request_audit(r, "request.read", arena_printf(xchg_arena(r->x), "sandbox/%s", i.id), 200);
    t->s = sandbox_ref(s);
    t->from_us = clock_wall_ms() * 1000;
    list_push(&fluid_of(r->api)->streams, &t->link);
    revocable_stream_begin(&t->live, r, on_live_end);
    take_history(t);
    tell_connected(t);
    watch_files(t, watched.n > 0 ? watched : STR(WATCHED));
    next_old(t);
}
