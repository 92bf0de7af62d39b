#include "api/dialects/hub/hub.h"

#include "base/mem.h"
#include "base/utf8.h"

#include <inttypes.h>

struct hub_job {
    struct waiter waiter;
    struct api *api;
    const struct hub_row *row;
    struct hub_call c;
    struct principal by; /* without its token */
};

static void job_free(struct hub_job *j)
{
    json_decref(j->c.body);
    buf_done(&j->c.reply);
    arena_done(&j->c.arena);
    mem_free(j);
}

/* --- errors in the hub's shape --- */

static const struct {
    const char *kind, *text;
} missing[] = {
    {"agent/", "agent not found"},       {"project/", "project not found"},
    {"task/", "task not found"},         {"message/", "message not found"},
    {"proposal/", "proposal not found"},
};

/* The hub's clients know these by their words. */
static const char *text_of(const struct err *e)
{
    for (size_t i = 0; e->code == ERR_NOT_FOUND && i < ARRAY_LEN(missing); i++)
        if (str_starts(str_of(e->object), str_of(missing[i].kind)))
            return missing[i].text;
    return e->msg;
}

static void send_error(struct request *r, int status, const char *text, const struct err *e)
{
    struct jw w = request_json(r);

    jw_object(&w);
    jw_kc(&w, "code", err_table[e->code].name);
    jw_kc(&w, "error", text);
    if (e->hint[0])
        jw_kc(&w, "hint", e->hint);
    jw_object_end(&w);
    if (status == 401)
        xchg_add_header(r->x, "www-authenticate", STR("Bearer"));
    request_send_json(r, status);
}

void hub_fail(struct request *r, int status, const struct err *e)
{
    /* A board that does not allow something is a bad request to the hub's clients. */
    send_error(r, e->code == ERR_PRECONDITION ? 400 : status, text_of(e), e);
}

static void fail(struct request *r, const struct hub_job *j, const struct err *e)
{
    bool task = e->code == ERR_NOT_FOUND && str_starts(str_of(e->object), STR("task/"));

    if (e->code == ERR_FORBIDDEN || e->code == ERR_LIMIT)
        request_audit(r, "request.refused", NULL, err_table[e->code].http);
    if (e->code == ERR_LIMIT && j->c.t.retry_ms > 0)
        xchg_add_header(
            r->x, "retry-after",
            str_of(arena_printf(xchg_arena(r->x), "%" PRId64, (j->c.t.retry_ms + 999) / 1000)));
    if (task && j->row->task_400)
        send_error(r, 400, "Task not found", e);
    else
        hub_fail(r, err_table[e->code].http, e);
}

bool hub_owns(struct str path)
{
    static const char *const roots[] = {"agents",   "projects",     "tasks",    "proposals",
                                        "messages", "capabilities", "autonomy", "revocation",
                                        "ping",     "events",       "audit"};
    struct str first = str_cut(str_skip(path, 1), '/', &(struct str){0});

    for (size_t i = 0; i < ARRAY_LEN(roots); i++)
        if (str_eq_c(first, roots[i]))
            return true;
    return false;
}

/* --- one request --- */

static int work(struct store_tx *tx, void *arg, struct err *e)
{
    struct hub_job *j = arg;

    team_enter(&j->c.t, tx);
    buf_clear(&j->c.reply);
    j->c.w = (struct jw){.to = &j->c.reply};
    return j->row->run(&j->c, e);
}

static void token_gone(void *arg, const struct err *e)
{
    (void)arg, (void)e; /* it is refused from now on in any case */
}

/* The tokens that registering made for an agent, or all of its; but not `keep`. */
static void revoke_tokens(struct hub_job *j, const char *agent, const char *name, const char *keep)
{
    struct identity *i = j->api->c.identity;
    const struct token *t = identity_next(i, STR(""));

    while (t) {
        char id[ID_SIZE];

        memcpy(id, t->id, sizeof id);
        if (t->agent && strcmp(t->agent, agent) == 0 && strcmp(id, keep) != 0 &&
            (!name || strcmp(t->name, name) == 0))
            identity_revoke(i, str_of(id), &j->by, token_gone, NULL);
        t = identity_next(i, str_of(id));
    }
}

static void worked(void *arg, const struct err *e)
{
    struct hub_job *j = arg;
    struct request *r = waiter_end(&j->waiter);

    if (e->code == ERR_NONE)
        team_settle(j->api, &j->c.t);
    if (e->code == ERR_NONE && j->row->takes_tokens && team_is_person(&j->c.t))
        revoke_tokens(j, j->c.path.v[0].p, NULL, "");
    if (r && e->code != ERR_NONE) {
        fail(r, j, e);
    } else if (r) {
        if (j->row->audited)
            request_audit(r, "request.read", NULL, 200);
        buf_add_char(&j->c.reply, '\n');
        request_send(r, j->c.status ? j->c.status : 200, "application/json", buf_str(&j->c.reply));
    }
    job_free(j);
}

static int also_work(struct store_tx *tx, void *arg, const char *id, struct err *e)
{
    (void)id;
    return work(tx, arg, e);
}

static void token_made_for(void *arg, const struct token *t, const char *text, const struct err *e)
{
    struct hub_job *j = arg;

    if (e->code == ERR_NONE) { /* the one before is lost, or should be */
        AUTO(mem_free) char *agent = xstrdup(t->agent);
        AUTO(mem_free) char *name = xstrdup(t->name);
        char id[ID_SIZE];

        memcpy(id, t->id, sizeof id);
        revoke_tokens(j, agent, name, id);
    }
    if (e->code == ERR_NONE && j->waiter.r) {
        /* Behind the object's other members; a token's text needs no quoting. */
        buf_truncate(&j->c.reply, buf_len(&j->c.reply) - 1);
        buf_printf(&j->c.reply, ",\"token\":\"%s\"}", text);
        xchg_add_header(j->waiter.r->x, "cache-control", STR("no-store"));
    }
    worked(j, e);
}

/* With authentication on, who registers an agent gets a token that can act only as that agent. */
static bool register_with_token(struct request *r, struct hub_job *j)
{
    struct str name;
    struct err e = {0};
    char label[TEAM_NAME_MAX + 8];

    if (!j->row->gives_token || j->c.implied || !team_is_person(&j->c.t) ||
        hub_text(&j->c, "name", &name, &e) < 0 || name.n == 0 || name.n > TEAM_NAME_MAX)
        return false;
    (void)snprintf(label, sizeof label, "agent " STR_FMT, STR_ARG(name));
    identity_create(r->api->c.identity,
                    &(struct token_spec){.name = str_of(label),
                                         .role = ROLE_AGENT,
                                         .agent = name,
                                         .also = also_work,
                                         .also_arg = j},
                    &r->who, token_made_for, j);
    return true;
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

static enum hub_class class_of(struct hub_job *j)
{
    struct str value;

    if (j->row->read_if && http_query_get(j->c.query, j->row->read_if, &j->c.arena, &value) > 0 &&
        str_case_eq_c(value, "true"))
        return HUB_READ;
    return j->row->class;
}

static void start(struct request *r, struct str body)
{
    struct hub_job *j = xzalloc(sizeof *j);
    const struct hub_row *row = r->route->data;
    struct err e = {0};

    j->api = r->api;
    j->row = row;
    j->by = r->who;
    j->by.token = NULL;
    j->c.implied = r->how == AUTH_IMPLIED;
    if (team_of(r, &j->c.arena, &j->c.t, &e) < 0 || take_body(j, body, &e) < 0 ||
        take_path(j, r, &e) < 0) {
        fail(r, j, &e);
        job_free(j);
        return;
    }
    request_wait(r, &j->waiter);
    if (register_with_token(r, j))
        return;
    if (class_of(j) == HUB_READ)
        store_read(r->api->c.store, work, worked, j);
    else
        store_write(r->api->c.store, row->class == HUB_DURABLE ? STORE_DURABLE : STORE_RELAXED,
                    work, worked, j);
}

static void collected(struct xchg *x, struct str body)
{
    struct request *r = xchg_arg(x);
    struct err e = {0};

    if (request_is_live(r)) {
        start(r, body);
        return;
    }
    err_set(&e, ERR_UNAUTHENTICATED, 0, "the token was revoked meanwhile");
    request_refuse(r, &e);
}

/* Any content type will do: the hub's own examples send none.  A form of a foreign page cannot use
 * that: its Origin was refused before. */
static void handle(struct request *r)
{
    const struct http_req *req = xchg_req(r->x);
    bool bodiless = str_eq_c(req->method, "GET") || str_eq_c(req->method, "HEAD");

    if (bodiless || req->content_length == 0)
        start(r, STR(""));
    else
        xchg_collect(r->x, (size_t)r->api->c.conf->body_max, collected);
}

/* Those that are no work of the store alone. */
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
     .perm = PERM_TEAM_READ,
     .handler = hub_file_download,
     .fail = hub_file_download_fail},
};

int hub_add_routes(struct api *a, struct err *e)
{
    for (size_t i = 0; i < hub_row_count; i++)
        if (router_add(a->router,
                       &(struct route){.method = hub_rows[i].method,
                                       .path = hub_rows[i].path,
                                       .name = hub_rows[i].name,
                                       .perm = hub_rows[i].perm,
                                       .handler = handle,
                                       .fail = hub_fail,
                                       .data = &hub_rows[i]},
                       e) < 0)
            return -1;
    for (size_t i = 0; i < ARRAY_LEN(streamed); i++)
        if (router_add(a->router, &streamed[i], e) < 0)
            return -1;
    return 0;
}
