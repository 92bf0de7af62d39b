/* task: task runs: create, list, get, cancel, retry, logs, artifacts. */
#include "ops/task.h"

#include "api/idempotency.h"
#include "api/native/handlers.h"
#include "api/reply_list.h"
#include "api/share/sandbox.h"
#include "api/share/send_file.h"
#include "api/share/task_log.h"
#include "base/mem.h"
#include "core/task/manifest.h"
#include "core/task/task.h"

static void write_task(struct jw *w, const struct task *t)
{
    struct task_info i;

    task_info(t, &i);
    jw_object(w);
    jw_kc(w, "id", i.id);
    jw_kstr(w, "name", i.name);
    jw_kc(w, "state", task_state_name(i.state));
    jw_ktext(w, "message", i.message);
    jw_ktext(w, "error", i.error);
    jw_kint_if(w, "exit_code", i.exit_code >= 0, i.exit_code);
    jw_kstr(w, "owner", i.owner);
    jw_ktext(w, "tenant", i.tenant);
    jw_kstr(w, "user", i.user);
    jw_kint(w, "priority", i.priority);
    jw_kint(w, "attempt", i.attempt);
    jw_ktext(w, "retry_of", i.retry_of);
    jw_ktext(w, "parent", i.parent);
    jw_ktext(w, "card", i.card);
    jw_ktext(w, "sandbox", i.sandbox);
    jw_ktext(w, "session", i.exec);
    jw_key(w, "progress");
    jw_object(w);
    progress_write(w, i.progress);
    jw_object_end(w);
    jw_kint(w, "cpu_ms", i.cpu_us / 1000);
    jw_key(w, "manifest");
    jw_raw(w, i.manifest);
    jw_key(w, "warnings");
    jw_array(w);
    for (size_t k = 0; k < i.warning_count; k++)
        jw_str(w, i.warnings[k]);
    jw_array_end(w);
    jw_ktime(w, "created_at", i.created_ms);
    jw_ktime(w, "started_at", i.started_ms);
    jw_ktime(w, "changed_at", i.changed_ms);
    jw_ktime(w, "ended_at", i.ended_ms);
    jw_object_end(w);
}

static void send_task(struct request *r, const struct task *t)
{
    struct jw w = request_json(r);

    write_task(&w, t);
    request_send_json(r, 0);
}

/* The task of the request; NULL: the reply is sent. */
static struct task *request_task(struct request *r, struct str id, bool change)
{
    struct err e = {0};
    struct task *t = task_find(r->api->c.tasks, &r->who, change, id, &e);

    if (!t && e.code == ERR_FORBIDDEN)
        request_refuse(r, &e);
    else if (!t)
        request_fail(r, &e);
    return t;
}

/* --- what ends with a task as its reply --- */

struct task_job {
    struct waiter waiter;
    struct principal by;
};

static struct task_job *task_job_new(const struct request *r)
{
    struct task_job *j = xzalloc(sizeof *j);

    j->by = request_who(r);
    return j;
}

static void task_replied(void *arg, struct task *t, const struct err *e)
{
    AUTO(mem_free) struct task_job *j = arg;
    struct request *r = waiter_end(&j->waiter);

    if (r && t)
        send_task(r, t);
    else if (r)
        request_fail(r, e);
}

static void task_begun(struct request *r, struct task_job *j, int begun, const struct err *e)
{
    if (begun == 0) {
        request_wait(r, &j->waiter);
        return;
    }
    mem_free(j);
    if (e->code == ERR_FORBIDDEN)
        request_refuse(r, e);
    else
        request_fail(r, e);
}

/* A text in YAML or JSON as an object; otherwise as it is. */
static int manifest_of(const json_t *given, json_t **ret, struct err *e)
{
    if (json_is_string(given))
        return manifest_parse(str_make(json_string_value(given), json_string_length(given)), ret,
                              e);
    *ret = json_deep_copy(given);
    return 0;
}

static void put_task(const void *object, struct buf *name, struct buf *reply)
{
    struct jw w = {.to = reply};
    struct task_info i;

    task_info(object, &i);
    buf_printf(name, "task_run/%s", i.id);
    write_task(&w, object);
    buf_add_char(reply, '\n');
}

void task_run_create_run(struct request *r)
{
    const struct task_run_create_in *in = r->in;
    AUTO(json_decref) json_t *manifest = NULL;
    struct task_job *j = task_job_new(r);
    struct err e = {0};
    int begun = manifest_of(in->manifest, &manifest, &e);

    if (begun == 0 && in->card.n > 0 && json_is_object(manifest))
        json_object_set_new(manifest, "card", json_stringn(in->card.p, in->card.n));
    if (begun == 0) {
        struct task_spec spec = {.manifest = manifest};

        if (r->idem)
            spec.tx_hook = idem_hook(TAKE(r->idem), 201, put_task, &spec.tx_hook_arg);
        begun =
            task_submit(r->api->c.tasks, &spec, &(struct task_call){&j->by, task_replied, j}, &e);
    }
    task_begun(r, j, begun, &e);
}

void task_run_cancel_run(struct request *r)
{
    const struct task_run_cancel_in *in = r->in;
    struct task *t = request_task(r, in->id, true);
    struct task_job *j;
    struct err e = {0};

    if (!t)
        return;
    j = task_job_new(r);
    task_begun(r, j, task_cancel(t, in->reason, &(struct task_call){&j->by, task_replied, j}, &e),
               &e);
}

void task_run_retry_run(struct request *r)
{
    const struct task_run_id_in *in = r->in;
    struct task *t = request_task(r, in->id, true);
    struct task_job *j;
    struct err e = {0};

    if (!t)
        return;
    j = task_job_new(r);
    task_begun(r, j, task_retry(t, &(struct task_call){&j->by, task_replied, j}, &e), &e);
}

/* --- list, get --- */

static bool state_fits(const struct op_list *states, enum task_state s)
{
    for (size_t i = 0; i < states->n; i++)
        if (str_case_eq_c(states->v[i], task_state_name(s)))
            return true;
    return states->n == 0;
}

static bool label_fits(struct str want, struct str manifest)
{
    AUTO(json_decref) json_t *o = NULL;
    struct str value, key = str_cut(want, '=', &value);
    const json_t *v;
    struct err e = {0};

    if (want.n == 0)
        return true;
    if (json_read(manifest, &o, &e) < 0)
        return false;
    v = json_object_getn(json_object_get(json_object_get(o, "metadata"), "labels"), key.p, key.n);
    return json_is_string(v) && str_eq_c(value, json_string_value(v));
}

static int check_states(const struct op_list *states, struct err *e)
{
    enum task_state s;

    for (size_t i = 0; i < states->n; i++)
        if (!task_state_parse(states->v[i], &s)) {
            err_set(e, ERR_INVALID, 0, "field 'state': there is no state '" STR_FMT "'",
                    (int)size_min(states->v[i].n, 32), states->v[i].p);
            return err_hint(e, "pending, staging, provisioning, ready, running, completing, "
                               "completed, failed, failed_preserved, cancelled");
        }
    return 0;
}

void task_run_list_run(struct request *r)
{
    const struct task_run_list_in *in = r->in;
    struct tasks *all = r->api->c.tasks;
    struct err e = {0};
    struct task_info i;
    struct reply_list l;
    struct jw w;

    if (check_states(&in->state, &e) < 0) {
        request_fail(r, &e);
        return;
    }
    w = request_json(r);
    reply_list_begin(&l, &w, "tasks", STR(""), in->limit);
    for (struct task *t = task_next(all, &r->who, in->cursor); t && !l.more;
         t = task_next(all, &r->who, str_of(i.id))) {
        task_info(t, &i);
        if (state_fits(&in->state, i.state) && (!in->user.p || str_eq(in->user, i.user)) &&
            (!in->parent.p || str_eq(in->parent, i.parent)) && label_fits(in->label, i.manifest) &&
            reply_list_take(&l, str_of(i.id)))
            write_task(&w, t);
    }
    reply_list_end(&l);
    request_send_json(r, 0);
}

void task_run_get_run(struct request *r)
{
    const struct task_run_id_in *in = r->in;
    struct task *t = request_task(r, in->id, false);

    if (t)
        send_task(r, t);
}

/* --- logs, artifacts --- */

void task_run_logs_run(struct request *r)
{
    const struct task_run_logs_in *in = r->in;
    struct task *t = request_task(r, in->id, false);

    if (t)
        task_log_stream(r, t, in->offset, in->follow);
}

struct artifacts_job {
    struct waiter waiter;
    struct buf json;
    struct jw w;
};

static void write_artifact(void *arg, const struct task_artifact *a)
{
    struct artifacts_job *j = arg;

    jw_object(&j->w);
    jw_kstr(&j->w, "path", a->path);
    jw_kint(&j->w, "size", a->size);
    jw_kc(&j->w, "content_type", file_media_type(a->path));
    jw_kc(&j->w, "sha256", a->sha256);
    jw_ktime(&j->w, "created_at", a->created_ms);
    jw_object_end(&j->w);
}

static void artifacts_read(void *arg, const struct err *e)
{
    struct artifacts_job *j = arg;
    struct request *r = waiter_end(&j->waiter);
    struct jw w;

    if (r && e->code != ERR_NONE) {
        request_fail(r, e);
    } else if (r) {
        w = request_json(r);
        jw_object(&w);
        jw_key(&w, "artifacts");
        jw_array_end(&j->w);
        jw_raw(&w, buf_str(&j->json));
        jw_key(&w, "cursor");
        jw_null(&w);
        jw_object_end(&w);
        request_send_json(r, 0);
    }
    buf_done(&j->json);
    mem_free(j);
}

void task_run_artifacts_run(struct request *r)
{
    const struct task_run_id_in *in = r->in;
    struct task *t = request_task(r, in->id, false);
    struct artifacts_job *j;

    if (!t)
        return;
    j = xzalloc(sizeof *j);
    j->w.to = &j->json;
    jw_array(&j->w);
    request_wait(r, &j->waiter);
    task_artifacts(t, write_artifact, artifacts_read, j);
}

void task_run_artifact_run(struct request *r)
{
    const struct task_run_artifact_in *in = r->in;
    struct task *t = request_task(r, in->id, false);
    struct str path;
    struct err e = {0};
    int fd;

    if (!t)
        return;
    fd = request_decode(r, in->path, &path, &e) < 0 ? -1 : task_artifact_open(t, path, &e);
    if (fd < 0)
        request_fail(r, &e);
    else
        send_file(r, fd, path);
}
