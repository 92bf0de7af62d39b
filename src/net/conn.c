/* conn: one accepted connection: detects its protocol, runs its timeouts. */
#include "net/conn.h"

#include "base/clock.h"
#include "base/mem.h"
#include "net/metrics.h"
#include "proto/json.h"

#include <time.h>

static const struct str preface = STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

struct str conn_date(const struct conn *c)
{
    static char text[32];
    static size_t n;
    static uint64_t until;
    uint64_t now = uv_now(server_loop(c->server));
    struct tm tm;
    time_t t;

    if (now >= until || n == 0) {
        t = (time_t)(clock_wall_ms() / 1000);
        (void)gmtime_r(&t, &tm);
        n = strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &tm);
        until = now + 200;
    }
    return str_make(text, n);
}

void conn_wait(struct conn *c, enum conn_wait wait)
{
    c->wait = wait;
    c->wait_since_ms = (int64_t)uv_now(server_loop(c->server));
    list_unlink(&c->link);
    list_push(server_conns(c->server, wait), &c->link);
}

int conn_hold(struct conn *c, int64_t *count, int64_t now, struct err *e)
{
    if (now == *count || (c->trusted && now > *count))
        return 0;
    if (server_hold(c->server, c, now - *count, e) < 0)
        return -1;
    *count = now;
    return 0;
}

void conn_close(struct conn *c)
{
    if (c->closing)
        return;
    c->closing = true;
    conn_wait(c, CONN_WAIT_NOTHING); /* from here on the stream's own limits apply */
    stream_close(c->stream);
}

void conn_refuse(struct conn *c, int status, struct str path, const struct err *e)
{
    AUTO(buf_done) struct buf body = {0};
    struct buf *out = stream_out(c->stream);
    struct str date = conn_date(c);

    metric_inc(&metric_bad_requests, 1);
    net_metrics_reply(status);
    server_write_error(c->server, &body, path, e);
    buf_printf(out,
               "HTTP/1.1 %d %s\r\ndate: " STR_FMT "\r\ncontent-type: application/json\r\n"
               "content-length: %zu\r\nconnection: close\r\n\r\n",
               status, http_status_text(status), STR_ARG(date), buf_len(&body));
    buf_add_str(out, buf_str(&body));
    stream_flush_soon(c->stream);
    conn_close(c);
}

void conn_cut(struct conn *c)
{
    c->closing = true;
    stream_cut(c->stream);
}

/* NULL: more bytes are needed. */
static const struct conn_proto *sniff(struct conn *c, struct str bytes)
{
    const char *alpn = stream_alpn(c->stream);
    size_t n = size_min(bytes.n, preface.n);

    if (alpn && strcmp(alpn, "h2") == 0)
        return &conn_h2;
    if (memcmp(bytes.p, preface.p, n) != 0)
        return &conn_h1;
    return n == preface.n ? &conn_h2 : NULL;
}

static void refuse_clear_text(struct conn *c)
{
    struct err e;

    (void)err_set(&e, ERR_INVALID, 0, "this port accepts only TLS");
    (void)err_hint(&e, "use https://");
    conn_refuse(c, 400, STR(""), &e);
}

static size_t take(struct conn *c, struct str bytes)
{
    if (c->closing)
        return bytes.n;
    if (!c->proto) {
        if (bytes.n == 0)
            return 0;
        if (c->listener->tls_only && !stream_peer(c->stream)->tls) {
            refuse_clear_text(c);
            return bytes.n;
        }
        c->proto = sniff(c, bytes);
        if (!c->proto) {
            if (c->wait != CONN_WAIT_HEAD)
                conn_wait(c, CONN_WAIT_HEAD);
            return 0;
        }
        c->proto->start(c);
    }
    return c->proto->data(c, bytes);
}

static size_t on_data(struct stream *s, struct str bytes)
{
    struct conn *c = stream_arg(s);
    size_t taken = take(c, bytes);
    struct err e;

    if (conn_hold(c, &c->kept, c->closing ? 0 : (int64_t)(bytes.n - taken), &e) < 0) {
        conn_refuse(c, err_table[e.code].http, STR(""), &e);
        return bytes.n;
    }
    return taken;
}

static void on_eof(struct stream *s)
{
    struct conn *c = stream_arg(s);

    if (c->closing)
        return;
    if (c->proto)
        c->proto->eof(c);
    else
        conn_close(c);
}

static void on_writable(struct stream *s)
{
    struct conn *c = stream_arg(s);

    if (c->proto && !c->closing)
        c->proto->writable(c);
}

static void on_sent(struct stream *s)
{
    struct conn *c = stream_arg(s);

    if (c->proto && c->proto->sent)
        c->proto->sent(c);
}

static void on_hangup(struct stream *s)
{
    struct conn *c = stream_arg(s);

    if (c->proto && c->proto->hangup && !c->closing)
        c->proto->hangup(c);
}

static bool on_stalled(struct stream *s)
{
    struct conn *c = stream_arg(s);

    return c->proto && c->proto->stalled && !c->closing && c->proto->stalled(c);
}

static void on_handshaking(struct stream *s)
{
    struct conn *c = stream_arg(s);
    struct err e;

    conn_wait(c, CONN_WAIT_HEAD);
    if (conn_hold(c, &c->fixed, c->fixed + TLS_COST, &e) < 0)
        conn_cut(c);
}

static void on_closed(struct stream *s, const struct err *e)
{
    struct conn *c = stream_arg(s);

    (void)e;
    c->closing = true;
    if (c->proto)
        c->proto->gone(c);
    list_unlink(&c->link);
    c->trusted = false;
    (void)!conn_hold(c, &c->kept, 0, &(struct err){0});
    (void)!conn_hold(c, &c->fixed, 0, &(struct err){0});
    server_conn_gone(c->server, c);
    free(c);
}

static const struct stream_ops conn_stream_ops = {
    .data = on_data,
    .eof = on_eof,
    .writable = on_writable,
    .closed = on_closed,
    .sent = on_sent,
    .handshaking = on_handshaking,
    .hangup = on_hangup,
    .stalled = on_stalled,
};

void conn_new(struct server *s, struct stream *stream, const struct listener_info *l,
              struct peer_use *use)
{
    struct conn *c = xzalloc(sizeof *c + conn_h1.room);

    c->server = s;
    c->stream = stream;
    c->listener = l;
    c->use = use;
    list_init(&c->link);
    conn_wait(c, CONN_WAIT_REQUEST);
    stream_keep_max(stream, (size_t)server_limits(s)->header_max);
    stream_handle(stream, &conn_stream_ops, c);
}

void conn_shutdown(struct conn *c)
{
    if (c->closing)
        return;
    if (c->proto)
        c->proto->shutdown(c);
    else
        conn_close(c);
}

/* Do not time out a request that arrived while the loop was busy: timers run before it is read, and
 * a client cannot safely repeat a POST that meets our FIN. */
static void time_out(struct conn *c)
{
    bool came = c->wait == CONN_WAIT_REQUEST && stream_has_input(c->stream);

    if (!came && c->proto && c->proto->timeout)
        c->proto->timeout(c);
    else if (!came)
        conn_close(c);
    if (!c->closing) /* it continues: not again in this sweep */
        conn_wait(c, c->wait);
}

void conn_sweep(struct server *s, int64_t now_ms)
{
    const struct server_limits *l = server_limits(s);
    const int64_t limits[] = {
        [CONN_WAIT_HEAD] = l->header_ms,
        [CONN_WAIT_BODY] = l->body_idle_ms,
        [CONN_WAIT_REQUEST] = l->idle_ms,
    };

    for (int w = CONN_WAIT_HEAD; w <= CONN_WAIT_REQUEST; w++) {
        LIST_EACH (server_conns(s, (enum conn_wait)w), node) {
            struct conn *c = LIST_ENTRY(node, struct conn, link);

            if (now_ms - c->wait_since_ms < limits[w])
                break;
            time_out(c);
        }
    }
}
