/* task_schedule: schedules of tasks: create, list, remove. */
#include "api/native/handlers.h"
#include "api/reply_list.h"
#include "api/share/sandbox.h"
#include "base/mem.h"
#include "core/task/manifest.h"
#include "core/task/schedule.h"
#include "ops/task.h"

static void write_schedule(struct jw *w, const struct schedule *s)
{
    struct schedule_info i;

    schedule_info(s, &i);
    jw_object(w);
    jw_kc(w, "id", i.id);
    jw_kstr(w, "name", i.name);
    jw_kstr(w, "cron", i.cron);
    jw_kstr(w, "owner", i.owner);
    jw_ktext(w, "last_task", i.last_task);
    jw_ktime(w, "next_at", i.next_ms);
    jw_key(w, "manifest");
    jw_raw(w, i.manifest);
    jw_ktime(w, "created_at", i.created_ms);
    jw_object_end(w);
}

struct schedule_job {
    struct waiter waiter;
    struct principal by;
    bool remove;
};

static void schedule_done(void *arg, struct schedule *s, const struct err *e)
{
    AUTO(mem_free) struct schedule_job *j = arg;
    struct request *r = waiter_end(&j->waiter);
    struct jw w;

    if (!r)
        return;
    if (e->code != ERR_NONE) {
        request_fail(r, e);
    } else if (j->remove) {
        request_send_empty(r);
    } else {
        w = request_json(r);
        write_schedule(&w, s);
        request_send_json(r, 0);
    }
}

static void schedule_begun(struct request *r, struct schedule_job *j, int begun,
                           const struct err *e)
{
    if (begun == 0) {
        request_wait(r, &j->waiter);
        return;
    }
    mem_free(j);
    request_fail(r, e);
}

void task_schedule_create_run(struct request *r)
{
    const struct task_schedule_create_in *in = r->in;
    AUTO(json_decref) json_t *parsed = NULL;
    struct schedule_job *j = xzalloc(sizeof *j);
    struct err e = {0};
    int begun = 0;

    j->by = request_who(r);
    if (json_is_string(in->manifest))
        begun = manifest_parse(
            str_make(json_string_value(in->manifest), json_string_length(in->manifest)), &parsed,
            &e);
    if (begun == 0)
        begun = schedule_create(r->api->c.schedules,
                                &(struct schedule_spec){.name = in->name,
                                                        .cron = in->cron,
                                                        .manifest = parsed ? parsed : in->manifest},
                                &(struct schedule_call){&j->by, schedule_done, j}, &e);
    schedule_begun(r, j, begun, &e);
}

void task_schedule_list_run(struct request *r)
{
    const struct task_schedule_list_in *in = r->in;
    struct schedules *all = r->api->c.schedules;
    struct jw w = request_json(r);
    struct schedule_info i;
    struct reply_list l;

    reply_list_begin(&l, &w, "schedules", STR(""), in->limit);
    for (struct schedule *s = schedule_next(all, &r->who, in->cursor); s && !l.more;
         s = schedule_next(all, &r->who, str_of(i.id))) {
        schedule_info(s, &i);
        if (reply_list_take(&l, str_of(i.id)))
            write_schedule(&w, s);
    }
    reply_list_end(&l);
    request_send_json(r, 0);
}

void task_schedule_remove_run(struct request *r)
{
    const struct task_run_id_in *in = r->in;
    struct err e = {0};
    struct schedule *s = schedule_find(r->api->c.schedules, &r->who, in->id, &e);
    struct schedule_job *j;

    if (!s) {
        request_fail(r, &e);
        return;
    }
    j = xzalloc(sizeof *j);
    j->by = request_who(r);
    j->remove = true;
    schedule_begun(r, j, schedule_remove(s, &(struct schedule_call){&j->by, schedule_done, j}, &e),
                   &e);
}
