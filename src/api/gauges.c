/* gauges: counts sandboxes, commands, tasks, questions and free disk space for /metrics. */
#include "api/gauges.h"

#include "api/team/team.h"
#include "base/mem.h"
#include "core/approval/approval.h"
#include "core/sandbox/sandbox.h"
#include "core/space.h"
#include "core/task/task.h"
#include "ops/sandbox.h"

#define GAUGE(id, n, h) static struct metric id = {.name = n, .help = h, .kind = METRIC_GAUGE}
GAUGE(sandboxes, "holt_sandboxes", "Sandboxes, by state.");
GAUGE(commands, "holt_commands_running", "Commands that run.");
GAUGE(unreachable, "holt_sandboxes_unreachable", "Running sandboxes whose init does not answer.");
GAUGE(tasks, "holt_tasks", "Tasks that are kept, by state.");
GAUGE(waiting, "holt_approvals_waiting", "Questions that wait for a person.");
GAUGE(oldest, "holt_approvals_oldest_seconds", "How long the oldest of them has waited.");
GAUGE(room, "holt_disk_room_bytes",
      "Bytes that may be added before the setting disk_reserve is reached.");

static struct metric *sandbox_states[SANDBOX_STATE_COUNT], *task_states[TASK_STATE_COUNT];

static struct metric *state_child(struct metric *family, const char *state)
{
    char labels[64];

    (void)snprintf(labels, sizeof labels, "state=\"%s\"", state);
    return metric_child(family, labels);
}

void gauges_start(void)
{
    for (size_t i = 0; i < SANDBOX_STATE_COUNT; i++)
        sandbox_states[i] = state_child(&sandboxes, op_sandbox_states[i]);
    for (size_t i = 0; i < TASK_STATE_COUNT; i++)
        task_states[i] = state_child(&tasks, task_state_name((enum task_state)i));
    metric_add(&commands);
    metric_add(&unreachable);
    metric_add(&waiting);
    metric_add(&oldest);
    metric_add(&room);
}

static void count_sandboxes(const struct api *a)
{
    int64_t by_state[SANDBOX_STATE_COUNT] = {0}, running = 0, lost = 0;
    struct sandbox_info i;

    for (struct sandbox *s = sandbox_next(a->c.sandboxes, &principal_system, STR("")); s;
         s = sandbox_next(a->c.sandboxes, &principal_system, str_of(i.id))) {
        sandbox_info(s, &i);
        by_state[i.state]++;
        running += i.execs_live;
        lost += i.reconnecting;
    }
    for (size_t n = 0; n < SANDBOX_STATE_COUNT; n++)
        metric_set(sandbox_states[n], by_state[n]);
    metric_set(&commands, running);
    metric_set(&unreachable, lost);
}

static void count_tasks(const struct api *a)
{
    for (size_t i = 0; i < TASK_STATE_COUNT; i++)
        metric_set(task_states[i], (int64_t)tasks_count(a->c.tasks, (enum task_state)i));
}

struct gauges_job {
    struct waiter waiter;
    void (*done)(struct request *r);
    struct arena arena;
    struct team t;
    struct questions_waiting questions;
};

static int questions_work(struct store_tx *tx, void *arg, struct err *e)
{
    struct gauges_job *j = arg;

    team_enter(&j->t, tx);
    return questions_wait(&j->t, &j->questions, e);
}

static void questions_counted(void *arg, const struct err *e)
{
    struct gauges_job *j = arg;
    struct request *r = waiter_end(&j->waiter);

    if (e->code == ERR_NONE) {
        metric_set(&waiting, j->questions.count);
        metric_set(&oldest, j->questions.count > 0
                                ? i64_max(j->t.now_ms - j->questions.oldest_ms, 0) / 1000
                                : 0);
    }
    if (r)
        j->done(r);
    arena_done(&j->arena);
    mem_free(j);
}

void gauges_count(struct request *r, void (*done)(struct request *r))
{
    struct gauges_job *j = xzalloc(sizeof *j);

    count_sandboxes(r->api);
    count_tasks(r->api);
    metric_set(&room, space_room(r->api->c.space));
    j->done = done;
    j->t = team_of_system(r->api, &j->arena);
    request_wait(r, &j->waiter);
    store_read(r->api->c.store, questions_work, questions_counted, j);
}
