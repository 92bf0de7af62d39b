/* hub: routes, errors and requests of the hub dialect. */
#include "api/dialects/hub/hub.h"

#include "base/mem.h"
#include "base/utf8.h"

struct hub_job {
    struct team_job job;
    const struct hub_row *row;
    struct hub_call c;
};

static void job_free(struct team_job *job)
{
    struct hub_job *j = CONTAINER_OF(job, struct hub_job, job);

    json_decref(j->c.body);
    buf_done(&j->c.reply);
    arena_done(&j->c.arena);
    mem_free(j);
}

/* --- errors in the hub's form --- */

static const struct {
    const char *kind, *text;
} missing[] = {
    {"agent/", "agent not found"},       {"project/", "project not found"},
    {"task/", "task not found"},         {"message/", "message not found"},
    {"proposal/", "proposal not found"},
};

/* The hub's clients know these errors by their texts. */
static const char *text_of(const struct err *e)
{
    for (size_t i = 0; e->code == ERR_NOT_FOUND && i < ARRAY_LEN(missing); i++)
        if (str_starts(str_of(e->object), str_of(missing[i].kind)))
            return missing[i].text;
    return e->msg;
}

static void put_error(struct jw *w, const char *text, const struct err *e)
{
    jw_object(w);
    jw_kc(w, "code", err_table[e->code].name);
    jw_kc(w, "error", text);
    if (e->hint[0])
        jw_kc(w, "hint", e->hint);
    jw_object_end(w);
}

static void write_error(struct buf *to, const struct err *e)
{
    struct jw w = {.to = to};

    put_error(&w, text_of(e), e);
    buf_add_char(to, '\n');
}

static void send_error(struct request *r, int status, const char *text, const struct err *e)
{
    struct jw w = request_json(r);

    put_error(&w, text, e);
    if (status == 401)
        xchg_add_header(r->x, "www-authenticate", STR("Bearer"));
    request_send_json(r, status);
}

void hub_fail(struct request *r, int status, const struct err *e)
{
    /* To the hub's clients, a move that the board does not allow is a bad request. */
    send_error(r, e->code == ERR_PRECONDITION ? 400 : status, text_of(e), e);
}

static void fail(struct request *r, const struct hub_job *j, const struct err *e)
{
    bool task = e->code == ERR_NOT_FOUND && str_starts(str_of(e->object), STR("task/"));

    team_refused(r, &j->c.t, e);
    if (task && j->row->task_400)
        send_error(r, 400, "Task not found", e);
    else
        hub_fail(r, err_table[e->code].http, e);
}

static const char *const hub_roots[] = {"agents",   "projects",     "tasks",    "proposals",
                                        "messages", "capabilities", "autonomy", "revocation",
                                        "ping",     "events",       "audit",    NULL};

/* --- one request --- */

static int hub_work(struct team_job *job, struct err *e)
{
    struct hub_job *j = CONTAINER_OF(job, struct hub_job, job);

    j->c.w = (struct jw){.to = &j->c.reply};
    if (j->row->run(&j->c, e) < 0)
        return -1;
    job->status = j->c.status;
    (void)snprintf(job->object, sizeof job->object, "%s" STR_FMT,
                   j->row->gives_token ? "agent/" : j->row->name, STR_ARG(job->give_token));
    return 0;
}

static void hub_reply(struct request *r, struct team_job *job, const struct err *e)
{
    struct hub_job *j = CONTAINER_OF(job, struct hub_job, job);

    if (e->code != ERR_NONE) {
        fail(r, j, e);
        return;
    }
    if (j->row->audited)
        request_audit(r, "request.read", NULL, 200);
    buf_add_char(&j->c.reply, '\n');
    request_send(r, j->c.status ? j->c.status : 200, "application/json", buf_str(&j->c.reply));
}

static int take_body(struct hub_job *j, struct str body, struct err *e)
{
    if (body.n == 0)
        return 0;
    if (json_read(body, &j->c.body, e) < 0)
        return err_wrap(e, "the request's body");
    if (!json_is_object(j->c.body))
        return err_set(e, ERR_INVALID, 0, "the request's body must be a JSON object");
    return 0;
}

static int take_path(struct hub_job *j, const struct request *r, struct err *e)
{
    for (size_t i = 0; i < r->params.n; i++) {
        if (!str_is_utf8(r->params.v[i]))
            return err_set(e, ERR_INVALID, 0, "the path is not UTF-8");
        j->c.path.v[i] = arena_str(&j->c.arena, r->params.v[i]);
    }
    j->c.path.n = r->params.n;
    j->c.query = arena_str(&j->c.arena, xchg_req(r->x)->query);
    return 0;
}

static enum team_class class_of(struct hub_job *j)
{
    struct str value;

    if (j->row->read_if && http_query_get(j->c.query, j->row->read_if, &j->c.arena, &value) > 0 &&
        str_case_eq_c(value, "true"))
        return TEAM_READ;
    return j->row->class;
}

/* The rules report a wrong name. */
static void take_tokens(struct hub_job *j)
{
    struct err e = {0};

    if (j->row->gives_token && hub_text(&j->c, "name", &j->job.give_token, &e) < 0)
        j->job.give_token = (struct str){0};
    if (j->row->takes_tokens)
        j->job.take_tokens = j->c.path.v[0];
}

static void start(struct request *r, struct str body)
{
    struct hub_job *j = xzalloc(sizeof *j);
    struct err e = {0};

    j->row = r->route->data;
    j->job = (struct team_job){
        .t = &j->c.t, .reply = &j->c.reply, .run = hub_work, .answer = hub_reply, .free = job_free};
    /* Browsers send an Origin, the SDK and curl do not. */
    j->c.at_page = http_req_header(xchg_req(r->x), "origin").p && r->who.role != ROLE_AGENT;
    j->c.implied = r->how == AUTH_IMPLIED && !j->c.at_page;
    if (team_of(r, &j->c.arena, &j->c.t, &e) < 0 || take_body(j, body, &e) < 0 ||
        take_path(j, r, &e) < 0) {
        fail(r, j, &e);
        job_free(&j->job);
        return;
    }
    j->c.t.unnamed = j->c.implied && !j->row->about_it;
    take_tokens(j);
    team_job_start(&j->job, r, class_of(j));
}

/* Accepts any content type: the hub's own examples send none.  A form of a foreign page cannot use
 * that: its Origin was refused before. */
static void hub_handle(struct request *r)
{
    const struct http_req *req = xchg_req(r->x);
    bool bodiless = str_eq_c(req->method, "GET") || str_eq_c(req->method, "HEAD");

    if (bodiless)
        start(r, STR(""));
    else
        request_collect(r, start);
}

/* Routes that are not only work of the store. */
static const struct route streamed[] = {
    {.method = "GET",
     .path = "/events",
     .name = "hub.events",
     .perm = PERM_EVENTS,
     .handler = hub_events,
     .fail = hub_fail},
    {.method = "POST",
     .path = "/projects/{project}/files",
     .name = "hub.file.upload",
     .perm = PERM_TEAM_WRITE,
     .handler = hub_file_upload,
     .fail = hub_file_upload_fail},
    {.method = "GET",
     .path = "/projects/{project}/files/{name...}",
     .name = "hub.file.download",
     .perm = PERM_TEAM_CONTENT,
     .handler = hub_file_download,
     .fail = hub_file_download_fail},
};

static int add_routes(struct router *to, struct err *e)
{
    for (size_t i = 0; i < hub_row_count; i++)
        if (router_add(to,
                       &(struct route){.method = hub_rows[i].method,
                                       .path = hub_rows[i].path,
                                       .name = hub_rows[i].name,
                                       .perm = hub_rows[i].perm,
                                       .handler = hub_handle,
                                       .fail = hub_fail,
                                       .creates = hub_rows[i].creates,
                                       .body_max = hub_rows[i].body_max,
                                       .data = &hub_rows[i]},
                       e) < 0)
            return -1;
    for (size_t i = 0; i < ARRAY_LEN(streamed); i++)
        if (router_add(to, &streamed[i], e) < 0)
            return -1;
    return 0;
}

const struct dialect dialect_hub = {
    .name = HUB_DIALECT,
    .add_routes = add_routes,
    .roots = hub_roots,
    .fail = hub_fail,
    .write_error = write_error,
    .options_status = 200,
    .listen = (const char *const[]){"127.0.0.1:8080", "[::1]:8080", NULL},
};
