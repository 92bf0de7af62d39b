/* routes: routes, errors and metrics of the sbx dialect. */
#include "api/dialects/sbx/sbx.h"

#include "api/metrics.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/rnd.h"
#include "core/sandbox/pool.h"

#include <stdarg.h>

#define JSON_TYPE "application/json; charset=utf-8"
#define REQUEST_ID_MAX 128

/* --- replies --- */

/* The client's own id, or a unique new one. */
void sbx_add_request_id(struct request *r)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    struct str given = http_req_header(xchg_req(r->x), "x-request-id");
    char text[16];
    size_t at = sizeof text;
    uint64_t n;

    if (given.n > 0) {
        given.n = size_min(given.n, REQUEST_ID_MAX);
        xchg_add_header(r->x, "x-request-id", given);
        return;
    }
    rnd_bytes(&n, sizeof n);
    for (n >>= 1; n > 0 && at > 0; n /= 36)
        text[--at] = digits[n % 36];
    xchg_add_header(r->x, "x-request-id",
                    arena_str(xchg_arena(r->x), str_make(text + at, sizeof text - at)));
}

void sbx_send(struct request *r, int status)
{
    request_send(r, status, JSON_TYPE, buf_str(&r->api->scratch));
}

static void send_error(struct request *r, int status, struct str text)
{
    struct jw w = request_json(r);

    jw_object(&w);
    jw_kstr(&w, "error", text);
    jw_object_end(&w);
    sbx_send(r, status);
}

void sbx_error(struct request *r, int status, const char *fmt, ...)
{
    AUTO(buf_done) struct buf text = {0};
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    send_error(r, status, buf_str(&text));
}

static void write_error(struct buf *to, const struct err *e)
{
    struct jw w = {.to = to};

    jw_object(&w);
    jw_kc(&w, "error", e->msg);
    jw_object_end(&w);
}

/* Before a handler ran, the reply has no id yet. */
static void sbx_fail(struct request *r, int status, const struct err *e)
{
    sbx_add_request_id(r);
    send_error(r, status, str_of(e->msg));
}

/* --- routes --- */

static void sbx_run(struct request *r)
{
    void (*const *handler)(struct request *r) = r->route->data;

    sbx_add_request_id(r);
    (*handler)(r);
}

/* Like the original's router: another method is an unknown path, and an extra '/' redirects to the
 * path without it. */
static void route_unknown(struct request *r)
{
    const struct http_req *req = xchg_req(r->x);
    bool get = str_eq_c(req->method, "GET");
    struct str path = req->path;

    if (path.n > 1 && path.p[path.n - 1] == '/' && path.p[path.n - 2] != '/') {
        path.n--;
        xchg_add_header(r->x, "location",
                        str_of(arena_printf(xchg_arena(r->x), STR_FMT "%s" STR_FMT, STR_ARG(path),
                                            req->query.n > 0 ? "?" : "", STR_ARG(req->query))));
        request_send(r, get ? 301 : 307, "text/html; charset=utf-8", STR(""));
        return;
    }
    request_send(r, 404, "text/plain", STR("404 page not found"));
}

/* Paths shared with the native API: its clients use its port, or an Accept header. */
static bool wants_text(const struct xchg *x)
{
    return xchg_listener(x)->port == SBX_PORT || accept_prefers(x, "text/plain");
}

static bool wants_json(const struct xchg *x)
{
    struct str accept = http_req_header(xchg_req(x), "accept");

    if (xchg_listener(x)->port == SBX_PORT && !accept_prefers(x, "text/plain"))
        return true;
    return accept.p && http_has_token(accept, "application/json");
}

static void send_health(struct request *r)
{
    request_send(r, 200, "text/plain; charset=utf-8", STR("ok"));
}

static void (*const run_health)(struct request *) = send_health;
static void (*const run_metrics)(struct request *) = metrics_send_json;
static void (*const run_create)(struct request *) = sbx_create;
static void (*const run_list)(struct request *) = sbx_list;
static void (*const run_get)(struct request *) = sbx_get;
static void (*const run_delete)(struct request *) = sbx_delete;
static void (*const run_exec)(struct request *) = sbx_exec;
static void (*const run_exec_get)(struct request *) = sbx_exec_get;
static void (*const run_exec_cancel)(struct request *) = sbx_exec_cancel;
static void (*const run_stream)(struct request *) = sbx_stream;
static void (*const run_ingest)(struct request *) = sbx_ingest;
static void (*const run_ingest_by_path)(struct request *) = sbx_ingest_by_path;
static void (*const run_unknown)(struct request *) = route_unknown;

#define ROUTE(how, where, what, needs, function, ...)                                              \
    {.method = how,                                                                                \
     .path = where,                                                                                \
     .name = "sbx." what,                                                                          \
     .perm = needs,                                                                                \
     .handler = sbx_run,                                                                           \
     .fail = sbx_fail,                                                                             \
     .data = &(function),                                                                          \
     __VA_ARGS__}
#define UNKNOWN(where) ROUTE("*", where, "unknown", PERM_SANDBOX_READ, run_unknown)

/* clang-format off */
static const struct route routes[] = {
    ROUTE("GET", "/healthz", "health", PERM_NONE, run_health, .guard = wants_text),
    ROUTE("GET", "/metrics", "metrics", PERM_READ, run_metrics, .guard = wants_json),
    ROUTE("POST", "/sandboxes", "create", PERM_SANDBOX_WRITE, run_create, .creates = true, .remakes = true),
    ROUTE("GET", "/sandboxes", "list", PERM_SANDBOX_READ, run_list),
    UNKNOWN("/sandboxes"),
    ROUTE("GET", "/sandboxes/{id}", "get", PERM_SANDBOX_READ, run_get),
    ROUTE("DELETE", "/sandboxes/{id}", "delete", PERM_SANDBOX_WRITE, run_delete),
    UNKNOWN("/sandboxes/{id}"),
    ROUTE("POST", "/sandboxes/{id}/exec", "exec", PERM_SANDBOX_WRITE, run_exec, .creates = true, .remakes = true, .body_max = ROUTE_BODY_WHOLE),
    UNKNOWN("/sandboxes/{id}/exec"),
    ROUTE("GET", "/sandboxes/{id}/execs/{exec}", "exec_get", PERM_SANDBOX_READ, run_exec_get),
    UNKNOWN("/sandboxes/{id}/execs/{exec}"),
    ROUTE("POST", "/sandboxes/{id}/execs/{exec}/cancel", "exec_cancel", PERM_SANDBOX_WRITE, run_exec_cancel),
    UNKNOWN("/sandboxes/{id}/execs/{exec}/cancel"),
    ROUTE("GET", "/sandboxes/{id}/stream", "stream", PERM_SANDBOX_CONTENT, run_stream),
    UNKNOWN("/sandboxes/{id}/stream"),
    ROUTE("GET", "/sandboxes/{id}/ingest", "ingest", PERM_NONE, run_ingest),
    UNKNOWN("/sandboxes/{id}/ingest"),
    ROUTE("GET", "/t/{token}/sandboxes/{id}/ingest", "ingest", PERM_NONE, run_ingest_by_path),
    UNKNOWN("/sandboxes/{rest...}"),
};
/* clang-format on */

/* --- counts --- */

struct sbx *sbx_of(const struct api *a)
{
    return dialect_state(a, &dialect_sbx);
}

static void *sbx_new(struct api *a)
{
    struct sbx *s = xzalloc(sizeof *s);

    (void)a;
    list_init(&s->sidecars);
    return s;
}

static void sbx_free(void *state)
{
    struct sbx *s = state;

    if (s) {
        assert(list_is_empty(&s->sidecars));
        map_done(&s->channels);
        map_done(&s->scanned);
    }
    mem_free(s);
}

static void write_metrics(const struct api *a, const void *state, struct jw *w)
{
    const struct sbx *s = state;
    struct pool_counts pool;

    sandboxes_pool(a->c.sandboxes, &pool);
    jw_key(w, "cmdline");
    jw_array(w);
    jw_c(w, "holtd");
    jw_array_end(w);
    jw_key(w, "memstats"); /* of Go's runtime: not available */
    jw_object(w);
    jw_object_end(w);
    jw_kc(w, "sandbox_cache_mode", sbx_settings(a->c.conf)->cache_mode);
    jw_kint(w, "sandbox_create_cold_total", s->creates - s->warm_hits);
    jw_kint(w, "sandbox_create_ready_ms_avg",
            s->ready_count ? s->ready_ms_sum / s->ready_count : 0);
    jw_kint(w, "sandbox_create_ready_ms_last", s->ready_ms_last);
    jw_kint(w, "sandbox_create_total", s->creates);
    jw_kint(w, "sandbox_create_warm_hit_total", s->warm_hits);
    jw_kint(w, "sandbox_delete_total", s->deletes);
    jw_kint(w, "sandbox_exec_total", s->execs);
    jw_kint(w, "sandbox_stream_buffer", sbx_settings(a->c.conf)->stream_buffer);
    jw_kint(w, "warm_pool_desired", pool.desired);
    jw_kint(w, "warm_pool_ready", pool.ready);
}

/* --- the row --- */

static void sbx_tick(struct api *a, void *state)
{
    if (a->c.sandboxes)
        sbx_sidecar_tick(state, a->c.sandboxes);
}

static void sbx_end_streams(struct api *a, void *state)
{
    (void)a;
    sbx_sidecars_end(state);
}

const struct dialect dialect_sbx = {
    .name = SBX_DIALECT,
    .routes = routes,
    .route_count = ARRAY_LEN(routes),
    .roots = (const char *const[]){"sandboxes", NULL},
    .write_error = write_error,
    .listen = (const char *const[]){"127.0.0.1:8080", "[::1]:8080", NULL},
    .start = sbx_new,
    .tick = sbx_tick,
    .end_streams = sbx_end_streams,
    .free = sbx_free,
    .write_metrics = write_metrics,
};
