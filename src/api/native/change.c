/* change: the operations diff and sandbox.diff: as one object, or a line for each change. */
#include "core/change/change.h"

#include "api/native/handlers.h"
#include "api/share/change_json.h"
#include "api/share/revocable_stream.h"
#include "api/share/sandbox.h"
#include "base/mem.h"
#include "ops/change.h"

#define OBJECT_BYTES (16 * 1024 * 1024)

static struct change_spec spec_of(const struct request *r, struct sandbox *of)
{
    const struct diff_in *in = r->in;

    return (struct change_spec){.from = in->from,
                                .to = in->to,
                                .of = of,
                                .paths = in->path.v,
                                .path_count = in->path.n,
                                .no_text = !in->text,
                                .all = in->all,
                                .no_commands = !in->commands,
                                .by = &r->who};
}

/* --- one object --- */

struct object {
    struct waiter waiter;
    struct change_diff *d;
    struct change_counts counts;
    struct buf json;
    struct jw w;
    int64_t count, limit;
    bool more;
};

static void object_free(struct object *o)
{
    buf_done(&o->json);
    mem_free(o);
}

static int object_change(void *arg, const struct change *c)
{
    struct object *o = arg;

    if (o->count == o->limit || buf_len(&o->json) > OBJECT_BYTES) {
        o->more = true; /* the rest is read, but not shown */
        return 0;
    }
    o->count++;
    change_count(&o->counts, c);
    change_write_json(&o->w, c);
    return 0;
}

static void object_done(void *arg, const struct change_counts *n, const struct err *e)
{
    struct object *o = arg;
    struct request *r = waiter_end(&o->waiter);

    (void)n;
    if (r && e->code != ERR_NONE) {
        request_fail(r, e);
    } else if (r) {
        jw_array_end(&o->w);
        change_write_counts(&o->w, &o->counts);
        jw_kbool(&o->w, "more", o->more);
        jw_object_end(&o->w);
        request_send(r, 200, "application/json", buf_str(&o->json));
    }
    object_free(o);
}

static void object_cancelled(void *arg)
{
    struct object *o = arg;

    (void)waiter_end(&o->waiter);
    object_free(o);
}

static void object_gone(struct waiter *w)
{
    change_cancel(CONTAINER_OF(w, struct object, waiter)->d);
}

static void send_object(struct request *r, const struct change_spec *s)
{
    const struct diff_in *in = r->in;
    struct object *o = xzalloc(sizeof *o);
    struct err e = {0};

    o->limit = in->limit;
    o->w.to = &o->json;
    jw_object(&o->w);
    jw_key(&o->w, "changes");
    jw_array(&o->w);
    o->d = change_diff(
        r->api->c.changes, s,
        &(struct change_events){
            .change = object_change, .done = object_done, .cancelled = object_cancelled, .arg = o},
        &e);
    if (!o->d) {
        object_free(o);
        request_fail(r, &e);
        return;
    }
    o->waiter.gone = object_gone;
    request_wait(r, &o->waiter);
}

/* --- a line for each --- */

struct lines { /* in the exchange's arena */
    struct request *r;
    struct change_diff *d; /* NULL: it has ended */
    struct revocable_stream live;
    bool over;
};

static void lines_over(struct lines *l)
{
    struct change_diff *d = l->d;

    l->over = true;
    l->d = NULL;
    if (d)
        change_cancel(d);
    revocable_stream_end(&l->live);
}

static void lines_head(struct lines *l)
{
    static const struct http_header h[] = {
        {{"content-type", 12}, {"application/x-ndjson", 20}},
        {{"x-content-type-options", 22}, {"nosniff", 7}},
        {{"cache-control", 13}, {"no-store", 8}},
    };

    if (xchg_head_sent(l->r->x))
        return;
    l->r->status = 200;
    xchg_head(l->r->x, 200, h, ARRAY_LEN(h));
}

static int lines_change(void *arg, const struct change *c)
{
    struct lines *l = arg;
    AUTO(buf_done) struct buf line = {0};
    struct jw w = {.to = &line};

    change_write_json(&w, c);
    buf_add_char(&line, '\n');
    lines_head(l);
    return xchg_write(l->r->x, buf_data(&line), buf_len(&line));
}

/* A failure after the head is the last line; before it, a plain error. */
static void lines_done(void *arg, const struct change_counts *n, const struct err *e)
{
    struct lines *l = arg;
    AUTO(buf_done) struct buf line = {0};
    struct jw w = {.to = &line};

    l->d = NULL;
    lines_over(l);
    if (e->code != ERR_NONE && !xchg_head_sent(l->r->x)) {
        l->r->status = err_table[e->code].http;
        xchg_fail(l->r->x, e);
        return;
    }
    lines_head(l);
    if (e->code != ERR_NONE) {
        json_error(&line, e);
    } else {
        jw_object(&w);
        jw_key(&w, "end");
        jw_object(&w);
        change_write_counts(&w, n);
        jw_object_end(&w);
        jw_object_end(&w);
    }
    buf_add_char(&line, '\n');
    (void)!xchg_write(l->r->x, buf_data(&line), buf_len(&line));
    xchg_end(l->r->x, NULL, 0);
}

static void lines_drained(struct xchg *x)
{
    struct lines *l = xchg_arg(x);

    if (l->d)
        change_resume(l->d);
}

static void lines_cancelled(void *arg)
{
    struct lines *l = arg;

    l->d = NULL;
}

static void lines_closed(struct xchg *x, bool done)
{
    struct lines *l = xchg_arg(x);

    lines_over(l);
    request_end(l->r, done);
}

static void on_live_end(struct revocable_stream *s, int ws_code, const char *why)
{
    struct lines *l = CONTAINER_OF(s, struct lines, live);

    (void)ws_code, (void)why;
    lines_over(l);
    xchg_abort(l->r->x); /* a regular end would mean that this was all */
}

static void send_lines(struct request *r, const struct change_spec *s)
{
    static const struct xchg_ops ops = {.drained = lines_drained, .closed = lines_closed};
    struct lines *l = arena_zalloc(xchg_arena(r->x), sizeof *l);
    struct err e = {0};

    l->r = r;
    l->d = change_diff(
        r->api->c.changes, s,
        &(struct change_events){
            .change = lines_change, .done = lines_done, .cancelled = lines_cancelled, .arg = l},
        &e);
    if (!l->d) {
        request_fail(r, &e);
        return;
    }
    xchg_handle(r->x, &ops, l);
    revocable_stream_begin(&l->live, r, on_live_end);
}

/* --- the operations --- */

static void diff_send(struct request *r, struct sandbox *of)
{
    const struct diff_in *in = r->in;
    const struct change_spec s = spec_of(r, of);
    struct err e = {0};

    if (!r->api->c.changes) {
        err_set(&e, ERR_UNSUPPORTED, 0, "this installation has no sandboxes to compare");
        request_fail(r, &e);
    } else if (in->stream || accept_prefers(r->x, "application/x-ndjson")) {
        send_lines(r, &s);
    } else {
        send_object(r, &s);
    }
}

void diff_run(struct request *r)
{
    diff_send(r, NULL);
}

void sandbox_diff_run(struct request *r)
{
    const struct diff_in *in = r->in;
    struct sandbox *of = request_sandbox(r, in->id);

    if (of)
        diff_send(r, of);
}
