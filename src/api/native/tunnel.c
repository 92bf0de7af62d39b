/* tunnel: a TCP tunnel into a sandbox over a WebSocket. */
#include "ops/port.h"

#include "api/native/handlers.h"
#include "api/share/revocable_stream.h"
#include "api/share/sandbox.h"
#include "base/mem.h"
#include "link/guest.h"
#include "net/ws.h"

static const char *const protocols[] = {"holt.tcp.v1", NULL};

struct tunnel {           /* on the heap: freed when both ends are closed */
    struct ws *ws;        /* NULL: closed */
    struct guest_pipe *g; /* NULL: ended */
    struct revocable_stream live;
    struct buf held; /* for the server inside, which does not take it yet */
    size_t owed;     /* bytes from inside that the client has not read */
    int port;
    bool opened, blocked;
    bool eof_held; /* the client has stopped sending; after `held` */
};

static void free_when_done(struct tunnel *t)
{
    if (t->ws || t->g)
        return;
    buf_done(&t->held);
    mem_free(t);
}

/* --- to the server inside --- */

static void push(struct tunnel *t)
{
    if (!t->g || !t->opened)
        return;
    if (buf_len(&t->held) > 0)
        buf_take(&t->held, guest_pipe_write(t->g, buf_str(&t->held)));
    if (t->ws)
        ws_pause(t->ws, buf_len(&t->held) > 0);
    if (buf_len(&t->held) > 0 || !t->eof_held)
        return;
    t->eof_held = false;
    guest_pipe_eof(t->g);
}

static void on_message(struct ws *w, enum ws_kind kind, struct str data)
{
    struct tunnel *t = ws_arg(w);

    if (kind != WS_BINARY) {
        ws_close(w, WS_UNSUPPORTED, "bytes must be sent as binary messages");
        return;
    }
    if (data.n == 0)
        t->eof_held = true;
    buf_add_str(&t->held, data);
    if (!t->opened)
        ws_pause(w, true);
    push(t);
}

static void on_closed(struct ws *w, int code, struct str reason)
{
    struct tunnel *t = ws_arg(w);
    struct guest_pipe *g = TAKE(t->g);

    (void)code, (void)reason;
    t->ws = NULL;
    revocable_stream_end(&t->live);
    if (g)
        guest_pipe_cancel(g);
    free_when_done(t);
}

/* --- from the server inside --- */

static void on_opened(struct guest_pipe *g)
{
    struct tunnel *t = guest_pipe_arg(g);

    t->opened = true;
    push(t);
}

static void on_data(struct guest_pipe *g, struct str bytes)
{
    struct tunnel *t = guest_pipe_arg(g);

    t->owed += bytes.n;
    if (t->ws && ws_send(t->ws, WS_BINARY, bytes) > 0)
        t->blocked = true;
    if (t->blocked)
        return;
    guest_pipe_consume(g, t->owed);
    t->owed = 0;
}

static void on_drained(struct ws *w)
{
    struct tunnel *t = ws_arg(w);

    t->blocked = false;
    if (t->g && t->owed > 0)
        guest_pipe_consume(t->g, t->owed);
    t->owed = 0;
}

static void on_eof(struct guest_pipe *g)
{
    struct tunnel *t = guest_pipe_arg(g);

    if (t->ws)
        (void)!ws_send(t->ws, WS_BINARY, (struct str){0});
}

static void on_room(struct guest_pipe *g)
{
    push(guest_pipe_arg(g));
}

/* on_closed follows, which frees it. */
static void say_end(struct tunnel *t, const struct err *cause)
{
    struct err e = *cause;

    if (e.code == ERR_NONE) {
        ws_close(t->ws, WS_NORMAL, "");
        return;
    }
    err_wrap(&e, "port %d inside", t->port);
    ws_close(t->ws, WS_INTERNAL, e.msg);
}

static void on_done(struct guest_pipe *g, const struct guest_file_done *info, const struct err *e)
{
    struct tunnel *t = guest_pipe_arg(g);

    (void)info;
    t->g = NULL;
    if (t->ws)
        say_end(t, e);
    else
        free_when_done(t);
}

static void on_live_end(struct revocable_stream *l, int ws_code, const char *why)
{
    struct tunnel *t = CONTAINER_OF(l, struct tunnel, live);

    if (t->ws)
        ws_close(t->ws, ws_code, why);
}

/* --- the request --- */

/* Like the proxy: a page shown by a browser must not act with its viewer's session. */
static int check(const struct request *r, struct err *e)
{
    const struct port_tunnel_in *in = r->in;
    int64_t port;

    if (r->how == AUTH_COOKIE) {
        err_set(e, ERR_FORBIDDEN, 0,
                "a session cookie is not accepted for servers inside sandboxes");
        return err_hint(e, "send 'Authorization: Bearer TOKEN'");
    }
    if (str_parse_i64(in->port, &port) < 0 || port < 1 || port > UINT16_MAX)
        return err_set(e, ERR_INVALID, 0, "field 'port' must be a number from 1 to 65535");
    return (int)port;
}

void port_tunnel_run(struct request *r)
{
    static const struct guest_pipe_ops guest_ops = {
        .opened = on_opened, .data = on_data, .eof = on_eof, .room = on_room, .done = on_done};
    static const struct ws_ops ws_ops = {
        .message = on_message, .drained = on_drained, .closed = on_closed};
    const struct port_tunnel_in *in = r->in;
    struct err e = {0};
    int port = check(r, &e);
    struct guest *g;
    struct tunnel *t;

    if (port < 0) {
        request_refuse(r, &e);
        return;
    }
    g = request_guest(r, in->id);
    if (!g)
        return;
    t = xzalloc(sizeof *t);
    t->port = port;
    if (guest_dial(g,
                   &(struct guest_dial){
                       .family = GUEST_TCP, .port = (uint16_t)port, .address = STR("127.0.0.1")},
                   &guest_ops, t, &t->g, &e) < 0) {
        mem_free(t);
        request_fail(r, &e);
        return;
    }
    t->ws = ws_accept(r->x, protocols, &ws_ops, t);
    if (!t->ws) {
        guest_pipe_cancel(TAKE(t->g));
        free_when_done(t);
        return;
    }
    request_count(r, 101);
    t->live.acts = true;
    revocable_stream_begin(&t->live, r, on_live_end);
}
