/* session_read: recordings of sessions, and the search in their output. */
#include "api/native/handlers.h"
#include "api/share/revocable_stream.h"
#include "api/share/sandbox.h"
#include "base/mem.h"
#include "core/session/cast.h"
#include "core/session/transcript.h"
#include "ops/session.h"

/* --- a recording: the log as asciicast, streamed --- */

struct recording { /* in the exchange's arena */
    struct request *r;
    struct exec *x;
    struct exec_reader *reader;
    struct revocable_stream live;
    struct cast cast;
    int64_t left; /* bytes of the limit */
    bool begun, over;
};

static void recording_over(struct recording *c)
{
    c->over = true;
    exec_reader_end(TAKE(c->reader));
    revocable_stream_end(&c->live);
}

/* One whole line more, if the limit has room for it. */
static int recording_write(struct recording *c, const struct buf *lines)
{
    if (c->over || buf_len(lines) == 0)
        return 0;
    c->left -= (int64_t)buf_len(lines);
    if (c->left < 0) {
        recording_over(c);
        xchg_end(c->r->x, NULL, 0);
        return 1;
    }
    return xchg_write(c->r->x, buf_data(lines), buf_len(lines));
}

static void put_head(struct recording *c, int rows, int cols, struct buf *to)
{
    struct exec_info i;

    exec_info(c->x, &i);
    c->begun = true;
    cast_put_head(&(struct cast_head){.rows = rows,
                                      .cols = cols,
                                      .start_ms = i.created_ms,
                                      .title = i.name,
                                      .argv = i.argv,
                                      .argc = i.argc},
                  to);
}

static int on_size(void *arg, int64_t offset, int64_t time_us, int rows, int cols)
{
    struct recording *c = arg;
    AUTO(buf_done) struct buf lines = {0};

    (void)offset;
    if (c->begun)
        cast_put_size(&c->cast, time_us, rows, cols, &lines);
    else
        put_head(c, rows, cols, &lines);
    return recording_write(c, &lines);
}

static int on_bytes(void *arg, enum exec_which stream, int64_t offset, int64_t time_us,
                    struct str bytes)
{
    struct recording *c = arg;
    AUTO(buf_done) struct buf lines = {0};
    struct exec_info i;

    (void)stream, (void)offset;
    exec_info(c->x, &i);
    if (!c->begun) /* the first block that is kept names no size: it never changed */
        put_head(c, i.rows, i.cols, &lines);
    cast_put_output(&c->cast, time_us, bytes, &lines);
    return recording_write(c, &lines);
}

static void on_end(void *arg, const struct err *e)
{
    struct recording *c = arg;
    AUTO(buf_done) struct buf lines = {0};
    struct exec_info i;

    c->reader = NULL;
    if (c->over)
        return;
    exec_info(c->x, &i);
    if (!c->begun)
        put_head(c, i.rows, i.cols, &lines);
    cast_put_end(&c->cast, &lines);
    (void)!recording_write(c, &lines);
    if (c->over)
        return;
    recording_over(c);
    if (e->code == ERR_NONE)
        xchg_end(c->r->x, NULL, 0);
    else
        xchg_abort(c->r->x);
}

static void on_drained(struct xchg *x)
{
    struct recording *c = xchg_arg(x);

    if (c->reader)
        exec_reader_resume(c->reader);
}

static void on_closed(struct xchg *x, bool done)
{
    struct recording *c = xchg_arg(x);

    recording_over(c);
    cast_done(&c->cast);
    c->x = exec_unref(c->x);
    request_end(c->r, done);
}

static void on_live_end(struct revocable_stream *l, int ws_code, const char *why)
{
    struct recording *c = CONTAINER_OF(l, struct recording, live);

    (void)ws_code, (void)why;
    recording_over(c);
    xchg_abort(c->r->x);
}

static struct exec *request_terminal(struct request *r, struct str sandbox, struct str exec)
{
    struct exec *x = request_exec(r, sandbox, exec);
    struct exec_info i;
    struct err e = {0};

    if (!x)
        return NULL;
    exec_info(x, &i);
    if (i.pty)
        return x;
    err_set(&e, ERR_CONFLICT, 0, "command '%s' has no terminal", i.id);
    err_object(&e, "exec", i.id);
    err_hint(&e, "its output: holt logs %s %s", i.sandbox, i.id);
    request_fail(r, &e);
    return exec_unref(x);
}

void session_recording_run(struct request *r)
{
    static const struct xchg_ops ops = {.drained = on_drained, .closed = on_closed};
    static const struct exec_reader_ops reads = {.bytes = on_bytes, .end = on_end, .size = on_size};
    const struct http_header head[] = {{STR("content-type"), STR("application/x-asciicast")},
                                       {STR("x-content-type-options"), STR("nosniff")},
                                       {STR("cache-control"), STR("no-store")}};
    const struct session_recording_in *in = r->in;
    struct exec *x = request_terminal(r, in->id, in->exec);
    struct recording *c = arena_zalloc(xchg_arena(r->x), sizeof *c);

    if (!x)
        return;
    c->r = r;
    c->x = x;
    c->cast.idle_us = in->idle_ms == OP_ABSENT ? 0 : in->idle_ms * 1000;
    c->left = in->limit == OP_ABSENT ? INT64_MAX : in->limit;
    r->status = 200;
    xchg_handle(r->x, &ops, c);
    revocable_stream_begin(&c->live, r, on_live_end);
    xchg_head(r->x, 200, head, ARRAY_LEN(head));
    c->reader = exec_read(x, EXEC_STDOUT, 0, 0, in->follow, &reads, c);
}

/* --- search --- */

struct match {
    int64_t offset, time_us;
    char *line;
};

struct search {
    struct waiter waiter;
    struct exec *x;
    struct exec_reader *reader;
    struct transcript text;
    char *wanted;
    int64_t offset, time_us;
    struct match *found;
    size_t count, limit;
};

static void search_free(struct search *s)
{
    exec_reader_end(s->reader);
    exec_unref(s->x);
    transcript_done(&s->text);
    for (size_t i = 0; i < s->count; i++)
        mem_free(s->found[i].line);
    mem_free(s->found);
    mem_free(s->wanted);
    mem_free(s);
}

static void searcher_gone(struct waiter *w)
{
    search_free(CONTAINER_OF(w, struct search, waiter));
}

static void line_read(void *arg, struct str text)
{
    struct search *s = arg;

    if (s->count == s->limit || !memmem(text.p, text.n, s->wanted, strlen(s->wanted)))
        return;
    s->found[s->count++] = (struct match){s->offset, s->time_us, str_dup(text)};
}

static void search_reply(struct search *s)
{
    struct request *r = waiter_end(&s->waiter);
    struct jw w = request_json(r);

    jw_object(&w);
    jw_key(&w, "matches");
    jw_array(&w);
    for (size_t i = 0; i < s->count; i++) {
        jw_object(&w);
        jw_kint(&w, "offset", s->found[i].offset);
        jw_ktime(&w, "time", s->found[i].time_us / 1000);
        jw_kc(&w, "line", s->found[i].line);
        jw_object_end(&w);
    }
    jw_array_end(&w);
    jw_key(&w, "cursor");
    jw_null(&w);
    jw_object_end(&w);
    request_send_json(r, 0);
    search_free(s);
}

static int search_bytes(void *arg, enum exec_which stream, int64_t offset, int64_t time_us,
                        struct str bytes)
{
    struct search *s = arg;

    (void)stream;
    s->offset = offset + (int64_t)bytes.n;
    s->time_us = time_us;
    transcript_feed(&s->text, bytes);
    if (s->count < s->limit)
        return 0;
    search_reply(s);
    return 1;
}

static void search_end(void *arg, const struct err *e)
{
    struct search *s = arg;

    s->reader = NULL;
    if (e->code != ERR_NONE) {
        request_fail(waiter_end(&s->waiter), e);
        search_free(s);
        return;
    }
    transcript_end(&s->text);
    search_reply(s);
}

void session_search_run(struct request *r)
{
    static const struct exec_reader_ops reads = {.bytes = search_bytes, .end = search_end};
    const struct session_search_in *in = r->in;
    struct exec *x = request_terminal(r, in->id, in->exec);
    struct search *s;

    if (!x)
        return;
    s = xzalloc(sizeof *s);
    s->x = x;
    s->wanted = str_dup(in->text);
    s->limit = (size_t)in->limit;
    s->found = xzalloc(s->limit * sizeof *s->found);
    s->text.line = line_read;
    s->text.arg = s;
    s->waiter.gone = searcher_gone;
    request_wait(r, &s->waiter);
    s->reader = exec_read(x, EXEC_STDOUT, 0, 0, false, &reads, s);
}
