/* routes: routes and parameters in the three forms. */
#include "api/dialects/a2a/a2a.h"

#include "base/log.h"
#include "base/mem.h"

#include <stdio.h>

/* --- parameters --- */

struct str a2a_text(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);

    return json_is_string(v) ? str_make(json_string_value(v), json_string_length(v)) : STR("");
}

static struct str query_of(const struct a2a_call *c, const char *key)
{
    struct str v = {0};

    if (c->form == A2A_RPC || !key ||
        http_query_get(xchg_req(c->r->x)->query, key, xchg_arena(c->r->x), &v) <= 0)
        return STR("");
    return v;
}

struct str a2a_param(const struct a2a_call *c, const char *query, const char *key)
{
    struct str v = query_of(c, query);

    return v.n > 0 ? v : a2a_text(c->params, key);
}

int64_t a2a_number(const struct a2a_call *c, const char *query, const char *key, int64_t preset)
{
    struct str v = query_of(c, query);
    const json_t *member = json_object_get(c->params, key);
    int64_t n;

    if (v.n > 0)
        return str_parse_i64(v, &n) == 0 && n >= 0 ? n : preset;
    return json_is_integer(member) && json_integer_value(member) >= 0 ? json_integer_value(member)
                                                                      : preset;
}

bool a2a_flag(const struct a2a_call *c, const char *query, const char *key)
{
    struct str v = query_of(c, query);
    bool is;

    if (v.n > 0)
        return str_parse_bool(v, &is) == 0 && is;
    return json_is_true(json_object_get(c->params, key));
}

const char *a2a_base(const struct a2a_call *c)
{
    struct str host = http_req_header(xchg_req(c->r->x), "host");

    if (host.n == 0)
        host = STR("localhost");
    return arena_printf(xchg_arena(c->r->x), "%s://" STR_FMT "/agents/%s",
                        xchg_peer(c->r->x)->tls ? "https" : "http", STR_ARG(host), c->instance);
}

bool a2a_activated(const struct a2a_call *c, const char *uri)
{
    struct str list = http_req_header(xchg_req(c->r->x), "a2a-extensions");

    while (list.n > 0)
        if (str_eq_c(str_trim(str_cut(list, ',', &list)), uri))
            return true;
    return false;
}

/* --- what a call is about --- */

struct sandbox *a2a_sandbox(struct a2a_call *c)
{
    struct err e = {0};
    struct sandbox *s = sandbox_find(c->r->api->c.sandboxes, &c->r->who, c->as, &e);
    struct sandbox_info i;

    if (!s || sandbox_check(s, &c->r->who, &e) < 0) {
        if (e.code == ERR_NOT_FOUND || !s) /* another's is none */
            a2a_fail(c, A2A_INSTANCE_NOT_FOUND, "there is no instance '" STR_FMT "'",
                     (int)size_min(c->as.n, 128), c->as.p);
        else
            a2a_err(c, &e);
        return NULL;
    }
    sandbox_info(s, &i);
    (void)snprintf(c->instance, sizeof c->instance, "%s", i.id);
    return s;
}

struct task *a2a_task(struct a2a_call *c, bool change)
{
    struct err e = {0};
    struct task_info i;
    struct task *t;

    if (!a2a_sandbox(c))
        return NULL;
    t = task_find(c->r->api->c.tasks, &c->r->who, change, c->task, &e);
    if (t)
        task_info(t, &i);
    if (t && i.asked_for && str_eq_c(i.sandbox, c->instance))
        return t;
    if (!t && e.code == ERR_FORBIDDEN)
        a2a_err(c, &e);
    else
        a2a_fail(c, A2A_TASK_NOT_FOUND, "instance '" STR_FMT "' has no task '" STR_FMT "'",
                 (int)size_min(c->as.n, 128), c->as.p, (int)size_min(c->task.n, 128),
                 c->task.n > 0 ? c->task.p : "");
    return NULL;
}

/* --- calls --- */

static const struct a2a_method methods[] = {
    {"SendMessage", PERM_SANDBOX_WRITE, a2a_message_send},
    {"SendStreamingMessage", PERM_SANDBOX_WRITE, a2a_message_stream},
    {"GetTask", PERM_SANDBOX_CONTENT, a2a_task_get},
    {"ListTasks", PERM_SANDBOX_READ, a2a_task_list},
    {"CancelTask", PERM_SANDBOX_WRITE, a2a_task_cancel},
    {"SubscribeToTask", PERM_SANDBOX_CONTENT, a2a_subscribe},
    {"CreateTaskPushNotificationConfig", PERM_SANDBOX_WRITE, a2a_push_create},
    {"GetTaskPushNotificationConfig", PERM_SANDBOX_WRITE, a2a_push_get},
    {"ListTaskPushNotificationConfigs", PERM_SANDBOX_WRITE, a2a_push_list},
    {"DeleteTaskPushNotificationConfig", PERM_SANDBOX_WRITE, a2a_push_delete},
    {"GetExtendedAgentCard", PERM_SANDBOX_READ, a2a_card},
    /* not of JSON-RPC: their names have a character that is in none of its */
    {".artifacts", PERM_SANDBOX_CONTENT, a2a_artifacts},
    {".artifact", PERM_SANDBOX_CONTENT, a2a_artifact},
    {".rpc", PERM_SANDBOX_READ, NULL},
    {".post", PERM_SANDBOX_READ, NULL},
};
enum {
    SEND,
    STREAM,
    GET_TASK,
    LIST,
    CANCEL,
    SUBSCRIBE,
    PUSH_CREATE,
    PUSH_GET,
    PUSH_LIST,
    PUSH_DELETE,
    CARD,
    ARTIFACTS,
    ARTIFACT,
    RPC,
    POST_TASK
};

struct a2a_route {      /* a route's data */
    enum a2a_form form; /* first: a2a_route_fail reads it */
    int method;
    bool has_body;
};

static void run(struct a2a_call *c)
{
    struct err e = {0};

    if (request_authorise(c->r, c->method->perm, &e) < 0)
        request_refuse(c->r, &e);
    else
        c->method->run(c);
}

/* A request without the header speaks version 0.3. */
static bool check_version(struct a2a_call *c)
{
    struct str v = http_req_header(xchg_req(c->r->x), "a2a-version");
    struct str asked = {0};

    if (c->form == A2A_SEED)
        return true;
    if (v.n == 0 &&
        http_query_get(xchg_req(c->r->x)->query, "A2A-Version", xchg_arena(c->r->x), &asked) > 0)
        v = asked;
    if (str_eq_c(v, A2A_VERSION) || str_starts(v, STR(A2A_VERSION ".")))
        return true;
    a2a_fail(c, A2A_NO_VERSION,
             "version '" STR_FMT "' is not spoken: send A2A-Version: " A2A_VERSION,
             (int)size_min(v.n, 16), v.n > 0 ? v.p : "");
    return false;
}

static void rpc_collected(struct a2a_call *c)
{
    const json_t *o = c->r->body, *params = json_object_get(o, "params");
    struct str name = a2a_text(o, "method");

    c->rpc_id = json_object_get(o, "id");
    if (!json_is_object(o) || !str_eq_c(a2a_text(o, "jsonrpc"), "2.0") || name.n == 0 ||
        (c->rpc_id && !json_is_string(c->rpc_id) && !json_is_number(c->rpc_id) &&
         !json_is_null(c->rpc_id))) {
        c->rpc_id = NULL;
        a2a_fail(c, A2A_BAD_REQUEST, "the body must be one request of JSON-RPC 2.0");
        return;
    }
    c->params = params;
    c->task = a2a_text(params, "taskId");
    c->item = a2a_text(params, "id");
    if (c->task.n == 0)
        c->task = c->item;
    if (params && !json_is_object(params)) {
        a2a_fail(c, A2A_BAD_PARAMS, "params must be an object");
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(methods); i++)
        if (name.p[0] != '.' && str_eq_c(name, methods[i].name)) {
            c->method = &methods[i];
            run(c);
            return;
        }
    a2a_fail(c, A2A_NO_METHOD, "there is no method '" STR_FMT "'", (int)size_min(name.n, 64),
             name.p);
}

static void collected(struct request *r, struct str text)
{
    struct a2a_call *c = r->in;
    struct err e = {0};

    if (text.n == 0)
        text = STR("{}");
    if (json_read(text, &r->body, &e) < 0) {
        a2a_fail(c, A2A_BAD_JSON, "the body is not JSON: %s", e.msg);
    } else if (c->form == A2A_RPC) {
        rpc_collected(c);
    } else if (!json_is_object(r->body)) {
        a2a_fail(c, A2A_BAD_PARAMS, "the body must be an object");
    } else {
        c->params = r->body;
        run(c);
    }
}

/* "ID:cancel", "ID:subscribe": the router knows whole segments. */
static bool take_verb(struct a2a_call *c)
{
    ptrdiff_t at = str_index(c->task, ':');
    struct str verb = at < 0 ? STR("") : str_skip(c->task, (size_t)at + 1);

    if (str_eq_c(verb, "cancel"))
        c->method = &methods[CANCEL];
    else if (str_eq_c(verb, "subscribe"))
        c->method = &methods[SUBSCRIBE];
    if (at >= 0)
        c->task = str_make(c->task.p, (size_t)at);
    if (c->method->run)
        return true;
    a2a_fail(c, A2A_NO_METHOD, "there is no such method of tasks");
    return false;
}

static void begin(struct request *r)
{
    const struct a2a_route *route = r->route->data;
    struct a2a_call *c = arena_zalloc(xchg_arena(r->x), sizeof *c);

    c->r = r;
    c->form = route->form;
    c->method = &methods[route->method];
    c->as = r->params.v[0];
    c->task = r->params.n > 1 ? r->params.v[1] : STR("");
    c->item = r->params.n > 2 ? r->params.v[2] : STR("");
    r->in = c;
    if (!a2a_sandbox(c) || !check_version(c))
        return;
    if (route->method == POST_TASK && !take_verb(c))
        return;
    if (route->method == GET_TASK && route->form == A2A_REST && str_index(c->task, ':') >= 0 &&
        !take_verb(c))
        return;
    if (route->has_body)
        request_collect(r, collected);
    else
        run(c);
}

/* --- routes --- */

/* clang-format off */
#define ROUTE(how, where, what, shape, call, needs, body)                                          \
    {.method = how, .path = "/agents/{instance}" where, .name = A2A_DIALECT "." what, .perm = needs,   \
     .handler = begin, .fail = a2a_route_fail,                                                     \
     .data = &(const struct a2a_route){shape, call, body}}
#define SEED(how, where, what, call, needs, body)                                                  \
    ROUTE(how, "/v1" where, what, A2A_SEED, call, needs, body),                                    \
    ROUTE(how, where, what, A2A_SEED, call, needs, body)
#define REST(how, where, what, call, needs, body)                                                  \
    ROUTE(how, "/a2a" where, "v1_" what, A2A_REST, call, needs, body)
#define PUSHES "/tasks/{task}/pushNotificationConfigs"

static const struct route routes[] = {
    ROUTE("GET", "/.well-known/agent-card.json", "card", A2A_SEED, CARD, PERM_SANDBOX_READ, false),
    {.method = "GET", .path = "/agents/{instance}/.well-known/jwks.json", .name = A2A_DIALECT ".keys", .perm = PERM_NONE, .handler = a2a_keys, .fail = a2a_route_fail},
    SEED("POST", "/messages:send", "send", SEND, PERM_SANDBOX_WRITE, true),
    SEED("POST", "/messages:stream", "stream", STREAM, PERM_SANDBOX_WRITE, true),
    SEED("GET", "/tasks", "tasks", LIST, PERM_SANDBOX_READ, false),
    SEED("GET", "/tasks/{task}", "task", GET_TASK, PERM_SANDBOX_CONTENT, false),
    SEED("POST", "/tasks/{task}/cancel", "cancel", CANCEL, PERM_SANDBOX_WRITE, true),
    SEED("GET", "/tasks/{task}/subscribe", "subscribe", SUBSCRIBE, PERM_SANDBOX_CONTENT, false),
    SEED("GET", "/tasks/{task}/artifacts", "artifacts", ARTIFACTS, PERM_SANDBOX_CONTENT, false),
    SEED("GET", "/tasks/{task}/artifacts/{artifact}", "artifact", ARTIFACT, PERM_SANDBOX_CONTENT, false),
    SEED("POST", PUSHES, "push_create", PUSH_CREATE, PERM_SANDBOX_WRITE, true),
    SEED("GET", PUSHES, "push_list", PUSH_LIST, PERM_SANDBOX_WRITE, false),
    SEED("GET", PUSHES "/{id}", "push_get", PUSH_GET, PERM_SANDBOX_WRITE, false),
    SEED("DELETE", PUSHES "/{id}", "push_delete", PUSH_DELETE, PERM_SANDBOX_WRITE, false),

    ROUTE("POST", "/a2a", "v1_rpc", A2A_RPC, RPC, PERM_SANDBOX_READ, true),
    REST("POST", "/message:send", "send", SEND, PERM_SANDBOX_WRITE, true),
    REST("POST", "/message:stream", "stream", STREAM, PERM_SANDBOX_WRITE, true),
    REST("GET", "/tasks", "tasks", LIST, PERM_SANDBOX_READ, false),
    REST("GET", "/tasks/{task}", "task", GET_TASK, PERM_SANDBOX_CONTENT, false),
    REST("POST", "/tasks/{task}", "task_call", POST_TASK, PERM_SANDBOX_READ, true),
    REST("POST", PUSHES, "push_create", PUSH_CREATE, PERM_SANDBOX_WRITE, true),
    REST("GET", PUSHES, "push_list", PUSH_LIST, PERM_SANDBOX_WRITE, false),
    REST("GET", PUSHES "/{id}", "push_get", PUSH_GET, PERM_SANDBOX_WRITE, false),
    REST("DELETE", PUSHES "/{id}", "push_delete", PUSH_DELETE, PERM_SANDBOX_WRITE, false),
    REST("GET", "/extendedAgentCard", "card", CARD, PERM_SANDBOX_READ, false),
};
/* clang-format on */

/* --- the row --- */

struct a2a *a2a_of(const struct api *a)
{
    return dialect_state(a, &dialect_a2a);
}

static void *a2a_start(struct api *api)
{
    struct a2a *a = xzalloc(sizeof *a);
    struct err e = {0};

    a->api = api;
    list_init(&a->waits);
    list_init(&a->pushes);
    if (a2a_key_open(a, &e) < 0)
        log_error("agent cards cannot be signed", LOG_E(&e));
    a2a_push_open(a);
    return a;
}

static void a2a_tick(struct api *api, void *state)
{
    (void)api;
    a2a_waits_tick(state);
    a2a_push_tick(state);
}

static void a2a_end(struct api *api, void *state)
{
    (void)api;
    a2a_waits_end(state);
    a2a_push_close(state);
}

static void a2a_free(void *state)
{
    if (state)
        a2a_push_close(state);
    mem_free(state);
}

const struct dialect dialect_a2a = {
    .name = A2A_DIALECT,
    .routes = routes,
    .route_count = ARRAY_LEN(routes),
    .start = a2a_start,
    .tick = a2a_tick,
    .end_streams = a2a_end,
    .free = a2a_free,
};
