/* stream: a task's moves and output as server-sent events, until its end. */
#include "api/dialects/a2a/a2a.h"

#include "api/share/revocable_stream.h"
#include "base/mem.h"
#include "net/sse.h"

#define KEEPALIVE_MS 15000
#define PIECE (16 * 1024)

struct a2a_stream { /* outlives the exchange while its files are read */
    struct a2a_call *c;
    struct task *t;
    struct sse *sse;
    struct task_watch watch;
    struct revocable_stream live;
    int64_t offset;
    const char *told; /* the last state; NULL: none */
    bool blocked, over, reading, files_told, freed;
};

static void stream_stop(struct a2a_stream *s)
{
    s->over = true;
    if (!s->reading)
        task_unwatch(&s->watch);
    revocable_stream_end(&s->live);
}

static void stream_end(struct a2a_stream *s)
{
    if (s->over)
        return;
    stream_stop(s);
    sse_end(s->sse);
}

static void put(struct a2a_stream *s, struct buf *text)
{
    struct str name = s->c->form == A2A_SEED ? STR("task") : STR("");

    if (sse_send(s->sse, STR(""), name, buf_str(text)))
        s->blocked = true;
}

/* --- the events --- */

static void put_task(struct a2a_stream *s)
{
    AUTO(buf_done) struct buf text = {0};
    struct jw w = {.to = &text};

    a2a_open_at(s->c, &w);
    if (s->c->form != A2A_SEED) {
        jw_object(&w);
        jw_key(&w, "task");
    }
    a2a_write_task(&w, s->c, s->t, NULL);
    if (s->c->form != A2A_SEED)
        jw_object_end(&w);
    a2a_close_at(s->c, &w);
    put(s, &text);
}

static void put_status(struct a2a_stream *s, const struct task_info *i)
{
    AUTO(buf_done) struct buf text = {0};
    struct jw w = {.to = &text};

    a2a_open_at(s->c, &w);
    jw_object(&w);
    jw_key(&w, "statusUpdate");
    jw_object(&w);
    jw_kc(&w, "taskId", i->id);
    jw_kc(&w, "contextId", a2a_label(i, "a2a.context"));
    jw_key(&w, "status");
    a2a_write_status(&w, s->c, i);
    jw_object_end(&w);
    jw_object_end(&w);
    a2a_close_at(s->c, &w);
    put(s, &text);
}

static void update_begin(struct jw *w, const struct a2a_stream *s, const struct task_info *i)
{
    a2a_open_at(s->c, w);
    jw_object(w);
    jw_key(w, "artifactUpdate");
    jw_object(w);
    jw_kc(w, "taskId", i->id);
    jw_kc(w, "contextId", a2a_label(i, "a2a.context"));
    jw_key(w, "artifact");
}

static void update_end(struct jw *w, struct a2a_stream *s, bool append, bool last)
{
    jw_kbool(w, "append", append);
    jw_kbool(w, "lastChunk", last);
    jw_object_end(w);
    jw_object_end(w);
    a2a_close_at(s->c, w);
}

/* What was printed since; false: nothing. */
static bool put_output(struct a2a_stream *s, const struct task_info *i)
{
    AUTO(buf_done) struct buf out = {0}, text = {0};
    struct jw w = {.to = &text};
    int64_t n = a2a_output(s->t, s->offset, PIECE, task_state_is_end(i->state), &out);

    if (n == 0)
        return false;
    if (buf_len(&out) > 0) {
        update_begin(&w, s, i);
        jw_object(&w);
        jw_kc(&w, "artifactId", arena_printf(xchg_arena(s->c->r->x), "%s-output", i->id));
        jw_kc(&w, "name", "output");
        jw_key(&w, "parts");
        jw_array(&w);
        jw_object(&w);
        jw_kstr(&w, "text", buf_str(&out));
        jw_object_end(&w);
        jw_array_end(&w);
        jw_object_end(&w);
        update_end(&w, s, s->offset > 0, false);
        put(s, &text);
    }
    s->offset += n;
    return true;
}

/* --- the end: the files, then the last state --- */

static void pump(struct a2a_stream *s);

static void files_read(void *arg, const struct a2a_files *files, const struct err *e)
{
    struct a2a_stream *s = arg;
    struct task_info i;

    s->reading = false;
    if (s->over) {
        task_unwatch(&s->watch);
        if (s->freed)
            mem_free(s);
        return;
    }
    task_info(s->t, &i);
    for (size_t at = 0; e->code == ERR_NONE && at < files->n; at++) {
        AUTO(buf_done) struct buf text = {0};
        struct jw w = {.to = &text};

        update_begin(&w, s, &i);
        a2a_write_file(&w, s->c, &i, files, at);
        update_end(&w, s, false, true);
        put(s, &text);
    }
    s->files_told = true;
    pump(s);
}

static void finish(struct a2a_stream *s, const struct task_info *i)
{
    if (s->c->form != A2A_SEED && !s->files_told) {
        s->reading = true;
        a2a_files_read(s->t, files_read, s);
        return;
    }
    if (s->c->form != A2A_SEED)
        put_status(s, i);
    stream_end(s);
}

static void pump(struct a2a_stream *s)
{
    struct task_info i;
    const char *state;
    bool ended;

    if (s->over || s->blocked || s->reading)
        return;
    task_info(s->t, &i);
    state = a2a_state(s->c, i.state);
    ended = task_state_is_end(i.state);
    if (!s->told || (s->c->form == A2A_SEED && strcmp(s->told, state) != 0))
        put_task(s);
    else if (!ended && strcmp(s->told, state) != 0)
        put_status(s, &i);
    s->told = state;
    while (s->c->form != A2A_SEED && !s->blocked && put_output(s, &i))
        ;
    if (ended && !s->blocked)
        finish(s, &i);
}

/* --- life --- */

static void on_changed(struct task_watch *w)
{
    pump(CONTAINER_OF(w, struct a2a_stream, watch));
}

static void on_drained(struct sse *sse)
{
    struct a2a_stream *s = sse_arg(sse);

    s->blocked = false;
    pump(s);
}

static void on_closed(struct sse *sse)
{
    struct a2a_stream *s = sse_arg(sse);

    stream_stop(s);
    s->freed = true;
    request_end(s->c->r, true);
    if (!s->reading)
        mem_free(s);
}

static void on_live_end(struct revocable_stream *l, int ws_code, const char *why)
{
    (void)ws_code, (void)why;
    stream_end(CONTAINER_OF(l, struct a2a_stream, live));
}

void a2a_stream_begin(struct a2a_call *c, struct task *t)
{
    static const struct sse_ops ops = {.drained = on_drained, .closed = on_closed};
    struct a2a_stream *s = xzalloc(sizeof *s);

    s->c = c;
    s->t = t;
    s->watch.changed = on_changed;
    task_watch(t, &s->watch);
    revocable_stream_begin(&s->live, c->r, on_live_end);
    if (c->form != A2A_SEED)
        xchg_add_header(c->r->x, "a2a-version", STR(A2A_VERSION));
    request_count(c->r, 200);
    s->sse = sse_start(c->r->x, KEEPALIVE_MS, &ops, s);
    pump(s);
}

void a2a_subscribe(struct a2a_call *c)
{
    struct task *t = a2a_task(c, false);
    struct task_info i;

    if (!t)
        return;
    task_info(t, &i);
    if (c->form != A2A_SEED && task_state_is_end(i.state))
        a2a_fail(c, A2A_UNSUPPORTED, "task '%s' has ended: there is nothing to subscribe to", i.id);
    else
        a2a_stream_begin(c, t);
}
