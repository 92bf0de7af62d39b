/* task: the registry of tasks: submit, queue, moves, cancel, retention. */
#include "core/task/task.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metric.h"
#include "base/sorted.h"
#include "core/identity/owner.h"
#include "core/sandbox/commands.h"
#include "core/task/task_internal.h"
#include "proto/yaml.h"

#include <stdio.h>

#define SWEEP_MS (60 * 1000)

#define ENDS (SM_TO(TASK_FAILED) | SM_TO(TASK_CANCELLED))
/* clang-format off */
static const struct sm_state task_states[] = {
    [TASK_PENDING]          = {"pending", SM_TO(TASK_STAGING) | SM_TO(TASK_CANCELLED)},
    [TASK_STAGING]          = {"staging", SM_TO(TASK_PROVISIONING) | ENDS},
    [TASK_PROVISIONING]     = {"provisioning", SM_TO(TASK_READY) | ENDS},
    [TASK_READY]            = {"ready", SM_TO(TASK_RUNNING) | ENDS},
    [TASK_RUNNING]          = {"running", SM_TO(TASK_COMPLETING) | SM_TO(TASK_FAILED_PRESERVED) | ENDS},
    [TASK_COMPLETING]       = {"completing", SM_TO(TASK_COMPLETED) | SM_TO(TASK_FAILED_PRESERVED) | ENDS},
    [TASK_COMPLETED]        = {"completed", 0},
    [TASK_FAILED]           = {"failed", 0},
    [TASK_FAILED_PRESERVED] = {"failed_preserved", 0},
    [TASK_CANCELLED]        = {"cancelled", 0},
};
/* clang-format on */

const char *task_state_name(enum task_state s)
{
    return task_states[s].name;
}

bool task_state_parse(struct str s, enum task_state *ret)
{
    for (int i = 0; i < TASK_STATE_COUNT; i++)
        if (str_case_eq_c(s, task_states[i].name)) {
            *ret = (enum task_state)i;
            return true;
        }
    return false;
}

bool task_state_is_end(enum task_state s)
{
    return task_states[s].to == 0;
}

static bool has_ended(const struct task *t)
{
    return task_state_is_end((enum task_state)t->sm.state);
}

/* --- counts --- */

static struct metric outcomes_metric = {
    .name = "holt_task_outcomes_total",
    .help = "Tasks that ended, by outcome.",
    .kind = METRIC_COUNTER,
};
static struct metric *outcomes[TASK_OUTCOMES];

static void outcomes_add(void)
{
    outcomes[TASK_SUCCESS] = metric_child(&outcomes_metric, "outcome=\"success\"");
    outcomes[TASK_FAILURE] = metric_child(&outcomes_metric, "outcome=\"failure\"");
    outcomes[TASK_TIMEOUT] = metric_child(&outcomes_metric, "outcome=\"timeout\"");
    outcomes[TASK_STOPPED] = metric_child(&outcomes_metric, "outcome=\"cancelled\"");
}

int64_t task_outcomes(enum task_outcome o)
{
    assert(o < TASK_OUTCOMES);
    return metric_value(outcomes[o]);
}

static enum task_outcome outcome_of(const struct task *t)
{
    if (t->sm.state == TASK_COMPLETED)
        return TASK_SUCCESS;
    if (t->sm.state == TASK_CANCELLED)
        return TASK_STOPPED;
    return t->timed_out ? TASK_TIMEOUT : TASK_FAILURE;
}

/* --- the registry --- */

struct task *task_free(struct task *t)
{
    if (!t)
        return NULL;
    task_log_close(t);
    progress_done(&t->progress);
    arena_done(&t->a);
    char *const owned[] = {t->name, t->manifest, t->message, t->error,  t->parent,
                           t->card, t->retry_of, t->user,    t->counts, t->reason};

    for (size_t i = 0; i < ARRAY_LEN(owned); i++)
        mem_free(owned[i]);
    mem_free(t);
    return NULL;
}

static int load_work(struct store_tx *tx, void *arg, struct err *e)
{
    return task_load(arg, tx, e);
}

int tasks_open(const struct tasks_config *c, struct tasks **ret, struct err *e)
{
    struct tasks *l = xzalloc(sizeof *l);

    l->c = *c;
    outcomes_add();
    if (store_now(c->store, load_work, l, e) < 0) {
        tasks_free(l);
        return err_wrap(e, "read the tasks");
    }
    for (size_t i = 0; i < l->count; i++)
        l->sorted[i]->sm.table = task_states;
    *ret = l;
    return 0;
}

void tasks_set_limits(struct tasks *l, const struct tasks_limits *limits)
{
    l->limits = *limits;
}

void tasks_set_cards(struct tasks *l, const struct task_cards *c)
{
    l->cards = *c;
}

void tasks_close(struct tasks *l)
{
    if (!l)
        return;
    l->closed = true;
    for (size_t i = 0; i < l->count; i++)
        task_let_go(l->sorted[i]);
}

struct tasks *tasks_free(struct tasks *l)
{
    if (!l)
        return NULL;
    for (size_t i = 0; i < l->count; i++)
        task_free(l->sorted[i]);
    mem_free(l->sorted);
    mem_free(l);
    return NULL;
}

size_t tasks_count(const struct tasks *l, enum task_state s)
{
    size_t n = 0;

    for (size_t i = 0; i < l->count; i++)
        n += l->sorted[i]->sm.state == (int)s;
    return n;
}

/* --- moves --- */

void task_tell(struct task *t)
{
    LIST_EACH (&t->watches, node) {
        struct task_watch *w = LIST_ENTRY(node, struct task_watch, link);

        w->changed(w);
    }
}

void task_state_set(struct task *t, enum task_state to, const char *message)
{
    int64_t now = clock_wall_ms();

    sm_move(&t->sm, (int)to);
    t->changed_ms = now;
    t->started_ms = t->started_ms > 0 ? t->started_ms : now;
    if (task_state_is_end(to)) {
        t->ended_ms = now;
        metric_inc(outcomes[outcome_of(t)], 1);
    }
    text_set(&t->message, str_of(message));
}

static void queue_serve(struct tasks *l);

static bool retry_is_due(const struct task *t)
{
    return t->sm.state == TASK_FAILED && t->attempt <= t->m.retries;
}

static void retried(void *arg, struct task *t, const struct err *e)
{
    (void)arg, (void)t;
    if (e->code != ERR_NONE)
        log_warn("a task could not be tried again", LOG_E(e));
}

static void end_written(struct task *t)
{
    struct tasks *l = t->all;
    struct principal by = task_principal(t);
    struct err e = {0};

    task_log_close(t);
    task_tell(t);
    if (t->card && t->card[0] && l->cards.move)
        l->cards.move(l->cards.arg, &by, t->card, (enum task_state)t->sm.state,
                      t->error[0] ? t->error : t->message);
    if (t->cancelled)
        TAKE(t->cancelled)(t->cancelled_arg, t, &e);
    if (retry_is_due(t) && task_retry(t, &(struct task_call){&by, retried, NULL}, &e) < 0)
        log_warn("a task cannot be tried again", LOG_C("id", t->id), LOG_E(&e));
    clean_begin(t);
    queue_serve(l);
}

static void move_written(struct task *t)
{
    task_tell(t);
    task_step(t);
}

void task_go(struct task *t, enum task_state to, const char *message)
{
    struct principal by = task_principal(t);

    task_state_set(t, to, message);
    task_save(t, task_state_name(to), t->owner, task_state_is_end(to) ? end_written : move_written);
    if (to == TASK_RUNNING && t->card && t->card[0] && t->all->cards.move)
        t->all->cards.move(t->all->cards.arg, &by, t->card, to, "");
}

void task_finish(struct task *t)
{
    if (t->error[0] == '\0')
        task_go(t, TASK_COMPLETED, "done");
    else if (t->m.preserve && t->sandbox[0] && sm_may(&t->sm, TASK_FAILED_PRESERVED))
        task_go(t, TASK_FAILED_PRESERVED, "failed; its sandbox is kept");
    else
        task_go(t, TASK_FAILED, "failed");
}

void task_fail(struct task *t, const struct err *e)
{
    AUTO(mem_free)
    char *text = e->hint[0] ? xasprintf("%s (%s)", e->msg, e->hint) : xstrdup(e->msg);

    text_set(&t->error, str_of(text));
    task_finish(t);
}

void task_failed(struct task *t, const char *fmt, ...)
{
    AUTO(buf_done) struct buf text = {0};
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    text_set(&t->error, buf_str(&text));
    task_finish(t);
}

bool task_stops(struct task *t)
{
    if (t->all->closed || has_ended(t))
        return true;
    if (!t->cancel)
        return false;
    text_set(&t->error, str_of(t->reason));
    task_go(t, TASK_CANCELLED, "cancelled");
    return true;
}

/* Also after a restart: every step can be done again. */
void task_step(struct task *t)
{
    static void (*const steps[])(struct task *t) = {
        [TASK_STAGING] = stage_begin,      [TASK_PROVISIONING] = place_begin,
        [TASK_READY] = agent_begin,        [TASK_RUNNING] = agent_follow,
        [TASK_COMPLETING] = collect_begin,
    };

    if (task_stops(t))
        return;
    steps[t->sm.state](t);
}

/* --- the queue: by priority, then by age --- */

static bool is_active(const struct task *t)
{
    return t->sm.state > TASK_PENDING && !has_ended(t);
}

static bool user_is_full(const struct task *t)
{
    const struct tasks *l = t->all;
    int64_t running = 0;

    for (size_t i = 0; i < l->count; i++)
        running += is_active(l->sorted[i]) && strcmp(l->sorted[i]->user, t->user) == 0;
    return l->limits.tasks_per_user > 0 && running >= l->limits.tasks_per_user;
}

static bool parent_is_full(const struct task *t)
{
    const struct tasks *l = t->all;
    const struct task *parent =
        t->parent[0] ? sorted_find(SORTED((struct tasks *)(uintptr_t)l, id), str_of(t->parent))
                     : NULL;
    int64_t running = 0;

    if (!parent || parent->m.children_max == 0)
        return false;
    for (size_t i = 0; i < l->count; i++)
        running += is_active(l->sorted[i]) && strcmp(l->sorted[i]->parent, t->parent) == 0;
    return running >= parent->m.children_max;
}

/* Tasks of one sandbox have its outbox, and the name of its session, one after the other. */
static bool box_is_taken(const struct task *t)
{
    const struct tasks *l = t->all;

    for (size_t i = 0; t->m.box.n > 0 && i < l->count; i++)
        if (is_active(l->sorted[i]) && strcmp(l->sorted[i]->sandbox, t->sandbox) == 0)
            return true;
    return false;
}

static struct task *queue_first(struct tasks *l)
{
    struct task *first = NULL;

    for (size_t i = 0; i < l->count; i++) {
        struct task *t = l->sorted[i];

        if (t->sm.state != TASK_PENDING || t->making || t->busy || t->cancel)
            continue;
        if (first && (t->priority < first->priority ||
                      (t->priority == first->priority && t->created_ms >= first->created_ms)))
            continue;
        if (!user_is_full(t) && !parent_is_full(t) && !box_is_taken(t))
            first = t;
    }
    return first;
}

static void queue_serve(struct tasks *l)
{
    size_t running = 0;
    struct task *t;

    if (!l->resumed || l->closed)
        return;
    for (size_t i = 0; i < l->count; i++)
        running += is_active(l->sorted[i]);
    for (; (l->limits.tasks_running == 0 || running < (size_t)l->limits.tasks_running) &&
           (t = queue_first(l));
         running++)
        task_go(t, TASK_STAGING, "staging the workspace");
}

/* --- time --- */

static void resume_all(struct tasks *l)
{
    l->resumed = true;
    for (size_t i = 0; i < l->count; i++) {
        struct task *t = l->sorted[i];

        if (has_ended(t))
            clean_begin(t);
        else if (is_active(t))
            task_step(t);
    }
}

static void check_hang(struct task *t)
{
    int64_t since = i64_max(t->progress.last_ms, t->changed_ms);

    if (t->sm.state != TASK_RUNNING || t->m.hang_ms == 0 || !t->x || t->error[0] ||
        clock_wall_ms() - since < t->m.hang_ms)
        return;
    text_set(&t->error, STR("it wrote nothing for longer than 'lifecycle.hang_timeout'"));
    task_stop(t);
}

static int forget_work(struct store_tx *tx, void *arg, struct err *e)
{
    const char *id = arg;

    return tx_run(tx, "DELETE FROM task_runs WHERE id = :id", PARAMS(P_C("id", id)), e) < 0 ||
                   tx_run(tx, "DELETE FROM task_artifacts WHERE task = :id", PARAMS(P_C("id", id)),
                          e) < 0
               ? -1
               : 0;
}

static void forgotten(void *arg, const struct err *e)
{
    AUTO(mem_free) char *id = arg;

    if (e->code != ERR_NONE)
        log_warn("an old task could not be forgotten", LOG_C("id", id), LOG_E(e));
}

static void task_forget(struct task *t)
{
    struct tasks *l = t->all;
    struct err e = {0};

    for (int area = SHARE_INBOX; area <= SHARE_TASKS; area++)
        if (share_remove(l->c.share, (enum share_area)area, str_of(t->id), &e) < 0)
            log_warn("files of an old task could not be removed", LOG_C("id", t->id), LOG_E(&e));
    store_write(l->c.store, STORE_RELAXED, forget_work, forgotten, xstrdup(t->id));
    sorted_remove(SORTED(l, id), t);
    task_free(t);
}

/* Once a minute: what ended long ago. */
static void sweep(struct tasks *l)
{
    int64_t now = clock_wall_ms();

    if (l->limits.tasks_keep_ms == 0 || now - l->swept_ms < SWEEP_MS)
        return;
    l->swept_ms = now;
    for (size_t i = l->count; i-- > 0;) {
        struct task *t = l->sorted[i];

        if (has_ended(t) && !t->busy && !t->cleaning && t->sm.state != TASK_FAILED_PRESERVED &&
            list_is_empty(&t->watches) && now - t->ended_ms > l->limits.tasks_keep_ms)
            task_forget(t);
    }
}

void tasks_tick(struct tasks *l)
{
    if (l->closed)
        return;
    if (!l->resumed && sandboxes_settled(l->c.sandboxes))
        resume_all(l);
    if (!l->resumed)
        return;
    for (size_t i = 0; i < l->count; i++) {
        check_hang(l->sorted[i]);
        if (has_ended(l->sorted[i]))
            clean_begin(l->sorted[i]); /* what could not be removed yet */
        if (l->sorted[i]->sm.state == TASK_COMPLETING && !l->sorted[i]->busy)
            task_step(l->sorted[i]); /* it waits for its children */
    }
    queue_serve(l);
    sweep(l);
}

/* --- submit --- */

struct submitting {
    struct task *t;
    task_cb done;
    void *arg;
    struct row *row;
    struct buf data;
    const struct tx_hook *hook;
    void *hook_arg;
};

static int submit_work(struct store_tx *tx, void *arg, struct err *e)
{
    struct submitting *j = arg;

    if (row_save(tx, j->row, e) < 0 || (j->hook && j->hook->write(tx, j->hook_arg, e) < 0))
        return -1;
    task_put_event(tx, j->t->id, "task_run.created", j->t->owner, buf_str(&j->data));
    return 0;
}

static void submit_written(void *arg, const struct err *e)
{
    struct submitting *j = arg;
    struct task *t = j->t;
    struct tasks *l = t->all;
    bool ok = e->code == ERR_NONE;

    t->making = false;
    j->done(j->arg, ok ? t : NULL, e);
    if (j->hook)
        j->hook->free(j->hook_arg);
    row_free(j->row);
    buf_done(&j->data);
    mem_free(j);
    if (!ok) {
        sorted_remove(SORTED(l, id), t);
        task_free(t);
        return;
    }
    queue_serve(l);
}

/* For the agent: what it is asked to do, in words. */
static void task_text(const struct task *t, struct buf *to)
{
    buf_printf(to, "# " STR_FMT "\n\n", STR_ARG(t->m.name));
    if (t->m.prompt.n > 0)
        buf_printf(to, STR_FMT "\n\n", STR_ARG(t->m.prompt));
    buf_printf(to, "Task: %s\n", t->id);
    if (t->m.url.n > 0)
        buf_printf(to, "Repository: " STR_FMT "\nBranch: " STR_FMT "\n", STR_ARG(t->m.url),
                   STR_ARG(t->m.branch));
    buf_add_c(to, "Workspace: ~/inbox/current\nWrite results to: ~/outbox\n");
}

static int write_files(struct task *t, const json_t *manifest, struct err *e)
{
    struct share *share = t->all->c.share;
    AUTO(buf_done) struct buf yaml = {0}, text = {0};
    AUTO(fd_close) int tasks = share_dir(share, SHARE_TASKS, str_of(t->id), true, e);
    AUTO(fd_close)
    int inbox = tasks < 0 ? -1 : share_dir(share, SHARE_INBOX, str_of(t->id), true, e);
    AUTO(fd_close)
    int outbox = inbox < 0 ? -1 : share_dir(share, SHARE_OUTBOX, str_of(t->id), true, e);

    yaml_write(&yaml, manifest);
    task_text(t, &text);
    if (outbox < 0 || share_put(tasks, STR("manifest.yaml"), buf_str(&yaml), 0644, e) < 0 ||
        share_put(inbox, STR("TASK.md"), buf_str(&text), 0644, e) < 0)
        return err_wrap(e, "write the files of task '%s'", t->id);
    return 0;
}

int64_t tasks_used(const struct tasks *l, enum ceiling_scope scope, const char *who)
{
    int64_t n = 0;

    for (size_t i = 0; i < l->count; i++) {
        const struct task *t = l->sorted[i];
        const char *of = scope == CEILING_OWNER ? t->owner : t->tenant;

        n += !has_ended(t) && (scope == CEILING_ALL || strcmp(of, who) == 0);
    }
    return n;
}

/* The quotas of sandboxes say it for tasks too. */
static int check_share(const struct tasks *l, const struct principal *by, struct err *e)
{
    const struct ceilings *c = sandboxes_ceilings(l->c.sandboxes);
    struct ceiling_asked a = {CEILING_OWNER, CEILING_SUM_TASKS, principal_owner(by), 0, 1};

    a.used = tasks_used(l, a.scope, a.who);
    if (ceiling_sum(c, &a, e) < 0)
        return -1;
    a = (struct ceiling_asked){CEILING_TENANT, CEILING_SUM_TASKS, by->tenant, 0, 1};
    a.used = tasks_used(l, a.scope, a.who);
    return by->tenant[0] ? ceiling_sum(c, &a, e) : 0;
}

static int check_room(struct tasks *l, const struct principal *by, struct err *e)
{
    if (principal_is_inside(by)) {
        err_set(e, ERR_FORBIDDEN, 0, "a sandbox submits no tasks");
        return err_hint(e, "ask its owner, or use a token from outside");
    }
    if (check_share(l, by, e) < 0)
        return -1;
    if (l->limits.tasks_max == 0 || (int64_t)l->count < l->limits.tasks_max)
        return 0;
    err_set(e, ERR_LIMIT, 0, "there are %zu tasks already", l->count);
    return err_limit(e, "tasks_max", l->limits.tasks_max, "wait until old ones are forgotten");
}

static int check_names(struct tasks *l, const struct task *t, const struct principal *by,
                       struct err *e)
{
    if (id_is_valid("sb", str_of(t->id))) /* its files would be in that sandbox's inbox */
        return err_set(e, ERR_INVALID, 0, "'metadata.id' is the id of a sandbox");
    if (sorted_find(SORTED(l, id), str_of(t->id))) {
        err_set(e, ERR_CONFLICT, 0, "a task with the id '%s' exists already", t->id);
        err_object(e, "task_run", t->id);
        return err_hint(e, "leave 'metadata.id' empty, and holt makes one");
    }
    if (t->parent[0] && !task_find(l, by, false, str_of(t->parent), e))
        return err_wrap(e, "the manifest's field 'parent_id'");
    return 0;
}

static struct str label_of(const struct manifest *m, const char *key)
{
    for (size_t i = 0; i < m->label_count; i++)
        if (str_eq_c(m->labels[i].key, key))
            return m->labels[i].value;
    return STR("");
}

static void task_fill(struct task *t, const struct task_spec *spec, const struct principal *by)
{
    AUTO(buf_done) struct buf json = {0};
    struct jw w = {.to = &json};
    struct str user = label_of(&t->m, "user");
    char made[ID_SIZE];

    jw_json(&w, spec->manifest);
    id_make("tr", made);
    (void)snprintf(t->key, sizeof t->key, "task-%s", made + strlen("tr_"));
    (void)snprintf(t->id, sizeof t->id, STR_FMT, STR_ARG(t->m.id.n > 0 ? t->m.id : str_of(made)));
    t->manifest = str_dup(buf_str(&json));
    t->name = str_dup(t->m.name);
    t->parent = str_dup(t->m.parent);
    t->card = str_dup(t->m.card);
    t->retry_of = str_dup(spec->retry_of);
    t->user = str_dup(user.n > 0 ? user : str_of(principal_owner(by)));
    t->message = xstrdup("queued");
    t->error = xstrdup("");
    t->counts = xstrdup("");
    (void)snprintf(t->owner, sizeof t->owner, "%s", principal_owner(by));
    (void)snprintf(t->tenant, sizeof t->tenant, "%s", by->tenant);
    (void)snprintf(t->agent, sizeof t->agent, "%s", by->agent);
    t->role = (int)by->role;
    t->priority = t->m.priority;
    t->attempt = spec->attempt > 0 ? spec->attempt : 1;
    t->exit_code = -1;
    t->created_ms = t->changed_ms = clock_wall_ms();
}

/* The sandbox that the manifest names: it must be the caller's to use. */
static int take_box(struct tasks *l, struct task *t, const struct principal *by, struct err *e)
{
    struct sandbox *s;
    struct sandbox_info i;

    if (t->m.box.n == 0)
        return 0;
    s = sandbox_find(l->c.sandboxes, by, t->m.box, e);
    if (!s || sandbox_check(s, by, e) < 0)
        return err_wrap(e, "the manifest's field 'sandbox.id'");
    sandbox_info(s, &i);
    (void)snprintf(t->sandbox, sizeof t->sandbox, "%s", i.id);
    t->borrowed = true;
    return 0;
}

static struct task *task_new(struct tasks *l)
{
    struct task *t = xzalloc(sizeof *t);

    t->all = l;
    t->sm = (struct sm){.table = task_states, .state = TASK_PENDING};
    t->log_fd = -1;
    progress_init(&t->progress);
    list_init(&t->watches);
    return t;
}
DEFINE_AUTO(struct task *, task_free)

static int prepare(struct task *t, const struct task_spec *spec, const struct principal *by,
                   struct err *e)
{
    if (check_room(t->all, by, e) < 0 || task_read_manifest(t, spec->manifest, spec->strict, e) < 0)
        return -1;
    task_fill(t, spec, by);
    return check_names(t->all, t, by, e) < 0 || take_box(t->all, t, by, e) < 0
               ? -1
               : write_files(t, spec->manifest, e);
}

int task_submit(struct tasks *l, const struct task_spec *spec, const struct task_call *c,
                struct err *e)
{
    AUTO(task_free) struct task *t = task_new(l);
    struct submitting *j;

    if (prepare(t, spec, c->by, e) < 0) {
        if (spec->tx_hook)
            spec->tx_hook->free(spec->tx_hook_arg);
        return -1;
    }
    j = xzalloc(sizeof *j);
    j->hook = spec->tx_hook;
    j->hook_arg = spec->tx_hook_arg;
    if (j->hook)
        j->hook->ready(j->hook_arg, t);
    j->done = c->done;
    j->arg = c->arg;
    task_event_data(t, &j->data);
    j->row = row_take(&task_columns, t);
    t->making = true;
    j->t = t;
    sorted_add(SORTED(l, id), TAKE(t));
    store_write(l->c.store, STORE_DURABLE, submit_work, submit_written, j);
    return 0;
}

int task_retry(struct task *t, const struct task_call *c, struct err *e)
{
    AUTO(json_decref) json_t *manifest = NULL;
    json_t *metadata;

    if (!has_ended(t)) {
        err_set(e, ERR_CONFLICT, 0, "task '%s' is %s: it has not ended", t->id, sm_name(&t->sm));
        err_object(e, "task_run", t->id);
        return err_hint(e, "cancel it first: holt task cancel %s", t->id);
    }
    if (json_read(str_of(t->manifest), &manifest, e) < 0)
        return -1;
    metadata = json_object_get(manifest, "metadata");
    if (json_object_get(metadata, "id"))
        json_object_set_new(metadata, "id", json_string(""));
    return task_submit(t->all,
                       &(struct task_spec){.manifest = manifest,
                                           .retry_of = str_of(t->id),
                                           .attempt = t->attempt + 1},
                       c, e);
}

/* --- cancel --- */

int task_cancel(struct task *t, struct str reason, const struct task_call *c, struct err *e)
{
    if (has_ended(t) || t->cancel || t->making) {
        err_set(e, ERR_CONFLICT, 0, "task '%s' is %s already", t->id,
                t->cancel ? "being cancelled" : sm_name(&t->sm));
        err_object(e, "task_run", t->id);
        return err_hint(e, "holt task inspect %s shows how it ended", t->id);
    }
    t->cancel = true;
    t->cancelled = c->done;
    t->cancelled_arg = c->arg;
    text_set(&t->reason, reason.n > 0 ? reason : STR("cancelled on request"));
    if (!t->busy)
        (void)task_stops(t);
    else
        task_stop(t);
    return 0;
}

/* --- lookup --- */

static struct owned task_owned(const struct task *t)
{
    return (struct owned){.owner = str_of(t->owner), .tenant = str_of(t->tenant)};
}

struct task *task_find(struct tasks *l, const struct principal *by, bool change, struct str id,
                       struct err *e)
{
    struct task *t = sorted_find(SORTED(l, id), id);
    struct owned o;

    if (!t || t->making) {
        err_set(e, ERR_NOT_FOUND, 0, "there is no task '" STR_FMT "'", (int)size_min(id.n, 64),
                id.p ? id.p : "");
        err_hint(e, "holt task ls lists them");
        return NULL;
    }
    o = task_owned(t);
    return owner_check(by, &o, change ? OWNER_CHANGE : OWNER_SEE, "task_run", t->id, e) == 0 ? t
                                                                                             : NULL;
}

struct task *task_next(struct tasks *l, const struct principal *by, struct str after)
{
    for (size_t i = sorted_after(SORTED(l, id), after); i < l->count; i++) {
        const struct owned o = task_owned(l->sorted[i]);

        if (!l->sorted[i]->making && owner_may(by, &o, OWNER_SEE))
            return l->sorted[i];
    }
    return NULL;
}

void task_info(const struct task *t, struct task_info *ret)
{
    *ret = (struct task_info){.id = t->id,
                              .name = str_of(t->name),
                              .owner = str_of(t->owner),
                              .tenant = str_of(t->tenant),
                              .message = str_of(t->message),
                              .error = str_of(t->error),
                              .parent = str_of(t->parent),
                              .card = str_of(t->card),
                              .retry_of = str_of(t->retry_of),
                              .user = str_of(t->user),
                              .manifest = str_of(t->manifest),
                              .sandbox = str_of(t->sandbox),
                              .exec = str_of(t->exec),
                              .state = (enum task_state)t->shown,
                              .exit_code = t->exit_code,
                              .priority = t->priority,
                              .attempt = t->attempt,
                              .created_ms = t->created_ms,
                              .started_ms = t->started_ms,
                              .changed_ms = t->changed_ms,
                              .ended_ms = t->ended_ms,
                              .cpu_us = t->cpu_us,
                              .borrowed = t->borrowed,
                              .asked_for = t->m.box.n > 0,
                              .labels = t->m.labels,
                              .label_count = t->m.label_count,
                              .progress = &t->progress,
                              .warnings = t->m.warnings.v,
                              .warning_count = t->m.warnings.n};
}
