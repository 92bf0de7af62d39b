/* rpc: protobuf methods over gRPC, gRPC-Web and Connect. */
#include "api/rpc.h"

#include "api/idempotency.h"
#include "base/buf.h"
#include "base/mem.h"
#include "net/grpc.h"
#include "net/server.h"
#include "proto/inflate.h"

#include <errno.h>

enum form { FORM_GRPC, FORM_CONNECT_JSON, FORM_CONNECT_PROTO };

struct rpc {
    const struct rpc_method *m;
    enum form form;
    struct grpc_call *grpc;
    bool admitted, asked, over;
    bool held, waits;  /* the last message of a streaming client is not consumed yet */
    uv_timer_t *timer; /* of a Connect call with a deadline */
    void (*drained)(void *arg);
    void *drained_arg;
};

/* --- replies --- */

static void encode(const struct rpc *c, const void *answer, struct buf *to)
{
    struct jw w = {.to = to};

    if (c->form == FORM_CONNECT_JSON)
        pb_to_json(c->m->pb->out, answer, &w);
    else
        pb_encode(c->m->pb->out, answer, to);
}

int rpc_send(struct request *r, const void *answer)
{
    AUTO(buf_done) struct buf bytes = {0};

    if (r->rpc->over)
        return 0;
    encode(r->rpc, answer, &bytes);
    return grpc_send(r->rpc->grpc, buf_str(&bytes));
}

void rpc_on_drained(struct request *r, void (*drained)(void *arg), void *arg)
{
    r->rpc->drained = drained;
    r->rpc->drained_arg = arg;
}

void rpc_end(struct request *r)
{
    if (r->rpc->over)
        return;
    r->rpc->over = true;
    r->status = 200;
    grpc_finish(r->rpc->grpc);
}

void rpc_reply(struct request *r, const void *answer)
{
    AUTO(buf_done) struct buf bytes = {0};

    if (r->rpc->over)
        return;
    if (r->rpc->form == FORM_GRPC) {
        (void)!rpc_send(r, answer); /* it is the last one */
        rpc_end(r);
        return;
    }
    encode(r->rpc, answer, &bytes);
    r->rpc->over = true;
    request_send(r, 200,
                 r->rpc->form == FORM_CONNECT_JSON ? "application/json" : "application/proto",
                 buf_str(&bytes));
}

/* --- failures --- */

/* Connect's names of gRPC's codes, by number. */
static const char *const connect_codes[] = {
    "ok",
    "canceled",
    "unknown",
    "invalid_argument",
    "deadline_exceeded",
    "not_found",
    "already_exists",
    "permission_denied",
    "resource_exhausted",
    "failed_precondition",
    "aborted",
    "out_of_range",
    "unimplemented",
    "internal",
    "unavailable",
    "data_loss",
    "unauthenticated",
};

static void connect_fail(struct request *r, int grpc_status, const char *message)
{
    struct jw w = request_json(r);

    jw_object(&w);
    jw_kc(&w, "code", connect_codes[grpc_status]);
    jw_kc(&w, "message", message);
    jw_object_end(&w);
    request_send_json(r, r->status);
}

void rpc_fail(struct request *r, const struct err *e)
{
    if (r->rpc->over)
        return;
    r->rpc->over = true;
    if (r->rpc->form == FORM_GRPC)
        grpc_fail(r->rpc->grpc, e);
    else
        connect_fail(r, err_table[e->code].grpc, e->msg);
}

void rpc_fail_as(struct request *r, int grpc_status, const struct err *e)
{
    assert(grpc_status > 0 && (size_t)grpc_status < ARRAY_LEN(connect_codes));
    r->status = err_table[e->code].http;
    if (r->rpc->form == FORM_GRPC) {
        grpc_set_status(r->rpc->grpc, grpc_status);
        rpc_fail(r, e);
    } else if (!r->rpc->over) {
        r->rpc->over = true;
        connect_fail(r, grpc_status, e->msg);
    }
}

/* --- one message --- */

static void run(struct request *r, void *in)
{
    struct err e = {0};

    if (request_still_may(r, &e) < 0) {
        request_refuse(r, &e);
        return;
    }
    r->in = r->rpc->m->pb->client_streams ? NULL : in;
    r->rpc->m->run(r, in);
}

static void *new_input(struct request *r)
{
    return arena_zalloc(xchg_arena(r->x), r->rpc->m->pb->in->size);
}

/* --- gRPC and gRPC-Web --- */

static void grpc_decode(struct request *r, struct str message)
{
    void *in = new_input(r);
    struct err e = {0};

    if (pb_decode(r->rpc->m->pb->in, message, xchg_arena(r->x), in, &e) < 0)
        request_fail(r, &e);
    else
        run(r, in);
}

static void decode_streamed(struct request *r, struct str message)
{
    const struct pb_message *m = r->rpc->m->pb->in;
    AUTO(arena_done) struct arena passing = {0};
    void *in = arena_zalloc(&passing, m->size);
    struct err e = {0};

    if (pb_decode(m, message, &passing, in, &e) < 0)
        request_fail(r, &e);
    else
        run(r, in);
}

/* A single message is not consumed yet: the decoded input points into it. */
static void on_message(struct grpc_call *g, struct str message)
{
    struct request *r = grpc_arg(g);
    struct rpc *c = r->rpc;
    bool streams = c->m->pb->client_streams;

    if (!c->admitted || c->over || (c->asked && !streams))
        return;
    c->asked = true;
    if (!streams) {
        idem_run(r, message, grpc_decode);
        return;
    }
    decode_streamed(r, message);
    if (c->held)
        c->waits = true;
    else
        grpc_consume(g);
}

void rpc_hold(struct request *r, bool on)
{
    struct rpc *c = r->rpc;

    c->held = on;
    if (on || !c->waits)
        return;
    c->waits = false;
    grpc_consume(c->grpc);
}

static void on_half_closed(struct grpc_call *g)
{
    struct request *r = grpc_arg(g);
    struct err e = {0};

    if (r->rpc->m->pb->client_streams) {
        rpc_end(r);
        return;
    }
    if (r->rpc->asked || r->rpc->over)
        return;
    err_set(&e, ERR_INVALID, 0, "the request has no message");
    request_fail(r, &e);
}

static void on_drained(struct grpc_call *g)
{
    struct request *r = grpc_arg(g);

    if (r->rpc->drained)
        r->rpc->drained(r->rpc->drained_arg);
}

static void on_cancelled(struct grpc_call *g)
{
    struct request *r = grpc_arg(g);

    r->rpc->over = true;
    r->status = r->status ? r->status : err_table[ERR_CANCELLED].http;
    request_gone(r);
}

static void on_closed(struct grpc_call *g)
{
    struct request *r = grpc_arg(g);

    r->rpc->over = true;
    request_end(r, r->status != err_table[ERR_CANCELLED].http);
}

static void on_start(struct grpc_call *g, void *arg)
{
    static const struct grpc_ops ops = {
        .message = on_message,
        .half_closed = on_half_closed,
        .drained = on_drained,
        .cancelled = on_cancelled,
        .closed = on_closed,
    };
    struct request *r = arg;

    r->rpc = arena_zalloc(xchg_arena(r->x), sizeof *r->rpc);
    *r->rpc = (struct rpc){.m = r->route->data, .form = FORM_GRPC, .grpc = g};
    grpc_handle(g, &ops, r);
    request_admit(r);
}

/* --- Connect, unary --- */

/* Methods that take files or programs have .large in their row. */
static size_t message_max(const struct request *r)
{
    const struct rpc_method *m = r->route->data;
    size_t most = (size_t)r->api->c.conf->grpc_message_max;

    return m->large ? most : size_min(most, m->perm == PERM_NONE ? GRPC_SMALL : ROUTE_BODY);
}

static int connect_inflate(struct request *r, struct str *body, struct buf *plain, struct err *e)
{
    struct str coding = http_req_header(xchg_req(r->x), "content-encoding");
    int code;

    if (!coding.p || str_case_eq_c(coding, "identity"))
        return 0;
    if (!str_case_eq_c(coding, "gzip"))
        return err_set(e, ERR_UNSUPPORTED, 0, "a body can be compressed only with gzip");
    code = inflate_all(*body, message_max(r), plain);
    *body = buf_str(plain);
    if (code == -EMSGSIZE)
        return err_set(e, ERR_TOO_LARGE, 0, "the request's body is too large");
    return code < 0 ? err_set(e, ERR_INVALID, 0, "the request's body is not gzip") : 0;
}

static int connect_decode(struct request *r, struct str body, void *in, struct err *e)
{
    struct arena *a = xchg_arena(r->x);
    const struct pb_message *m = r->rpc->m->pb->in;
    AUTO(buf_done) struct buf plain = {0};

    if (connect_inflate(r, &body, &plain, e) < 0)
        return -1;
    if (r->rpc->form == FORM_CONNECT_PROTO)
        return pb_decode(m, arena_str(a, body), a, in, e);
    if (json_read(body, &r->body, e) < 0)
        return err_wrap(e, "the request's body");
    return pb_from_json(m, r->body, a, in, e);
}

static void connect_run(struct request *r, struct str body)
{
    void *in = new_input(r);
    struct err e = {0};

    if (connect_decode(r, body, in, &e) < 0)
        request_fail(r, &e);
    else
        run(r, in);
}

static void connect_collected(struct xchg *x, struct str body)
{
    struct request *r = xchg_arg(x);

    if (!r->rpc->over)
        idem_run(r, body, connect_run);
}

static void on_deadline(uv_timer_t *t)
{
    struct request *r = t->data;
    struct err e = {0};

    if (r->rpc->over)
        return;
    request_gone(r);
    err_set(&e, ERR_TIMEOUT, 0, "the call's deadline has passed");
    request_fail(r, &e);
}

static int connect_deadline(struct request *r, struct err *e)
{
    struct str text = http_req_header(xchg_req(r->x), "connect-timeout-ms");
    int64_t ms;

    if (!text.p)
        return 0;
    if (text.n > 10 || str_parse_i64(text, &ms) < 0 || ms < 0)
        return err_set(e, ERR_INVALID, 0, "connect-timeout-ms is malformed");
    r->rpc->timer = xzalloc(sizeof *r->rpc->timer);
    (void)uv_timer_init(server_loop(r->api->server), r->rpc->timer);
    r->rpc->timer->data = r;
    (void)uv_timer_start(r->rpc->timer, on_deadline, (uint64_t)ms, 0);
    return 0;
}

static void timer_closed(uv_handle_t *t)
{
    mem_free(t);
}

void rpc_done(struct request *r)
{
    if (r->rpc && r->rpc->timer)
        uv_close((uv_handle_t *)TAKE(r->rpc->timer), timer_closed);
}

static int connect_form(const struct request *r, enum form *ret, struct err *e)
{
    struct str type = http_req_header(xchg_req(r->x), "content-type");
    struct str name = str_trim(str_cut(type, ';', &(struct str){0}));
    const struct rpc_method *m = r->route->data;

    if (m->pb->server_streams || m->pb->client_streams)
        return err_set(e, ERR_UNSUPPORTED, 0, "%s streams: call it by gRPC or gRPC-Web", m->name);
    *ret = FORM_CONNECT_JSON;
    if (str_case_eq_c(name, "application/json"))
        return 0;
    *ret = FORM_CONNECT_PROTO;
    if (str_case_eq_c(name, "application/proto"))
        return 0;
    err_set(e, ERR_MEDIA_TYPE, 0, "the body's content-type is '" STR_FMT "'",
            (int)size_min(name.n, 64), name.p ? name.p : "");
    return err_hint(e, "call it by gRPC, gRPC-Web, or with 'content-type: application/json'");
}

/* The route's handler: the caller has permission. */
static void call_admitted(struct request *r)
{
    enum form form;
    struct err e = {0};

    if (r->rpc) {
        r->rpc->admitted = true;
        grpc_limit_message(r->rpc->grpc, message_max(r));
        if (r->rpc->m->begin)
            r->rpc->m->begin(r);
        return;
    }
    if (connect_form(r, &form, &e) < 0) {
        request_fail(r, &e);
        return;
    }
    r->rpc = arena_zalloc(xchg_arena(r->x), sizeof *r->rpc);
    *r->rpc = (struct rpc){.m = r->route->data, .form = form, .admitted = true};
    if (connect_deadline(r, &e) < 0) {
        request_fail(r, &e);
        return;
    }
    xchg_collect(r->x, message_max(r), connect_collected);
}

/* --- routes --- */

int rpc_add_routes(struct api *a, const struct rpc_method *m, size_t count, struct err *e)
{
    for (size_t i = 0; i < count; i++) {
        const struct route route = {
            .method = "POST",
            .path = m[i].pb->path,
            .name = m[i].name,
            .perm = m[i].perm,
            .handler = call_admitted,
            .creates = m[i].creates,
            .remakes = true,
            .data = &m[i],
        };

        if (router_add(a->router, &route, e) < 0)
            return -1;
    }
    return 0;
}

void rpc_grpc(struct request *r)
{
    static const struct grpc_method method = {.start = on_start};
    const struct http_req *req = xchg_req(r->x);
    struct router_match match;

    if (router_find(r->api->router, STR("POST"), req->path, r->x, xchg_arena(r->x), &match) !=
            ROUTER_FOUND ||
        match.route->handler != call_admitted) {
        grpc_start(r->x, NULL, NULL);
        return;
    }
    r->route = match.route;
    grpc_start(r->x, &method, r);
}
