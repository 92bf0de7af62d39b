/* process: process_api: the same from inside a sandbox, over HTTP. */
#include "api/dialects/agentbox/agentbox.h"
#include "core/identity/identity.h"

#define TIMEOUT_DEFAULT_MS 30000
#define WORKDIR "/workspace"

/* --- replies in the format of aiohttp and Python's json --- */

static struct jw begin_json(struct request *r)
{
    struct jw w = request_json(r);

    w.spaced = true;
    jw_object(&w);
    return w;
}

static void send_json(struct request *r, int status, struct jw *w)
{
    jw_object_end(w);
    request_send(r, status, "application/json; charset=utf-8", buf_str(&r->api->scratch));
}

static void send_error(struct request *r, int status, const char *text)
{
    struct jw w = begin_json(r);

    jw_kc(&w, "error", text);
    send_json(r, status, &w);
}

static void send_text(struct request *r, int status, const char *text)
{
    request_send(r, status, "text/plain; charset=utf-8", str_of(text));
}

void process_tell_exec(struct request *r, const struct agentbox_exec_response *a)
{
    struct jw w = begin_json(r);

    jw_kint(&w, "exit_code", a->exit_code);
    jw_kstr(&w, "stdout", a->stdout);
    jw_kstr(&w, "stderr", a->stderr);
    jw_kbool(&w, "timed_out", a->timed_out);
    if (a->truncated)
        jw_kbool(&w, "truncated", true);
    send_json(r, 200, &w);
}

static void send_outcome(struct request *r, struct str error)
{
    struct jw w = begin_json(r);

    jw_kbool(&w, "success", error.n == 0);
    if (error.n > 0)
        jw_kstr(&w, "error", error);
    send_json(r, 200, &w);
}

void process_tell_write(struct request *r, const struct agentbox_write_file_response *a)
{
    if (str_eq_c(a->error, AGENTBOX_NOT_ALLOWED))
        send_error(r, 403, AGENTBOX_NOT_ALLOWED);
    else
        send_outcome(r, a->error);
}

void process_tell_read(struct request *r, const struct agentbox_read_file_response *a)
{
    struct jw w;

    if (!a->success) {
        send_outcome(r, a->error);
        return;
    }
    w = begin_json(r);
    jw_kbool(&w, "success", true);
    jw_kstr(&w, "content", a->content);
    send_json(r, 200, &w);
}

void process_event(const struct agentbox_exec_stream_response *a, struct buf *to)
{
    struct jw w = {.to = to, .spaced = true};

    jw_object(&w);
    jw_kstr(&w, "type", a->type);
    if (a->has_exit_code)
        jw_kint(&w, "exit_code", a->exit_code);
    else
        jw_kstr(&w, "data", a->data);
    jw_object_end(&w);
}

/* --- bodies --- */

static struct str text_of(const struct request *r, const char *key)
{
    const json_t *v = json_object_get(r->body, key);

    return json_is_string(v) ? str_make(json_string_value(v), json_string_length(v))
                             : (struct str){0};
}

static bool is_given(const struct request *r, const char *key)
{
    const json_t *v = json_object_get(r->body, key);

    return v && !json_is_null(v) && !(json_is_string(v) && json_string_length(v) == 0);
}

/* A missing timeout means the default, null means none; an expired one is below 0. */
static int read_timeout(const struct request *r, int64_t *ret)
{
    const json_t *v = json_object_get(r->body, "timeout");
    double ms;

    *ret = v ? 0 : TIMEOUT_DEFAULT_MS;
    if (!v || json_is_null(v))
        return 0;
    if (!json_is_number(v))
        return -1;
    ms = json_number_value(v) * 1000;
    *ret = ms<1 ? -1 : ms>(double) AGENTBOX_TIMEOUT_MAX_MS ? AGENTBOX_TIMEOUT_MAX_MS : (int64_t)ms;
    return 0;
}

static struct agentbox_line line_of(const struct request *r)
{
    struct str workdir = text_of(r, "workdir");

    return (struct agentbox_line){
        .command = text_of(r, "command"),
        .workdir = workdir.n > 0 ? workdir : STR(WORKDIR),
    };
}

/* --- operations --- */

static void process_health(struct request *r, struct sandbox *s)
{
    struct jw w = begin_json(r);

    (void)s;
    jw_kc(&w, "status", "ok");
    send_json(r, 200, &w);
}

static void process_exec(struct request *r, struct sandbox *s)
{
    struct agentbox_line l = line_of(r);

    if (!is_given(r, "command"))
        send_error(r, 400, "Missing 'command' field");
    else if (l.command.n == 0)
        agentbox_refuse(r, "cmd must be a string");
    else if (read_timeout(r, &l.timeout_ms) < 0)
        agentbox_refuse(r, "timeout must be a number of seconds or null");
    else
        agentbox_run(r, s, &l);
}

static void exec_stream(struct request *r, struct sandbox *s)
{
    const struct agentbox_line l = line_of(r);

    if (!is_given(r, "command"))
        send_error(r, 400, "Missing 'command' field");
    else if (l.command.n == 0)
        request_send(r, 200, "text/event-stream",
                     STR("data: {\"type\": \"error\", \"data\": \"cmd must be a string\"}\n\n"));
    else
        agentbox_run_stream(r, s, &l);
}

static void file_write(struct request *r, struct sandbox *s)
{
    const json_t *content = json_object_get(r->body, "content");
    const struct agentbox_write_file_request q = {
        .path = text_of(r, "path"), .content = text_of(r, "content"), .mode = text_of(r, "mode")};

    if (q.path.n == 0 || !content || json_is_null(content))
        send_error(r, 400, "Missing 'path' or 'content' field");
    else if (!json_is_string(content))
        send_outcome(r, STR("write() argument must be str"));
    else
        agentbox_write(r, s, &q);
}

static void file_read(struct request *r, struct sandbox *s)
{
    const struct agentbox_read_file_request q = {.path = text_of(r, "path")};

    if (q.path.n == 0)
        send_error(r, 400, "Missing 'path' field");
    else
        agentbox_read(r, s, &q);
}

static const struct endpoint {
    const char *method, *path;
    void (*run)(struct request *r, struct sandbox *s);
} endpoints[] = {
    {"GET", "/health", process_health},    {"POST", "/exec", process_exec},
    {"POST", "/exec/stream", exec_stream}, {"POST", "/file/write", file_write},
    {"POST", "/file/read", file_read},
};

static const struct endpoint *find(struct str path)
{
    for (size_t i = 0; i < ARRAY_LEN(endpoints); i++)
        if (str_eq_c(path, endpoints[i].path))
            return &endpoints[i];
    return NULL;
}

/* --- requests --- */

static void run(struct request *r)
{
    const char *id = xchg_peer(r->x)->address + strlen("sandbox/");
    struct err e = {0};
    struct sandbox *s = sandbox_find(r->api->c.sandboxes, &r->who, str_of(id), &e);

    if (!s) {
        send_text(r, 500, "500 Internal Server Error");
        return;
    }
    sandbox_touch(s);
    find(xchg_req(r->x)->path)->run(r, s);
}

static void run_with(struct request *r, struct str body)
{
    struct err e = {0};

    if (json_read(body, &r->body, &e) < 0)
        send_error(r, 400, "Invalid JSON");
    else if (!json_is_object(r->body))
        send_text(r, 500, "500 Internal Server Error");
    else
        run(r);
}

void process_fail(struct request *r, int status, const struct err *e)
{
    send_error(r, status, e->msg);
}

/* A page shown by a browser inside is not a client: it could come from anywhere. */
void process_handle(struct request *r)
{
    const struct http_req *req = xchg_req(r->x);
    const struct endpoint *at = find(req->path);
    struct err e = {0};

    r->who = principal_inside(xchg_peer(r->x)->address + strlen("sandbox/"));
    r->how = AUTH_INSIDE;
    if (http_req_header(req, "origin").p) {
        send_text(r, 403, "403: Forbidden");
    } else if (!at) {
        send_text(r, 404, "404: Not Found");
    } else if (!str_eq_c(req->method, at->method) &&
               !(at->run == process_health && str_eq_c(req->method, "HEAD"))) {
        xchg_add_header(r->x, "allow", str_of(at->method));
        send_text(r, 405, "405: Method Not Allowed");
    } else if (at->run == process_health) {
        run(r);
    } else if (request_authorise(r, r->route->perm, &e) < 0) {
        request_refuse(r, &e);
    } else {
        request_collect(r, run_with);
    }
}
