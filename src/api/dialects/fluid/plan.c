/* plan: plans of agents: create, list, get, change, advance, abort, delete. */
#include "core/plan/plan.h"

#include "api/dialects/fluid/fluid.h"
#include "base/mem.h"

struct plan_in {
    struct str name, description, plan_id, status, result, error, reason;
    struct fluid_strs steps;
    int64_t step_index;
};
static const struct fluid_field plan_fields[] = {
    {"name", FLUID_STR, offsetof(struct plan_in, name), false},
    {"description", FLUID_STR, offsetof(struct plan_in, description), false},
    {"steps", FLUID_STRS, offsetof(struct plan_in, steps), false},
    {"plan_id", FLUID_STR, offsetof(struct plan_in, plan_id), false},
    {"step_index", FLUID_INT, offsetof(struct plan_in, step_index), false},
    {"status", FLUID_STR, offsetof(struct plan_in, status), false},
    {"result", FLUID_STR, offsetof(struct plan_in, result), false},
    {"error", FLUID_STR, offsetof(struct plan_in, error), false},
    {"reason", FLUID_STR, offsetof(struct plan_in, reason), false},
};
const struct fluid_form fluid_plan_form = {FLUID_FORM(plan_fields, struct plan_in), .lenient = true,
                                           .optional = true};

enum plan_reply { PLAN_MADE, PLAN_CHANGED, PLAN_ADVANCED, PLAN_STOPPED, PLAN_DELETED };

struct plan_job {
    struct waiter waiter;
    struct principal by;
    enum plan_reply what;
    char id[ID_SIZE];
    struct buf reason;
};

static void plan_free(struct plan_job *j)
{
    buf_done(&j->reason);
    mem_free(j);
}
DEFINE_AUTO(struct plan_job *, plan_free)

static void write_reply(struct jw *w, const struct plan_job *j, const struct plan *p)
{
    jw_object(w);
    jw_kc(w, "plan_id", p ? plan_id(p) : j->id);
    switch (j->what) {
    case PLAN_CHANGED:
        jw_kbool(w, "updated", true);
        break;
    case PLAN_ADVANCED:
        jw_kint(w, "current_step", plan_current(p));
        jw_kc(w, "status", plan_statuses[plan_status(p)]);
        break;
    case PLAN_STOPPED:
        jw_kbool(w, "aborted", true);
        jw_kstr(w, "reason", buf_str(&j->reason));
        break;
    case PLAN_DELETED:
        jw_kbool(w, "deleted", true);
        break;
    case PLAN_MADE:
        break;
    }
    if (j->what == PLAN_MADE || j->what == PLAN_CHANGED) {
        jw_key(w, "plan");
        plan_write(w, p);
    }
    jw_object_end(w);
}

static void plan_written(void *arg, struct named *n, const struct err *e)
{
    AUTO(plan_free) struct plan_job *j = arg;
    struct request *r = waiter_end(&j->waiter);
    AUTO(buf_done) struct buf json = {0};

    if (r && e->code != ERR_NONE) {
        fluid_refuse(r, e);
    } else if (r) {
        write_reply(&(struct jw){.to = &json}, j, plan_of(n));
        fluid_reply(r, 200, buf_str(&json));
    }
}

static struct plan_job *plan_begin(struct request *r, enum plan_reply what)
{
    struct plan_job *j = xzalloc(sizeof *j);

    j->by = request_who(r);
    j->what = what;
    return j;
}

/* result: what core returned. */
static void plan_go(struct request *r, struct plan_job *j, int result, const struct err *e)
{
    if (result == 0) {
        request_wait(r, &j->waiter);
        return;
    }
    plan_free(j);
    fluid_refuse(r, e);
}

static struct plan *find_plan(struct request *r, struct str id, enum owner_use use)
{
    struct err e = {0};
    struct plan *p = plan_find(r->api->c.plans, &r->who, use, id, &e);

    if (!p)
        fluid_refuse(r, &e);
    return p;
}

void fluid_plan_create(struct request *r)
{
    const struct plan_in *in = r->in;
    struct plan_job *j = plan_begin(r, PLAN_MADE);
    struct err e = {0};

    plan_go(r, j,
            plan_create(r->api->c.plans,
                        &(struct plan_spec){.name = in->name,
                                            .description = in->description,
                                            .steps = in->steps.v,
                                            .step_count = in->steps.n},
                        &(struct named_call){.by = &j->by, .done = plan_written, .arg = j}, &e),
            &e);
}

void fluid_plans(struct request *r)
{
    struct plans *all = r->api->c.plans;
    AUTO(buf_done) struct buf json = {0};
    struct plan *found[PLANS_MAX * 10];
    struct jw w = {.to = &json};
    size_t n = 0;

    for (struct plan *p = plan_next(all, &r->who, STR("")); p && n < ARRAY_LEN(found);
         p = plan_next(all, &r->who, str_of(plan_id(p))))
        found[n++] = p;
    jw_object(&w);
    jw_key(&w, "plans");
    jw_array(&w);
    while (n > 0) /* the newest first: ids are in the order of creation */
        plan_write(&w, found[--n]);
    jw_array_end(&w);
    jw_object_end(&w);
    fluid_reply(r, 200, buf_str(&json));
}

void fluid_plan(struct request *r)
{
    const struct plan *p = find_plan(r, r->params.v[0], OWNER_SEE);
    AUTO(buf_done) struct buf json = {0};
    struct jw w = {.to = &json};

    if (!p)
        return;
    jw_object(&w);
    jw_key(&w, "plan");
    plan_write(&w, p);
    jw_object_end(&w);
    fluid_reply(r, 200, buf_str(&json));
}

static int step_status(struct str text)
{
    for (int i = 0; plan_step_statuses[i]; i++)
        if (str_eq_c(text, plan_step_statuses[i]))
            return i;
    return -1;
}

void fluid_plan_update(struct request *r)
{
    const struct plan_in *in = r->in;
    int status = step_status(in->status);
    struct plan *p;
    struct plan_job *j;
    struct err e = {0};

    if (in->plan_id.n == 0 || status < 0) {
        fluid_error(r, 400,
                    "plan_id is required, and status: pending, active, completed, failed or "
                    "skipped");
        return;
    }
    p = find_plan(r, in->plan_id, OWNER_CHANGE);
    if (!p)
        return;
    j = plan_begin(r, PLAN_CHANGED);
    plan_go(r, j,
            plan_update(p,
                        &(struct plan_change){.step = in->step_index,
                                              .status = (enum plan_step_status)status,
                                              .result = in->result,
                                              .error = in->error},
                        &(struct named_call){.by = &j->by, .done = plan_written, .arg = j}, &e),
            &e);
}

void fluid_plan_advance(struct request *r)
{
    const struct plan_in *in = r->in;
    struct plan *p = find_plan(r, r->params.v[0], OWNER_CHANGE);
    struct plan_job *j;
    struct err e = {0};

    if (!p)
        return;
    j = plan_begin(r, PLAN_ADVANCED);
    plan_go(r, j,
            plan_advance(p, in->result,
                         &(struct named_call){.by = &j->by, .done = plan_written, .arg = j}, &e),
            &e);
}

void fluid_plan_abort(struct request *r)
{
    const struct plan_in *in = r->in;
    struct plan *p = find_plan(r, r->params.v[0], OWNER_CHANGE);
    struct plan_job *j;
    struct err e = {0};

    if (!p)
        return;
    j = plan_begin(r, PLAN_STOPPED);
    buf_add_str(&j->reason, in->reason.n > 0 ? in->reason : STR("aborted by user"));
    plan_go(r, j,
            plan_abort(p, buf_str(&j->reason),
                       &(struct named_call){.by = &j->by, .done = plan_written, .arg = j}, &e),
            &e);
}

void fluid_plan_delete(struct request *r)
{
    struct plan *p = find_plan(r, r->params.v[0], OWNER_CHANGE);
    struct plan_job *j;
    struct err e = {0};

    if (!p)
        return;
    j = plan_begin(r, PLAN_DELETED);
    (void)snprintf(j->id, sizeof j->id, "%s", plan_id(p));
    plan_go(r, j,
            plan_remove(p, &(struct named_call){.by = &j->by, .done = plan_written, .arg = j}, &e),
            &e);
}
