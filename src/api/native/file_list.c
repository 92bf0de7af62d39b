/* file_list: lists directories and watches files. */
#include "api/native/handlers.h"
#include "api/share/pipe.h"
#include "api/share/sandbox.h"
#include "net/sse.h"
#include "ops/file.h"

#include <stdlib.h>

#define LIST_BYTES (16 * 1024 * 1024) /* of one directory's entries */
#define KEEPALIVE_MS 15000

/* --- list: all entries are collected, sorted by name, and one page is sent --- */

struct listing {
    struct pipe pipe;
    struct buf records;
    bool too_large;
};

static size_t list_data(struct pipe *p, struct str bytes)
{
    struct listing *l = CONTAINER_OF(p, struct listing, pipe);

    if (buf_len(&l->records) + bytes.n > LIST_BYTES)
        l->too_large = true;
    else
        buf_add_str(&l->records, bytes);
    return bytes.n;
}

static int by_name(const void *a, const void *b)
{
    const struct guest_file_done *x = a, *y = b;
    int r = memcmp(x->name.p, y->name.p, size_min(x->name.n, y->name.n));

    return r ? r : x->name.n < y->name.n ? -1 : x->name.n > y->name.n;
}

/* The entries after the cursor, sorted; NULL: *e has the reason. */
static struct guest_file_done *entries(struct listing *l, struct arena *a, struct str cursor,
                                       size_t *ret_count, struct err *e)
{
    struct str left = buf_str(&l->records);
    const struct guest_file_done after = {.name = cursor};
    struct guest_file_done one, *all;
    size_t count = 0;
    int r;

    while ((r = guest_record_next(&guest_file_done_layout, &left, &one, e)) > 0)
        count++;
    if (r < 0 || left.n > 0) {
        if (r == 0)
            err_set(e, ERR_INTERNAL, 0, "the listing ends in the middle of an entry");
        return NULL;
    }
    all = arena_alloc(a, (count + 1) * sizeof *all);
    left = buf_str(&l->records);
    count = 0;
    while (guest_record_next(&guest_file_done_layout, &left, &one, e) > 0)
        if (!cursor.p || by_name(&one, &after) > 0)
            all[count++] = one;
    qsort(all, count, sizeof *all, by_name);
    *ret_count = count;
    return all;
}

static void write_entry(struct jw *w, const struct guest_file_done *f)
{
    char mode[8];

    (void)snprintf(mode, sizeof mode, "%04o", f->mode & 07777);
    jw_object(w);
    jw_kstr(w, "name", f->name);
    jw_kc(w, "kind", file_kind(f->kind));
    jw_kint(w, "size", (int64_t)f->size);
    jw_kc(w, "mode", mode);
    jw_kint(w, "uid", f->uid);
    jw_kint(w, "gid", f->gid);
    jw_ktime(w, "modified_at", (int64_t)f->mtime_ms);
    jw_ktext(w, "link", f->link);
    jw_object_end(w);
}

static void list_done(struct pipe *p, const struct guest_file_done *info, const struct err *cause)
{
    struct listing *l = CONTAINER_OF(p, struct listing, pipe);
    const struct file_list_in *in = p->r->in;
    struct guest_file_done *all = NULL;
    struct err e = *cause;
    size_t count = 0, shown;
    struct jw w;

    (void)info;
    if (e.code == ERR_NONE && l->too_large)
        err_set(&e, ERR_TOO_LARGE, 0, "the directory has too many entries to list");
    if (e.code == ERR_NONE)
        all = entries(l, xchg_arena(p->r->x), in->cursor, &count, &e);
    if (!all) {
        pipe_fail(p, &e);
        return;
    }
    shown = size_min(count, (size_t)in->limit);
    w = request_json(p->r);
    jw_object(&w);
    jw_key(&w, "files");
    jw_array(&w);
    for (size_t i = 0; i < shown; i++)
        write_entry(&w, &all[i]);
    jw_array_end(&w);
    jw_ktext(&w, "cursor", shown < count ? all[shown - 1].name : STR(""));
    jw_object_end(&w);
    request_send_json(p->r, 0);
}

static void list_closed(struct pipe *p)
{
    buf_done(&CONTAINER_OF(p, struct listing, pipe)->records);
}

void file_list_run(struct request *r)
{
    static const struct pipe_ops ops = {
        .data = list_data, .done = list_done, .closed = list_closed};
    const struct file_list_in *in = r->in;
    struct guest *g = request_guest(r, in->id);
    struct listing *l;

    if (!g)
        return;
    l = arena_zalloc(xchg_arena(r->x), sizeof *l);
    l->pipe = (struct pipe){.r = r, .ops = &ops};
    pipe_start(&l->pipe, g, &(struct guest_file_call){.op = GUEST_FILE_LIST, .path = in->path});
}

/* --- watch: the stream begins with init's first record, so that an earlier failure is a plain
 * error and no change after the reply's head is missed --- */

struct watch {
    struct pipe pipe; /* it owns the exchange until the stream begins */
    struct sse *sse;  /* NULL: not yet */
    struct revocable_stream live;
    struct buf records;
    bool blocked, ending;
};

static void watch_stop(struct watch *w)
{
    struct guest_pipe *g = TAKE(w->pipe.g);

    w->ending = true;
    revocable_stream_end(&w->live);
    if (g)
        guest_pipe_cancel(g);
}

static void watch_end(struct watch *w)
{
    if (w->ending)
        return;
    watch_stop(w);
    sse_end(w->sse);
}

static void send_change(struct watch *w, const struct guest_watch_event *ev)
{
    static const char *const names[] = {
        [GUEST_WATCH_MADE] = "made",       [GUEST_WATCH_CHANGED] = "changed",
        [GUEST_WATCH_REMOVED] = "removed", [GUEST_WATCH_MISSED] = "missed",
        [GUEST_WATCH_BEGUN] = "begun",
    };
    AUTO(buf_done) struct buf json = {0};
    struct jw j = {.to = &json};

    assert(ev->what > 0 && ev->what < ARRAY_LEN(names)); /* the layout checks the range */
    jw_object(&j);
    jw_kstr(&j, "path", ev->path);
    jw_object_end(&j);
    if (sse_send(w->sse, STR(""), str_of(names[ev->what]), buf_str(&json)))
        w->blocked = true;
}

static void send_error(struct watch *w, const struct err *e)
{
    AUTO(buf_done) struct buf json = {0};

    json_error(&json, e);
    (void)!sse_send(w->sse, STR(""), STR("error"), buf_str(&json));
    watch_end(w);
}

static void watch_pump(struct watch *w)
{
    struct guest_watch_event ev;
    struct str left;
    struct err e = {0};
    int r = 1;

    while (!w->blocked && !w->ending && r > 0) {
        left = buf_str(&w->records);
        r = guest_record_next(&guest_watch_event_layout, &left, &ev, &e);
        if (r > 0)
            send_change(w, &ev);
        buf_take(&w->records, buf_len(&w->records) - left.n);
    }
    if (r < 0)
        send_error(w, &e);
    else if (!w->blocked)
        pipe_consume(&w->pipe);
}

static void on_sse_drained(struct sse *s)
{
    struct watch *w = sse_arg(s);

    w->blocked = false;
    watch_pump(w);
}

static void on_sse_closed(struct sse *s)
{
    struct watch *w = sse_arg(s);

    watch_stop(w);
    buf_done(&w->records);
}

static void on_live_end(struct revocable_stream *l, int ws_code, const char *why)
{
    (void)ws_code, (void)why;
    watch_end(CONTAINER_OF(l, struct watch, live));
}

static void watch_begin(struct watch *w)
{
    static const struct sse_ops ops = {.drained = on_sse_drained, .closed = on_sse_closed};
    struct request *r = w->pipe.r;

    revocable_stream_end(&w->pipe.live);
    request_count(r, 200);
    w->sse = sse_start(r->x, KEEPALIVE_MS, &ops, w);
    revocable_stream_begin(&w->live, r, on_live_end);
}

static size_t watch_data(struct pipe *p, struct str bytes)
{
    struct watch *w = CONTAINER_OF(p, struct watch, pipe);

    if (!w->sse)
        watch_begin(w);
    buf_add_str(&w->records, bytes); /* at most a window: it opens when these are sent */
    watch_pump(w);
    return w->blocked ? 0 : bytes.n;
}

static void watch_done(struct pipe *p, const struct guest_file_done *info, const struct err *e)
{
    struct watch *w = CONTAINER_OF(p, struct watch, pipe);

    (void)info;
    if (!w->sse)
        pipe_fail(p, e);
    else if (e->code != ERR_NONE)
        send_error(w, e);
    else
        watch_end(w);
}

void file_watch_run(struct request *r)
{
    static const struct pipe_ops ops = {.data = watch_data, .done = watch_done};
    const struct file_watch_in *in = r->in;
    struct guest *g = request_guest(r, in->id);
    struct watch *w;

    if (!g)
        return;
    w = arena_zalloc(xchg_arena(r->x), sizeof *w);
    w->pipe = (struct pipe){.r = r, .ops = &ops};
    pipe_start(&w->pipe, g,
               &(struct guest_file_call){.op = GUEST_FILE_WATCH,
                                         .path = in->path,
                                         .flags = in->recursive ? GUEST_FILE_RECURSIVE : 0});
}
