/* conn_h1: HTTP/1.1 on a connection: heads, bodies, pipelined replies, upgrades. */
#include "net/conn.h"

#include "base/log.h"
#include "net/metrics.h"
#include "proto/http1.h"

#define WINDOW (256 * 1024)    /* body bytes a handler may hold without consuming them */
#define DRAIN_MAX (256 * 1024) /* of an unwanted body, read to keep the connection */
#define ENDED_MAX 16           /* replies written but not yet taken by the kernel */

/* ┌──────────── reply ended, body complete ────────────┐
 *            ▼                                                    │
 *  HEAD ──request──▶ BODY ──body complete──▶ REPLY ───────────────┤
 *   ▲                 ├──reply ended first──▶ DRAIN ──complete────┘
 *   │                 └──upgrade──▶ RAW (until the connection ends)
 * Without keep-alive each end closes the connection.  A body that no handler wants stays in
 * BODY. */
enum phase { HEAD, BODY, REPLY, DRAIN, RAW };

enum { LEFT_CHUNKED = -1, LEFT_UNTIL_CLOSE = -2 };

struct h1 {
    struct conn *c;
    struct xchg *x;     /* the exchange whose reply we owe */
    struct xchg *ended; /* replies waiting for the kernel, in order */
    struct xchg **tail; /* end of the list `ended` */
    size_t ended_count;
    struct http1_scan scan;
    struct http1_body body;
    enum phase phase;
    size_t unconsumed, drained;
    int64_t reply_left; /* bytes of the reply's body, or LEFT_* */
    bool keep_alive, expect, eof, in_data;
    bool stalled; /* because of too many ended replies */
};

static const struct xchg_proto h1_xchg;

static void h1_start(struct conn *c)
{
    struct h1 *h = (void *)c->room;

    h->c = c;
    h->tail = &h->ended;
    c->state = h;
}

static char *put(char *to, const void *p, size_t n)
{
    memcpy(to, p, n);
    return to + n;
}

static char *put_str(char *to, struct str s)
{
    return put(to, s.p, s.n);
}

static char *put_field(char *to, struct str name, struct str value)
{
    to = put_str(to, name);
    to = put(to, ": ", 2);
    if (value.n > 0)
        to = put_str(to, value);
    return put(to, "\r\n", 2);
}

static char *put_status_line(char *to, int status)
{
    const char digits[3] = {
        (char)('0' + status / 100),
        (char)('0' + status / 10 % 10),
        (char)('0' + status % 10),
    };

    to = put_str(to, STR("HTTP/1.1 "));
    to = put(to, digits, 3);
    *to++ = ' ';
    to = put_str(to, str_of(http_status_text(status)));
    return put(to, "\r\n", 2);
}

/* The path of a request line that may be malformed or cut short. */
static struct str path_asked(struct str in)
{
    struct str line = str_cut(in, '\n', &(struct str){0}), rest;

    (void)str_cut(line, ' ', &rest);
    return rest.n > 0 && rest.p[0] == '/' ? str_cut(rest, ' ', &(struct str){0}) : STR("");
}

static void begin(struct h1 *h, struct str in)
{
    struct conn *c = h->c;
    struct xchg *x = xchg_new(c, &h1_xchg, h);
    struct http1_request r;
    struct err e;
    int64_t head_size = (int64_t)h->scan.at;
    int st = http1_request(&h->scan, in, &x->arena, &r, &e);
    const char *twice = st < 0 ? NULL : http_repeated(&r.req);

    h->scan = (struct http1_scan){0};
    if (twice) {
        (void)err_set(&e, ERR_INVALID, 0, "bad request: the field '%s' appears twice", twice);
        st = -400;
    }
    if (st < 0) {
        xchg_gone(x, false);
        conn_refuse(c, -st, path_asked(in), &e);
        return;
    }
    x->req = r.req;
    x->head_size = head_size;
    if (stream_peer(c->stream)->tls)
        x->req.scheme = STR("https");
    h->x = x;
    h->phase = BODY;
    h->keep_alive = r.keep_alive && !server_is_stopping(c->server);
    h->expect = r.expect_continue;
    h->unconsumed = 0;
    http1_body_init(&h->body, r.framing, r.req.content_length);
    conn_wait(c, CONN_WAIT_NOTHING);
    xchg_begin(x);
}

/* Each step consumes *ret_used bytes and returns whether another step may follow. */
static bool step_head(struct h1 *h, struct str in, size_t *ret_used)
{
    const struct server_limits *l = server_limits(h->c->server);
    struct http1_limits limits = {(size_t)l->header_max, (size_t)l->header_count_max};
    struct err e;
    int st;

    if (h->ended_count >= (size_t)i64_min(ENDED_MAX, l->requests_per_conn) && in.n > 0) {
        h->stalled = true; /* h1_sent resumes it */
        return false;
    }
    st = in.n > 0 ? http1_scan(&h->scan, in, &limits, &e) : 0;
    if (st < 0) {
        conn_refuse(h->c, -st, path_asked(in), &e);
        return false;
    }
    if (st == 0) {
        if (h->eof)
            conn_close(h->c);
        else if (in.n > 0 && h->c->wait != CONN_WAIT_HEAD)
            conn_wait(h->c, CONN_WAIT_HEAD);
        return false;
    }
    *ret_used = h->scan.at;
    begin(h, in);
    return true;
}

static void bad_body(struct h1 *h, int status, const struct err *e)
{
    metric_inc(&metric_bad_requests, 1);
    h->keep_alive = false;
    if (h->x)
        xchg_refuse(h->x, status, e);
    else
        conn_close(h->c);
}

static void body_complete(struct h1 *h)
{
    struct xchg *x = h->x;
    struct err e;
    int st = http1_body_trailers(&h->body, &x->arena, &x->trailers, &x->trailer_count, &e);

    http1_body_done(&h->body);
    if (st < 0) {
        bad_body(h, -st, &e);
        return;
    }
    h->phase = REPLY;
    conn_wait(h->c, CONN_WAIT_NOTHING);
    xchg_body_end(x);
}

/* The peer owes body bytes: send 100 Continue first if the client waits for it. */
static void await_body(struct h1 *h)
{
    if (h->expect && h->x->status == 0)
        (void)!stream_write(h->c->stream, "HTTP/1.1 100 Continue\r\n\r\n", 25);
    h->expect = false;
    if (h->c->wait != CONN_WAIT_BODY)
        conn_wait(h->c, CONN_WAIT_BODY);
}

static bool step_body(struct h1 *h, struct str in, size_t *ret_used)
{
    struct xchg *x = h->x;
    struct str part;
    struct err e;
    int st;

    if (!xchg_wants_body(x)) {
        if (h->phase == BODY && h->c->wait != CONN_WAIT_NOTHING)
            conn_wait(h->c, CONN_WAIT_NOTHING);
        if (h->phase != BODY || !http1_body_is_complete(&h->body) || !x->ops || !x->ops->body_end ||
            x->body_told)
            return h->phase != BODY;
    }
    if (http1_body_is_complete(&h->body)) {
        body_complete(h);
        return true;
    }
    if (h->unconsumed >= WINDOW) {
        conn_wait(h->c, CONN_WAIT_NOTHING);
        return false;
    }
    if (in.n == 0) {
        await_body(h);
        return false;
    }
    h->expect = false;
    in.n = size_min(in.n, WINDOW - h->unconsumed);
    st = http1_body_next(&h->body, in, ret_used, &part, &e);
    if (st < 0) {
        bad_body(h, -st, &e);
        return false;
    }
    conn_wait(h->c, CONN_WAIT_BODY);
    h->unconsumed += part.n;
    if (part.n > 0)
        xchg_body(x, part);
    return true;
}

static bool step_drain(struct h1 *h, struct str in, size_t *ret_used)
{
    struct str part;
    struct err e;

    if (!http1_body_is_complete(&h->body)) {
        if (in.n == 0 && h->eof)
            conn_close(h->c);
        if (in.n == 0)
            return false;
        if (http1_body_next(&h->body, in, ret_used, &part, &e) < 0) {
            bad_body(h, 400, &e);
            return false;
        }
        h->drained += *ret_used;
        if (h->drained > DRAIN_MAX)
            conn_close(h->c);
        return true;
    }
    http1_body_done(&h->body);
    h->phase = HEAD;
    conn_wait(h->c, CONN_WAIT_REQUEST);
    return true;
}

static bool step_raw(struct h1 *h, struct str in, size_t *ret_used)
{
    in.n = size_min(in.n, WINDOW - size_min(WINDOW, h->unconsumed));
    if (in.n == 0)
        return false;
    *ret_used = in.n;
    h->unconsumed += in.n;
    xchg_body(h->x, in);
    return true;
}

static bool step(struct h1 *h, struct str in, size_t *ret_used)
{
    switch (h->phase) {
    case HEAD:
        return step_head(h, in, ret_used);
    case BODY:
        return step_body(h, in, ret_used);
    case DRAIN:
        return step_drain(h, in, ret_used);
    case RAW:
        return h->x && step_raw(h, in, ret_used);
    case REPLY:
        break;
    }
    return false;
}

static size_t h1_data(struct conn *c, struct str in)
{
    struct h1 *h = c->state;
    size_t used = 0;
    bool more = true;

    h->in_data = true;
    while (more && !c->closing) {
        size_t n = 0;

        more = step(h, str_skip(in, used), &n);
        used += n;
    }
    h->in_data = false;
    return c->closing ? in.n : used;
}

/* A peer that closes its end while we owe a reply is gone: clients do not half-close. */
static void h1_eof(struct conn *c)
{
    struct h1 *h = c->state;

    h->eof = true;
    if (h->x && h->phase == RAW && h->x->ops && h->x->ops->body_end)
        xchg_body_end(h->x);
    else if (h->x)
        conn_cut(c);
    else
        stream_read_on(c->stream); /* kept input may hold whole requests */
}

/* Input that stays unread until the reply has ended hides the end of file after it. */
static void h1_hangup(struct conn *c)
{
    struct h1 *h = c->state;

    if (h->x && (h->phase == REPLY || (h->phase == RAW && h->x->hangup_ends) ||
                 (h->phase == BODY && !xchg_wants_body(h->x))))
        conn_cut(c);
}

static void h1_writable(struct conn *c)
{
    struct h1 *h = c->state;

    if (h->x)
        xchg_drained(h->x);
}

static bool h1_stalled(struct conn *c)
{
    struct h1 *h = c->state;

    return h->x && xchg_stalled(h->x);
}

static void h1_sent(struct conn *c)
{
    struct h1 *h = c->state;
    uint64_t sent = stream_sent(c->stream);

    while (h->ended && h->ended->sent_at <= sent) {
        struct xchg *x = h->ended;

        h->ended = x->next;
        if (!h->ended)
            h->tail = &h->ended;
        h->ended_count--;
        xchg_gone(x, true);
    }
    if (h->stalled && !h->ended && !c->closing) {
        h->stalled = false;
        stream_read_on(c->stream);
    }
}

static void h1_shutdown(struct conn *c)
{
    struct h1 *h = c->state;

    h->keep_alive = false;
    if (!h->x)
        conn_close(c);
}

static void h1_gone(struct conn *c)
{
    struct h1 *h = c->state;
    struct xchg *x;

    h1_sent(c);
    while ((x = h->ended)) {
        h->ended = x->next;
        xchg_gone(x, false);
    }
    if (h->x)
        xchg_gone(TAKE(h->x), false);
    http1_body_done(&h->body);
}

static void h1_timeout(struct conn *c)
{
    struct h1 *h = c->state;
    struct err e;

    (void)err_set(&e, ERR_TIMEOUT, 0, "the request did not arrive in time");
    if (c->wait == CONN_WAIT_HEAD)
        conn_refuse(c, 408, STR(""), &e);
    else if (c->wait == CONN_WAIT_BODY)
        bad_body(h, 408, &e);
    else if (stream_pending(c->stream) == 0) /* otherwise the write timeout runs */
        conn_close(c);
}

const struct conn_proto conn_h1 = {
    .name = "h1",
    .start = h1_start,
    .data = h1_data,
    .eof = h1_eof,
    .writable = h1_writable,
    .shutdown = h1_shutdown,
    .gone = h1_gone,
    .sent = h1_sent,
    .timeout = h1_timeout,
    .hangup = h1_hangup,
    .stalled = h1_stalled,
    .room = sizeof(struct h1),
};

/* Decides how the end of the reply's body is marked, and whether the connection is kept. */
static void choose_framing(struct h1 *h, struct xchg *x, const struct http_header *length)
{
    uint64_t n = 0;
    int64_t declared = x->req.content_length;

    if (length && (length->value.n > 18 || str_parse_u64(length->value, &n) < 0))
        length = NULL;
    if (length || x->head_only)
        h->reply_left = x->head_only ? 0 : (int64_t)n;
    else
        h->reply_left = x->req.version == HTTP_1_1 ? LEFT_CHUNKED : LEFT_UNTIL_CLOSE;
    if (h->reply_left == LEFT_UNTIL_CLOSE || x->status == 413)
        h->keep_alive = false; /* after a 413 the rest of the body is too long to read */
    if (h->phase == BODY && !http1_body_is_complete(&h->body) &&
        (h->expect || declared - x->body_seen > DRAIN_MAX))
        h->keep_alive = false;
}

static bool is_ours(struct str name) /* connection fields, which only this layer sets */
{
    return str_eq_c(name, "connection") || str_eq_c(name, "transfer-encoding") ||
           str_eq_c(name, "keep-alive");
}

static size_t head_size(const struct http_header *fields, size_t count)
{
    size_t n = 256; /* status line, date, framing */

    for (size_t i = 0; i < count; i++)
        n += fields[i].name.n + fields[i].value.n + 4;
    return n;
}

static void h1_head(struct xchg *x, int status, const struct http_header *fields, size_t count)
{
    struct h1 *h = x->state;
    const struct http_header *length = NULL;
    struct buf *out = stream_out(h->c->stream);
    char *start, *p;
    int r = buf_reserve(out, size_max(head_size(fields, count), 960), &start);

    assert(r == 0);
    p = put_status_line(start, status);
    p = put_field(p, STR("date"), conn_date(h->c));
    for (size_t i = 0; i < count; i++) {
        if (fields[i].name.n == 14 && str_eq_c(fields[i].name, "content-length"))
            length = &fields[i];
        if (fields[i].name.n >= 10 && is_ours(fields[i].name))
            continue;
        p = put_field(p, fields[i].name, fields[i].value);
    }
    choose_framing(h, x, length);
    if (h->reply_left == LEFT_CHUNKED)
        p = put_field(p, STR("transfer-encoding"), STR("chunked"));
    if (!h->keep_alive)
        p = put_field(p, STR("connection"), STR("close"));
    else if (x->req.version == HTTP_1_0)
        p = put_field(p, STR("connection"), STR("keep-alive"));
    p = put(p, "\r\n", 2);
    buf_added(out, (size_t)(p - start));
    stream_flush_soon(h->c->stream);
}

static int h1_write(struct xchg *x, const void *p, size_t n)
{
    struct h1 *h = x->state;
    struct stream *s = h->c->stream;

    if (h->phase == RAW || h->reply_left == LEFT_UNTIL_CLOSE)
        return stream_write(s, p, n);
    if (h->reply_left == LEFT_CHUNKED) {
        char size[24];
        int digits = snprintf(size, sizeof size, "%zx\r\n", n);

        return stream_write_pieces(
            s, (struct str[]){str_make(size, (size_t)digits), {p, n}, STR("\r\n")}, 3);
    }
    if ((int64_t)n > h->reply_left) {
        log_error("a reply is longer than its content-length", LOG_S("path", x->req.path));
        xchg_abort(x);
        return 0;
    }
    h->reply_left -= (int64_t)n;
    return stream_write(s, p, n);
}

static void write_last_chunk(struct buf *out, const struct http_header *trailers, size_t count)
{
    buf_add_c(out, "0\r\n");
    for (size_t i = 0; i < count; i++)
        buf_printf(out, STR_FMT ": " STR_FMT "\r\n", STR_ARG(trailers[i].name),
                   STR_ARG(trailers[i].value));
    buf_add_c(out, "\r\n");
}

static void h1_end(struct xchg *x, const struct http_header *trailers, size_t count)
{
    struct h1 *h = x->state;
    struct stream *s = h->c->stream;

    if (h->phase != RAW && h->reply_left > 0) {
        log_error("a reply is shorter than its content-length", LOG_S("path", x->req.path));
        x->reply_ended = false;
        xchg_abort(x);
        return;
    }
    if (h->phase != RAW && h->reply_left == LEFT_CHUNKED)
        write_last_chunk(stream_out(s), trailers, count);
    stream_flush_soon(s);
    x->sent_at = stream_sent(s) + stream_pending(s);
    x->next = NULL;
    *h->tail = x;
    h->tail = &x->next;
    h->ended_count++;
    h->x = NULL;
    if (!h->keep_alive || h->phase == RAW) {
        conn_close(h->c);
        return;
    }
    h->drained = 0;
    h->phase = h->phase == BODY && !http1_body_is_complete(&h->body) ? DRAIN : HEAD;
    conn_wait(h->c, h->phase == DRAIN ? CONN_WAIT_BODY : CONN_WAIT_REQUEST);
    if (!h->in_data)
        stream_read_on(s);
}

static void h1_abort(struct xchg *x)
{
    conn_cut(x->conn);
}

static void h1_consume(struct xchg *x, size_t n)
{
    struct h1 *h = x->state;

    if (h->x != x)
        return;
    assert(n <= h->unconsumed);
    h->unconsumed -= n;
    if (!h->in_data)
        stream_read_on(h->c->stream);
}

static void h1_upgrade(struct xchg *x, const struct http_header *fields, size_t count)
{
    struct h1 *h = x->state;
    struct buf *out = stream_out(h->c->stream);

    if ((h->phase != BODY && h->phase != REPLY) || !http1_body_is_complete(&h->body)) {
        xchg_abort(x); /* raw bytes would start in the middle of a body */
        return;
    }
    buf_add_c(out, "HTTP/1.1 101 Switching Protocols\r\n");
    if (!http_get(fields, count, "connection"))
        buf_add_c(out, "connection: Upgrade\r\n");
    for (size_t i = 0; i < count; i++)
        buf_printf(out, STR_FMT ": " STR_FMT "\r\n", STR_ARG(fields[i].name),
                   STR_ARG(fields[i].value));
    buf_add_c(out, "\r\n");
    stream_flush_soon(h->c->stream);
    h->phase = RAW;
    h->unconsumed = 0;
    x->status = 101;
    x->body_max = -1;
    x->body_ended = x->body_told = false;
    conn_wait(h->c, CONN_WAIT_NOTHING);
    if (!h->in_data)
        stream_read_on(h->c->stream);
}

static const struct xchg_proto h1_xchg = {
    .head = h1_head,
    .write = h1_write,
    .end = h1_end,
    .abort = h1_abort,
    .consume = h1_consume,
    .upgrade = h1_upgrade,
};
