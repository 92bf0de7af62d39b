/* routes: routes, errors and health of the agentic dialect. */
#include "api/dialects/agentic/agentic.h"

#include "api/dialects/agentic/link.h"
#include "base/mem.h"
#include "core/task/task.h"

#include <stdarg.h>

/* --- replies --- */

void agentic_error(struct request *r, int status, const char *fmt, ...)
{
    AUTO(buf_done) struct buf text = {0};
    struct jw w;
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    w = request_json(r);
    jw_object(&w);
    jw_kstr(&w, "error", buf_str(&text));
    jw_object_end(&w);
    if (status == 401)
        xchg_add_header(r->x, "www-authenticate", STR("Bearer"));
    request_send_json(r, status);
}

void agentic_code(struct request *r, int status, const char *code, const char *fmt, ...)
{
    AUTO(buf_done) struct buf text = {0};
    struct jw w;
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    w = request_json(r);
    jw_object(&w);
    jw_key(&w, "error");
    jw_object(&w);
    jw_kc(&w, "code", code);
    jw_kstr(&w, "message", buf_str(&text));
    jw_object_end(&w);
    jw_object_end(&w);
    request_send_json(r, status);
}

void agentic_fail(struct request *r, int status, const struct err *e)
{
    agentic_error(r, status, "%s%s%s", e->msg, e->hint[0] ? "; " : "", e->hint);
}

static void write_error(struct buf *to, const struct err *e)
{
    struct jw w = {.to = to};

    jw_object(&w);
    jw_kc(&w, "error", e->msg);
    jw_object_end(&w);
}

/* --- requests --- */

static void body_collected(struct request *r, struct str text)
{
    agentic_body next = *(const agentic_body *)r->in;
    struct err e = {0};

    if (text.n == 0)
        text = STR("{}");
    if (json_read(text, &r->body, &e) < 0) {
        agentic_error(r, 400, "the body is not JSON: %s", e.msg);
        return;
    }
    if (!json_is_object(r->body)) {
        agentic_error(r, 422, "the body must be an object");
        return;
    }
    next(r, r->body);
}

void agentic_collect(struct request *r, agentic_body next)
{
    agentic_body *kept = arena_alloc(xchg_arena(r->x), sizeof *kept);

    *kept = next;
    r->in = kept;
    request_collect(r, body_collected);
}

struct str agentic_member(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);

    return json_is_string(v) ? str_make(json_string_value(v), json_string_length(v)) : STR("");
}

struct str agentic_query(const struct request *r, const char *key)
{
    struct str v = {0};

    if (http_query_get(xchg_req(r->x)->query, key, xchg_arena(r->x), &v) <= 0)
        return STR("");
    return v;
}

bool agentic_query_is(const struct request *r, const char *key, bool preset)
{
    struct str v = agentic_query(r, key);
    bool is;

    return v.n > 0 && str_parse_bool(v, &is) == 0 ? is : preset;
}

/* --- health --- */

static void send_health(struct request *r)
{
    struct jw w = request_json(r);

    jw_object(&w);
    jw_kc(&w, "status", "ok");
    jw_kc(&w, "service", "agentic-management");
    jw_object_end(&w);
    request_send_json(r, 200);
}

static void send_http(struct request *r)
{
    struct jw w = request_json(r);

    jw_object(&w);
    jw_kc(&w, "http", "alive");
    jw_object_end(&w);
    request_send_json(r, 200);
}

static void send_alive(struct request *r)
{
    struct jw w = request_json(r);

    jw_object(&w);
    jw_kbool(&w, "alive", true);
    jw_object_end(&w);
    request_send_json(r, 200);
}

static void send_ready(struct request *r)
{
    struct jw w;
    int64_t connected, ready;

    agentic_counts(r, &connected, &ready);
    w = request_json(r);
    jw_object(&w);
    jw_kbool(&w, "ready", true);
    jw_kc(&w, "reason", connected > 0 ? "agents_connected" : "no_agents_but_operational");
    jw_object_end(&w);
    request_send_json(r, 200);
}

static void write_counts(struct jw *w, const char *key, const char *first, int64_t n,
                         const char *second, int64_t m)
{
    jw_key(w, key);
    jw_object(w);
    jw_kint(w, first, n);
    jw_kint(w, second, m);
    jw_object_end(w);
}

static void send_status(struct request *r)
{
    struct jw w;
    int64_t connected, ready;

    agentic_counts(r, &connected, &ready);
    w = request_json(r);
    jw_object(&w);
    jw_kc(&w, "status", "ok");
    jw_kc(&w, "version", r->api->c.version);
    jw_kint(&w, "uptime_seconds", (clock_mono_ms() - r->api->started_mono_ms) / 1000);
    write_counts(&w, "agents", "connected", connected, "ready", ready);
    write_counts(&w, "tasks", "running", (int64_t)tasks_count(r->api->c.tasks, TASK_RUNNING),
                 "pending", (int64_t)tasks_count(r->api->c.tasks, TASK_PENDING));
    jw_object_end(&w);
    request_send_json(r, 200);
}

static void send_unknown(struct request *r)
{
    agentic_error(r, 404, "not found");
}

/* --- routes --- */

#define UPLOAD_MAX (64 << 20)

#define ROUTE(how, where, what, needs, function, ...)                                              \
    {.method = how,                                                                                \
     .path = "/api/v1" where,                                                                      \
     .name = AGENTIC_DIALECT "." what,                                                             \
     .perm = needs,                                                                                \
     .handler = function,                                                                          \
     .fail = agentic_fail,                                                                         \
     __VA_ARGS__}

/* clang-format off */
static const struct route routes[] = {
    {"GET", "/", AGENTIC_DIALECT ".socket", PERM_SANDBOX_READ, agentic_socket, .guard = agentic_is_socket, .fail = agentic_fail},
    {"GET", "/ws", AGENTIC_DIALECT ".socket", PERM_SANDBOX_READ, agentic_socket, .guard = agentic_is_socket, .fail = agentic_fail},
    {"GET", "/api/health", AGENTIC_DIALECT ".service", PERM_NONE, send_health, .fail = agentic_fail},
    {"GET", "/healthz/http", AGENTIC_DIALECT ".http", PERM_NONE, send_http, .fail = agentic_fail},
    ROUTE("GET", "/health", "health", PERM_SANDBOX_READ, send_status),
    ROUTE("GET", "/health/ready", "ready", PERM_SANDBOX_READ, send_ready),
    ROUTE("GET", "/health/live", "live", PERM_NONE, send_alive),

    ROUTE("GET", "/agents", "agents", PERM_SANDBOX_READ, agentic_agents),
    ROUTE("GET", "/agents/{id}", "agent", PERM_SANDBOX_READ, agentic_agent),
    ROUTE("DELETE", "/agents/{id}", "agent_delete", PERM_SANDBOX_WRITE, agentic_agent_delete),
    ROUTE("POST", "/agents/{id}/start", "agent_start", PERM_SANDBOX_WRITE, agentic_agent_start),
    ROUTE("POST", "/agents/{id}/stop", "agent_stop", PERM_SANDBOX_WRITE, agentic_agent_stop),
    ROUTE("POST", "/agents/{id}/destroy", "agent_destroy", PERM_SANDBOX_WRITE, agentic_agent_destroy),
    ROUTE("POST", "/agents/{id}/reprovision", "agent_reprovision", PERM_SANDBOX_WRITE, agentic_agent_reprovision),
    ROUTE("GET", "/agents/{id}/sessions", "agent_sessions", PERM_SANDBOX_READ, agentic_agent_sessions),
    ROUTE("POST", "/agents/{id}/sessions", "session_create", PERM_SANDBOX_WRITE, agentic_agent_session_create),
    ROUTE("DELETE", "/agents/{id}/sessions/{name}", "agent_session_kill", PERM_SANDBOX_WRITE, agentic_agent_session_kill),
    ROUTE("POST", "/agents/{id}/rotate-secret", "agent_rotate", PERM_SECRETS, agentic_agent_rotate),
    ROUTE("POST", "/agents/{id}/hitl", "hitl_create", PERM_SANDBOX_WRITE, agentic_hitl_create),

    ROUTE("GET", "/sessions", "sessions", PERM_SANDBOX_READ, agentic_sessions),
    ROUTE("DELETE", "/sessions/{id}", "session_kill", PERM_SANDBOX_WRITE, agentic_session_kill),
    ROUTE("GET", "/sessions/{id}/screen", "session_screen", PERM_SANDBOX_CONTENT, agentic_session_screen),
    {"GET", "/ws/sessions/{id}/orchestrate", AGENTIC_DIALECT ".orchestrate", PERM_SANDBOX_CONTENT, agentic_orchestrate, .fail = agentic_fail},

    ROUTE("GET", "/vms", "vms", PERM_SANDBOX_READ, agentic_vms),
    ROUTE("POST", "/vms", "vm_create", PERM_SANDBOX_WRITE, agentic_vm_create),
    ROUTE("GET", "/vms/{name}", "vm", PERM_SANDBOX_READ, agentic_vm),
    ROUTE("DELETE", "/vms/{name}", "vm_delete", PERM_SANDBOX_WRITE, agentic_vm_delete),
    ROUTE("POST", "/vms/{name}/start", "vm_start", PERM_SANDBOX_WRITE, agentic_vm_start),
    ROUTE("POST", "/vms/{name}/stop", "vm_stop", PERM_SANDBOX_WRITE, agentic_vm_stop),
    ROUTE("POST", "/vms/{name}/destroy", "vm_destroy", PERM_SANDBOX_WRITE, agentic_vm_destroy),
    ROUTE("POST", "/vms/{name}/restart", "vm_restart", PERM_SANDBOX_WRITE, agentic_vm_restart),
    ROUTE("POST", "/vms/{name}/reprovision", "vm_reprovision", PERM_SANDBOX_WRITE, agentic_agent_reprovision),
    ROUTE("POST", "/vms/{name}/deploy-agent", "deploy_agent", PERM_SANDBOX_WRITE, agentic_deploy_agent),

    ROUTE("GET", "/containers", "containers", PERM_SANDBOX_READ, agentic_containers),
    ROUTE("POST", "/containers", "container_create", PERM_SANDBOX_WRITE, agentic_container_create),
    ROUTE("GET", "/containers/{name}", "container", PERM_SANDBOX_READ, agentic_container),
    ROUTE("DELETE", "/containers/{name}", "container_delete", PERM_SANDBOX_WRITE, agentic_container_delete),
    ROUTE("POST", "/containers/{name}/start", "container_start", PERM_SANDBOX_WRITE, agentic_container_start),
    ROUTE("POST", "/containers/{name}/stop", "container_stop", PERM_SANDBOX_WRITE, agentic_container_stop),
    ROUTE("GET", "/container-images", "images", PERM_SANDBOX_READ, agentic_images),

    ROUTE("GET", "/loadouts", "loadouts", PERM_SANDBOX_READ, agentic_loadouts),
    ROUTE("GET", "/loadouts/{name...}", "loadout", PERM_SANDBOX_READ, agentic_loadout),
    ROUTE("GET", "/loadout/registry", "loadout_registry", PERM_SANDBOX_READ, agentic_loadout_registry),

    ROUTE("GET", "/operations/{id}", "operation", PERM_SANDBOX_READ, agentic_operation),
    ROUTE("GET", "/hitl", "hitl", PERM_ASK_READ, agentic_hitl),
    ROUTE("POST", "/hitl/{id}/respond", "hitl_respond", PERM_TEAM_RULE, agentic_hitl_respond),
    ROUTE("GET", "/secrets", "secrets", PERM_SECRET_READ, agentic_secrets),
    ROUTE("POST", "/secrets", "secret_create", PERM_SECRETS, agentic_secret_create),
    ROUTE("DELETE", "/secrets", "secrets_delete", PERM_SECRETS, agentic_secrets_delete),
    ROUTE("DELETE", "/secrets/{id}", "secret_delete", PERM_SECRETS, agentic_secret_delete),
    ROUTE("GET", "/events", "events", PERM_EVENTS, agentic_events),

    ROUTE("POST", "/tasks", "task_submit", PERM_SANDBOX_WRITE, agentic_task_submit, .body_max = 2 << 20),
    ROUTE("GET", "/tasks", "tasks", PERM_SANDBOX_READ, agentic_tasks),
    ROUTE("GET", "/tasks/{id}", "task", PERM_SANDBOX_READ, agentic_task),
    ROUTE("DELETE", "/tasks/{id}", "task_cancel", PERM_SANDBOX_WRITE, agentic_task_cancel),
    ROUTE("GET", "/tasks/{id}/logs", "task_logs", PERM_SANDBOX_CONTENT, agentic_task_logs),
    ROUTE("GET", "/tasks/{id}/artifacts", "task_artifacts", PERM_SANDBOX_READ, agentic_task_artifacts),
    ROUTE("GET", "/tasks/{id}/artifacts/{path...}", "task_artifact", PERM_SANDBOX_CONTENT, agentic_task_artifact),

    ROUTE("GET", "/storage/global", "storage_global", PERM_SANDBOX_READ, agentic_storage_global),
    ROUTE("GET", "/storage/inbox/{name}", "storage_inbox", PERM_SANDBOX_READ, agentic_storage_inbox),
    ROUTE("GET", "/storage/outbox/{name}", "storage_outbox", PERM_SANDBOX_READ, agentic_storage_outbox),
    ROUTE("GET", "/storage/global/_download", "download_global", PERM_SANDBOX_CONTENT, agentic_download_global),
    ROUTE("GET", "/storage/inbox/{name}/_download", "download_inbox", PERM_SANDBOX_CONTENT, agentic_download_inbox),
    ROUTE("GET", "/storage/outbox/{name}/_download", "download_outbox", PERM_SANDBOX_CONTENT, agentic_download_outbox),
    ROUTE("POST", "/storage/global", "upload_global", PERM_ADMIN, agentic_upload_global, .body_max = UPLOAD_MAX),
    ROUTE("POST", "/storage/inbox/{name}", "upload_inbox", PERM_SANDBOX_WRITE, agentic_upload_inbox, .body_max = UPLOAD_MAX),
    {"*", "/api/{rest...}", AGENTIC_DIALECT ".unknown", PERM_NONE, send_unknown, .fail = agentic_fail},
};
/* clang-format on */

/* --- the row --- */

struct agentic *agentic_of(const struct api *a)
{
    return dialect_state(a, &dialect_agentic);
}

static void *agentic_new(struct api *a)
{
    struct agentic *g = xzalloc(sizeof *g);

    (void)a;
    list_init(&g->operations);
    list_init(&g->sockets);
    list_init(&g->links);
    return g;
}

static void agentic_free(void *state)
{
    if (state)
        operations_done(state);
    mem_free(state);
}

static void agentic_tick(struct api *a, void *state)
{
    operations_tick(state);
    agentic_sockets_tick(state);
    agentic_links_tick(a, state);
}

static void agentic_end_streams(struct api *a, void *state)
{
    (void)a;
    agentic_links_end(state);
}

/* In the order of the service; an agent has a secret of its own instead of a token. */
static const struct rpc_method rpcs[] = {
    {.name = AGENTIC_DIALECT ".connect",
     .perm = PERM_NONE,
     .large = true,
     .pb = &agentic_methods[0],
     .begin = agentic_connect_begin,
     .run = agentic_connect},
    {.name = AGENTIC_DIALECT ".exec",
     .perm = PERM_SANDBOX_WRITE,
     .pb = &agentic_methods[1],
     .run = agentic_dispatch},
};

const struct dialect dialect_agentic = {
    .name = AGENTIC_DIALECT,
    .routes = routes,
    .route_count = ARRAY_LEN(routes),
    .rpcs = rpcs,
    .rpc_count = ARRAY_LEN(rpcs),
    .descriptors = &agentic_descriptor_set,
    .roots = (const char *const[]){"api", "ws", NULL},
    .fail = agentic_fail,
    .write_error = write_error,
    .start = agentic_new,
    .tick = agentic_tick,
    .end_streams = agentic_end_streams,
    .free = agentic_free,
    .print_metrics = agentic_print_metrics,
};
