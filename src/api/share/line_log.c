/* line_log: streams an output by lines. */
#include "api/share/line_log.h"

#include "api/share/revocable_stream.h"
#include "net/sse.h"

#include <inttypes.h>
#include <stdio.h>

#define KEEPALIVE_MS 15000
#define PIECE (64 * 1024)
#define LINE_MAX_BYTES (1024 * 1024) /* a longer JSON line is sent as text, in parts */

struct line_log { /* in the exchange's arena */
    struct sse *sse;
    const struct line_source *source;
    void *object;
    struct revocable_stream live;
    struct buf part; /* from offset on */
    int64_t offset;
    bool follow, blocked, over;
};

static void stream_stop(struct line_log *s)
{
    s->over = true;
    s->source->stop(s->object);
    revocable_stream_end(&s->live);
}

static void stream_end(struct line_log *s)
{
    if (s->over)
        return;
    stream_stop(s);
    sse_end(s->sse);
}

static void send_piece(struct line_log *s, const char *event, size_t n, size_t shown)
{
    char id[24];

    (void)snprintf(id, sizeof id, "%" PRId64, s->offset + (int64_t)n);
    if (sse_send(s->sse, str_of(id), str_of(event), str_make(buf_data(&s->part), shown)))
        s->blocked = true;
    buf_take(&s->part, n);
    s->offset += (int64_t)n;
}

/* One line, or what there is of one; false: nothing can be sent yet. */
static bool send_next(struct line_log *s, bool ended)
{
    struct str have = buf_str(&s->part);
    ptrdiff_t at = str_index(have, '\n');
    size_t n = at < 0 ? have.n : (size_t)at + 1, shown = at < 0 ? have.n : (size_t)at;
    bool json = have.n > 0 && have.p[0] == '{';

    if (have.n == 0 || (at < 0 && json && !ended && have.n < LINE_MAX_BYTES))
        return false;
    while (at >= 0 && shown > 0 && have.p[shown - 1] == '\r')
        shown--;
    json = json && at >= 0 && have.p[shown - 1] == '}';
    send_piece(s, json ? "event" : "stdout", n, shown);
    return true;
}

static void send_end(struct line_log *s, int exit_code, struct str why)
{
    char text[24];

    (void)snprintf(text, sizeof text, "%d", exit_code);
    if (exit_code >= 0)
        (void)!sse_send(s->sse, STR(""), STR("completed"), str_of(text));
    else
        (void)!sse_send(s->sse, STR(""), STR("error"), why);
    stream_end(s);
}

static void pump(struct line_log *s)
{
    struct err e = {0};
    int64_t n = 1;

    while (!s->blocked && !s->over && n > 0) {
        struct str why = {0};
        int exit_code = -1;
        bool ended;

        n = s->source->read(s->object, s->offset + (int64_t)buf_len(&s->part), PIECE, &s->part, &e);
        ended = s->source->is_over(s->object, &exit_code, &why);
        while (!s->blocked && send_next(s, ended && n <= 0))
            ;
        if (n < 0)
            stream_end(s);
        else if (n == 0 && !s->blocked && ended)
            send_end(s, exit_code, why);
        else if (n == 0 && !s->blocked && !s->follow)
            stream_end(s);
    }
}

void line_log_poke(struct line_log *s)
{
    pump(s);
}

static void on_drained(struct sse *sse)
{
    struct line_log *s = sse_arg(sse);

    s->blocked = false;
    pump(s);
}

static void on_closed(struct sse *sse)
{
    struct line_log *s = sse_arg(sse);

    stream_stop(s);
    buf_done(&s->part);
}

static void on_live_end(struct revocable_stream *l, int ws_code, const char *why)
{
    (void)ws_code, (void)why;
    stream_end(CONTAINER_OF(l, struct line_log, live));
}

struct line_log *line_log_new(struct request *r, const struct line_source *source, void *object)
{
    struct line_log *s = arena_zalloc(xchg_arena(r->x), sizeof *s);

    s->source = source;
    s->object = object;
    return s;
}

void line_log_start(struct line_log *s, struct request *r, int64_t offset, bool follow)
{
    static const struct sse_ops ops = {.drained = on_drained, .closed = on_closed};
    struct str last = sse_last_id(r->x);
    int64_t from;

    s->follow = follow;
    s->offset = offset;
    if (last.p && str_parse_i64(last, &from) == 0 && from >= 0)
        s->offset = from;
    request_count(r, 200);
    s->sse = sse_start(r->x, KEEPALIVE_MS, &ops, s);
    revocable_stream_begin(&s->live, r, on_live_end);
    pump(s);
}
