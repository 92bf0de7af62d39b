/* echo_server: every protocol of src/net behind one small program, for tests with real clients.
 *   echo_server [--cert FILE --key FILE] ADDRESS…     prints "port N" per listener, ends on SIGTERM
 * GET /hello · POST /echo (streamed) · POST /sink (counts the bytes) · GET /big?n=BYTES ·
 * GET /hang (never answers) · WS /ws · SSE /sse · gRPC
 * /test.Echo/Unary, ServerStream (as many replies as the x-count metadata says, default 3), Bidi ·
 * the health service */
#include "api/health.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/grpc.h"
#include "net/server.h"
#include "net/sse.h"
#include "net/ws.h"

#include <signal.h>

static struct health *health;
static struct server *server;
static uv_signal_t on_term, on_usr1;
static bool serving = true;

static void reply_hello(struct xchg *x)
{
    xchg_reply(x, 200, "text/plain", STR("hello\n"));
}

/* Echo: what cannot be written yet is not consumed either. */
struct echo {
    size_t owed;
};

static void echo_body(struct xchg *x, struct str part)
{
    struct echo *e = xchg_arg(x);

    if (xchg_write(x, part.p, part.n) == 1)
        e->owed += part.n;
    else
        xchg_consume(x, part.n);
}

static void echo_drained(struct xchg *x)
{
    struct echo *e = xchg_arg(x);
    size_t n = e->owed;

    e->owed = 0;
    xchg_consume(x, n);
}

static void echo_end(struct xchg *x)
{
    xchg_end(x, NULL, 0);
}

static void reply_echo(struct xchg *x)
{
    static const struct xchg_ops ops = {
        .body = echo_body, .body_end = echo_end, .drained = echo_drained};
    const struct http_header h = {STR("content-type"), STR("application/octet-stream")};

    xchg_limit_body(x, 0);
    xchg_handle(x, &ops, arena_zalloc(xchg_arena(x), sizeof(struct echo)));
    xchg_head(x, 200, &h, 1);
}

struct sink {
    uint64_t seen;
};

static void sink_body(struct xchg *x, struct str part)
{
    struct sink *s = xchg_arg(x);

    s->seen += part.n;
    xchg_consume(x, part.n);
}

static void sink_end(struct xchg *x)
{
    const struct sink *s = xchg_arg(x);
    char text[24];
    int n = snprintf(text, sizeof text, "%llu\n", (unsigned long long)s->seen);

    xchg_reply(x, 200, "text/plain", str_make(text, (size_t)n));
}

static void reply_sink(struct xchg *x)
{
    static const struct xchg_ops ops = {.body = sink_body, .body_end = sink_end};

    xchg_limit_body(x, 0);
    xchg_handle(x, &ops, arena_zalloc(xchg_arena(x), sizeof(struct sink)));
}

static void hang_closed(struct xchg *x, bool done)
{
    (void)x;
    log_info("hang closed", LOG_N("done", done));
}

static void reply_hang(struct xchg *x)
{
    static const struct xchg_ops ops = {.closed = hang_closed};

    xchg_handle(x, &ops, NULL);
}

struct big {
    uint64_t left;
};

static void big_more(struct xchg *x)
{
    static const char zeros[16384];
    struct big *b = xchg_arg(x);
    int wait = 0;

    while (b->left > 0 && wait == 0) {
        size_t n = b->left < sizeof zeros ? (size_t)b->left : sizeof zeros;

        b->left -= n;
        wait = xchg_write(x, zeros, n);
    }
    if (b->left == 0)
        xchg_end(x, NULL, 0);
}

static void reply_big(struct xchg *x)
{
    static const struct xchg_ops ops = {.drained = big_more};
    struct big *b = arena_zalloc(xchg_arena(x), sizeof *b);
    struct str n;
    struct http_header h;
    struct err e;

    if (http_query_get(xchg_req(x)->query, "n", xchg_arena(x), &n) != 1 ||
        str_parse_u64(n, &b->left) < 0) {
        (void)err_set(&e, ERR_INVALID, 0, "n is a number of bytes");
        xchg_fail(x, &e);
        return;
    }
    h = (struct http_header){STR("content-length"), n};
    xchg_handle(x, &ops, b);
    xchg_head(x, 200, &h, 1);
    big_more(x);
}

static void ws_on_message(struct ws *w, enum ws_kind kind, struct str data)
{
    if (str_eq_c(data, "close-please"))
        ws_close(w, 1000, "as asked");
    else if (ws_send(w, kind, data) == 1)
        ws_pause(w, true);
}

static void ws_on_drained(struct ws *w)
{
    ws_pause(w, false);
}

static void ws_on_closed(struct ws *w, int code, struct str reason)
{
    (void)w;
    log_info("ws closed", LOG_N("code", code), LOG_S("reason", reason));
}

static void reply_ws(struct xchg *x)
{
    static const struct ws_ops ops = {ws_on_message, ws_on_drained, ws_on_closed};
    static const char *const protocols[] = {"echo.v2", "echo.v1", NULL};

    (void)ws_accept(x, protocols, &ops, NULL);
}

static void reply_sse(struct xchg *x)
{
    static const struct sse_ops ops = {0};
    struct str last = sse_last_id(x);
    uint64_t from = 0;
    struct sse *s;

    if (last.p && str_parse_u64(last, &from) < 0)
        from = 0;
    s = sse_start(x, 1000, &ops, NULL);
    for (uint64_t i = from + 1; i <= 5; i++) {
        char id[24], text[64];

        (void)snprintf(id, sizeof id, "%llu", (unsigned long long)i);
        (void)snprintf(text, sizeof text, "event %llu\nsecond line", (unsigned long long)i);
        (void)!sse_send(s, str_of(id), STR("tick"), str_of(text));
    }
    if (str_eq_c(xchg_req(x)->query, "end"))
        sse_end(s);
}

static void unary_message(struct grpc_call *c, struct str m)
{
    AUTO(buf_done) struct buf bin = {0};
    struct str text = http_req_header(xchg_req(grpc_xchg(c)), "x-echo");
    struct err e;

    if (str_eq_c(m, "fail")) {
        (void)err_set(&e, ERR_CONFLICT, 0, "failed, as asked: 100%% ünlucky");
        grpc_fail(c, &e);
        return;
    }
    if (str_eq_c(m, "hang")) {
        log_info("grpc hangs");
        return;
    }
    if (text.p)
        grpc_metadata(c, "x-echo", text);
    if (grpc_get_bin(c, "x-echo-bin", &bin) == 1)
        grpc_trailer(c, "x-echo-bin", buf_str(&bin));
    (void)!grpc_send(c, m);
    grpc_finish(c);
}

static void unary_cancelled(struct grpc_call *c)
{
    (void)c;
    log_info("grpc cancelled");
}

static void unary_start(struct grpc_call *c, void *arg)
{
    static const struct grpc_ops ops = {.message = unary_message, .cancelled = unary_cancelled};

    (void)arg;
    grpc_handle(c, &ops, NULL);
    grpc_limit_message(c, SIZE_MAX);
}

struct many {
    struct str message;
    uint64_t left;
};

static void many_more(struct grpc_call *c)
{
    struct many *m = grpc_arg(c);
    int wait = 0;

    while (m->left > 0 && wait == 0) {
        m->left--;
        wait = grpc_send(c, m->message);
    }
    if (m->left == 0)
        grpc_finish(c);
}

static void many_message(struct grpc_call *c, struct str message)
{
    struct many *m = grpc_arg(c);
    struct str count = http_req_header(xchg_req(grpc_xchg(c)), "x-count");

    m->left = 3;
    if (count.p && str_parse_u64(count, &m->left) < 0)
        m->left = 0;
    m->message = arena_str(xchg_arena(grpc_xchg(c)), message);
    many_more(c);
}

static void many_start(struct grpc_call *c, void *arg)
{
    static const struct grpc_ops ops = {.message = many_message, .drained = many_more};

    (void)arg;
    grpc_handle(c, &ops, arena_zalloc(xchg_arena(grpc_xchg(c)), sizeof(struct many)));
    grpc_limit_message(c, SIZE_MAX);
}

static void bidi_message(struct grpc_call *c, struct str message)
{
    if (grpc_send(c, message) == 0)
        grpc_consume(c);
}

static void bidi_start(struct grpc_call *c, void *arg)
{
    static const struct grpc_ops ops = {
        .message = bidi_message, .half_closed = grpc_finish, .drained = grpc_consume};

    (void)arg;
    grpc_handle(c, &ops, NULL);
    grpc_limit_message(c, SIZE_MAX);
}

static enum health_state ask(const char *service, void *arg)
{
    (void)arg;
    if (strcmp(service, "") != 0 && strcmp(service, "test.Echo") != 0)
        return HEALTH_NO_SUCH_SERVICE;
    return serving ? HEALTH_SERVING : HEALTH_NOT_SERVING;
}

static void call_grpc(struct xchg *x)
{
    static const struct grpc_method methods[] = {
        {"/test.Echo/Unary", unary_start},
        {"/test.Echo/ServerStream", many_start},
        {"/test.Echo/Bidi", bidi_start},
    };

    if (str_starts(xchg_req(x)->path, STR("/grpc.health.v1.")))
        grpc_start(x, grpc_find(health_grpc, health_grpc_count, xchg_req(x)->path), health);
    else
        grpc_start(x, grpc_find(methods, ARRAY_LEN(methods), xchg_req(x)->path), NULL);
}

static void handle(struct xchg *x, void *arg)
{
    static const struct {
        const char *method, *path;
        void (*reply)(struct xchg *x);
    } routes[] = {
        {"GET", "/hello", reply_hello}, {"HEAD", "/hello", reply_hello},
        {"POST", "/echo", reply_echo},  {"POST", "/sink", reply_sink},
        {"GET", "/big", reply_big},     {"GET", "/hang", reply_hang},
        {"GET", "/ws", reply_ws},       {"GET", "/sse", reply_sse},
    };
    const struct http_req *r = xchg_req(x);
    struct err e;

    (void)arg;
    if (grpc_is_call(x)) {
        call_grpc(x);
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
        if (str_eq_c(r->path, routes[i].path) && str_eq_c(r->method, routes[i].method)) {
            routes[i].reply(x);
            return;
        }
    }
    (void)err_set(&e, ERR_NOT_FOUND, 0, "nothing here");
    xchg_fail(x, &e);
}

static void on_signal(uv_signal_t *s, int number)
{
    if (number == SIGUSR1) { /* the health service's answer changes */
        serving = !serving;
        health_changed(health);
        return;
    }
    health_free(TAKE(health));
    server_stop(server, 2000, NULL, NULL);
    uv_close((uv_handle_t *)&on_usr1, NULL);
    uv_close((uv_handle_t *)s, NULL);
}

static const struct server_limits limits = {
    .header_max = 64 * 1024,
    .header_count_max = 100,
    .body_max = 16 * 1024 * 1024,
    .connections_max = 20000,
    .connections_per_peer = 20000,
    .requests_per_conn = 100,
    .idle_ms = 60000,
    .header_ms = 10000,
    .body_idle_ms = 30000,
    .write_ms = 30000,
    .ws_message_max = 1024 * 1024,
    .grpc_message_max = 4 * 1024 * 1024,
};

int main(int argc, char **argv)
{
    static const char *const services[] = {"", "test.Echo", NULL};
    uv_loop_t *loop = uv_default_loop();
    struct server_config c = {.loop = loop, .limits = &limits, .handler = handle};
    struct err e;
    int i = 1;

    for (; i + 1 < argc && argv[i][0] == '-'; i += 2)
        *(strcmp(argv[i], "--cert") == 0 ? &c.tls_cert : &c.tls_key) = argv[i + 1];
    (void)signal(SIGPIPE, SIG_IGN);
    health = health_new(ask, services, NULL);
    if (server_new(&c, &server, &e) < 0) {
        log_error("echo_server", LOG_E(&e));
        return 1;
    }
    for (; i < argc; i++) {
        if (server_listen(server, argv[i], LISTEN_API, &e) < 0) {
            log_error("echo_server", LOG_E(&e));
            return 1;
        }
        printf("port %d\n", server_listener(server, server_listener_count(server) - 1)->port);
    }
    (void)fflush(stdout);
    (void)uv_signal_init(loop, &on_term);
    (void)uv_signal_init(loop, &on_usr1);
    (void)uv_signal_start(&on_term, on_signal, SIGTERM);
    (void)uv_signal_start(&on_usr1, on_signal, SIGUSR1);
    (void)uv_run(loop, UV_RUN_DEFAULT);
    return uv_loop_close(loop) == 0 ? 0 : 1;
}
