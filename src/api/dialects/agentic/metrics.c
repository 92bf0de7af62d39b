/* metrics: the series of agentic-sandbox in /metrics, from what holt counts anyway. */
#include "api/dialects/agentic/agentic.h"

#include "base/clock.h"
#include "core/exec/exec.h"
#include "core/task/task.h"
#include "net/metrics.h"

struct fleet {
    int64_t connected, ready, busy, sessions;
    int64_t running, stopped; /* containers */
};

static int64_t sessions_of(struct sandbox *s)
{
    struct exec_info i;
    int64_t n = 0;

    for (struct exec *x = exec_next(s, STR("")); x; x = exec_next(s, str_of(i.id))) {
        exec_info(x, &i);
        n += i.pty && (i.state == EXEC_STARTING || i.state == EXEC_RUNNING);
    }
    return n;
}

static void count_sandbox(const struct api *a, struct sandbox *s, const struct sandbox_info *i,
                          struct fleet *f)
{
    const char *status = agentic_status(a, i);
    bool ready = strcmp(status, "Ready") == 0, busy = strcmp(status, "Busy") == 0;

    f->connected += ready || busy;
    f->ready += ready;
    f->busy += busy;
    if (i->execs_live > 0)
        f->sessions += sessions_of(s);
    if (agentic_is(i, AGENTIC_CONTAINERS)) {
        f->running += i->state == SANDBOX_RUNNING;
        f->stopped += i->state == SANDBOX_STOPPED;
    }
}

static void count_fleet(const struct api *a, struct fleet *f)
{
    struct sandbox_info i;

    for (struct sandbox *s = sandbox_next(a->c.sandboxes, &principal_system, STR("")); s;
         s = sandbox_next(a->c.sandboxes, &principal_system, str_of(i.id))) {
        sandbox_info(s, &i);
        count_sandbox(a, s, &i, f);
    }
}

static void family(struct buf *to, const char *name, const char *kind, const char *help)
{
    buf_printf(to, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind);
}

/* labels NULL: none */
static void sample(struct buf *to, const char *name, const char *labels, int64_t value)
{
    buf_printf(to, "%s%s%s%s %lld\n", name, labels ? "{" : "", labels ? labels : "",
               labels ? "}" : "", (long long)value);
}

static void single(struct buf *to, const char *name, const char *kind, const char *help,
                   int64_t value)
{
    family(to, name, kind, help);
    sample(to, name, NULL, value);
}

static void print_agents(const struct api *a, struct buf *to)
{
    struct fleet f = {0};

    count_fleet(a, &f);
    single(to, "agentic_uptime_seconds", "gauge", "Seconds since the start.",
           i64_max(clock_wall_ms() - a->started_ms, 0) / 1000);
    single(to, "agentic_agents_connected", "gauge", "Agents that answer.", f.connected);
    single(to, "agentic_agents_ready", "gauge", "Agents that answer and are idle.", f.ready);
    family(to, "agentic_agents_by_status", "gauge", "Agents that answer, by status.");
    sample(to, "agentic_agents_by_status", "status=\"ready\"", f.ready);
    sample(to, "agentic_agents_by_status", "status=\"busy\"", f.busy);
    single(to, "agentic_pty_sessions_active", "gauge", "Commands with a terminal.", f.sessions);
    family(to, "agentic_containers_by_status", "gauge", "Containers, by status.");
    sample(to, "agentic_containers_by_status", "status=\"running\"", f.running);
    sample(to, "agentic_containers_by_status", "status=\"stopped\"", f.stopped);
}

static void print_commands(struct buf *to)
{
    int64_t well = exec_results(EXEC_RESULT_SUCCESS), badly = exec_results(EXEC_RESULT_FAILED);

    single(to, "agentic_commands_total", "counter", "Commands that ended.", well + badly);
    family(to, "agentic_commands_by_result", "counter", "Commands that ended, by result.");
    sample(to, "agentic_commands_by_result", "result=\"success\"", well);
    sample(to, "agentic_commands_by_result", "result=\"failed\"", badly);
    metric_print_as(to, &exec_seconds, "agentic_commands_duration_ms", "How long commands ran.",
                    1e6);
    metric_print_as(to, &exec_seconds, "agentic_command_latency_seconds", "How long commands ran.",
                    1e9);
}

static void print_tasks(const struct api *a, struct buf *to)
{
    const struct tasks *l = a->c.tasks;
    int64_t well = task_outcomes(TASK_SUCCESS), badly = task_outcomes(TASK_FAILURE);
    int64_t late = task_outcomes(TASK_TIMEOUT), stopped = task_outcomes(TASK_STOPPED);

    single(to, "agentic_tasks_running", "gauge", "Tasks whose command runs.",
           (int64_t)tasks_count(l, TASK_RUNNING));
    single(to, "agentic_tasks_completed_total", "counter", "Tasks that completed.", well);
    single(to, "agentic_tasks_total", "counter", "Tasks that ended.",
           well + badly + late + stopped);
    family(to, "agentic_tasks_by_state", "gauge", "Tasks that are kept, by state.");
    sample(to, "agentic_tasks_by_state", "state=\"pending\"",
           (int64_t)tasks_count(l, TASK_PENDING));
    sample(to, "agentic_tasks_by_state", "state=\"running\"",
           (int64_t)tasks_count(l, TASK_RUNNING));
    sample(to, "agentic_tasks_by_state", "state=\"completed\"",
           (int64_t)tasks_count(l, TASK_COMPLETED));
    sample(to, "agentic_tasks_by_state", "state=\"failed\"",
           (int64_t)(tasks_count(l, TASK_FAILED) + tasks_count(l, TASK_FAILED_PRESERVED)));
    family(to, "agentic_task_outcomes_total", "counter", "Tasks that ended, by outcome.");
    sample(to, "agentic_task_outcomes_total", "outcome=\"success\"", well);
    sample(to, "agentic_task_outcomes_total", "outcome=\"failure\"", badly);
    sample(to, "agentic_task_outcomes_total", "outcome=\"timeout\"", late);
}

void agentic_print_metrics(const struct api *a, struct buf *to)
{
    print_agents(a, to);
    print_commands(to);
    print_tasks(a, to);
    single(to, "agentic_ws_connections_current", "gauge", "Open WebSockets.",
           metric_value(&metric_ws));
    single(to, "agentic_ws_connections_total", "counter", "WebSockets that were opened.",
           metric_value(&metric_ws_total));
}
