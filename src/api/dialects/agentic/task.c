/* task: tasks in the form of agentic-sandbox. */
#include "api/dialects/agentic/agentic.h"

#include "api/share/send_file.h"
#include "api/share/task_log.h"
#include "base/mem.h"
#include "core/task/manifest.h"
#include "core/task/task.h"

#define LIST_LIMIT 50
#define LIST_MAX 1000

/* --- as JSON --- */

static void write_definition(struct jw *w, struct str manifest)
{
    static const char *const keys[] = {"repository", "claude", "agent", "vm", "lifecycle"};
    AUTO(json_decref) json_t *o = NULL;
    const json_t *labels;
    struct err e = {0};

    if (json_read(manifest, &o, &e) < 0)
        return;
    labels = json_object_get(json_object_get(o, "metadata"), "labels");
    jw_key(w, "labels");
    if (labels)
        jw_json(w, labels);
    else
        jw_raw(w, STR("{}"));
    jw_key(w, "definition");
    jw_object(w);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (json_object_get(o, keys[i])) {
            jw_key(w, keys[i]);
            jw_json(w, json_object_get(o, keys[i]));
        }
    jw_object_end(w);
}

/* Its sandbox as its clients know it: by its name. */
static struct str machine_of(const struct request *r, const struct task_info *i)
{
    struct err e = {0};
    struct sandbox *s =
        i->sandbox.n == 0 ? NULL : sandbox_find(r->api->c.sandboxes, &r->who, i->sandbox, &e);
    struct sandbox_info box;

    if (!s)
        return i->sandbox;
    sandbox_info(s, &box);
    return agentic_name(&box);
}

static void write_task(struct jw *w, const struct request *r, const struct task *t)
{
    struct task_info i;

    task_info(t, &i);
    jw_object(w);
    jw_kc(w, "id", i.id);
    jw_kstr(w, "name", i.name);
    jw_kc(w, "state", task_state_name(i.state));
    jw_ktext(w, "state_message", i.message);
    jw_ktime(w, "created_at", i.created_ms);
    jw_ktime(w, "started_at", i.started_ms);
    jw_ktime(w, "state_changed_at", i.changed_ms);
    jw_ktext(w, "vm_name", machine_of(r, &i));
    jw_ktext(w, "vm_ip", STR(""));
    jw_ktext(w, "session_id", i.exec);
    jw_kint_if(w, "exit_code", i.exit_code >= 0, i.exit_code);
    jw_ktext(w, "error", i.error);
    jw_ktext(w, "parent_id", i.parent);
    jw_key(w, "progress");
    jw_object(w);
    progress_write(w, i.progress);
    jw_object_end(w);
    write_definition(w, i.manifest);
    jw_object_end(w);
}

static struct task *task_of_path(struct request *r, bool change)
{
    struct err e = {0};
    struct task *t = task_find(r->api->c.tasks, &r->who, change, r->params.v[0], &e);

    if (!t && e.code == ERR_FORBIDDEN)
        request_refuse(r, &e);
    else if (!t)
        agentic_error(r, 404, "Task not found");
    return t;
}

/* --- submit: the manifest as an object, as YAML, or as the body itself --- */

struct task_job {
    struct waiter waiter;
    struct principal by;
    const char *before; /* of a cancel: its state */
};

static void submit_refused(struct request *r, const struct err *e)
{
    struct jw w = request_json(r);
    AUTO(mem_free)
    char *text = e->hint[0] ? xasprintf("%s (%s)", e->msg, e->hint) : xstrdup(e->msg);

    jw_object(&w);
    jw_kc(&w, "task_id", "");
    jw_kbool(&w, "accepted", false);
    jw_kc(&w, "error", text);
    jw_object_end(&w);
    request_send_json(r, err_table[e->code].http);
}

static void submitted(void *arg, struct task *t, const struct err *e)
{
    AUTO(mem_free) struct task_job *j = arg;
    struct request *r = waiter_end(&j->waiter);
    struct task_info i;
    struct jw w;

    if (r && !t)
        submit_refused(r, e);
    if (!r || !t)
        return;
    task_info(t, &i);
    w = request_json(r);
    jw_object(&w);
    jw_kc(&w, "task_id", i.id);
    jw_kbool(&w, "accepted", true);
    jw_kc(&w, "state", task_state_name(i.state));
    jw_kstr(&w, "message", i.message);
    jw_ktime(&w, "created_at", i.created_ms);
    jw_key(&w, "links");
    jw_object(&w);
    jw_kc(&w, "self", arena_printf(xchg_arena(r->x), "/api/v1/tasks/%s", i.id));
    jw_kc(&w, "logs", arena_printf(xchg_arena(r->x), "/api/v1/tasks/%s/logs", i.id));
    jw_kc(&w, "artifacts", arena_printf(xchg_arena(r->x), "/api/v1/tasks/%s/artifacts", i.id));
    jw_object_end(&w);
    jw_object_end(&w);
    request_send_json(r, 202);
}

static int manifest_of_body(struct str text, json_t **ret, struct err *e)
{
    AUTO(json_decref) json_t *body = NULL;
    const json_t *yaml, *manifest;

    if (json_read_lax(text, &body, e) < 0 && manifest_parse(text, &body, e) < 0)
        return -1;
    *e = (struct err){0};
    yaml = json_object_get(body, "manifest_yaml");
    manifest = json_object_get(body, "manifest");
    if (json_is_string(yaml))
        return manifest_parse(str_make(json_string_value(yaml), json_string_length(yaml)), ret, e);
    if (manifest) {
        *ret = json_incref((json_t *)(uintptr_t)manifest);
        return 0;
    }
    if (!json_object_get(body, "metadata") && !json_object_get(body, "repository"))
        return err_set(e, ERR_INVALID, 0, "the body has neither 'manifest' nor 'manifest_yaml'");
    *ret = json_incref(body);
    return 0;
}

static void submit_collected(struct request *r, struct str text)
{
    AUTO(json_decref) json_t *manifest = NULL;
    struct task_job *j = xzalloc(sizeof *j);
    struct err e = {0};

    j->by = request_who(r);
    if (manifest_of_body(text, &manifest, &e) == 0 &&
        task_submit(r->api->c.tasks, &(struct task_spec){.manifest = manifest, .strict = true},
                    &(struct task_call){&j->by, submitted, j}, &e) == 0) {
        request_wait(r, &j->waiter);
        return;
    }
    mem_free(j);
    submit_refused(r, &e);
}

void agentic_task_submit(struct request *r)
{
    request_collect(r, submit_collected);
}

/* --- list, get --- */

static bool state_is_in(struct str list, enum task_state s)
{
    bool found = list.n == 0;

    while (list.n > 0 && !found)
        found = str_case_eq_c(str_trim(str_cut(list, ',', &list)), task_state_name(s));
    return found;
}

static int64_t query_number(const struct request *r, const char *key, int64_t preset, int64_t max)
{
    struct str v = agentic_query(r, key);
    int64_t n;

    return v.n > 0 && str_parse_i64(v, &n) == 0 && n >= 0 ? i64_min(n, max) : preset;
}

void agentic_tasks(struct request *r)
{
    int64_t limit = query_number(r, "limit", LIST_LIMIT, LIST_MAX), total = 0;
    int64_t offset = query_number(r, "offset", 0, INT64_MAX);
    struct str states = agentic_query(r, "state");
    struct jw w = request_json(r);
    struct task_info i;

    jw_object(&w);
    jw_key(&w, "tasks");
    jw_array(&w);
    for (struct task *t = task_next(r->api->c.tasks, &r->who, STR("")); t;
         t = task_next(r->api->c.tasks, &r->who, str_of(i.id))) {
        task_info(t, &i);
        if (!state_is_in(states, i.state))
            continue;
        if (total >= offset && total - offset < limit)
            write_task(&w, r, t);
        total++;
    }
    jw_array_end(&w);
    jw_kint(&w, "total_count", total);
    jw_kint(&w, "limit", limit);
    jw_kint(&w, "offset", offset);
    jw_kbool(&w, "has_more", total > offset && total - offset > limit);
    jw_object_end(&w);
    request_send_json(r, 200);
}

void agentic_task(struct request *r)
{
    struct task *t = task_of_path(r, false);
    struct jw w;

    if (!t)
        return;
    w = request_json(r);
    write_task(&w, r, t);
    request_send_json(r, 200);
}

/* --- cancel: the reason in the query or in a body, or none --- */

static void cancel_reply(struct request *r, int status, const char *before, const char *error)
{
    struct jw w = request_json(r);

    jw_object(&w);
    jw_kbool(&w, "success", !error);
    if (error)
        jw_kc(&w, "error", error);
    if (before) {
        jw_kc(&w, "previous_state", before);
        jw_kc(&w, "new_state", "cancelled");
    }
    jw_object_end(&w);
    request_send_json(r, status);
}

static void cancelled(void *arg, struct task *t, const struct err *e)
{
    AUTO(mem_free) struct task_job *j = arg;
    struct request *r = waiter_end(&j->waiter);

    if (r && t)
        cancel_reply(r, 200, j->before, NULL);
    else if (r)
        cancel_reply(r, err_table[e->code].http, NULL, e->msg);
}

static void cancel_collected(struct request *r, struct str text)
{
    AUTO(json_decref) json_t *body = NULL;
    struct str reason = agentic_query(r, "reason");
    struct err e = {0};
    struct task *t = task_find(r->api->c.tasks, &r->who, true, r->params.v[0], &e);
    struct task_job *j;
    struct task_info i;

    if (!t) {
        cancel_reply(r, err_table[e.code].http, NULL, e.msg);
        return;
    }
    if (text.n > 0 && json_read_lax(text, &body, &e) == 0 && reason.n == 0)
        reason = agentic_member(body, "reason");
    task_info(t, &i);
    j = xzalloc(sizeof *j);
    j->by = request_who(r);
    j->before = task_state_name(i.state);
    if (task_cancel(t, reason, &(struct task_call){&j->by, cancelled, j}, &e) == 0) {
        request_wait(r, &j->waiter);
        return;
    }
    mem_free(j);
    cancel_reply(r, e.code == ERR_CONFLICT ? 400 : err_table[e.code].http, NULL, e.msg);
}

void agentic_task_cancel(struct request *r)
{
    request_collect(r, cancel_collected);
}

/* --- logs, artifacts --- */

void agentic_task_logs(struct request *r)
{
    struct task *t = task_of_path(r, false);

    if (t)
        task_log_stream(r, t, 0, agentic_query_is(r, "follow", true));
}

struct artifacts_job {
    struct waiter waiter;
    struct buf json;
    struct jw w;
    char task[TASK_ID_SIZE];
    int64_t count, bytes;
};

static void write_artifact(void *arg, const struct task_artifact *a)
{
    struct artifacts_job *j = arg;
    AUTO(buf_done) struct buf url = {0};

    buf_printf(&url, "/api/v1/tasks/%s/artifacts/" STR_FMT, j->task, STR_ARG(a->path));
    jw_object(&j->w);
    jw_kstr(&j->w, "name", a->path);
    jw_kstr(&j->w, "path", a->path);
    jw_kint(&j->w, "size_bytes", a->size);
    jw_kc(&j->w, "content_type", file_media_type(a->path));
    jw_kc(&j->w, "checksum", a->sha256);
    jw_ktime(&j->w, "created_at", a->created_ms);
    jw_kstr(&j->w, "download_url", buf_str(&url));
    jw_object_end(&j->w);
    j->count++;
    j->bytes += a->size;
}

static void artifacts_read(void *arg, const struct err *e)
{
    struct artifacts_job *j = arg;
    struct request *r = waiter_end(&j->waiter);
    struct jw w;

    jw_array_end(&j->w);
    if (r && e->code != ERR_NONE) {
        agentic_fail(r, err_table[e->code].http, e);
    } else if (r) {
        w = request_json(r);
        jw_object(&w);
        jw_kc(&w, "task_id", j->task);
        jw_key(&w, "artifacts");
        jw_raw(&w, buf_str(&j->json));
        jw_kint(&w, "total_count", j->count);
        jw_kint(&w, "total_size_bytes", j->bytes);
        jw_object_end(&w);
        request_send_json(r, 200);
    }
    buf_done(&j->json);
    mem_free(j);
}

void agentic_task_artifacts(struct request *r)
{
    struct task *t = task_of_path(r, false);
    struct artifacts_job *j;
    struct task_info i;

    if (!t)
        return;
    task_info(t, &i);
    j = xzalloc(sizeof *j);
    (void)snprintf(j->task, sizeof j->task, "%s", i.id);
    j->w.to = &j->json;
    jw_array(&j->w);
    request_wait(r, &j->waiter);
    task_artifacts(t, write_artifact, artifacts_read, j);
}

void agentic_task_artifact(struct request *r)
{
    struct task *t = task_of_path(r, false);
    struct str path;
    struct err e = {0};
    int fd;

    if (!t)
        return;
    fd = request_decode(r, r->params.v[1], &path, &e) < 0 ? -1 : task_artifact_open(t, path, &e);
    if (fd < 0)
        agentic_fail(r, err_table[e.code].http, &e);
    else
        send_file(r, fd, path);
}
