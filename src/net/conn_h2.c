/* conn_h2: HTTP/2 on a connection: incoming frames, flood limits, life cycle. */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/h2.h"

#include <errno.h>

/* Each frame that is cheap for the peer and costly for us (RST_STREAM, PING, SETTINGS, PRIORITY,
 * empty DATA, anything that makes us reset a stream) takes one token.  Browsers and gRPC clients
 * that cancel in bursts stay far below; rapid reset (CVE-2023-44487, CVE-2025-8671) and
 * control-frame floods (CVE-2019-9511…9518) do not. */
#define CALM_BURST 500.0
#define CALM_PER_SECOND 50.0
#define CONTINUATIONS_MAX 7 /* of 16 KiB each; older nghttp2 has no limit (CVE-2024-28182) */
#define LINGER_MS 500
#define H2_COST (8 * 1024)     /* approximate bytes of a session with its header table */
#define STREAM_COST (1 * 1024) /* … and of one stream, without its exchange */
/* times the header limit: beyond that, end the connection, not the stream */
#define HEAD_OVER_MAX 4

static struct h2_stream *stream_of(nghttp2_session *session, int32_t id)
{
    return nghttp2_session_get_stream_user_data(session, id);
}

static const struct server_limits *limits_of(const struct h2 *h)
{
    return server_limits(h->conn->server);
}

static int spend_calm(struct h2 *h)
{
    int64_t now = clock_mono_ms();

    h->calm += (double)(now - h->calm_at_ms) / 1000.0 * CALM_PER_SECOND;
    if (h->calm > CALM_BURST)
        h->calm = CALM_BURST;
    h->calm_at_ms = now;
    h->calm -= 1;
    if (h->calm >= 0)
        return 0;
    h->calm_lost = true;
    return NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *hd, void *arg)
{
    struct h2 *h = arg;

    (void)session;
    switch (hd->type) {
    case NGHTTP2_DATA:
        return hd->length == 0 && !(hd->flags & NGHTTP2_FLAG_END_STREAM) ? spend_calm(h) : 0;
    case NGHTTP2_CONTINUATION:
        if (++h->continuations <= CONTINUATIONS_MAX)
            return 0;
        h->calm_lost = true;
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    case NGHTTP2_HEADERS:
    case NGHTTP2_WINDOW_UPDATE:
        return 0;
    default: /* RST_STREAM, PING, SETTINGS, PRIORITY, GOAWAY */
        return spend_calm(h);
    }
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    struct h2 *h = arg;
    struct h2_stream *s;

    h2_head_clear(&h->head);
    h->head_open = true;
    h->head_over = false;
    h->continuations = 0;
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    s = xzalloc(sizeof *s);
    s->h2 = h;
    s->id = frame->hd.stream_id;
    list_init(&s->fresh);
    list_push(&h->streams, &s->link);
    h->stream_count++;
    (void)nghttp2_session_set_stream_user_data(session, s->id, s);
    return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags, void *arg)
{
    struct h2 *h = arg;
    const struct server_limits *l = limits_of(h);

    (void)session;
    (void)frame;
    (void)flags;
    if (h2_head_add(&h->head, str_make(name, name_n), str_make(value, value_n), l->header_max,
                    l->header_count_max) == 0)
        return 0;
    h->head_over = true;
    if (h->head.cost <= l->header_max * HEAD_OVER_MAX)
        return 0;
    h->calm_lost = true;
    return NGHTTP2_ERR_CALLBACK_FAILURE;
}

/* nghttp2 would drop such a field and continue with an incomplete head. */
static int on_invalid_header(nghttp2_session *session, const nghttp2_frame *frame,
                             const uint8_t *name, size_t name_n, const uint8_t *value,
                             size_t value_n, uint8_t flags, void *arg)
{
    (void)name;
    (void)name_n;
    (void)value;
    (void)value_n;
    (void)flags;
    (void)arg;
    (void)nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
                                    NGHTTP2_PROTOCOL_ERROR);
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static void refuse(struct h2_stream *s, enum err_code code, const char *why)
{
    struct err e;

    (void)err_set(&e, code, 0, "%s", why);
    xchg_fail(s->x, &e);
}

static void make_xchg(struct h2_stream *s)
{
    s->x = xchg_new(s->h2->conn, &h2_xchg_proto, s);
    s->x->req.version = HTTP_2;
}

static void begin_request(struct h2 *h, struct h2_stream *s)
{
    struct xchg *x;
    const char *twice;
    char why[80];
    int r;

    make_xchg(s);
    x = s->x;
    x->head_size = h->head.cost;
    if (h->head_over) {
        refuse(s, ERR_HEADERS_TOO_LARGE, "the request's header fields exceed the limit");
        return;
    }
    r = h2_head_request(&h->head, &x->arena, s->received, &x->req);
    if (r == -EPROTO) {
        (void)nghttp2_submit_rst_stream(h->session, NGHTTP2_FLAG_NONE, s->id,
                                        NGHTTP2_PROTOCOL_ERROR);
        s->refused = true;
        return;
    }
    if (r < 0) {
        refuse(s, r == -EOPNOTSUPP ? ERR_UNSUPPORTED : ERR_INVALID,
               r == -EOPNOTSUPP ? "CONNECT is not supported here"
                                : "the :path is not a request path");
        return;
    }
    twice = http_repeated(&x->req);
    if (twice) {
        (void)snprintf(why, sizeof why, "bad request: the field '%s' appears twice", twice);
        refuse(s, ERR_INVALID, why);
        return;
    }
    s->tunnel = http_req_header(&x->req, ":protocol").p ||
                str_starts(http_req_header(&x->req, "content-type"), STR("application/grpc"));
    s->expect = !s->received && str_case_eq_c(http_req_header(&x->req, "expect"), "100-continue");
    xchg_begin(x);
    if (!s->received && xchg_wants_body(x)) /* or it has replied 413 */
        h2_continue(s);
}

static void end_head(struct h2 *h, const nghttp2_frame *frame, struct h2_stream *s)
{
    h->head_open = false;
    if (frame->headers.cat == NGHTTP2_HCAT_REQUEST)
        begin_request(h, s);
    else if (h->head_over)
        (void)nghttp2_submit_rst_stream(h->session, NGHTTP2_FLAG_NONE, s->id,
                                        NGHTTP2_ENHANCE_YOUR_CALM);
    else if (s->x)
        s->x->trailers = h2_head_fields(&h->head, &s->x->arena, &s->x->trailer_count);
    h2_head_clear(&h->head);
}

static int on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    struct h2 *h = arg;
    struct h2_stream *s;

    if (frame->hd.type == NGHTTP2_PING && (frame->hd.flags & NGHTTP2_FLAG_ACK) && h->shutting_down)
        return nghttp2_submit_goaway(session, NGHTTP2_FLAG_NONE,
                                     nghttp2_session_get_last_proc_stream_id(session),
                                     NGHTTP2_NO_ERROR, NULL, 0);
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
        return 0;
    s = stream_of(session, frame->hd.stream_id);
    if (!s)
        return 0;
    s->received = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
    if (frame->hd.type == NGHTTP2_HEADERS)
        end_head(h, frame, s);
    if (s->received && s->x && !s->aborted && !s->refused)
        xchg_body_end(s->x);
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p, size_t n,
                   void *arg)
{
    struct h2 *h = arg;
    struct h2_stream *s = stream_of(session, id);

    (void)flags;
    h->progress = true;
    if (s && s->sent)
        return nghttp2_session_consume_connection(session, n);
    if (!s || !s->x || s->aborted || s->refused)
        return nghttp2_session_consume(session, id, n);
    s->unconsumed += n;
    xchg_body(s->x, str_make(p, n));
    return 0;
}

/* A stream that the peer made us reset counts like a reset of its own; a handler's abort does
 * not. */
static int reset_sent(struct h2 *h, const struct h2_stream *s)
{
    if (!s || !s->aborted)
        (void)spend_calm(h); /* h2_data checks the result */
    return 0;
}

static void end_lingering(uv_timer_t *timer)
{
    struct h2 *h = timer->data;

    LIST_EACH (&h->streams, node) {
        struct h2_stream *s = LIST_ENTRY(node, struct h2_stream, link);

        if (s->sent && !s->received)
            (void)nghttp2_submit_rst_stream(h->session, NGHTTP2_FLAG_NONE, s->id, NGHTTP2_NO_ERROR);
    }
    h2_schedule(h);
}

/* RFC 9113 §8.1: the reply is complete, and the rest of the request is not needed.  Send the reset
 * a little later: curl 7.88 drops a reply that arrives together with it.  Until then drop input and
 * keep the stream's window shut. */
static void linger(struct h2 *h, struct h2_stream *s)
{
    struct xchg *x = TAKE(s->x);

    if (!uv_is_active((uv_handle_t *)h->linger) && !h->dead)
        (void)uv_timer_start(h->linger, end_lingering, LINGER_MS, 0);
    if (x)
        xchg_gone(x, true);
}

static int on_frame_send(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    struct h2 *h = arg;
    struct h2_stream *s;

    if (frame->hd.type == NGHTTP2_RST_STREAM && frame->rst_stream.error_code != NGHTTP2_NO_ERROR)
        return reset_sent(h, stream_of(session, frame->hd.stream_id));
    if (!(frame->hd.flags & NGHTTP2_FLAG_END_STREAM) ||
        (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA))
        return 0;
    s = stream_of(session, frame->hd.stream_id);
    if (!s)
        return 0;
    s->sent = true;
    if (!s->received)
        linger(h, s);
    return 0;
}

static void free_stream(struct h2_stream *s, bool done)
{
    struct xchg *x = TAKE(s->x);

    list_unlink(&s->link);
    list_unlink(&s->fresh);
    s->h2->stream_count--;
    if (x)
        xchg_gone(x, done);
    buf_done(&s->out);
    mem_free(s);
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *arg)
{
    struct h2_stream *s = stream_of(session, id);

    (void)code;
    (void)arg;
    if (!s)
        return 0;
    if (s->unconsumed > 0)
        (void)nghttp2_session_consume_connection(session, s->unconsumed);
    free_stream(s, s->sent);
    return 0;
}

static nghttp2_session_callbacks *make_callbacks(void)
{
    nghttp2_session_callbacks *cb;

    if (nghttp2_session_callbacks_new(&cb) != 0)
        abort();
    nghttp2_session_callbacks_set_on_begin_frame_callback(cb, on_begin_frame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
    nghttp2_session_callbacks_set_on_invalid_header_callback(cb, on_invalid_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame_recv);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
    nghttp2_session_callbacks_set_on_frame_send_callback(cb, on_frame_send);
    nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_stream_close);
    h2_set_callbacks_out(cb);
    return cb;
}

static nghttp2_session *make_session(struct h2 *h)
{
    nghttp2_session_callbacks *cb = make_callbacks();
    nghttp2_option *o;
    nghttp2_session *session;

    if (nghttp2_option_new(&o) != 0)
        abort();
    nghttp2_option_set_no_auto_window_update(o, 1);
    nghttp2_option_set_no_closed_streams(o, 1); /* priorities of closed streams are not needed */
    nghttp2_option_set_max_settings(o, 32);
    if (nghttp2_session_server_new2(&session, cb, h, o) != 0)
        abort();
    nghttp2_option_del(o);
    nghttp2_session_callbacks_del(cb);
    return session;
}

static void h2_start(struct conn *c)
{
    struct h2 *h = xzalloc(sizeof *h);
    const struct server_limits *l = server_limits(c->server);
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, (uint32_t)l->requests_per_conn},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, H2_STREAM_WINDOW},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)i64_min(l->header_max, UINT32_MAX)},
        {NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1},
    };

    c->state = h;
    h->conn = c;
    h->calm = CALM_BURST;
    h->calm_at_ms = clock_mono_ms();
    list_init(&h->streams);
    list_init(&h->fresh);
    h->idle = xzalloc(sizeof *h->idle);
    (void)uv_idle_init(server_loop(c->server), h->idle);
    h->linger = xzalloc(sizeof *h->linger);
    (void)uv_timer_init(server_loop(c->server), h->linger);
    h->idle->data = h->linger->data = h;
    h->session = make_session(h);
    if (nghttp2_submit_settings(h->session, NGHTTP2_FLAG_NONE, settings, ARRAY_LEN(settings)) !=
            0 ||
        nghttp2_session_set_local_window_size(h->session, NGHTTP2_FLAG_NONE, 0, H2_CONN_WINDOW) !=
            0)
        abort();
    conn_wait(c, CONN_WAIT_REQUEST);
    h2_schedule(h);
}

static void drop_streams(struct h2 *h)
{
    struct list *node;

    while ((node = list_pop(&h->streams))) {
        struct h2_stream *s = LIST_ENTRY(node, struct h2_stream, link);

        (void)nghttp2_session_set_stream_user_data(h->session, s->id, NULL);
        free_stream(s, s->sent);
    }
}

/* Sends GOAWAY with the reason, ends every exchange at once, closes. */
static void break_off(struct h2 *h, uint32_t code)
{
    const uint8_t *p;
    ssize_t n;

    if (h->dead)
        return;
    (void)nghttp2_session_terminate_session(h->session, code);
    while (stream_pending(h->conn->stream) <= STREAM_HIGH &&
           (n = nghttp2_session_mem_send(h->session, &p)) > 0)
        buf_add(stream_out(h->conn->stream), p, (size_t)n);
    stream_flush_soon(h->conn->stream);
    h->dead = true;
    drop_streams(h);
    conn_close(h->conn);
}

/* The session with its header table, an incomplete head, and the streams. */
static int64_t cost_of(const struct h2 *h)
{
    return (stream_peer(h->conn->stream)->tls ? TLS_COST : 0) + H2_COST +
           (int64_t)buf_len(&h->head.bytes) + (int64_t)h->stream_count * STREAM_COST;
}

static size_t h2_data(struct conn *c, struct str bytes)
{
    struct h2 *h = c->state;
    struct err e;
    ssize_t r;

    if (h->dead)
        return bytes.n;
    h->receiving = true;
    r = nghttp2_session_mem_recv(h->session, (const uint8_t *)bytes.p, bytes.n);
    h->receiving = false;
    if (r >= 0 && !h->calm_lost)
        h2_pump(h);
    if (r >= 0 && !h->dead && conn_hold(c, &c->fixed, cost_of(h), &e) < 0) {
        break_off(h, NGHTTP2_ENHANCE_YOUR_CALM);
        return bytes.n;
    }
    if (h->calm_lost || r == NGHTTP2_ERR_FLOODED)
        log_info("http/2 flood", LOG_C("peer", stream_peer(c->stream)->address));
    if (h->calm_lost || r < 0)
        break_off(h, h->calm_lost || r == NGHTTP2_ERR_FLOODED ? NGHTTP2_ENHANCE_YOUR_CALM
                                                              : NGHTTP2_PROTOCOL_ERROR);
    return bytes.n;
}

static void h2_eof(struct conn *c)
{
    break_off(c->state, NGHTTP2_NO_ERROR);
}

static void h2_writable(struct conn *c)
{
    h2_pump(c->state);
}

/* RFC 9113 §6.8: first send a GOAWAY that refuses nothing.  When the PING after it has returned, no
 * request can still be on its way: then send the last stream id. */
static void h2_shutdown(struct conn *c)
{
    struct h2 *h = c->state;

    if (h->dead || h->shutting_down)
        return;
    h->shutting_down = true;
    if (h->stream_count > 0) {
        (void)nghttp2_submit_shutdown_notice(h->session);
        (void)nghttp2_submit_ping(h->session, NGHTTP2_FLAG_NONE, NULL);
    }
    h2_schedule(h);
}

static void h2_timeout(struct conn *c)
{
    break_off(c->state, NGHTTP2_NO_ERROR);
}

static void handle_closed(uv_handle_t *handle)
{
    mem_free(handle);
}

static void h2_gone(struct conn *c)
{
    struct h2 *h = TAKE(c->state);

    if (!h)
        return;
    h->dead = true;
    drop_streams(h);
    uv_close((uv_handle_t *)h->idle, handle_closed);
    uv_close((uv_handle_t *)h->linger, handle_closed);
    nghttp2_session_del(h->session);
    h2_head_done(&h->head);
    mem_free(h);
}

const struct conn_proto conn_h2 = {
    .name = "h2",
    .start = h2_start,
    .data = h2_data,
    .eof = h2_eof,
    .writable = h2_writable,
    .shutdown = h2_shutdown,
    .gone = h2_gone,
    .timeout = h2_timeout,
};
