#include "fake_net.h"
#include "net/grpc.h"
#include "net/ws.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t begun, closed;

static void on_closed(struct xchg *x, bool done)
{
    (void)x;
    (void)done;
    closed++;
}

static void on_body(struct xchg *x, struct str part)
{
    (void)!xchg_write(x, part.p, part.n);
    xchg_consume(x, part.n);
}

static void on_body_end(struct xchg *x)
{
    xchg_end(x, NULL, 0);
}

static void grpc_message(struct grpc_call *c, struct str message)
{
    (void)!grpc_send(c, message);
    grpc_consume(c);
}

static void grpc_closed(struct grpc_call *c)
{
    (void)c;
    closed++;
}

static void grpc_begin(struct grpc_call *c, void *arg)
{
    static const struct grpc_ops ops = {
        .message = grpc_message, .half_closed = grpc_finish, .closed = grpc_closed};

    (void)arg;
    begun++;
    grpc_handle(c, &ops, NULL);
}

static void ws_message(struct ws *w, enum ws_kind kind, struct str text)
{
    (void)!ws_send(w, kind, text);
}

static void ws_closed(struct ws *w, int code, struct str reason)
{
    (void)w;
    (void)code;
    (void)reason;
    closed++;
}

/* By the path: a reply at once, an echo, a gRPC call, a WebSocket, an abort, or no reply at all. */
static void handle(struct xchg *x, void *arg)
{
    static const struct xchg_ops echo = {
        .body = on_body, .body_end = on_body_end, .closed = on_closed};
    static const struct xchg_ops hang = {.closed = on_closed};
    static const struct ws_ops ws = {.message = ws_message, .closed = ws_closed};
    static const struct grpc_method method = {"/g", grpc_begin};
    struct str path = xchg_req(x)->path;

    (void)arg;
    if (grpc_is_call(x)) {
        grpc_start(x, &method, NULL);
        return;
    }
    if (ws_is_handshake(x)) {
        if (ws_accept(x, NULL, &ws, NULL))
            begun++;
        return;
    }
    begun++;
    xchg_handle(x, str_eq_c(path, "/hang") ? &hang : &echo, NULL);
    if (str_eq_c(path, "/abort"))
        xchg_abort(x);
    else if (str_eq_c(path, "/"))
        xchg_reply(x, 200, "text/plain", STR("hello"));
    else if (!str_eq_c(path, "/hang"))
        xchg_head(x, 200, NULL, 0);
}

/* The input is what a client sends, with or without the preface; it arrives in parts. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct str preface = STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    struct str in = str_make(data, size);
    size_t step = size > 0 ? (size_t)data[size - 1] * 4 + 1 : 1;

    begun = closed = 0;
    fake_start(&conn_h2, handle);
    if (!str_starts(in, preface))
        fake_feed(preface);
    while (in.n > 0 && !fake_conn.closing) {
        struct str part = str_make(in.p, size_min(step, in.n));

        fake_feed(part);
        in = str_skip(in, part.n);
        buf_clear(&fake_stream.out);
        if (fake_conn.wait == CONN_WAIT_NOTHING && !fake_conn.closing)
            fake_conn.proto->writable(&fake_conn);
    }
    if (size % 3 == 0 && !fake_conn.closing)
        fake_conn.proto->shutdown(&fake_conn);
    fake_turn();
    fake_end();
    assert(begun == closed);
    return 0;
}
