/* schedule: submits tasks at the times of a crontab. */
#include "core/task/schedule.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sorted.h"
#include "core/columns.h"
#include "core/event/event.h"
#include "core/identity/owner.h"
#include "core/task/cron.h"
#include "core/task/manifest.h"

#include <stdio.h>

#define SCHEDULES_MAX 1024

struct schedules {
    struct store *store;
    struct identity *identity;
    struct tasks *tasks;
    struct schedule **sorted; /* by id */
    size_t count, size;
};

struct schedule {
    struct schedules *all;
    char id[ID_SIZE];
    char *name, *cron, *manifest;
    char owner[64], tenant[PRINCIPAL_TENANT], agent[PRINCIPAL_AGENT];
    int role;
    char last_task[TASK_ID_SIZE];
    int64_t next_ms, created_ms;
    bool busy; /* its row is being written, or a task submitted */
    bool gone;
};

#define HAS(member, kind, ...) COLUMN(struct schedule, member, kind, __VA_ARGS__)
static const struct column schedule_column_list[] = {
    HAS(id, COLUMN_CHARS, .flags = COLUMN_KEY),
    HAS(name, COLUMN_TEXT),
    HAS(cron, COLUMN_TEXT),
    HAS(manifest, COLUMN_TEXT),
    HAS(owner, COLUMN_CHARS),
    HAS(tenant, COLUMN_CHARS),
    HAS(agent, COLUMN_CHARS),
    HAS(role, COLUMN_I32),
    HAS(last_task, COLUMN_CHARS),
    HAS(next_ms, COLUMN_INT),
    HAS(created_ms, COLUMN_INT),
};
static struct columns schedule_columns = {.table = "task_schedules",
                                          .list = schedule_column_list,
                                          .count = ARRAY_LEN(schedule_column_list),
                                          .order = "ORDER BY id"};

static struct schedule *schedule_free(struct schedule *s)
{
    if (!s)
        return NULL;
    mem_free(s->name);
    mem_free(s->cron);
    mem_free(s->manifest);
    mem_free(s);
    return NULL;
}
DEFINE_AUTO(struct schedule *, schedule_free)

struct schedules *schedules_free(struct schedules *l)
{
    if (!l)
        return NULL;
    for (size_t i = 0; i < l->count; i++)
        schedule_free(l->sorted[i]);
    mem_free(l->sorted);
    mem_free(l);
    return NULL;
}

static int load_one(void *arg, const struct store_rows *rows, struct err *e)
{
    struct schedules *l = arg;
    AUTO(schedule_free) struct schedule *s = xzalloc(sizeof *s);

    if (columns_load(&schedule_columns, rows, s, e) < 0)
        return -1;
    s->all = l;
    sorted_add(SORTED(l, id), TAKE(s));
    return 0;
}

static int load_work(struct store_tx *tx, void *arg, struct err *e)
{
    return columns_each(tx, &schedule_columns, load_one, arg, e);
}

int schedules_open(struct store *store, struct identity *identity, struct tasks *tasks,
                   struct schedules **ret, struct err *e)
{
    struct schedules *l = xzalloc(sizeof *l);

    l->store = store;
    l->identity = identity;
    l->tasks = tasks;
    if (store_now(store, load_work, l, e) < 0) {
        schedules_free(l);
        return err_wrap(e, "read the schedules of tasks");
    }
    *ret = l;
    return 0;
}

/* --- rows --- */

struct schedule_job {
    struct schedule *s;
    struct row *row; /* NULL: it is removed */
    const char *event;
    char actor[64], id[ID_SIZE];
    struct buf data;
    schedule_cb done;
    void *arg;
};

static int job_work(struct store_tx *tx, void *arg, struct err *e)
{
    const struct schedule_job *j = arg;
    char object[ID_SIZE + 16];

    if (j->row ? row_save(tx, j->row, e) < 0 : columns_erase(tx, &schedule_columns, j->id, e) < 0)
        return -1;
    (void)snprintf(object, sizeof object, "task_schedule/%s", j->id);
    tx_event(tx,
             &(struct event_spec){
                 .type = j->event, .object = object, .actor = j->actor, .data = buf_str(&j->data)},
             NULL);
    return 0;
}

static void job_written(void *arg, const struct err *e)
{
    struct schedule_job *j = arg;
    struct schedule *s = j->s;
    bool drop = (e->code == ERR_NONE && !j->row) ||
                (e->code != ERR_NONE && strcmp(j->event, "task_schedule.created") == 0);

    s->busy = false;
    if (j->done)
        j->done(j->arg, drop ? NULL : s, e);
    else if (e->code != ERR_NONE)
        log_warn("a schedule could not be written", LOG_C("id", j->id), LOG_E(e));
    if (drop) {
        sorted_remove(SORTED(s->all, id), s);
        schedule_free(s);
    }
    row_free(j->row);
    buf_done(&j->data);
    mem_free(j);
}

static void schedule_save(struct schedule *s, const char *event, const struct schedule_call *c)
{
    struct schedule_job *j = xzalloc(sizeof *j);
    struct jw w = {.to = &j->data};

    s->busy = true;
    j->s = s;
    j->event = event;
    j->done = c->done;
    j->arg = c->arg;
    memcpy(j->id, s->id, sizeof j->id);
    (void)snprintf(j->actor, sizeof j->actor, "%s", c->by->actor);
    j->row = s->gone ? NULL : row_take(&schedule_columns, s);
    jw_object(&w);
    jw_kc(&w, "id", s->id);
    jw_kc(&w, "name", s->name);
    jw_kc(&w, "cron", s->cron);
    jw_kc(&w, "owner", s->owner);
    jw_ktext(&w, "last_task", str_of(s->last_task));
    jw_ktime(&w, "next_at", s->next_ms);
    jw_object_end(&w);
    store_write(s->all->store, STORE_DURABLE, job_work, job_written, j);
}

/* --- create, remove --- */

static int check_manifest(const json_t *manifest, struct err *e)
{
    AUTO(arena_done) struct arena a = {0};
    struct manifest m;

    if (manifest_read(manifest, false, &a, &m, e) < 0)
        return -1;
    if (m.id.n == 0)
        return 0;
    err_set(e, ERR_INVALID, 0, "the manifest of a schedule has the id '" STR_FMT "'",
            STR_ARG(m.id));
    return err_hint(e, "leave 'metadata.id' empty: each of its tasks gets its own");
}

int schedule_create(struct schedules *l, const struct schedule_spec *spec,
                    const struct schedule_call *c, struct err *e)
{
    AUTO(buf_done) struct buf json = {0};
    struct jw w = {.to = &json};
    struct cron cron;
    struct schedule *s;

    if (principal_is_inside(c->by))
        return err_set(e, ERR_FORBIDDEN, 0, "a sandbox makes no schedules");
    if (l->count >= SCHEDULES_MAX) {
        err_set(e, ERR_LIMIT, 0, "there are %zu schedules already", l->count);
        return err_limit_fixed(e, SCHEDULES_MAX, "remove some (holt task schedules)");
    }
    if (cron_parse(spec->cron, &cron, e) < 0 || check_manifest(spec->manifest, e) < 0)
        return -1;
    jw_json(&w, spec->manifest);
    s = xzalloc(sizeof *s);
    s->all = l;
    id_make("ts", s->id);
    s->name = str_dup(spec->name);
    s->cron = str_dup(spec->cron);
    s->manifest = str_dup(buf_str(&json));
    (void)snprintf(s->owner, sizeof s->owner, "%s", principal_owner(c->by));
    (void)snprintf(s->tenant, sizeof s->tenant, "%s", c->by->tenant);
    (void)snprintf(s->agent, sizeof s->agent, "%s", c->by->agent);
    s->role = (int)c->by->role;
    s->created_ms = clock_wall_ms();
    s->next_ms = cron_next(&cron, s->created_ms);
    sorted_add(SORTED(l, id), s);
    schedule_save(s, "task_schedule.created", c);
    return 0;
}

int schedule_remove(struct schedule *s, const struct schedule_call *c, struct err *e)
{
    if (s->busy)
        return err_set(e, ERR_CONFLICT, 0, "schedule '%s' is just submitting a task", s->id);
    s->gone = true;
    schedule_save(s, "task_schedule.removed", c);
    return 0;
}

static struct owned schedule_owned(const struct schedule *s)
{
    return (struct owned){.owner = str_of(s->owner), .tenant = str_of(s->tenant)};
}

struct schedule *schedule_find(struct schedules *l, const struct principal *by, struct str id,
                               struct err *e)
{
    struct schedule *s = sorted_find(SORTED(l, id), id);
    struct owned o;

    if (!s || s->gone) {
        err_set(e, ERR_NOT_FOUND, 0, "there is no schedule '" STR_FMT "'", (int)size_min(id.n, 64),
                id.p ? id.p : "");
        err_hint(e, "holt task schedules lists them");
        return NULL;
    }
    o = schedule_owned(s);
    return owner_check(by, &o, OWNER_CHANGE, "task_schedule", s->id, e) == 0 ? s : NULL;
}

struct schedule *schedule_next(struct schedules *l, const struct principal *by, struct str after)
{
    for (size_t i = sorted_after(SORTED(l, id), after); i < l->count; i++) {
        const struct owned o = schedule_owned(l->sorted[i]);

        if (!l->sorted[i]->gone && owner_may(by, &o, OWNER_SEE))
            return l->sorted[i];
    }
    return NULL;
}

void schedule_info(const struct schedule *s, struct schedule_info *ret)
{
    *ret = (struct schedule_info){.id = s->id,
                                  .name = str_of(s->name),
                                  .cron = str_of(s->cron),
                                  .owner = str_of(s->owner),
                                  .manifest = str_of(s->manifest),
                                  .last_task = str_of(s->last_task),
                                  .next_ms = s->next_ms,
                                  .created_ms = s->created_ms};
}

/* --- time --- */

/* Its owner's token may have been revoked meanwhile. */
static bool owner_is_gone(const struct schedule *s)
{
    struct str owner = str_of(s->owner);

    return str_starts(owner, STR("token/")) &&
           !identity_get(s->all->identity, str_skip(owner, strlen("token/")));
}

static bool last_is_running(const struct schedule *s)
{
    struct err e = {0};
    struct task *t = s->last_task[0] ? task_find(s->all->tasks, &principal_system, false,
                                                 str_of(s->last_task), &e)
                                     : NULL;
    struct task_info i;

    if (!t)
        return false;
    task_info(t, &i);
    return !task_state_is_end(i.state);
}

static void task_made(void *arg, struct task *t, const struct err *e)
{
    struct schedule *s = arg;
    struct task_info i;

    s->busy = false;
    if (!t) {
        log_warn("a schedule could not submit its task", LOG_C("id", s->id), LOG_E(e));
        return;
    }
    task_info(t, &i);
    (void)snprintf(s->last_task, sizeof s->last_task, "%s", i.id);
    schedule_save(s, "task_schedule.submitted",
                  &(struct schedule_call){&principal_system, NULL, NULL});
}

static void submit(struct schedule *s)
{
    struct principal by = principal_kept((enum role)s->role, s->owner, s->tenant, s->agent);
    AUTO(json_decref) json_t *manifest = NULL;
    struct cron cron;
    struct err e = {0};

    if (cron_parse(str_of(s->cron), &cron, &e) < 0)
        return;
    s->next_ms = cron_next(&cron, clock_wall_ms());
    s->busy = true;
    if (json_read(str_of(s->manifest), &manifest, &e) == 0 &&
        task_submit(s->all->tasks, &(struct task_spec){.manifest = manifest},
                    &(struct task_call){&by, task_made, s}, &e) == 0)
        return;
    s->busy = false;
    log_warn("a schedule could not submit its task", LOG_C("id", s->id), LOG_E(&e));
}

void schedules_tick(struct schedules *l)
{
    int64_t now = clock_wall_ms();

    for (size_t i = 0; i < l->count; i++) {
        struct schedule *s = l->sorted[i];

        if (!s->busy && !s->gone && s->next_ms > 0 && s->next_ms <= now && !last_is_running(s) &&
            !owner_is_gone(s))
            submit(s);
    }
}
