/* task_row: tasks as rows and events. */
#include "core/task/task_internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sorted.h"
#include "core/event/event.h"

#include <stdio.h>

#define HAS(member, kind, ...) COLUMN(struct task, member, kind, __VA_ARGS__)
/* clang-format off */
static const struct column task_column_list[] = {
    HAS(id, COLUMN_CHARS, .flags = COLUMN_KEY),
    COLUMN_AS("job", struct task, key, COLUMN_CHARS, .flags = COLUMN_ONCE),
    HAS(name, COLUMN_TEXT, .flags = COLUMN_ONCE),
    HAS(manifest, COLUMN_TEXT, .flags = COLUMN_ONCE),
    HAS(owner, COLUMN_CHARS, .flags = COLUMN_ONCE),
    HAS(tenant, COLUMN_CHARS, .flags = COLUMN_ONCE),
    HAS(agent, COLUMN_CHARS, .flags = COLUMN_ONCE),
    HAS(role, COLUMN_I32, .flags = COLUMN_ONCE),
    COLUMN_AS("quota_user", struct task, user, COLUMN_TEXT, .flags = COLUMN_ONCE),
    HAS(parent, COLUMN_TEXT, .flags = COLUMN_ONCE),
    HAS(card, COLUMN_TEXT, .flags = COLUMN_ONCE),
    HAS(retry_of, COLUMN_TEXT, .flags = COLUMN_ONCE),
    HAS(priority, COLUMN_INT, .flags = COLUMN_ONCE),
    HAS(attempt, COLUMN_INT, .flags = COLUMN_ONCE),
    HAS(created_ms, COLUMN_INT, .flags = COLUMN_ONCE),
    COLUMN_AS("state", struct task, sm.state, COLUMN_I32),
    HAS(message, COLUMN_TEXT),
    HAS(error, COLUMN_TEXT),
    HAS(sandbox, COLUMN_CHARS),
    HAS(exec, COLUMN_CHARS),
    HAS(borrowed, COLUMN_BOOL),
    HAS(has_volume, COLUMN_BOOL),
    HAS(exit_code, COLUMN_I32),
    HAS(counts, COLUMN_TEXT),
    HAS(cpu_us, COLUMN_INT),
    HAS(started_ms, COLUMN_INT),
    HAS(changed_ms, COLUMN_INT),
    HAS(ended_ms, COLUMN_INT),
};
/* clang-format on */
struct columns task_columns = {.table = "task_runs",
                               .list = task_column_list,
                               .count = ARRAY_LEN(task_column_list),
                               .order = "ORDER BY id"};

struct principal task_principal(const struct task *t)
{
    return principal_kept((enum role)t->role, t->owner, t->tenant, t->agent);
}

int task_read_manifest(struct task *t, const json_t *from, bool strict, struct err *e)
{
    return manifest_read(from, strict, &t->a, &t->m, e);
}

static int load_one(void *arg, const struct store_rows *rows, struct err *e)
{
    struct tasks *l = arg;
    struct task *t = xzalloc(sizeof *t);
    AUTO(json_decref) json_t *manifest = NULL;

    progress_init(&t->progress);
    list_init(&t->watches);
    t->log_fd = -1;
    t->all = l;
    if (columns_load(&task_columns, rows, t, e) < 0 || t->sm.state < 0 ||
        t->sm.state >= TASK_STATE_COUNT || !manifest_id_fits(str_of(t->id))) {
        task_free(t);
        return e->code == ERR_NONE ? err_set(e, ERR_INTERNAL, 0, "a row of task_runs is damaged")
                                   : -1;
    }
    t->shown = t->sm.state;
    progress_load(&t->progress, str_of(t->counts));
    if (json_read(str_of(t->manifest), &manifest, e) < 0 ||
        task_read_manifest(t, manifest, false, e) < 0)
        log_warn("the manifest of a task cannot be read", LOG_C("id", t->id), LOG_E(e));
    sorted_add(SORTED(l, id), t);
    return 0;
}

int task_load(struct tasks *l, struct store_tx *tx, struct err *e)
{
    return columns_each(tx, &task_columns, load_one, l, e);
}

/* --- a save --- */

void task_event_data(const struct task *t, struct buf *to)
{
    struct jw w = {.to = to};

    jw_object(&w);
    jw_kc(&w, "id", t->id);
    jw_kc(&w, "name", t->name);
    jw_kc(&w, "state", task_state_name((enum task_state)t->sm.state));
    jw_ktext(&w, "message", str_of(t->message));
    jw_ktext(&w, "error", str_of(t->error));
    jw_kc(&w, "owner", t->owner);
    jw_ktext(&w, "tenant", str_of(t->tenant));
    jw_ktext(&w, "sandbox", str_of(t->sandbox));
    jw_ktext(&w, "exec", str_of(t->exec));
    jw_ktext(&w, "parent", str_of(t->parent));
    jw_ktext(&w, "card", str_of(t->card));
    jw_kint_if(&w, "exit_code", t->exit_code >= 0, t->exit_code);
    jw_kint(&w, "attempt", t->attempt);
    jw_kint(&w, "priority", t->priority);
    jw_ktime(&w, "created_at", t->created_ms);
    jw_object_end(&w);
}

void task_put_event(struct store_tx *tx, const char *id, const char *type, const char *actor,
                    struct str data)
{
    char object[TASK_ID_SIZE + 16];

    (void)snprintf(object, sizeof object, "task_run/%s", id);
    tx_event(tx, &(struct event_spec){.type = type, .object = object, .actor = actor, .data = data},
             NULL);
}

struct task_saving {
    struct task *t;
    struct row *row;
    struct buf data;
    char event[64], actor[64];
    task_then then;
};

static int save_work(struct store_tx *tx, void *arg, struct err *e)
{
    const struct task_saving *j = arg;

    if (row_save(tx, j->row, e) < 0)
        return -1;
    task_put_event(tx, j->t->id, j->event, j->actor, buf_str(&j->data));
    return 0;
}

static void save_written(void *arg, const struct err *e)
{
    struct task_saving *j = arg;
    struct task *t = j->t;
    task_then then = j->then;

    row_free(j->row);
    buf_done(&j->data);
    mem_free(j);
    t->busy = false;
    t->shown = t->sm.state;
    if (t->all->closed)
        return;
    if (e->code != ERR_NONE)
        log_error("a task could not be written", LOG_C("id", t->id), LOG_E(e));
    if (then)
        then(t);
}

void task_save(struct task *t, const char *event, const char *actor, task_then then)
{
    struct task_saving *j = xzalloc(sizeof *j);

    t->busy = true;
    j->t = t;
    j->then = then;
    (void)snprintf(j->event, sizeof j->event, "task_run.%s", event);
    (void)snprintf(j->actor, sizeof j->actor, "%s", actor);
    task_event_data(t, &j->data);
    j->row = row_take(&task_columns, t);
    store_write(t->all->c.store, STORE_DURABLE, save_work, save_written, j);
}
