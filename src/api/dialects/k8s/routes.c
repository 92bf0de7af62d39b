/* routes: routes and state of the k8s dialect. */
#include "api/dialects/k8s/k8s.h"

#include "base/mem.h"

const struct k8s_kind *const k8s_kinds[] = {&k8s_claims, &k8s_sandboxes, &k8s_templates, &k8s_pools,
                                            NULL};

/* --- routes --- */

static void run_route(struct request *r)
{
    const struct k8s_route *d = r->route->data;

    d->run(r, d->kind);
}

static void (*const run_version)(struct request *) = k8s_version;
static void (*const run_core)(struct request *) = k8s_core;
static void (*const run_groups)(struct request *) = k8s_groups;
static void (*const run_group)(struct request *) = k8s_group;
static void (*const run_resources)(struct request *) = k8s_resources;
static void (*const run_openapi)(struct request *) = k8s_openapi;
static void (*const run_openapi_group)(struct request *) = k8s_openapi_group;
static void (*const run_openapi_v2)(struct request *) = k8s_openapi_v2;

static void run_plain(struct request *r)
{
    void (*const *run)(struct request *r) = r->route->data;

    (*run)(r);
}

#define PLAIN(where, what, function)                                                               \
    {.method = "GET",                                                                              \
     .path = where,                                                                                \
     .name = "k8s." what,                                                                          \
     .perm = PERM_SANDBOX_READ,                                                                    \
     .handler = run_plain,                                                                         \
     .fail = k8s_fail,                                                                             \
     .data = &(function)}
#define ROUTE(how, where, what, needs, of, function)                                               \
    {                                                                                              \
        .method = how, .path = where, .name = "k8s." what, .perm = needs, .handler = run_route,    \
        .fail = k8s_fail, .data = &(const struct k8s_route)                                        \
        {                                                                                          \
            .kind = &(of), .run = function                                                         \
        }                                                                                          \
    }
#define KIND(group, plural, of)                                                                    \
    ROUTE("GET", "/apis/" group "/" K8S_VERSION "/" plural, plural ".list_all", PERM_SANDBOX_READ, \
          of, k8s_list),                                                                           \
        ROUTE("GET", "/apis/" group "/" K8S_VERSION "/namespaces/{namespace}/" plural,             \
              plural ".list", PERM_SANDBOX_READ, of, k8s_list),                                    \
        ROUTE("POST", "/apis/" group "/" K8S_VERSION "/namespaces/{namespace}/" plural,            \
              plural ".create", PERM_SANDBOX_WRITE, of, k8s_create),                               \
        ROUTE("DELETE", "/apis/" group "/" K8S_VERSION "/namespaces/{namespace}/" plural,          \
              plural ".delete_all", PERM_SANDBOX_WRITE, of, k8s_delete_all),                       \
        ROUTE("GET", "/apis/" group "/" K8S_VERSION "/namespaces/{namespace}/" plural "/{name}",   \
              plural ".get", PERM_SANDBOX_READ, of, k8s_get),                                      \
        ROUTE("PUT", "/apis/" group "/" K8S_VERSION "/namespaces/{namespace}/" plural "/{name}",   \
              plural ".replace", PERM_SANDBOX_WRITE, of, k8s_replace),                             \
        ROUTE("PATCH", "/apis/" group "/" K8S_VERSION "/namespaces/{namespace}/" plural "/{name}", \
              plural ".patch", PERM_SANDBOX_WRITE, of, k8s_patch),                                 \
        ROUTE("DELETE",                                                                            \
              "/apis/" group "/" K8S_VERSION "/namespaces/{namespace}/" plural "/{name}",          \
              plural ".delete", PERM_SANDBOX_WRITE, of, k8s_delete),                               \
        ROUTE("GET",                                                                               \
              "/apis/" group "/" K8S_VERSION "/namespaces/{namespace}/" plural "/{name}/status",   \
              plural ".status", PERM_SANDBOX_READ, of, k8s_get)

static const struct route routes[] = {
    PLAIN("/version", "version", run_version),
    PLAIN("/api", "core", run_core),
    PLAIN("/apis", "groups", run_groups),
    PLAIN("/apis/{group}", "group", run_group),
    PLAIN("/apis/{group}/{version}", "resources", run_resources),
    PLAIN("/openapi/v3", "openapi", run_openapi),
    PLAIN("/openapi/v3/apis/{group}/{version}", "openapi_group", run_openapi_group),
    PLAIN("/openapi/v2", "openapi_v2", run_openapi_v2),
    KIND(K8S_EXTENSIONS, "sandboxclaims", k8s_claims),
    KIND(K8S_EXTENSIONS, "sandboxtemplates", k8s_templates),
    KIND(K8S_EXTENSIONS, "sandboxwarmpools", k8s_pools),
    KIND(K8S_GROUP, "sandboxes", k8s_sandboxes),
};

/* --- state --- */

struct k8s *k8s_of(const struct api *a)
{
    return dialect_state(a, &dialect_k8s);
}

static bool is_end(const struct event *ev)
{
    return str_eq_c(ev->type, "claim.removed") || str_eq_c(ev->type, "sandbox.destroyed") ||
           str_eq_c(ev->type, "template.removed");
}

static int note_event(void *arg, const struct event *ev)
{
    struct k8s *k = arg;

    if (!str_starts(ev->object, STR("claim/")) && !str_starts(ev->object, STR("sandbox/")) &&
        !str_starts(ev->object, STR("template/")))
        return 0;
    if (is_end(ev))
        map_remove(&k->versions, ev->object);
    else
        map_set(&k->versions, ev->object, (void *)(uintptr_t)ev->seq);
    k8s_claim_event(k, ev);
    return 0;
}

/* The view is repeated by the next tick. */
static void log_failed(void *arg, const struct err *e)
{
    struct k8s *k = arg;

    (void)e;
    k->failed = true;
}

static void *k8s_new(struct api *a)
{
    struct k8s *k = xzalloc(sizeof *k);

    k->api = a;
    list_init(&k->watches);
    if (!a->c.events || !a->c.claims)
        return k;
    k->first_seq = i64_max(events_head(a->c.events, NULL), 1);
    k->events = events_subscribe(a->c.events, &(struct event_filter){.since_seq = k->first_seq},
                                 note_event, log_failed, k);
    return k;
}

static void k8s_tick(struct api *a, void *state)
{
    struct k8s *k = state;

    if (!k->events || k->ending || !a->c.sandboxes)
        return;
    if (k->failed) {
        k->failed = false;
        subscription_resume(k->events);
    }
    k8s_watches_tick(k);
    k8s_claims_tick(k);
}

static void k8s_end_streams(struct api *a, void *state)
{
    struct k8s *k = state;

    (void)a;
    k->ending = true;
    subscription_end(TAKE(k->events));
}

static void k8s_free(void *state)
{
    struct k8s *k = state;

    if (!k)
        return;
    assert(list_is_empty(&k->watches));
    subscription_end(k->events);
    map_done(&k->versions);
    k8s_claims_done(k);
    mem_free(k);
}

const struct dialect dialect_k8s = {
    .name = K8S_DIALECT,
    .routes = routes,
    .route_count = ARRAY_LEN(routes),
    .takes = k8s_takes,
    .instead = {.name = "k8s.router",
                .perm = PERM_SANDBOX_WRITE,
                .handler = k8s_router,
                .fail = k8s_router_fail,
                .body_max = ROUTE_BODY_WHOLE},
    .roots = (const char *const[]){"apis", "version", "openapi", NULL},
    .fail = k8s_fail,
    .write_error = k8s_write_error,
    .start = k8s_new,
    .tick = k8s_tick,
    .end_streams = k8s_end_streams,
    .free = k8s_free,
};
