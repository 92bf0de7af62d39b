/* reply: results and errors in the three forms. */
#include "api/dialects/a2a/a2a.h"

#include <stdarg.h>

static const struct a2a_error_row {
    const char *code, *title;
    int http; /* of agentic-sandbox's form */
    int rest, rpc;
    const char *status, *reason; /* of version 1.0 */
} errors[A2A_ERRORS] = {
    [A2A_INSTANCE_NOT_FOUND] = {"instance.not_found", "There is no such instance", 404, 404, -32600,
                                "NOT_FOUND", "INSTANCE_NOT_FOUND"},
    [A2A_TASK_NOT_FOUND] = {"task.not_found", "There is no such task", 404, 404, -32001,
                            "NOT_FOUND", "TASK_NOT_FOUND"},
    [A2A_ARTIFACT_NOT_FOUND] = {"artifact.not_found", "There is no such artifact", 404, 404, -32001,
                                "NOT_FOUND", "TASK_NOT_FOUND"},
    [A2A_PUSH_NOT_FOUND] = {"push.not_found", "There is no such configuration", 404, 404, -32001,
                            "NOT_FOUND", "TASK_NOT_FOUND"},
    [A2A_NOT_CANCELABLE] = {"task.not_cancelable", "The task has ended", 409, 400, -32002,
                            "FAILED_PRECONDITION", "TASK_NOT_CANCELABLE"},
    [A2A_UNSUPPORTED] = {"request.unsupported", "This is not supported", 400, 400, -32004,
                         "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION"},
    [A2A_CONTENT_TYPE] = {"request.content_type", "This kind of part is not taken", 400, 400,
                          -32005, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED"},
    [A2A_NO_EXTENSION] = {"extension.required_not_activated", "An extension must be activated", 400,
                          400, -32008, "FAILED_PRECONDITION", "EXTENSION_SUPPORT_REQUIRED"},
    [A2A_NO_VERSION] = {"request.version", "This version is not spoken", 400, 400, -32009,
                        "FAILED_PRECONDITION", "VERSION_NOT_SUPPORTED"},
    [A2A_BAD_JSON] = {"request.invalid_json", "The body is not JSON", 400, 400, -32700,
                      "INVALID_ARGUMENT", "INVALID_REQUEST"},
    [A2A_BAD_REQUEST] = {"request.invalid", "The request is not valid", 400, 400, -32600,
                         "INVALID_ARGUMENT", "INVALID_REQUEST"},
    [A2A_BAD_PARAMS] = {"request.invalid_params", "A parameter is not valid", 400, 400, -32602,
                        "INVALID_ARGUMENT", "INVALID_PARAMS"},
    [A2A_NO_METHOD] = {"request.no_method", "There is no such method", 404, 404, -32601,
                       "NOT_FOUND", "METHOD_NOT_FOUND"},
    [A2A_NOT_READY] = {"runtime.not_ready", "The instance does not run", 503, 503, -32603,
                       "UNAVAILABLE", "INTERNAL_ERROR"},
    [A2A_NO_TEXT] = {"dispatch.failed", "The message could not be handed on", 502, 400, -32602,
                     "INVALID_ARGUMENT", "INVALID_PARAMS"},
    [A2A_IN_PROGRESS] = {"request.in_progress", "The same message is being taken", 409, 409, -32603,
                         "ABORTED", "INTERNAL_ERROR"},
};

/* --- values --- */

void a2a_open_at(const struct a2a_call *c, struct jw *w)
{
    if (c->form != A2A_RPC)
        return;
    jw_object(w);
    jw_kc(w, "jsonrpc", "2.0");
    jw_key(w, "id");
    if (c->rpc_id)
        jw_json(w, c->rpc_id);
    else
        jw_null(w);
    jw_key(w, "result");
}

void a2a_close_at(const struct a2a_call *c, struct jw *w)
{
    if (c->form == A2A_RPC)
        jw_object_end(w);
}

struct jw a2a_open(struct a2a_call *c)
{
    struct jw w = request_json(c->r);

    a2a_open_at(c, &w);
    return w;
}

void a2a_send(struct a2a_call *c, struct jw *w, int status)
{
    a2a_close_at(c, w);
    if (c->form != A2A_SEED)
        xchg_add_header(c->r->x, "a2a-version", STR(A2A_VERSION));
    request_send_json(c->r, status);
}

/* --- errors --- */

static void write_problem(struct jw *w, const struct a2a_error_row *row, const struct a2a_call *c,
                          struct str detail)
{
    jw_object(w);
    jw_kc(w, "type", row->code);
    jw_kc(w, "code", row->code);
    jw_kc(w, "title", row->title);
    jw_kint(w, "status", row->http);
    jw_kstr(w, "detail", detail);
    if (c && c->as.n > 0)
        jw_kstr(w, "instance_id", c->as);
    jw_object_end(w);
}

static void write_info(struct jw *w, const struct a2a_error_row *row, const struct a2a_call *c)
{
    jw_array(w);
    jw_object(w);
    jw_kc(w, "@type", "type.googleapis.com/google.rpc.ErrorInfo");
    jw_kc(w, "reason", row->reason);
    jw_kc(w, "domain", "a2a-protocol.org");
    if (c->as.n > 0) {
        jw_key(w, "metadata");
        jw_object(w);
        jw_kstr(w, "instance", c->as);
        jw_object_end(w);
    }
    jw_object_end(w);
    jw_array_end(w);
}

static void write_rest(struct jw *w, const struct a2a_error_row *row, const struct a2a_call *c,
                       struct str detail)
{
    jw_object(w);
    jw_key(w, "error");
    jw_object(w);
    jw_kint(w, "code", row->rest);
    jw_kc(w, "status", row->status);
    jw_kstr(w, "message", detail);
    jw_key(w, "details");
    write_info(w, row, c);
    jw_object_end(w);
    jw_object_end(w);
}

static void write_rpc(struct jw *w, const struct a2a_error_row *row, const struct a2a_call *c,
                      struct str detail)
{
    jw_object(w);
    jw_kc(w, "jsonrpc", "2.0");
    jw_key(w, "id");
    if (c->rpc_id)
        jw_json(w, c->rpc_id);
    else
        jw_null(w);
    jw_key(w, "error");
    jw_object(w);
    jw_kint(w, "code", row->rpc);
    jw_kstr(w, "message", detail);
    jw_key(w, "data");
    write_info(w, row, c);
    jw_object_end(w);
    jw_object_end(w);
}

static void send_row(struct a2a_call *c, const struct a2a_error_row *row, struct str detail)
{
    AUTO(buf_done) struct buf text = {0};
    struct jw w = {.to = &text};
    bool enveloped = c->form == A2A_RPC && c->r->body;
    int status = c->form == A2A_SEED ? row->http : enveloped ? 200 : row->rest;

    if (c->form == A2A_SEED)
        write_problem(&w, row, c, detail);
    else if (c->form == A2A_REST)
        write_rest(&w, row, c, detail);
    else
        write_rpc(&w, row, c, detail);
    if (row->http == 503 || row->http == 429)
        xchg_add_header(c->r->x, "retry-after", STR("1"));
    request_send(c->r, status,
                 c->form == A2A_SEED ? "application/problem+json" : "application/json",
                 buf_str(&text));
}

void a2a_fail(struct a2a_call *c, enum a2a_error what, const char *fmt, ...)
{
    AUTO(buf_done) struct buf text = {0};
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    send_row(c, &errors[what], buf_str(&text));
}

/* One of ours that has no row: its own name, and its own status. */
static void send_ours(struct a2a_call *c, int status, const struct err *e)
{
    char code[64];
    struct a2a_error_row row = {.code = code,
                                .title = err_table[e->code].name,
                                .http = status,
                                .rest = status,
                                .rpc = status < 500 ? -32600 : -32603,
                                .status = status == 401   ? "UNAUTHENTICATED"
                                          : status == 403 ? "PERMISSION_DENIED"
                                          : status == 404 ? "NOT_FOUND"
                                          : status == 429 ? "RESOURCE_EXHAUSTED"
                                          : status < 500  ? "INVALID_ARGUMENT"
                                                          : "INTERNAL",
                                .reason = status < 500 ? "INVALID_REQUEST" : "INTERNAL_ERROR"};
    AUTO(buf_done) struct buf text = {0};

    (void)snprintf(code, sizeof code, "request.%s", err_table[e->code].name);
    buf_printf(&text, "%s%s%s", e->msg, e->hint[0] ? "; " : "", e->hint);
    send_row(c, &row, buf_str(&text));
}

void a2a_err(struct a2a_call *c, const struct err *e)
{
    if (e->code == ERR_INVALID)
        a2a_fail(c, A2A_BAD_PARAMS, "%s", e->msg);
    else
        send_ours(c, err_table[e->code].http, e);
}

void a2a_route_fail(struct request *r, int status, const struct err *e)
{
    struct a2a_call *known = r->in;
    struct a2a_call c = {.r = r};

    if (known) {
        send_ours(known, status, e);
        return;
    }
    c.form = r->route && r->route->data ? *(const enum a2a_form *)r->route->data : A2A_SEED;
    if (status == 401)
        xchg_add_header(r->x, "www-authenticate", STR("Bearer"));
    if (c.form == A2A_RPC) /* refused before its envelope was read */
        c.form = A2A_REST;
    send_ours(&c, status, e);
}
