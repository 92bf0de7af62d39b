/* ws_client: the client side of a WebSocket. */
#include "net/ws_client.h"

#include "base/enc.h"
#include "base/mem.h"
#include "base/rnd.h"

#define REFUSAL_MAX (64 * 1024) /* of the body of a reply other than 101 */
#define GOODBYE_MS 2000         /* for the server's close frame */
#define SILENT_TICKS 3
#define KEY_SIZE 16
#define OWN_HEADERS 5

enum state { OPENING, OPEN, CLOSING, ENDED };

struct ws_client {
    struct client *client;
    const struct ws_client_ops *ops;
    void *arg;
    uv_timer_t timer; /* pings while open, the close timeout while closing */
    struct ws_reader in;
    struct buf held; /* arrived while paused */
    struct buf out;
    struct buf body;
    struct buf reason;
    struct err e;
    char accept[WS_ACCEPT_SIZE];
    char *protocol; /* those offered */
    char *chosen;
    int64_t ping_ms;
    int status, code, silent;
    enum state state;
    bool paused, in_pump;
};

/* --- the end --- */

static void on_timer_closed(uv_handle_t *h)
{
    struct ws_client *w = h->data;

    ws_reader_done(&w->in);
    buf_done(&w->held);
    buf_done(&w->out);
    buf_done(&w->body);
    buf_done(&w->reason);
    mem_free(w->protocol);
    mem_free(w->chosen);
    mem_free(w);
}

static void on_closed(struct client *c, const struct err *e)
{
    struct ws_client *w = client_arg(c);
    struct ws_client_end end = {.code = w->code ? w->code : WS_VANISHED,
                                .reason = buf_str(&w->reason),
                                .status = w->status == 101 ? 0 : w->status,
                                .body = buf_str(&w->body)};

    if (w->state == ENDED || w->state == CLOSING)
        end.e = w->e;
    else if (e->code != ERR_NONE)
        end.e = *e;
    else if (!end.status)
        (void)err_set(&end.e, ERR_UNAVAILABLE, 0, "the server closed the connection");
    w->state = ENDED;
    w->ops->closed(w, &end);
    uv_close((uv_handle_t *)&w->timer, on_timer_closed);
}

/* w->e has the reason. */
static void client_end(struct ws_client *w)
{
    if (w->state == ENDED)
        return;
    w->state = ENDED;
    client_cancel(w->client);
}

void ws_client_cancel(struct ws_client *w)
{
    if (w->state == ENDED)
        return;
    (void)err_set(&w->e, ERR_CANCELLED, 0, "the connection was ended");
    client_end(w);
}

/* --- output --- */

static int flush_out(struct ws_client *w)
{
    int r = client_write(w->client, buf_data(&w->out), buf_len(&w->out));

    buf_clear(&w->out);
    return r;
}

static int send_frame(struct ws_client *w, enum ws_op op, struct str data)
{
    unsigned char mask[4];

    rnd_bytes(mask, sizeof mask); /* §10.3: it must be unpredictable */
    ws_write(&w->out, op, data, mask);
    return flush_out(w);
}

static void send_close(struct ws_client *w, int code, const char *reason)
{
    unsigned char mask[4];

    rnd_bytes(mask, sizeof mask);
    ws_write_close(&w->out, code, str_of(reason), mask);
    (void)!flush_out(w);
}

int ws_client_send(struct ws_client *w, enum ws_op kind, struct str data)
{
    assert(w->state != OPENING);
    return w->state == OPEN ? send_frame(w, kind, data) : 0;
}

/* --- timeouts --- */

static void on_goodbye_late(uv_timer_t *t)
{
    client_end(t->data);
}

static void on_silence(uv_timer_t *t)
{
    struct ws_client *w = t->data;

    if (w->state != OPEN || w->paused) /* while paused, no pong would be read */
        return;
    if (++w->silent >= SILENT_TICKS) {
        (void)err_set(&w->e, ERR_TIMEOUT, 0, "the server no longer answers");
        client_end(w);
    } else {
        (void)!send_frame(w, WS_OP_PING, (struct str){0});
    }
}

void ws_client_close(struct ws_client *w, int code, const char *reason)
{
    if (w->state == OPENING)
        ws_client_cancel(w);
    if (w->state != OPEN)
        return;
    send_close(w, code, reason);
    w->state = CLOSING;
    (void)uv_timer_start(&w->timer, on_goodbye_late, GOODBYE_MS, 0);
    ws_client_pause(w, false);
}

/* --- input --- */

static void fail_reading(struct ws_client *w, int code)
{
    if (w->state == OPEN)
        send_close(w, code, "");
    (void)err_set(&w->e, ERR_UNAVAILABLE, 0, "the server sent an invalid WebSocket frame (%d)",
                  code);
    client_end(w);
}

static void take_close(struct ws_client *w, const struct ws_event *ev)
{
    w->code = ev->code;
    buf_add_str(&w->reason, ev->data);
    if (w->state == OPEN)
        send_close(w, ev->code, "");
    client_end(w);
}

static void take_event(struct ws_client *w, const struct ws_event *ev)
{
    switch (ev->op) {
    case WS_OP_CLOSE:
        take_close(w, ev);
        break;
    case WS_OP_PING:
        if (w->state == OPEN)
            (void)!send_frame(w, WS_OP_PONG, ev->data);
        break;
    case WS_OP_TEXT:
    case WS_OP_BINARY:
        if (w->state == OPEN && w->ops->message)
            w->ops->message(w, ev->op, ev->data);
        break;
    case WS_OP_MORE:
    case WS_OP_PONG:
        break;
    }
}

static struct str read_frames(struct ws_client *w, struct str in)
{
    struct ws_event ev;

    while (w->state != ENDED && !w->paused) {
        int r = ws_reader_next(&w->in, &in, &ev);

        if (r < 0)
            fail_reading(w, -r);
        if (r <= 0)
            break;
        take_event(w, &ev);
    }
    return in;
}

/* Input that arrives while paused stays in `held` and in the client's window, which slows the
 * server. */
static void on_body(struct client *c, struct str part)
{
    struct ws_client *w = client_arg(c);
    struct str rest;

    w->silent = 0;
    if (w->status != 101) {
        size_t room = REFUSAL_MAX - buf_len(&w->body);

        buf_add(&w->body, part.p, size_min(part.n, room));
        client_consume(c, part.n);
        return;
    }
    if (w->paused || w->in_pump || buf_len(&w->held) > 0) {
        buf_add_str(&w->held, part);
        return;
    }
    w->in_pump = true;
    rest = read_frames(w, part);
    w->in_pump = false;
    buf_add_str(&w->held, rest);
    client_consume(c, part.n - rest.n);
    if (!w->paused && rest.n > 0)
        ws_client_pause(w, false);
}

void ws_client_pause(struct ws_client *w, bool on)
{
    w->paused = on;
    while (!w->paused && !w->in_pump && w->state != ENDED && buf_len(&w->held) > 0) {
        AUTO(buf_done) struct buf part = w->held;
        struct str rest;

        w->held = (struct buf){0};
        w->in_pump = true;
        rest = read_frames(w, buf_str(&part));
        w->in_pump = false;
        buf_add_str(&w->held, rest);
        client_consume(w->client, buf_len(&part) - rest.n);
    }
}

/* --- the handshake --- */

static bool header_is(const struct http_header *h, size_t count, const char *name,
                      const char *value)
{
    const struct http_header *found = http_get(h, count, name);

    return found && str_eq_c(found->value, value);
}

static bool is_offered(const struct ws_client *w, const struct http_header *chosen)
{
    struct str rest = str_of(w->protocol);

    while (chosen && rest.n > 0)
        if (str_eq(str_trim(str_cut(rest, ',', &rest)), chosen->value))
            return true;
    return false;
}

static const char *handshake_fault(const struct ws_client *w, const struct http_header *h,
                                   size_t count)
{
    const struct http_header *upgrade = http_get(h, count, "upgrade");

    if (!upgrade || !str_case_eq_c(upgrade->value, "websocket"))
        return "it switched to another protocol";
    if (!header_is(h, count, "sec-websocket-accept", w->accept))
        return "its reply does not match the key";
    if (w->protocol && !is_offered(w, http_get(h, count, "sec-websocket-protocol")))
        return "it does not support the requested subprotocol";
    if (http_get(h, count, "sec-websocket-extensions"))
        return "it uses an extension that was not requested";
    return NULL;
}

static void on_head(struct client *c, int status, const struct http_header *h, size_t count)
{
    struct ws_client *w = client_arg(c);
    const char *fault = status == 101 ? handshake_fault(w, h, count) : NULL;

    w->status = status;
    if (fault) {
        (void)err_set(&w->e, ERR_UNAVAILABLE, 0, "the WebSocket handshake failed: %s", fault);
        client_end(w);
    }
    if (status != 101 || w->state != OPENING)
        return;
    w->state = OPEN;
    if (w->protocol)
        w->chosen = str_dup(http_get(h, count, "sec-websocket-protocol")->value);
    if (w->ping_ms > 0)
        (void)uv_timer_start(&w->timer, on_silence, (uint64_t)w->ping_ms, (uint64_t)w->ping_ms);
    if (w->ops->opened)
        w->ops->opened(w);
}

static void on_writable(struct client *c)
{
    struct ws_client *w = client_arg(c);

    if (w->state == OPEN && w->ops->drained)
        w->ops->drained(w);
}

static void make_headers(const struct ws_client_request *r, struct ws_client *w, struct buf *key,
                         struct http_header *to)
{
    unsigned char raw[KEY_SIZE];
    struct http_header own[OWN_HEADERS] = {{STR("connection"), STR("Upgrade")},
                                           {STR("upgrade"), STR("websocket")},
                                           {STR("sec-websocket-version"), STR("13")}};

    rnd_bytes(raw, sizeof raw);
    enc_base64(key, raw, sizeof raw);
    ws_accept_key(buf_str(key), w->accept);
    own[3] = (struct http_header){STR("sec-websocket-key"), buf_str(key)};
    own[4] = (struct http_header){STR("sec-websocket-protocol"), str_of(r->protocol)};
    memcpy(to, own, sizeof own);
    if (r->header_count > 0)
        memcpy(to + OWN_HEADERS - (r->protocol ? 0 : 1), r->headers, r->header_count * sizeof *to);
}

int ws_client_start(const struct ws_client_request *r, struct ws_client **ret, struct err *e)
{
    static const struct client_ops ops = {
        .writable = on_writable, .head = on_head, .body = on_body, .closed = on_closed};
    AUTO(mem_free)
    struct http_header *headers = xzalloc((OWN_HEADERS + r->header_count) * sizeof *headers);
    AUTO(buf_done) struct buf key = {0};
    struct ws_client *w = xzalloc(sizeof *w);

    assert(r->ops && r->ops->closed && r->message_max > 0);
    w->ops = r->ops;
    w->arg = r->arg;
    w->ping_ms = r->ping_ms;
    w->in.limit = r->message_max;
    w->protocol = r->protocol ? xstrdup(r->protocol) : NULL;
    make_headers(r, w, &key, headers);
    if (client_start(&(struct client_request){.loop = r->loop,
                                              .url = r->url,
                                              .tls = r->tls,
                                              .method = "GET",
                                              .target = r->target,
                                              .headers = headers,
                                              .header_count = OWN_HEADERS + r->header_count -
                                                              (r->protocol ? 0 : 1),
                                              .upgrade = true,
                                              .connect_ms = r->connect_ms,
                                              .head_ms = r->head_ms,
                                              .idle_ms = r->head_ms,
                                              .ops = &ops,
                                              .arg = w},
                     &w->client, e) < 0) {
        mem_free(w->protocol);
        mem_free(w);
        return -1;
    }
    if (uv_timer_init(r->loop, &w->timer) < 0)
        abort(); /* it only fills the struct */
    w->timer.data = w;
    *ret = w;
    return 0;
}

void *ws_client_arg(const struct ws_client *w)
{
    return w->arg;
}

const char *ws_client_protocol(const struct ws_client *w)
{
    return w->chosen;
}
