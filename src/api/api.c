/* api: routes a request through its checks to its handler. */
#include "api/api.h"

#include "api/dialects/dialect.h"
#include "api/grpc.h"
#include "api/idempotency.h"
#include "api/metrics.h"
#include "api/native/oidc.h"
#include "api/native/preview.h"
#include "api/native/template.h"
#include "api/reflection.h"
#include "api/relay.h"
#include "api/rpc.h"
#include "api/share/event_stream.h"
#include "api/share/meter.h"
#include "api/share/revocable_stream.h"
#include "api/share/ssh_door.h"
#include "api/share/tracer.h"
#include "api/team/approval_wait.h"
#include "api/team/gates.h"
#include "api/team/task_cards.h"
#include "api/team/team.h"
#include "api/team/webhooks.h"
#include "api/web.h"
#include "base/clock.h"
#include "base/mem.h"
#include "core/exec/console.h"
#include "core/identity/preview.h"
#include "core/playbook/rollout.h"
#include "core/session/live.h"
#include "core/session/prompts.h"
#include "core/team/revoked.h"
#include "net/cors.h"
#include "net/dial.h"
#include "ops/port.h"

/* --- the request's life --- */

/* Leaves out the query: it may hold secrets. */
static void log_request(const struct request *r, bool done)
{
    const struct http_req *req = xchg_req(r->x);

    if (log_is_on(LOG_DEBUG))
        log_debug("request", LOG_S("method", req->method), LOG_S("path", req->path),
                  LOG_N("status", r->status), LOG_C("actor", r->who.actor),
                  LOG_N("us", (clock_mono_ns() - r->started_ns) / 1000), LOG_N("sent", done),
                  LOG_S("traceparent", tracer_text(r)));
}

void request_gone(struct request *r)
{
    struct waiter *w = TAKE(r->waiter);

    if (!w)
        return;
    w->r = NULL;
    if (w->gone)
        w->gone(w);
}

void request_end(struct request *r, bool done)
{
    log_request(r, done);
    tracer_end(r);
    request_gone(r);
    rpc_done(r);
    r->idem = idem_unref(r->idem);
    json_decref(r->body);
    metrics_count(r->api, r->route, r->status, clock_mono_ns() - r->started_ns);
}

static void request_closed(struct xchg *x, bool done)
{
    request_end(xchg_arg(x), done);
}

static const struct xchg_ops request_ops = {.closed = request_closed};

/* --- native operations --- */

static void run_handler(struct request *r)
{
    const struct op_handler *h = r->route->data;

    /* A request that names an object is recorded once that is known to exist: request_sandbox. */
    if (r->op->audited && r->params.n == 0)
        request_audit(r, "request.read", NULL, 200);
    h->run(r);
}

/* Otherwise a form of a foreign page could send JSON without a preflight (CORS). */
static int check_media_type(const struct http_req *req, struct err *e)
{
    struct str type = http_req_header(req, "content-type");
    struct str name = str_trim(str_cut(type, ';', &(struct str){0}));

    if (str_case_eq_c(name, "application/json"))
        return 0;
    err_set(e, ERR_MEDIA_TYPE, 0, "the body's content-type is '" STR_FMT "'",
            (int)size_min(name.n, 64), name.p ? name.p : "");
    return err_hint(e, "send JSON with 'content-type: application/json'");
}

static int decode(struct request *r, struct str body, struct err *e)
{
    if (r->op->proxies)
        return op_decode(r->op, &r->params, STR(""), NULL, xchg_arena(r->x), &r->in, e);
    if (body.n > 0 && check_media_type(xchg_req(r->x), e) < 0)
        return -1;
    if (body.n > 0 && json_read(body, &r->body, e) < 0)
        return err_wrap(e, "the request's body");
    if (r->body && template_apply(r, r->op, r->body, e) < 0)
        return -1;
    return op_decode(r->op, &r->params, xchg_req(r->x)->query, r->body, xchg_arena(r->x), &r->in,
                     e);
}

/* Wipes the body's text once it is decoded: the handler wipes its own copy. */
static void wipe_secret(const struct op *op, struct str body)
{
    for (size_t i = 0; i < op->in_count; i++)
        if (op->in[i].secret && op->in[i].type == OP_STR && body.n > 0)
            mem_wipe((void *)(uintptr_t)body.p, body.n);
}

static void decode_and_run(struct request *r, struct str body)
{
    struct err e = {0};
    int decoded = decode(r, body, &e);

    wipe_secret(r->op, body);
    if (decoded < 0)
        request_fail(r, &e);
    else
        gates_pass(r, run_handler);
}

static void body_collected(struct xchg *x, struct str body)
{
    struct request *r = xchg_arg(x);
    struct err e = {0};

    if (request_still_may(r, &e) < 0)
        request_refuse(r, &e);
    else
        idem_run(r, body, r->collected);
}

size_t request_body_max(const struct request *r)
{
    int64_t small = r->route->perm == PERM_NONE ? ROUTE_BODY_OPEN : ROUTE_BODY;
    int64_t max = r->route->body_max > 0 ? r->route->body_max : small;

    return (size_t)i64_min(max, r->api->c.conf->body_max);
}

void request_collect(struct request *r, void (*collected)(struct request *r, struct str body))
{
    r->collected = collected;
    if (xchg_req(r->x)->content_length == 0)
        idem_run(r, STR(""), collected);
    else
        xchg_collect(r->x, request_body_max(r), body_collected);
}

static void run_op(struct request *r)
{
    const struct op_handler *h = r->route->data;
    const struct http_req *req = xchg_req(r->x);
    bool bodiless = str_eq_c(req->method, "GET") || str_eq_c(req->method, "HEAD");

    r->op = h->op;
    if (r->op->upload || r->op->proxies || bodiless)
        decode_and_run(r, STR(""));
    else
        request_collect(r, decode_and_run);
}

/* --- the order of checks --- */

/* The query of a proxied request is for the server inside: a token in it is not ours. */
static struct http_req without_query(const struct request *r)
{
    struct http_req req = *xchg_req(r->x);
    const struct op_handler *h = r->route->data;

    if (r->route->handler == run_op && h->op->proxies)
        req.query = (struct str){0};
    return req;
}

/* Requests from inside a sandbox keep counting: the caller is known, and hostile. */
static void request_serve(struct request *r)
{
    if (r->who.role != ROLE_NONE && r->how != AUTH_INSIDE)
        xchg_trust(r->x);
    r->route->handler(r);
}

void request_admit(struct request *r)
{
    struct auth_view v = request_view(r);
    const struct http_req req = without_query(r);
    int64_t retry_ms = 0;
    struct err e = {0};

    v.req = &req;
    /* Public operations work with a wrong token too. */
    if (auth_authenticate(&r->api->auth, &v, &r->who, &r->how, &retry_ms, &e) < 0 &&
        (e.code == ERR_INVALID || r->route->perm != PERM_NONE))
        request_refuse_for(r, retry_ms, &e);
    else if (request_authorise(r, r->route->perm, &e) < 0)
        request_refuse(r, &e);
    else {
        team_heard(r->api, request_agent(r));
        request_serve(r);
    }
}

static void no_route(struct request *r, enum router_result found, struct str allow)
{
    const struct http_req *req = xchg_req(r->x);
    const struct dialect *d = dialect_of_path(req->path);
    struct err e = {0};

    if (found == ROUTER_NO_METHOD) {
        xchg_add_header(r->x, "allow", allow);
        if (str_eq_c(req->method, "OPTIONS")) {
            r->status = d && d->options_status ? d->options_status : 204;
            xchg_reply_with(r->x, r->status, NULL, 0, STR(""));
            return;
        }
        err_set(&e, ERR_METHOD, 0, "this path does not know the method " STR_FMT,
                (int)size_min(req->method.n, 32), req->method.p);
        err_hint(&e, "it knows: " STR_FMT, STR_ARG(allow));
    } else if (found == ROUTER_BAD_PATH) {
        err_set(&e, ERR_INVALID, 0, "the path is not in its normal form");
        err_hint(&e, "no '.', '..', '//' or control characters");
    } else {
        err_set(&e, ERR_NOT_FOUND, 0, "there is nothing at '" STR_FMT "'",
                (int)size_min(req->path.n, 100), req->path.p);
        err_hint(&e, "all operations: /holt/v1/openapi.json");
    }
    if (d && d->fail)
        d->fail(r, err_table[e.code].http, &e);
    else
        request_fail(r, &e);
}

void api_write_error(struct buf *to, struct str path, const struct err *e)
{
    const struct dialect *d = dialect_of_path(path);

    (d && d->write_error ? d->write_error : json_error)(to, e);
}

/* Before routing: the reply uses the caller's protocol. */
static void refuse_early(struct request *r, const struct err *e)
{
    request_audit(r, "request.refused", NULL, err_table[e->code].http);
    if (grpc_is_call(r->x))
        grpc_refuse(r->x, e);
    else
        request_fail(r, e);
}

/* Pages of the seeds' dashboards never get our cookie: any server may be on their port. */
static struct cors origins_of(const struct api *a, const struct auth_view *v)
{
    bool seed = auth_is_seed_origin(&a->auth, v);
    const struct conf_list *l = seed ? &a->c.conf->seed_origins : &a->c.conf->cors_origins;

    return (struct cors){
        .origins = (const char *const *)l->v, .count = l->n, .without_cookies = seed};
}

void api_handle(struct xchg *x, void *arg)
{
    struct api *a = arg;
    struct request *r = arena_zalloc(xchg_arena(x), sizeof *r);
    const struct http_req *req = xchg_req(x);
    const struct dialect *inside = dialect_of_role(xchg_listener(x)->role), *by_header;
    struct cors cors;
    struct auth_view v;
    struct router_match match;
    enum router_result found;
    struct err e = {0};

    *r = (struct request){.api = a, .x = x, .started_ns = clock_mono_ns()};
    xchg_handle(x, &request_ops, r);
    tracer_begin(r);
    if (xchg_listener(x)->role == LISTEN_PREVIEW) {
        preview_handle(r);
        return;
    }
    if (inside) {
        r->route = dialect_inside(a, inside);
        r->route->handler(r);
        return;
    }
    v = request_view(r);
    if (auth_check_host(&a->auth, &v, &e) < 0 || auth_check_origin(&a->auth, &v, &e) < 0) {
        refuse_early(r, &e);
        return;
    }
    cors = origins_of(a, &v);
    if (cors_apply(&cors, x))
        return;
    if (grpc_is_call(x)) {
        api_grpc(r);
        return;
    }
    by_header = dialect_that_takes(x);
    if (by_header) {
        r->route = dialect_instead(a, by_header);
        request_admit(r);
        return;
    }
    found = router_find(a->router, req->method, req->path, x, xchg_arena(x), &match);
    if (found != ROUTER_FOUND) {
        no_route(r, found, match.allow);
        return;
    }
    r->route = match.route;
    r->params = match.params;
    request_admit(r);
}

/* --- the api itself --- */

static int add_routes(struct api *a, struct err *e)
{
    if (dialects_add_routes(a, e) < 0)
        return -1;
    for (size_t i = 0; i < op_handler_count; i++) {
        const struct op *op = op_handlers[i].op;

        if (router_add(a->router,
                       &(struct route){.method = op->method,
                                       .path = op->path,
                                       .name = op->name,
                                       .perm = op->perm,
                                       .handler = run_op,
                                       .creates = op->creates,
                                       .remakes = op_handlers[i].remakes,
                                       .body_max = op_body_max(op),
                                       .data = &op_handlers[i]},
                       e) < 0)
            return -1;
    }
    if (rpc_add_routes(a, reflection_rpcs, reflection_rpc_count, e) < 0)
        return -1;
    for (size_t i = 0; i < web_route_count; i++)
        if (router_add(a->router, &web_routes[i], e) < 0)
            return -1;
    return 0;
}

static void print_route(void *arg, const struct route *route)
{
    struct jw w = {.to = arg};

    jw_object(&w);
    jw_kc(&w, "method", route->method);
    jw_kc(&w, "path", route->path);
    jw_kc(&w, "name", route->name);
    jw_kc(&w, "permission", perm_name(route->perm));
    jw_object_end(&w);
    buf_add_char(arg, '\n');
}

int api_print_routes(struct buf *to, struct err *e)
{
    struct api a = {.router = router_new()};
    int r = add_routes(&a, e);

    if (r == 0)
        router_each(a.router, print_route, to);
    router_free(a.router);
    return r;
}

static void on_revoked(void *api)
{
    revocable_streams_check(api);
}

static int open_prompts(struct api *a, struct err *e)
{
    if (!a->c.sandboxes)
        return 0;
    return prompts_open(&(struct prompts_config){.store = a->c.store,
                                                 .events = a->c.events,
                                                 .sandboxes = a->c.sandboxes,
                                                 .lives = a->screens,
                                                 .consoles = a->consoles,
                                                 .on = &a->c.conf->prompts},
                        &a->prompts, e);
}

static int open_door(void *arg, struct sandbox *s, struct err *e)
{
    return ssh_door_need(arg, s, e);
}

int api_new(const struct api_config *c, struct api **ret, struct err *e)
{
    struct api *a = xzalloc(sizeof *a);

    a->c = *c;
    a->auth = (struct auth){.conf = c->conf, .identity = c->identity};
    a->started_ms = a->team_since_ms = clock_wall_ms();
    a->started_mono_ms = clock_mono_ms();
    list_init(&a->streams);
    list_init(&a->lives);
    list_init(&a->creating);
    a->consoles = consoles_new();
    a->screens = lives_new(store_loop(c->store));
    a->health = api_health_new(a);
    a->router = router_new();
    if (add_routes(a, e) < 0) {
        api_free(a);
        return err_wrap(e, "make the routes");
    }
    task_cards_open(a);
    if (gates_open(a, e) < 0 || webhooks_open(a, e) < 0 || open_prompts(a, e) < 0 ||
        tracer_open(a, e) < 0) {
        api_free(a);
        return -1;
    }
    a->previews = previews_new();
    a->oidc = oidc_new(a);
    a->ssh = ssh_doors_new(a);
    if (a->c.rollouts)
        rollouts_set_door(a->c.rollouts, open_door, a->ssh);
    a->preview_route = (struct route){
        .name = "preview", .perm = op_port_proxy.perm, .index = router_reserve(a->router)};
    dialects_start(a);
    if (c->sandboxes)
        sandboxes_set_relay(c->sandboxes, relay_serve, a);
    revoked_on_new(c->revoked, on_revoked, a);
    metrics_start(a);
    *ret = a;
    return 0;
}

struct api *api_free(struct api *a)
{
    if (!a)
        return NULL;
    assert(list_is_empty(&a->streams) && list_is_empty(&a->lives));
    dialects_free(a);
    prompts_close(a->prompts);
    prompts_unref(a->prompts);
    lives_free(a->screens);
    consoles_free(a->consoles);
    previews_free(a->previews);
    oidc_free(a->oidc);
    ssh_doors_free(a->ssh);
    meter_free(a);
    tracer_free(a);
    health_free(a->health);
    dial_tls_free(a->registry_tls);
    router_free(a->router);
    mem_free(a->stats);
    map_done(&a->running_keys);
    map_done(&a->team_heard);
    buf_done(&a->scratch);
    approval_waits_done(a);
    gates_close(a);
    webhooks_close(a);
    event_streams_done(a);
    buf_done(&a->openapi);
    mem_free(a);
    return NULL;
}

void api_set_server(struct api *a, struct server *s)
{
    a->server = s;
}

void api_tick(struct api *a)
{
    event_streams_check(a);
    revocable_streams_check(a);
    team_tick(a);
    approval_waits_tick(a);
    gates_tick(a);
    webhooks_tick(a);
    prompts_tick(a->prompts);
    ssh_doors_tick(a->ssh);
    meter_tick(a);
    tracer_tick(a);
    dialects_tick(a);
    health_changed(a->health);
}

void api_end_streams(struct api *a)
{
    event_streams_end(a);
    revocable_streams_end(a);
    dialects_end_streams(a);
    health_end_watches(a->health);
    prompts_close(a->prompts);
    lives_close(a->screens);
    webhooks_stop(a);
    oidc_stop(a->oidc);
    ssh_doors_end(a->ssh);
    meter_stop(a);
    tracer_stop(a);
}
