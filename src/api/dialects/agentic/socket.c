/* socket: the WebSocket of the agentic dialect: clients, from their first message to their last. */
#include "api/dialects/agentic/socket.h"

#include "base/enc.h"
#include "base/mem.h"
#include "base/rnd.h"

#include <stdarg.h>

#define METRICS_TICKS 5

void socket_unref(struct socket_client *c)
{
    if (--c->refs > 0)
        return;
    map_done(&c->agents);
    mem_free(c);
}

int socket_tell(struct socket_client *c, const struct buf *json)
{
    return c->ws ? ws_send(c->ws, WS_TEXT, buf_str(json)) : 0;
}

void socket_error(struct socket_client *c, const char *fmt, ...)
{
    AUTO(buf_done) struct buf json = {0}, text = {0};
    struct jw w = {.to = &json};
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    jw_object(&w);
    jw_kc(&w, "type", "error");
    jw_kstr(&w, "message", buf_str(&text));
    jw_object_end(&w);
    (void)!socket_tell(c, &json);
}

bool socket_may_write(struct socket_client *c)
{
    struct err e = {0};

    if (request_authorise(c->r, PERM_SANDBOX_WRITE, &e) == 0)
        return true;
    socket_error(c, "%s", e.msg);
    return false;
}

struct sandbox *socket_agent(struct socket_client *c, const json_t *m)
{
    struct str id = agentic_member(m, "agent_id");
    struct err e = {0};
    struct sandbox *s = sandbox_find_as(c->api->c.sandboxes, &c->who, STR(AGENTIC_DIALECT), id, &e);

    if (!s)
        socket_error(c, "Agent '" STR_FMT "' not found", (int)size_min(id.n, 64), id.p);
    return s;
}

/* --- messages --- */

static void on_message(struct ws *ws, enum ws_kind kind, struct str data)
{
    struct socket_client *c = ws_arg(ws);
    AUTO(json_decref) json_t *m = NULL;
    struct err e = {0};
    struct str type;

    if (kind != WS_TEXT || json_read(data, &m, &e) < 0) {
        socket_error(c, "Invalid message: %s", kind == WS_TEXT ? e.msg : "it is not text");
        return;
    }
    type = agentic_member(m, "type");
    if (!socket_hear(c, type, m))
        socket_error(c, "Invalid message: unknown type '" STR_FMT "'", (int)size_min(type.n, 40),
                     type.p);
}

static void on_drained(struct ws *ws)
{
    struct socket_client *c = ws_arg(ws);

    push_room(c);
    joins_room(c);
}

static void on_closed(struct ws *ws, int code, struct str reason)
{
    struct socket_client *c = ws_arg(ws);

    (void)code, (void)reason;
    c->ws = NULL;
    c->r = NULL;
    list_unlink(&c->link);
    push_end(c);
    joins_end(c);
    revocable_stream_end(&c->life);
    socket_unref(c);
}

static void life_ended(struct revocable_stream *l, int ws_code, const char *why)
{
    struct socket_client *c = CONTAINER_OF(l, struct socket_client, life);

    if (c->ws)
        ws_close(c->ws, ws_code, why);
}

/* --- life --- */

static void write_list(struct jw *w, const char *key, const char *const *list, size_t n)
{
    jw_key(w, key);
    jw_array(w);
    for (size_t i = 0; i < n; i++)
        jw_c(w, list[i]);
    jw_array_end(w);
}

static void say_hello(struct socket_client *c)
{
    static const char *const messages[] = {"subscribe",     "unsubscribe",    "start_shell",
                                           "send_input",    "pty_resize",     "list_sessions",
                                           "kill_session",  "attach_session", "join_session",
                                           "leave_session", "session_input"};
    static const char *const features[] = {"replay_buffer", "session_frames", "keyframes",
                                           "pty_signals"};
    AUTO(buf_done) struct buf json = {0};
    struct jw w = {.to = &json};

    jw_object(&w);
    jw_kc(&w, "type", "server_hello");
    jw_kc(&w, "server_version", c->api->c.version);
    write_list(&w, "supported_client_messages", messages, ARRAY_LEN(messages));
    write_list(&w, "features", features, ARRAY_LEN(features));
    jw_object_end(&w);
    (void)!socket_tell(c, &json);
}

static struct socket_client *client_new(struct request *r)
{
    struct socket_client *c = xzalloc(sizeof *c);
    unsigned char bytes[4];
    char hex[2 * sizeof bytes + 1];

    rnd_bytes(bytes, sizeof bytes);
    enc_hex(bytes, sizeof bytes, hex);
    (void)snprintf(c->name, sizeof c->name, "ws-%s", hex);
    c->refs = 1;
    c->r = r;
    c->api = r->api;
    c->who = request_who(r);
    c->content = request_may(r, PERM_SANDBOX_CONTENT);
    c->events = request_may(r, PERM_ASK_READ);
    list_init(&c->tails);
    list_init(&c->joins);
    list_init(&c->link);
    return c;
}

void agentic_socket(struct request *r)
{
    static const struct ws_ops ops = {on_message, on_drained, on_closed};
    struct socket_client *c = client_new(r);

    c->ws = ws_accept(r->x, NULL, &ops, c);
    if (!c->ws) {
        socket_unref(c);
        return;
    }
    request_count(r, 101);
    c->life.acts = true;
    revocable_stream_begin(&c->life, r, life_ended);
    list_push(&agentic_of(r->api)->sockets, &c->link);
    say_hello(c);
    push_begin(c);
}

bool agentic_is_socket(const struct xchg *x)
{
    return ws_is_handshake(x);
}

void agentic_sockets_tick(struct agentic *g)
{
    if (++g->ticks % METRICS_TICKS != 0)
        return;
    LIST_EACH (&g->sockets, node)
        push_metrics(LIST_ENTRY(node, struct socket_client, link));
}
