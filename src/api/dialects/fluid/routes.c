/* routes: routes, errors and health of the fluid dialect. */
#include "api/dialects/fluid/fluid.h"

#include "base/clock.h"
#include "base/mem.h"

#include <stdarg.h>

#define JSON_TYPE "application/json; charset=utf-8"
#define REQUEST_ID_MAX 128
#define AGENT_PORT 8081
#define TEXT_TYPE "text/plain; charset=utf-8"

/* --- replies --- */

void fluid_send(struct request *r, int status)
{
    xchg_add_header(r->x, "x-content-type-options", STR("nosniff"));
    buf_add_char(&r->api->scratch, '\n');
    request_send(r, status, JSON_TYPE, buf_str(&r->api->scratch));
}

static bool is_agent(const struct request *r)
{
    const struct fluid_row *row = r->route ? r->route->data : NULL;

    return row && row->agent;
}

/* --- the agent interface --- */

/* The client's own id, or a unique one. */
static struct str request_id(struct request *r)
{
    struct str given = http_req_header(xchg_req(r->x), "x-request-id");
    char seed[FLUID_ID], id[FLUID_ID];

    if (given.n > 0)
        return str_make(given.p, size_min(given.n, REQUEST_ID_MAX));
    return arena_str(xchg_arena(r->x), str_of(fluid_uuid(fluid_new_id("", seed), id)));
}

static void send_enveloped(struct request *r, int status, struct str json)
{
    xchg_add_header(r->x, "x-content-type-options", STR("nosniff"));
    xchg_add_header(r->x, "x-frame-options", STR("DENY"));
    xchg_add_header(r->x, "x-xss-protection", STR("1; mode=block"));
    xchg_add_header(r->x, "cache-control", STR("no-store"));
    request_send(r, status, JSON_TYPE, json);
}

static void write_envelope(struct jw *w, struct str id)
{
    jw_ktime(w, "timestamp", clock_wall_ms());
    if (id.n > 0)
        jw_kstr(w, "request_id", id);
}

void fluid_reply(struct request *r, int status, struct str json)
{
    struct str id = request_id(r);
    AUTO(buf_done) struct buf to = {0};
    struct jw w = {.to = &to};
    bool bare = !str_starts(xchg_req(r->x)->path, STR("/api/"));

    xchg_add_header(r->x, "x-request-id", id);
    if (bare && json.p[0] != '{') {
        buf_add_str(&to, json);
    } else {
        jw_object(&w);
        /* the payload's members win: the request_id of a question */
        if (!bare || !str_find(json, STR("\"success\":")))
            jw_kbool(&w, "success", true);
        write_envelope(&w, bare && str_starts(json, STR("{\"request_id\"")) ? STR("") : id);
        if (bare) {
            buf_add_c(&to, json.n > 2 ? "," : "");
            buf_add_str(&to, str_skip(json, 1));
        } else {
            jw_key(&w, "data");
            jw_raw(&w, json);
            jw_object_end(&w);
        }
    }
    buf_add_char(&to, '\n');
    send_enveloped(r, status, buf_str(&to));
}

static const char *code_of(int status)
{
    switch (status) {
    case 400:
    case 409:
    case 413:
        return "VALIDATION_ERROR";
    case 401:
    case 403:
        return "FORBIDDEN";
    case 404:
        return "NOT_FOUND";
    case 429:
        return "RATE_LIMITED";
    default:
        return "INTERNAL_ERROR";
    }
}

static void send_agent_error(struct request *r, int status, const char *code, struct str text,
                             struct str details)
{
    AUTO(buf_done) struct buf to = {0};
    struct jw w = {.to = &to};
    struct str id = request_id(r);

    jw_object(&w);
    jw_kbool(&w, "success", false);
    write_envelope(&w, id);
    jw_key(&w, "error");
    jw_object(&w);
    jw_kc(&w, "code", code);
    jw_kstr(&w, "message", text);
    if (details.n > 0)
        jw_kstr(&w, "details", details);
    jw_object_end(&w);
    jw_object_end(&w);
    buf_add_char(&to, '\n');
    xchg_add_header(r->x, "x-request-id", id);
    send_enveloped(r, status, buf_str(&to));
}

void fluid_blocked(struct request *r, const struct err *e)
{
    send_agent_error(r, 403, "COMMAND_BLOCKED", str_of(e->msg), str_of(e->hint));
}

/* --- errors --- */

static void send_main_error(struct request *r, int status, struct str text, struct str details)
{
    struct jw w = request_json(r);

    jw_object(&w);
    jw_kstr(&w, "error", text);
    jw_kint(&w, "code", status);
    if (details.n > 0)
        jw_kstr(&w, "details", details);
    jw_object_end(&w);
    fluid_send(r, status);
}

static void send_error(struct request *r, int status, struct str text, struct str details)
{
    if (status == 401)
        xchg_add_header(r->x, "www-authenticate", STR("Bearer"));
    if (is_agent(r))
        send_agent_error(r, status, code_of(status), text, details);
    else
        send_main_error(r, status, text, details);
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

static void run_row(struct request *r)
{
    if (row_of(r)->in_box)
        fluid_with_box(r);
    else
        row_of(r)->run(r);
}

static void body_collected(struct request *r, struct str text)
{
    struct err e = {0};

    if (fluid_read_body(text, row_of(r)->form, xchg_arena(r->x), &r->body, &r->in, &e) < 0)
        fluid_error(r, 400, "%s", e.msg);
    else
        run_row(r);
}

static void fluid_handle(struct request *r)
{
    if (row_of(r)->form)
        request_collect(r, body_collected);
    else
        run_row(r);
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

static void write_component(struct jw *w, const char *name)
{
    jw_object(w);
    jw_kc(w, "name", name);
    jw_kc(w, "status", "healthy");
    jw_object_end(w);
}

/* The agent daemon's form, where its clients expect that daemon. */
static void send_agent_health(struct request *r)
{
    static const char *const parts[] = {"tmux-client", "tmux", "virsh-sandbox", "file", "command"};
    struct jw w = request_json(r);

    jw_object(&w);
    jw_kc(&w, "status", "healthy");
    jw_kc(&w, "version", r->api->c.version);
    jw_kc(&w, "uptime",
          arena_printf(xchg_arena(r->x), "%llds",
                       (long long)((clock_mono_ms() - r->api->started_mono_ms) / 1000)));
    jw_key(&w, "components");
    jw_array(&w);
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        write_component(&w, parts[i]);
    jw_array_end(&w);
    jw_object_end(&w);
    fluid_send(r, 200);
}

static bool is_agent_port(const struct xchg *x)
{
    return xchg_listener(x)->port == AGENT_PORT;
}

static void send_health(struct request *r)
{
    struct jw w;

    if (is_agent_port(r->x)) {
        send_agent_health(r);
        return;
    }
    w = request_json(r);
    jw_object(&w);
    jw_kc(&w, "status", "ok");
    jw_object_end(&w);
    fluid_send(r, 200);
}

static void send_docs(struct request *r);

/* "/v1/sandboxes/" is "/v1/sandboxes". */
static bool is_root(const struct xchg *x)
{
    struct str path = xchg_req(x)->path;

    return str_ends(path, STR("/sandboxes/")) || str_ends(path, STR("/plan/"));
}

/* --- routes --- */

#define BOTH(path) "/v1" path, "/api/v1" path
#define MAIN(path) "/v1" path, NULL
#define AGENT(method, path, name, perm, run, form)                                                 \
    {method, BOTH(path), "fluid." name, perm, run, form, .agent = true}
#define IN_BOX(method, path, name, perm, run, form)                                                \
    {method, BOTH(path), "fluid." name, perm, NULL, form, .agent = true, .in_box = run}

/* clang-format off */
static const struct fluid_row rows[] = {
    {"GET", MAIN("/health"), "fluid.health", PERM_NONE, send_health},
    {"GET", MAIN("/vms"), "fluid.vms", PERM_SANDBOX_READ, fluid_vms},
    {"GET", BOTH("/sandboxes"), "fluid.list", PERM_SANDBOX_READ, fluid_list},
    {"POST", BOTH("/sandboxes"), "fluid.create", PERM_SANDBOX_WRITE, fluid_create, &fluid_create_form},
    {"GET", MAIN("/sandboxes/{rest...}"), "fluid.list", PERM_SANDBOX_READ, fluid_list, .guard = is_root},
    {"POST", MAIN("/sandboxes/{rest...}"), "fluid.create", PERM_SANDBOX_WRITE, fluid_create, &fluid_create_form, .guard = is_root},
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
    {"POST", BOTH("/sandboxes/{id}/diff"), "fluid.diff", PERM_SANDBOX_CONTENT, fluid_diff, &fluid_diff_form},
    {"POST", BOTH("/sandboxes/{id}/snapshots/{name}/restore"), "fluid.restore", PERM_SANDBOX_WRITE, fluid_restore, &fluid_restore_form},
    {"GET", BOTH("/sandboxes/{id}/stream"), "fluid.stream", PERM_SANDBOX_CONTENT, fluid_stream},
    {"GET", "/docs", NULL, "fluid.docs", PERM_NONE, send_docs},
    {"GET", "/health", NULL, "fluid.health", PERM_NONE, send_agent_health, .guard = is_agent_port},

    {"POST", BOTH("/sandboxes/{id}/generate/{tool}"), "fluid.generate", PERM_SANDBOX_WRITE, fluid_generate},
    {"POST", BOTH("/sandboxes/{id}/publish"), "fluid.publish", PERM_SANDBOX_WRITE, fluid_publish, &fluid_publish_form},
    {"POST", BOTH("/ansible/jobs"), "fluid.job_create", PERM_SANDBOX_WRITE, fluid_job_create, &fluid_job_form},
    {"GET", BOTH("/ansible/jobs/{id}"), "fluid.job", PERM_SANDBOX_READ, fluid_job},
    {"GET", BOTH("/ansible/jobs/{id}/stream"), "fluid.job_stream", PERM_SANDBOX_CONTENT, fluid_job_stream},
    {"GET", "/ws/ansible/jobs/{id}", NULL, "fluid.job_stream", PERM_SANDBOX_CONTENT, fluid_job_stream},
    {"GET", BOTH("/ansible/playbooks"), "fluid.books", PERM_SANDBOX_READ, fluid_books},
    {"POST", BOTH("/ansible/playbooks"), "fluid.book_create", PERM_SANDBOX_WRITE, fluid_book_create, &fluid_book_form},
    {"GET", BOTH("/ansible/playbooks/{name}"), "fluid.book", PERM_SANDBOX_CONTENT, fluid_book},
    {"DELETE", BOTH("/ansible/playbooks/{name}"), "fluid.book_delete", PERM_SANDBOX_WRITE, fluid_book_delete},
    {"GET", BOTH("/ansible/playbooks/{name}/export"), "fluid.book_export", PERM_SANDBOX_CONTENT, fluid_book_export},
    {"POST", BOTH("/ansible/playbooks/{name}/tasks"), "fluid.book_task_add", PERM_SANDBOX_WRITE, fluid_book_task_add, &fluid_book_task_form},
    {"PATCH", BOTH("/ansible/playbooks/{name}/tasks/reorder"), "fluid.book_reorder", PERM_SANDBOX_WRITE, fluid_book_reorder, &fluid_book_order_form},
    {"PUT", BOTH("/ansible/playbooks/{name}/tasks/{task}"), "fluid.book_task_change", PERM_SANDBOX_WRITE, fluid_book_task_change, &fluid_book_change_form},
    {"DELETE", BOTH("/ansible/playbooks/{name}/tasks/{task}"), "fluid.book_task_delete", PERM_SANDBOX_WRITE, fluid_book_task_delete},

    {"POST", BOTH("/access/request"), "fluid.access_request", PERM_SANDBOX_WRITE, fluid_access_request, &fluid_access_form},
    {"GET", BOTH("/access/ca-pubkey"), "fluid.access_ca", PERM_SELF, fluid_access_authority},
    {"GET", BOTH("/access/certificate/{id}"), "fluid.certificate", PERM_SANDBOX_READ, fluid_certificate},
    {"DELETE", BOTH("/access/certificate/{id}"), "fluid.certificate_revoke", PERM_SANDBOX_WRITE, fluid_certificate_revoke, &fluid_revoke_form},
    {"GET", BOTH("/access/certificates"), "fluid.certificates", PERM_SANDBOX_READ, fluid_certificates},
    {"POST", BOTH("/access/session/start"), "fluid.session_start", PERM_SANDBOX_WRITE, fluid_session_start, &fluid_session_start_form},
    {"POST", BOTH("/access/session/end"), "fluid.session_end", PERM_SANDBOX_WRITE, fluid_session_end, &fluid_session_end_form},
    {"GET", BOTH("/access/sessions"), "fluid.access_sessions", PERM_SANDBOX_READ, fluid_access_sessions},

    AGENT("POST", "/human/ask", "ask", PERM_ASK, fluid_ask, &fluid_ask_form),
    AGENT("POST", "/human/ask-async", "ask_async", PERM_ASK, fluid_ask_async, &fluid_ask_form),
    AGENT("GET", "/human/pending", "pending", PERM_ASK_READ, fluid_pending, NULL),
    AGENT("GET", "/human/pending/{id}", "pending_one", PERM_ASK_READ, fluid_pending_one, NULL),
    AGENT("GET", "/human/requests/{id}", "question", PERM_ASK_READ, fluid_question, NULL),
    AGENT("POST", "/human/respond", "respond", PERM_TEAM_RULE, fluid_respond, &fluid_respond_form),
    AGENT("DELETE", "/human/pending/{id}", "cancel", PERM_ASK, fluid_cancel, NULL),

    AGENT("GET", "/tmux/sessions", "tmux_sessions", PERM_SANDBOX_READ, fluid_tmux_sessions, NULL),
    AGENT("GET", "/tmux/windows", "tmux_windows", PERM_SANDBOX_READ, fluid_tmux_windows, NULL),
    AGENT("GET", "/tmux/panes", "tmux_panes", PERM_SANDBOX_READ, fluid_tmux_panes, NULL),
    IN_BOX("POST", "/tmux/sessions/create", "tmux_session_create", PERM_SANDBOX_WRITE, fluid_tmux_session_create, &fluid_tmux_form),
    AGENT("POST", "/tmux/sessions/{session}/release", "tmux_release", PERM_SANDBOX_READ, fluid_tmux_release, NULL),
    AGENT("DELETE", "/tmux/sessions/{session}", "tmux_session_kill", PERM_SANDBOX_WRITE, fluid_tmux_session_kill, NULL),
    IN_BOX("POST", "/tmux/panes/create", "tmux_pane_create", PERM_SANDBOX_WRITE, fluid_tmux_pane_create, &fluid_tmux_form),
    AGENT("POST", "/tmux/panes/read", "tmux_read", PERM_SANDBOX_CONTENT, fluid_tmux_read, &fluid_read_form),
    AGENT("POST", "/tmux/panes/switch", "tmux_switch", PERM_SANDBOX_READ, fluid_tmux_switch, &fluid_keys_form),
    AGENT("POST", "/tmux/panes/send-keys", "tmux_send", PERM_SANDBOX_WRITE, fluid_tmux_send, &fluid_keys_form),
    AGENT("DELETE", "/tmux/panes/{pane}", "tmux_pane_kill", PERM_SANDBOX_WRITE, fluid_tmux_pane_kill, NULL),

    AGENT("POST", "/sandbox/sessions/create", "terminal_create", PERM_SANDBOX_WRITE, fluid_terminal_create, &fluid_terminal_form),
    AGENT("GET", "/sandbox/sessions", "terminals", PERM_SANDBOX_READ, fluid_terminals, NULL),
    AGENT("GET", "/sandbox/sessions/{session}", "terminal", PERM_SANDBOX_READ, fluid_terminal, NULL),
    AGENT("DELETE", "/sandbox/sessions/{session}", "terminal_kill", PERM_SANDBOX_WRITE, fluid_terminal_kill, NULL),
    {"GET", BOTH("/sandbox/health"), "fluid.health", PERM_NONE, send_agent_health},

    IN_BOX("POST", "/command/run", "command", PERM_SANDBOX_WRITE, fluid_tool_run, &fluid_tool_form),
    AGENT("GET", "/command/allowed", "command_allowed", PERM_SANDBOX_READ, fluid_tool_allowed, NULL),
    IN_BOX("POST", "/file/read", "file_read", PERM_SANDBOX_CONTENT, fluid_file_read, &fluid_file_form),
    IN_BOX("POST", "/file/write", "file_write", PERM_SANDBOX_WRITE, fluid_file_write, &fluid_file_form),
    IN_BOX("POST", "/file/edit", "file_edit", PERM_SANDBOX_WRITE, fluid_file_edit, &fluid_file_form),
    IN_BOX("POST", "/file/copy", "file_copy", PERM_SANDBOX_WRITE, fluid_file_copy, &fluid_copy_form),
    IN_BOX("POST", "/file/delete", "file_delete", PERM_SANDBOX_WRITE, fluid_file_delete, &fluid_file_form),
    IN_BOX("POST", "/file/list", "file_list", PERM_SANDBOX_CONTENT, fluid_file_list, &fluid_file_form),
    IN_BOX("POST", "/file/exists", "file_exists", PERM_SANDBOX_CONTENT, fluid_file_exists, &fluid_file_form),
    IN_BOX("POST", "/file/hash", "file_hash", PERM_SANDBOX_CONTENT, fluid_file_hash, &fluid_file_form),

    AGENT("POST", "/plan/create", "plan_create", PERM_ASK, fluid_plan_create, &fluid_plan_form),
    AGENT("GET", "/plan", "plans", PERM_ASK_READ, fluid_plans, NULL),
    {"GET", BOTH("/plan/{rest...}"), "fluid.plans", PERM_ASK_READ, fluid_plans, .guard = is_root, .agent = true},
    AGENT("GET", "/plan/{plan}", "plan", PERM_ASK_READ, fluid_plan, NULL),
    AGENT("POST", "/plan/update", "plan_update", PERM_ASK, fluid_plan_update, &fluid_plan_form),
    AGENT("POST", "/plan/{plan}/advance", "plan_advance", PERM_ASK, fluid_plan_advance, &fluid_plan_form),
    AGENT("POST", "/plan/{plan}/abort", "plan_abort", PERM_ASK, fluid_plan_abort, &fluid_plan_form),
    AGENT("DELETE", "/plan/{plan}", "plan_delete", PERM_ASK, fluid_plan_delete, NULL),

    AGENT("POST", "/audit/query", "audit_query", PERM_AUDIT, fluid_audit_query, &fluid_audit_form),
    AGENT("GET", "/audit/stats", "audit_stats", PERM_AUDIT, fluid_audit_stats, NULL),
};
/* clang-format on */

/* The reference: each route by method and path, with the fields of its body. */
static void put_row(struct buf *to, const struct fluid_row *row)
{
    buf_printf(to, "<tr><td>%s</td><td><code>%s</code></td><td>", row->method, row->path);
    for (size_t i = 0; row->form && i < row->form->count; i++)
        buf_printf(to, "%s<code>%s</code>%s", i > 0 ? ", " : "", row->form->fields[i].name,
                   row->form->fields[i].required ? "*" : "");
    buf_add_c(to, "</td></tr>\n");
}

static void send_docs(struct request *r)
{
    AUTO(buf_done) struct buf page = {0};

    buf_add_c(&page,
              "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">"
              "<title>API reference</title>\n<h1>API reference</h1>\n"
              "<table>\n<tr><th>method</th><th>path</th><th>fields (* required)</th></tr>\n");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (!rows[i].guard)
            put_row(&page, &rows[i]);
    buf_add_c(&page, "</table>\n</html>\n");
    xchg_add_header(r->x, "x-content-type-options", STR("nosniff"));
    request_send(r, 200, "text/html; charset=utf-8", buf_str(&page));
}

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

/* --- the row --- */

struct fluid *fluid_of(const struct api *a)
{
    return dialect_state(a, &dialect_fluid);
}

static void *fluid_new(struct api *a)
{
    struct fluid *f = xzalloc(sizeof *f);

    (void)a;
    list_init(&f->streams);
    list_init(&f->recorded);
    return f;
}

static void fluid_free(void *state)
{
    if (state)
        fluid_recorded_done(state);
    mem_free(state);
}

static void fluid_tick(struct api *a, void *state)
{
    (void)state;
    fluid_streams_tick(a);
}

const struct dialect dialect_fluid = {
    .name = FLUID_DIALECT,
    .start = fluid_new,
    .tick = fluid_tick,
    .free = fluid_free,
    .add_routes = add_routes,
    .roots = (const char *const[]){"v1", NULL},
    .fail = fail_without_route,
    .write_error = write_error,
    .listen =
        (const char *const[]){"127.0.0.1:8080", "[::1]:8080", "127.0.0.1:8081", "[::1]:8081", NULL},
};
