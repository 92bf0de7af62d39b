/* port_proxy: proxies HTTP requests to a server inside a sandbox. */
#include "api/share/port_proxy.h"

#include "api/share/port_head.h"
#include "api/share/revocable_stream.h"
#include "api/share/tracer.h"
#include "link/guest.h"
#include "net/ws.h"

#define HEAD_MAX (64 * 1024)
#define HEAD_FIELDS_MAX 128

/* HEAD ──▶ BODY ──▶ OVER
 *   └────▶ RAW (an upgrade) ──▶ OVER */
enum phase { HEAD, BODY, RAW, OVER };

struct proxy { /* in the exchange's arena */
    struct request *r;
    struct guest_pipe *g; /* NULL: the connection has ended */
    struct revocable_stream live;
    struct port_request q;
    struct str name;  /* of the sandbox, for errors; in the arena */
    struct buf out;   /* for the server inside */
    size_t body_held; /* bytes of the request's body that out holds */
    struct buf in;    /* the reply's head so far */
    struct http1_scan scan;
    struct http1_body body;
    enum phase phase;
    size_t owed; /* bytes from inside that our client has not read */
    bool opened, chunked, body_over, blocked;
};

/* --- to the server inside --- */

static void push(struct proxy *p)
{
    if (!p->g || !p->opened)
        return;
    if (buf_len(&p->out) > 0)
        buf_take(&p->out, guest_pipe_write(p->g, buf_str(&p->out)));
    if (buf_len(&p->out) > 0)
        return;
    xchg_consume(p->r->x, p->body_held);
    p->body_held = 0;
}

static void on_body(struct xchg *x, struct str part)
{
    struct proxy *p = xchg_arg(x);

    if (!p->g || p->phase == OVER) {
        xchg_consume(x, part.n);
        return;
    }
    if (p->chunked && p->phase != RAW)
        buf_printf(&p->out, "%zx\r\n", part.n);
    buf_add_str(&p->out, part);
    if (p->chunked && p->phase != RAW)
        buf_add_c(&p->out, "\r\n");
    p->body_held += part.n;
    push(p);
}

static void on_body_end(struct xchg *x)
{
    struct proxy *p = xchg_arg(x);

    if (p->body_over)
        return;
    p->body_over = true;
    if (p->chunked && p->phase != RAW)
        buf_add_c(&p->out, "0\r\n\r\n");
    push(p);
}

/* --- from the server inside --- */

static void proxy_over(struct proxy *p)
{
    struct guest_pipe *g = TAKE(p->g);

    p->phase = OVER;
    revocable_stream_end(&p->live);
    if (g)
        guest_pipe_cancel(g);
}

static void fail(struct proxy *p, struct err *e)
{
    bool head = p->phase == HEAD;

    proxy_over(p);
    if (!head) {
        xchg_abort(p->r->x);
        return;
    }
    e->code = ERR_UNAVAILABLE;
    err_wrap(e, "port %d of sandbox '" STR_FMT "'", p->q.port, (int)size_min(p->name.n, 64),
             p->name.p);
    request_fail(p->r, e);
}

static void finish(struct proxy *p)
{
    proxy_over(p);
    xchg_end(p->r->x, NULL, 0);
}

static int take_head(struct proxy *p, struct err *e)
{
    static const struct http1_limits limits = {.head_max = HEAD_MAX, .count_max = HEAD_FIELDS_MAX};
    struct arena *a = xchg_arena(p->r->x);
    struct http_header h[PORT_HEADERS_MAX];
    struct http1_response res;
    size_t n;
    int r = http1_scan(&p->scan, buf_str(&p->in), &limits, e);

    if (r <= 0)
        return r;
    if (http1_response(&p->scan, buf_str(&p->in), str_eq_c(p->q.req->method, "HEAD"), a, &res, e) <
        0)
        return -1;
    buf_take(&p->in, p->scan.at);
    p->scan = (struct http1_scan){0};
    if (res.status == 101 && p->q.upgrade) {
        n = port_reply_headers(&p->q, &res, a, h);
        h[n++] = (struct http_header){STR("upgrade"), http_req_header(p->q.req, "upgrade")};
        request_count(p->r, 101);
        p->phase = RAW;
        xchg_upgrade(p->r->x, h, n);
        return 1;
    }
    if (res.status < 200)
        return res.status == 101
                   ? err_set(e, ERR_UNAVAILABLE, 0, "it switched protocols without a request")
                   : 1;
    if (res.status > 599)
        return err_set(e, ERR_UNAVAILABLE, 0, "it answers with status %d", res.status);
    n = port_reply_headers(&p->q, &res, a, h);
    http1_body_init(&p->body, res.framing, res.content_length);
    p->phase = BODY;
    p->r->status = res.status;
    xchg_head(p->r->x, res.status, h, n);
    return 1;
}

static int take_body(struct proxy *p, struct str *in, struct err *e)
{
    struct str part;
    size_t used;
    int r = 0;

    while (r == 0 && in->n > 0 && !http1_body_is_complete(&p->body)) {
        r = http1_body_next(&p->body, *in, &used, &part, e);
        if (r < 0)
            return -1;
        *in = str_skip(*in, used);
        if (xchg_write(p->r->x, part.p, part.n))
            p->blocked = true;
    }
    return r;
}

/* Handles all received bytes as far as possible. */
static void take(struct proxy *p, struct str bytes)
{
    struct err e = {0};
    int r = 1;

    while (p->phase == HEAD && r > 0) {
        buf_add_str(&p->in, bytes);
        bytes = (struct str){0};
        r = take_head(p, &e);
        if (r > 0 && p->phase != HEAD)
            bytes = buf_str(&p->in);
    }
    if (p->phase == BODY && r >= 0)
        r = take_body(p, &bytes, &e);
    else if (p->phase == RAW && bytes.n > 0)
        p->blocked = xchg_write(p->r->x, bytes.p, bytes.n) || p->blocked;
    if (r < 0)
        fail(p, &e);
    else if (p->phase == BODY && http1_body_is_complete(&p->body))
        finish(p);
    else if (p->phase != HEAD)
        buf_done(&p->in);
}

static void on_opened(struct guest_pipe *g)
{
    struct proxy *p = guest_pipe_arg(g);

    p->opened = true;
    push(p);
}

static void on_data(struct guest_pipe *g, struct str bytes)
{
    struct proxy *p = guest_pipe_arg(g);

    p->owed += bytes.n;
    take(p, bytes);
    if (!p->g || p->blocked)
        return;
    guest_pipe_consume(p->g, p->owed);
    p->owed = 0;
}

static void proxy_ended(struct proxy *p, const struct err *cause)
{
    struct err e = *cause;

    if (p->phase == OVER)
        return;
    if (p->phase == RAW ||
        (p->phase == BODY && p->body.framing == HTTP1_UNTIL_CLOSE && cause->code == ERR_NONE)) {
        finish(p);
        return;
    }
    if (e.code == ERR_NONE)
        err_set(&e, ERR_UNAVAILABLE, 0,
                "the server inside closed the connection before its reply was complete");
    else if (p->phase == HEAD && !p->opened)
        err_hint(&e, "is a server listening there? start one inside on 127.0.0.1:%d", p->q.port);
    fail(p, &e);
}

static void on_eof(struct guest_pipe *g)
{
    proxy_ended(guest_pipe_arg(g), &(struct err){0});
}

static void on_room(struct guest_pipe *g)
{
    push(guest_pipe_arg(g));
}

static void on_done(struct guest_pipe *g, const struct guest_file_done *info, const struct err *e)
{
    struct proxy *p = guest_pipe_arg(g);

    (void)info;
    p->g = NULL;
    proxy_ended(p, e);
}

/* --- the exchange --- */

static void on_drained(struct xchg *x)
{
    struct proxy *p = xchg_arg(x);

    p->blocked = false;
    if (p->g && p->owed)
        guest_pipe_consume(p->g, p->owed);
    p->owed = 0;
}

static void on_closed(struct xchg *x, bool done)
{
    struct proxy *p = xchg_arg(x);

    proxy_over(p);
    buf_done(&p->out);
    buf_done(&p->in);
    http1_body_done(&p->body);
    request_end(p->r, done);
}

static void on_live_end(struct revocable_stream *l, int ws_code, const char *why)
{
    struct proxy *p = CONTAINER_OF(l, struct proxy, live);

    (void)ws_code, (void)why;
    proxy_over(p);
    xchg_abort(p->r->x);
}

/* Otherwise a page shown by a browser could act with its viewer's session. */
static int need_bearer(const struct request *r, struct err *e)
{
    if (r->how != AUTH_COOKIE)
        return 0;
    err_set(e, ERR_FORBIDDEN, 0, "a session cookie is not accepted for servers inside sandboxes");
    return err_hint(e, "send 'Authorization: Bearer TOKEN', or use the preview's own address");
}

bool port_proxy_check(struct request *r)
{
    struct err e = {0};

    if (xchg_req(r->x)->version == HTTP_2 && ws_is_handshake(r->x)) {
        err_set(&e, ERR_UNSUPPORTED, 0, "a WebSocket to a port needs HTTP/1.1");
        request_fail(r, &e);
        return false;
    }
    if (need_bearer(r, &e) < 0) {
        request_refuse(r, &e);
        return false;
    }
    return true;
}

void port_proxy(struct request *r, struct guest *g, const struct port_target *t)
{
    static const struct guest_pipe_ops guest_ops = {
        .opened = on_opened, .data = on_data, .eof = on_eof, .room = on_room, .done = on_done};
    static const struct xchg_ops xchg_ops = {
        .body = on_body, .body_end = on_body_end, .drained = on_drained, .closed = on_closed};
    struct proxy *p = arena_zalloc(xchg_arena(r->x), sizeof *p);
    struct err e = {0};

    p->r = r;
    p->name = arena_str(xchg_arena(r->x), t->name);
    p->q = (struct port_request){.req = xchg_req(r->x),
                                 .path = t->path,
                                 .prefix = t->prefix,
                                 .trace = tracer_text(r),
                                 .port = t->port,
                                 .preview = r->how == AUTH_PREVIEW};
    p->q.upgrade = http_req_header(p->q.req, "upgrade").p && xchg_can_upgrade(r->x);
    port_write_head(&p->q, &p->out, &p->chunked);
    if (guest_dial(g,
                   &(struct guest_dial){.family = GUEST_TCP,
                                        .port = (uint16_t)p->q.port,
                                        .address = STR("127.0.0.1")},
                   &guest_ops, p, &p->g, &e) < 0) {
        buf_done(&p->out);
        request_fail(r, &e);
        return;
    }
    p->live.acts = true;
    revocable_stream_begin(&p->live, r, on_live_end);
    xchg_limit_body(r->x, 0);
    xchg_handle(r->x, &xchg_ops, p);
}
