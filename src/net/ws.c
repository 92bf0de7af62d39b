/* ws: the server side of a WebSocket: handshake, keepalive, close. */
#include "net/ws.h"

#include "base/mem.h"
#include "net/conn.h"
#include "net/metrics.h"
#include "proto/ws.h"

#include <uv.h>

/* open ──ws_close──▶ closing ──peer's close, or CLOSE_MS──▶ ended ──▶ ops->closed
 *   ├──peer's close (answered)──────────────────────────────▶ ended
 *   └──bad frame (answered)──▶ draining ──end of input, or CLOSE_MS──▶ ended
 * Draining reads and drops: closing a socket with unread input would reset the connection, and the
 * peer might never see our close frame. */
enum ws_state { WS_OPEN, WS_CLOSING, WS_DRAINING, WS_ENDED };

#define PING_MS 10000
#define PINGS_MISSED 6
#define CLOSE_MS 3000

struct ws {
    struct xchg *x;
    const struct ws_ops *ops;
    void *arg;
    const char *protocol;
    enum ws_state state;
    struct ws_reader reader;
    struct buf in; /* arrived while paused: not consumed, so bounded by the window */
    uv_timer_t timer;
    int missed; /* pings without a sign of life since then */
    int code;   /* for ops->closed */
    struct buf reason;
    bool paused;
    bool reading;   /* read_frames is on the stack */
    bool blocked;   /* the peer reads slowly */
    bool app_waits; /* … and ws_send returned 1 */
    bool pong_owed; /* the newest ping arrived while blocked (RFC 6455 §5.5.3) */
    unsigned char pong[WS_CONTROL_MAX];
    size_t pong_n;
};

bool ws_is_handshake(const struct xchg *x)
{
    const struct http_req *r = xchg_req(x);

    if (r->version == HTTP_2)
        return str_eq_c(http_req_header(r, ":protocol"), "websocket");
    return str_eq_c(r->method, "GET") && http_has_token(http_req_header(r, "upgrade"), "websocket");
}

static int put(struct ws *w, const struct buf *frame)
{
    int wait = xchg_write(w->x, buf_data(frame), buf_len(frame));

    if (wait == 1)
        w->blocked = true;
    return wait;
}

static void put_frame(struct ws *w, enum ws_op op, struct str data)
{
    AUTO(buf_done) struct buf frame = {0};

    ws_write(&frame, op, data, NULL);
    (void)put(w, &frame);
}

static void put_close(struct ws *w, int code, struct str reason)
{
    AUTO(buf_done) struct buf frame = {0};

    ws_write_close(&frame, code, reason, NULL);
    (void)put(w, &frame);
}

/* Must be the last action of an entry point: xchg_end may call ops->closed. */
static void end(struct ws *w)
{
    w->state = WS_ENDED;
    xchg_end(w->x, NULL, 0);
}

static void on_timer(uv_timer_t *t)
{
    struct ws *w = t->data;

    if (w->state == WS_ENDED)
        return;
    if (w->state != WS_OPEN) {
        end(w);
        return;
    }
    if (w->blocked) /* our ping could not be sent */
        return;
    if (!w->paused && w->missed++ >= PINGS_MISSED) {
        w->state = WS_ENDED;
        xchg_abort(w->x);
        return;
    } /* paused: a pong is not read, but a reset is noticed */
    put_frame(w, WS_OP_PING, STR(""));
}

static void start_closing(struct ws *w, enum ws_state state, int code, struct str reason)
{
    put_close(w, code, reason);
    w->state = state;
    (void)uv_timer_start(&w->timer, on_timer, CLOSE_MS, 0);
}

static void remember(struct ws *w, int code, struct str reason)
{
    w->code = code;
    buf_clear(&w->reason);
    buf_add_str(&w->reason, reason);
}

static void on_event(struct ws *w, const struct ws_event *ev)
{
    switch (ev->op) {
    case WS_OP_TEXT:
    case WS_OP_BINARY:
        if (w->state == WS_OPEN)
            w->ops->message(w, ev->op == WS_OP_TEXT ? WS_TEXT : WS_BINARY, ev->data);
        return;
    case WS_OP_PING:
        if (w->state != WS_OPEN)
            return;
        if (!w->blocked) {
            put_frame(w, WS_OP_PONG, ev->data);
            return;
        }
        w->pong_owed = true;
        w->pong_n = ev->data.n;
        memcpy(w->pong, ev->data.p, ev->data.n);
        return;
    case WS_OP_CLOSE:
        remember(w, ev->code, ev->data);
        if (w->state == WS_OPEN)
            put_close(w, ev->code, STR(""));
        w->state = WS_ENDED; /* the caller of read_frames ends the exchange */
        return;
    case WS_OP_PONG:
    case WS_OP_MORE:
        return;
    }
}

static void fail(struct ws *w, int code)
{
    const char *why = code == WS_TOO_BIG    ? "message over the limit"
                      : code == WS_BAD_TEXT ? "text is not UTF-8"
                                            : "protocol error";

    remember(w, code, str_of(why));
    if (w->state == WS_OPEN)
        start_closing(w, WS_DRAINING, code, str_of(why));
    else
        w->state = WS_DRAINING; /* our close frame was already sent; its timer runs */
}

/* Returns the rest of in, which is not empty only when a callback paused. */
static struct str read_frames(struct ws *w, struct str in)
{
    struct ws_event ev;

    w->reading = true;
    while (w->state <= WS_CLOSING && !w->paused) {
        int r = ws_reader_next(&w->reader, &in, &ev);

        if (r == 0)
            break;
        if (r < 0)
            fail(w, -r);
        else
            on_event(w, &ev);
    }
    w->reading = false;
    return w->state <= WS_CLOSING && w->paused ? in : STR("");
}

static void on_body(struct xchg *x, struct str part)
{
    struct ws *w = xchg_arg(x);
    struct str left = part;

    w->missed = 0;
    if (w->state == WS_ENDED)
        return;
    if (w->state == WS_OPEN && w->paused) {
        buf_add_str(&w->in, part);
        return;
    }
    left = read_frames(w, part);
    buf_add_str(&w->in, left);
    if (!xchg_hold(x, buf_len(&w->in) + buf_len(&w->reader.joined)))
        return;
    xchg_consume(x, part.n - left.n);
    if (w->state == WS_ENDED)
        end(w);
}

/* The peer has stopped sending; without a close frame the connection was lost. */
static void on_body_end(struct xchg *x)
{
    struct ws *w = xchg_arg(x);

    if (w->state != WS_ENDED)
        end(w);
}

static void on_drained(struct xchg *x)
{
    struct ws *w = xchg_arg(x);

    w->blocked = false;
    if (w->pong_owed && w->state == WS_OPEN) {
        w->pong_owed = false;
        put_frame(w, WS_OP_PONG, str_make(w->pong, w->pong_n));
    }
    if (!w->app_waits || w->state != WS_OPEN)
        return;
    w->app_waits = false;
    if (w->ops->drained)
        w->ops->drained(w);
}

static void timer_closed(uv_handle_t *t)
{
    struct ws *w = t->data;

    ws_reader_done(&w->reader);
    buf_done(&w->in);
    buf_done(&w->reason);
    mem_free(w);
}

static void on_closed(struct xchg *x, bool done)
{
    struct ws *w = xchg_arg(x);

    (void)done;
    w->state = WS_ENDED;
    if (w->ops->closed)
        w->ops->closed(w, w->code, buf_str(&w->reason));
    w->x = NULL;
    metric_inc(&metric_ws, -1);
    uv_close((uv_handle_t *)&w->timer, timer_closed);
}

static bool offers(const struct http_req *r, const char *protocol)
{
    for (size_t i = 0; i < r->header_count; i++) {
        struct str rest = r->headers[i].value;

        if (!str_eq_c(r->headers[i].name, "sec-websocket-protocol"))
            continue;
        while (rest.n > 0)
            if (str_eq_c(str_trim(str_cut(rest, ',', &rest)), protocol))
                return true;
    }
    return false;
}

static const char *choose(const struct http_req *r, const char *const *protocols)
{
    for (; protocols && *protocols; protocols++)
        if (offers(r, *protocols))
            return *protocols;
    return NULL;
}

/* RFC 6455 §4.2.1; over HTTP/2 there is no key and no Connection field (RFC 8441 §5). */
static int check(const struct xchg *x, struct err *e)
{
    const struct http_req *r = xchg_req(x);

    if (!ws_is_handshake(x))
        return err_set(e, ERR_INVALID, 0, "a WebSocket handshake is expected here");
    if (!x->proto->upgrade)
        return err_set(e, ERR_UNSUPPORTED, 0, "this connection cannot become a WebSocket");
    if (r->version == HTTP_2)
        return 0;
    if (r->version != HTTP_1_1 || r->content_length != 0 ||
        !http_has_token(http_req_header(r, "connection"), "upgrade"))
        return err_set(e, ERR_INVALID, 0, "the WebSocket handshake is incomplete");
    if (!ws_key_is_valid(http_req_header(r, "sec-websocket-key")))
        return err_set(e, ERR_INVALID, 0, "Sec-WebSocket-Key is not the base64 of 16 bytes");
    return 0;
}

static void upgrade(struct ws *w)
{
    const struct http_req *r = xchg_req(w->x);
    struct http_header h[4];
    char accept[WS_ACCEPT_SIZE];
    size_t n = 0;

    if (r->version == HTTP_1_1) {
        ws_accept_key(http_req_header(r, "sec-websocket-key"), accept);
        h[n++] = (struct http_header){STR("upgrade"), STR("websocket")};
        h[n++] = (struct http_header){STR("connection"), STR("Upgrade")};
        h[n++] = (struct http_header){STR("sec-websocket-accept"), str_of(accept)};
    }
    if (w->protocol)
        h[n++] = (struct http_header){STR("sec-websocket-protocol"), str_of(w->protocol)};
    w->x->proto->upgrade(w->x, h, n);
}

struct ws *ws_accept(struct xchg *x, const char *const *protocols, const struct ws_ops *ops,
                     void *arg)
{
    static const struct xchg_ops xchg_ops = {
        .body = on_body, .body_end = on_body_end, .drained = on_drained, .closed = on_closed};
    struct err e;
    struct ws *w;

    if (check(x, &e) < 0) {
        xchg_fail(x, &e);
        return NULL;
    }
    if (!str_eq_c(http_req_header(xchg_req(x), "sec-websocket-version"), "13")) {
        (void)err_set(&e, ERR_INVALID, 0, "only WebSocket version 13 is supported");
        xchg_add_header(x, "sec-websocket-version", STR("13"));
        xchg_add_header(x, "upgrade", STR("websocket"));
        xchg_refuse(x, 426, &e);
        return NULL;
    }
    w = xzalloc(sizeof *w);
    *w = (struct ws){.x = x, .ops = ops, .arg = arg, .code = WS_VANISHED};
    w->protocol = choose(xchg_req(x), protocols);
    w->reader.limit = (size_t)server_limits(xchg_server(x))->ws_message_max;
    w->reader.masked = true;
    (void)uv_timer_init(server_loop(xchg_server(x)), &w->timer);
    w->timer.data = w;
    (void)uv_timer_start(&w->timer, on_timer, PING_MS, PING_MS);
    /* §1.4: both sides send a close frame before either closes the connection */
    x->hangup_ends = true;
    xchg_limit_body(x, 0);
    xchg_handle(x, &xchg_ops, w);
    metric_inc(&metric_ws, 1);
    metric_inc(&metric_ws_total, 1);
    upgrade(w);
    return w;
}

void *ws_arg(const struct ws *w)
{
    return w->arg;
}

void ws_frame(enum ws_kind kind, struct str data, struct buf *to)
{
    ws_write(to, kind == WS_TEXT ? WS_OP_TEXT : WS_OP_BINARY, data, NULL);
}

int ws_send_frame(struct ws *w, const struct buf *frame)
{
    if (w->state != WS_OPEN || put(w, frame) == 0)
        return 0;
    w->app_waits = true;
    return 1;
}

int ws_send(struct ws *w, enum ws_kind kind, struct str data)
{
    AUTO(buf_done) struct buf frame = {0};

    if (w->state != WS_OPEN)
        return 0;
    ws_frame(kind, data, &frame);
    return ws_send_frame(w, &frame);
}

void ws_pause(struct ws *w, bool on)
{
    AUTO(buf_done) struct buf in = {0};
    struct str left;

    w->paused = on;
    if (on || w->reading || w->state > WS_CLOSING || buf_len(&w->in) == 0)
        return;
    in = w->in;
    w->in = (struct buf){0};
    left = read_frames(w, buf_str(&in));
    buf_add_str(&w->in, left);
    xchg_consume(w->x, buf_len(&in) - left.n);
    if (w->state == WS_ENDED)
        end(w);
}

void ws_close(struct ws *w, int code, const char *reason)
{
    if (w->state != WS_OPEN)
        return;
    start_closing(w, WS_CLOSING, code, str_of(reason ? reason : ""));
    if (w->paused)
        ws_pause(w, false);
}
