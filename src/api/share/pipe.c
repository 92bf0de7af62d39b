/* pipe: streams a file call between a request and a sandbox. */
#include "api/share/pipe.h"

#include "core/space.h"

#include <stdio.h>

static void push(struct pipe *p)
{
    size_t n;

    if (!p->g || !p->upload)
        return;
    n = buf_len(&p->held) ? guest_pipe_write(p->g, buf_str(&p->held)) : 0;
    buf_take(&p->held, n);
    xchg_consume(p->r->x, n);
    if (p->body_over && buf_len(&p->held) == 0)
        guest_pipe_eof(p->g);
}

static void on_body(struct xchg *x, struct str part)
{
    struct pipe *p = xchg_arg(x);
    struct err e = {0};

    if (!p->upload || !p->g) {
        xchg_consume(x, part.n); /* the call has failed, or takes no input */
        return;
    }
    if (p->to_disk && space_ask(p->r->api->c.space, part.n, &e) < 0) {
        guest_pipe_cancel(TAKE(p->g));
        xchg_consume(x, part.n);
        pipe_fail(p, &e);
        return;
    }
    buf_add_str(&p->held, part);
    push(p);
}

static void on_body_end(struct xchg *x)
{
    struct pipe *p = xchg_arg(x);

    p->body_over = true;
    push(p);
}

static void on_drained(struct xchg *x)
{
    struct pipe *p = xchg_arg(x);

    if (p->ops->drained)
        p->ops->drained(p);
    else
        pipe_consume(p);
}

static void on_closed(struct xchg *x, bool done)
{
    struct pipe *p = xchg_arg(x);

    if (p->g)
        guest_pipe_cancel(p->g);
    p->g = NULL;
    revocable_stream_end(&p->live);
    if (p->ops->closed)
        p->ops->closed(p);
    buf_done(&p->held);
    request_end(p->r, done);
}

static void on_live_end(struct revocable_stream *l, int ws_code, const char *why)
{
    struct pipe *p = CONTAINER_OF(l, struct pipe, live);

    (void)ws_code, (void)why;
    xchg_abort(p->r->x);
}

void pipe_consume(struct pipe *p)
{
    size_t n = p->owed;

    p->owed = 0;
    if (p->g && n)
        guest_pipe_consume(p->g, n);
}

void pipe_fail(struct pipe *p, const struct err *e)
{
    struct err about = *e;

    if (!about.object[0] && p->r->params.n > 0)
        (void)snprintf(about.object, sizeof about.object, "sandbox/" STR_FMT,
                       (int)size_min(p->r->params.v[0].n, 64), p->r->params.v[0].p);
    request_fail(p->r, &about); /* after the head it cuts the reply */
}

static void on_data(struct guest_pipe *g, struct str bytes)
{
    struct pipe *p = guest_pipe_arg(g);
    size_t n = p->ops->data ? p->ops->data(p, bytes) : bytes.n;

    p->owed += bytes.n - n;
    if (n && p->g)
        guest_pipe_consume(g, n);
}

static void on_room(struct guest_pipe *g)
{
    push(guest_pipe_arg(g));
}

static void on_done(struct guest_pipe *g, const struct guest_file_done *info, const struct err *e)
{
    struct pipe *p = guest_pipe_arg(g);

    p->g = NULL;
    p->owed = 0;
    if (p->ops->done)
        p->ops->done(p, info, e);
    else if (e->code != ERR_NONE)
        pipe_fail(p, e);
    else
        request_send_empty(p->r);
}

static void on_eof(struct guest_pipe *g)
{
    (void)g; /* done follows */
}

void pipe_start(struct pipe *p, struct guest *g, const struct guest_file_call *c)
{
    static const struct guest_pipe_ops guest_ops = {
        .data = on_data, .eof = on_eof, .room = on_room, .done = on_done};
    static const struct xchg_ops xchg_ops = {
        .body = on_body, .body_end = on_body_end, .drained = on_drained, .closed = on_closed};
    struct err e = {0};

    if (guest_file(g, c, &guest_ops, p, &p->g, &e) < 0) {
        pipe_fail(p, &e);
        return;
    }
    if (p->taken)
        return;
    p->taken = true;
    p->live.acts = p->upload;
    revocable_stream_begin(&p->live, p->r, on_live_end);
    if (p->upload)
        xchg_limit_body(p->r->x, 0);
    xchg_handle(p->r->x, &xchg_ops, p);
}
