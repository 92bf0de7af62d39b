/* sse: serves text/event-stream with keepalives. */
#include "net/sse.h"

#include "base/mem.h"
#include "net/server.h"
#include "proto/sse.h"

#include <uv.h>

struct sse {
    struct xchg *x;
    const struct sse_ops *ops;
    void *arg;
    uv_timer_t timer;
    bool blocked; /* the peer reads slowly: no keepalive needed */
    bool ended;
};

static int put(struct sse *s, struct str text)
{
    int wait = xchg_write(s->x, text.p, text.n);

    if (wait == 1)
        s->blocked = true;
    return wait;
}

static void on_timer(uv_timer_t *t)
{
    struct sse *s = t->data;
    AUTO(buf_done) struct buf text = {0};

    if (s->ended || s->blocked)
        return;
    sse_write_comment(&text, STR("keep-alive"));
    (void)put(s, buf_str(&text));
}

static void on_body(struct xchg *x, struct str part)
{
    xchg_consume(x, part.n);
}

static void on_drained(struct xchg *x)
{
    struct sse *s = xchg_arg(x);

    s->blocked = false;
    if (s->ops->drained && !s->ended)
        s->ops->drained(s);
}

/* All output ends with a whole event: the client can resume from its id. */
static bool on_stalled(struct xchg *x)
{
    struct sse *s = xchg_arg(x);
    AUTO(buf_done) struct buf text = {0};

    if (s->ended)
        return false;
    sse_write_comment(&text,
                      STR("ended: the client read nothing for too long; Last-Event-ID continues"));
    (void)put(s, buf_str(&text));
    sse_end(s);
    return true;
}

static void timer_closed(uv_handle_t *t)
{
    mem_free(t->data);
}

static void on_closed(struct xchg *x, bool done)
{
    struct sse *s = xchg_arg(x);

    (void)done;
    s->ended = true;
    if (s->ops->closed)
        s->ops->closed(s);
    s->x = NULL;
    uv_close((uv_handle_t *)&s->timer, timer_closed);
}

struct sse *sse_start(struct xchg *x, int64_t keepalive_ms, const struct sse_ops *ops, void *arg)
{
    static const struct xchg_ops xchg_ops = {
        .body = on_body, .drained = on_drained, .stalled = on_stalled, .closed = on_closed};
    const struct http_header h[] = {
        {STR("content-type"), STR("text/event-stream")},
        {STR("cache-control"), STR("no-cache")},
        {STR("x-accel-buffering"), STR("no")}, /* otherwise nginx would buffer events */
    };
    struct sse *s = xzalloc(sizeof *s);

    *s = (struct sse){.x = x, .ops = ops, .arg = arg};
    (void)uv_timer_init(server_loop(xchg_server(x)), &s->timer);
    s->timer.data = s;
    (void)uv_timer_start(&s->timer, on_timer, (uint64_t)keepalive_ms, (uint64_t)keepalive_ms);
    xchg_handle(x, &xchg_ops, s);
    xchg_head(x, 200, h, ARRAY_LEN(h));
    return s;
}

void *sse_arg(const struct sse *s)
{
    return s->arg;
}

int sse_send_text(struct sse *s, struct str text)
{
    if (s->ended)
        return 0;
    (void)uv_timer_again(&s->timer); /* an event replaces the next keepalive */
    return put(s, text);
}

int sse_send(struct sse *s, struct str id, struct str event, struct str data)
{
    AUTO(buf_done) struct buf text = {0};

    sse_write(&text, id, event, data);
    return sse_send_text(s, buf_str(&text));
}

void sse_end(struct sse *s)
{
    if (s->ended)
        return;
    s->ended = true;
    xchg_end(s->x, NULL, 0);
}

struct str sse_last_id(const struct xchg *x)
{
    return http_req_header(xchg_req(x), "last-event-id");
}
