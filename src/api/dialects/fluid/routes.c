/* routes: routes, errors and health of the fluid dialect. */
#include "api/dialects/fluid/fluid.h"

#include <stdarg.h>

#define JSON_TYPE "application/json; charset=utf-8"
#define TEXT_TYPE "text/plain; charset=utf-8"

/* --- replies --- */

void fluid_send(struct request *r, int status)
{
    xchg_add_header(r->x, "x-content-type-options", STR("nosniff"));
    buf_add_char(&r->api->scratch, '\n');
    request_send(r, status, JSON_TYPE, buf_str(&r->api->scratch));
}

static void send_error(struct request *r, int status, struct str text, struct str details)
{
    struct jw w = request_json(r);

    jw_object(&w);
    jw_kstr(&w, "error", text);
    jw_kint(&w, "code", status);
    if (details.n > 0)
        jw_kstr(&w, "details", details);
    jw_object_end(&w);
    if (status == 401)
        xchg_add_header(r->x, "www-authenticate", STR("Bearer"));
    fluid_send(r, status);
}

void fluid_error(struct request *r, int status, const char *fmt, ...)
{
    AUTO(buf_done) struct buf text = {0};
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    send_error(r, status, buf_str(&text), STR(""));
}

/* As of Go's router: an unknown path is no JSON. */
static void fail_without_route(struct request *r, int status, const struct err *e)
{
    if (status == 404)
        request_send(r, status, TEXT_TYPE, STR("404 page not found\n"));
    else if (status == 405)
        request_send(r, status, NULL, STR(""));
    else
        send_error(r, status, str_of(e->msg), str_of(e->hint));
}

void fluid_fail(struct request *r, int status, const struct err *e)
{
    send_error(r, status, str_of(e->msg), str_of(e->hint));
}

void fluid_refuse(struct request *r, const struct err *e)
{
    fluid_fail(r, err_table[e->code].http, e);
}

static void write_error(struct buf *to, const struct err *e)
{
    struct jw w = {.to = to};

    jw_object(&w);
    jw_kc(&w, "error", e->msg);
    jw_kint(&w, "code", err_table[e->code].http);
    jw_object_end(&w);
}

/* --- requests --- */

static const struct fluid_row *row_of(const struct request *r)
{
    return r->route->data;
}

static void body_collected(struct request *r, struct str text)
{
    struct err e = {0};

    if (fluid_read_body(text, row_of(r)->form, xchg_arena(r->x), &r->body, &r->in, &e) < 0)
        fluid_error(r, 400, "%s", e.msg);
    else
        row_of(r)->run(r);
}

static void fluid_handle(struct request *r)
{
    if (row_of(r)->form)
        request_collect(r, body_collected);
    else
        row_of(r)->run(r);
}

struct str fluid_query(const struct request *r, const char *key)
{
    struct str v = {0};

    if (http_query_get(xchg_req(r->x)->query, key, xchg_arena(r->x), &v) <= 0)
        return STR("");
    return v;
}

static bool read_number(struct request *r, const char *key, int64_t *ret)
{
    struct str text = fluid_query(r, key);

    *ret = 0;
    if (text.n == 0 || (str_parse_i64(text, ret) == 0 && *ret >= 0))
        return true;
    fluid_error(r, 400, "invalid %s: '" STR_FMT "' is not a whole number from 0", key,
                (int)size_min(text.n, 40), text.p);
    return false;
}

bool fluid_read_page(struct request *r, struct fluid_page *ret)
{
    return read_number(r, "limit", &ret->limit) && read_number(r, "offset", &ret->offset);
}

bool fluid_on_page(const struct fluid_page *p, int64_t at)
{
    return p->limit == 0 || (at >= p->offset && at - p->offset < p->limit);
}

/* --- health --- */

static void send_health(struct request *r)
{
    struct jw w = request_json(r);

    jw_object(&w);
    jw_kc(&w, "status", "ok");
    jw_object_end(&w);
    fluid_send(r, 200);
}

/* --- routes --- */

#define BOTH(path) "/v1" path, "/api/v1" path
#define MAIN(path) "/v1" path, NULL

/* clang-format off */
static const struct fluid_row rows[] = {
    {"GET", MAIN("/health"), "fluid.health", PERM_NONE, send_health},
    {"GET", MAIN("/vms"), "fluid.vms", PERM_SANDBOX_READ, fluid_vms},
    {"GET", BOTH("/sandboxes"), "fluid.list", PERM_SANDBOX_READ, fluid_list},
    {"POST", BOTH("/sandboxes"), "fluid.create", PERM_SANDBOX_WRITE, fluid_create, &fluid_create_form},
    {"GET", BOTH("/sandboxes/{id}"), "fluid.get", PERM_SANDBOX_READ, fluid_get},
    {"DELETE", BOTH("/sandboxes/{id}"), "fluid.destroy", PERM_SANDBOX_WRITE, fluid_destroy},
    {"GET", BOTH("/sandboxes/{id}/ip"), "fluid.ip", PERM_SANDBOX_WRITE, fluid_ip},
    {"POST", BOTH("/sandboxes/{id}/start"), "fluid.start", PERM_SANDBOX_WRITE, fluid_start, &fluid_start_form},
    {"POST", BOTH("/sandboxes/{id}/stop"), "fluid.stop", PERM_SANDBOX_WRITE, fluid_stop, &fluid_stop_form},
    {"GET", BOTH("/sandboxes/{id}/commands"), "fluid.commands", PERM_SANDBOX_CONTENT, fluid_commands},
    {"POST", BOTH("/sandboxes/{id}/run"), "fluid.run", PERM_SANDBOX_WRITE, fluid_run, &fluid_run_form},
    {"POST", BOTH("/sandboxes/{id}/command"), "fluid.run", PERM_SANDBOX_WRITE, fluid_run, &fluid_run_form},
    {"POST", BOTH("/sandboxes/{id}/sshkey"), "fluid.sshkey", PERM_SANDBOX_WRITE, fluid_sshkey, &fluid_sshkey_form},
    {"POST", BOTH("/sandboxes/{id}/snapshot"), "fluid.snapshot", PERM_SANDBOX_WRITE, fluid_snapshot_create, &fluid_snapshot_form},
    {"POST", BOTH("/sandboxes/{id}/snapshots"), "fluid.snapshot", PERM_SANDBOX_WRITE, fluid_snapshot_create, &fluid_snapshot_form},
    {"GET", BOTH("/sandboxes/{id}/snapshots"), "fluid.snapshots", PERM_SANDBOX_READ, fluid_snapshots},
    {"POST", BOTH("/sandboxes/{id}/snapshots/{name}/restore"), "fluid.restore", PERM_SANDBOX_WRITE, fluid_restore, &fluid_restore_form},
};
/* clang-format on */

static int add_row(struct router *to, const struct fluid_row *row, const char *path, struct err *e)
{
    return router_add(to,
                      &(struct route){.method = row->method,
                                      .path = path,
                                      .name = row->name,
                                      .perm = row->perm,
                                      .handler = fluid_handle,
                                      .guard = row->guard,
                                      .fail = fluid_fail,
                                      .body_max = row->form ? row->form->max : 0,
                                      .data = row},
                      e);
}

static int add_routes(struct router *to, struct err *e)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (add_row(to, &rows[i], rows[i].path, e) < 0 ||
            (rows[i].api_path && add_row(to, &rows[i], rows[i].api_path, e) < 0))
            return -1;
    return 0;
}

const struct dialect dialect_fluid = {
    .name = FLUID_DIALECT,
    .add_routes = add_routes,
    .roots = (const char *const[]){"v1", NULL},
    .fail = fail_without_route,
    .write_error = write_error,
    .listen =
        (const char *const[]){"127.0.0.1:8080", "[::1]:8080", "127.0.0.1:8081", "[::1]:8081", NULL},
};
