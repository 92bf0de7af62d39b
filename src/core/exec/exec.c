/* exec: one command: states, deadlines, kills, its end. */
#include "core/exec/exec.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/point.h"
#include "base/thread.h"
#include "core/exec/exec_internal.h"
#include "core/exec/output_share.h"

#include <signal.h>
#include <stdio.h>

#define LATE_MS 2000    /* without a report of the end this long after a kill, the driver kills */
#define IDLE_MS 5000    /* memory of an ended log is freed when it was not read for this long */
#define BEGIN_MS 10000  /* for a start that waits for a connection */
#define UNREAD_MS 10000 /* how long to wait for a reader to return */

const struct sm_state exec_states[] = {
    [EXEC_STARTING] = {"starting", SM_TO(EXEC_RUNNING) | SM_TO(EXEC_EXITED) | SM_TO(EXEC_FAILED) |
                                       SM_TO(EXEC_LOST)},
    [EXEC_RUNNING] = {"running", SM_TO(EXEC_EXITED) | SM_TO(EXEC_FAILED) | SM_TO(EXEC_LOST)},
    [EXEC_EXITED] = {"exited", 0},
    [EXEC_FAILED] = {"failed", 0},
    [EXEC_LOST] = {"lost", 0},
};
_Static_assert(ARRAY_LEN(exec_states) == EXEC_STATE_COUNT, "a state without a row");

/* --- counts --- */

static const struct metric_bounds run_times = {9,
                                               {10000000, 50000000, 100000000, 500000000,
                                                1000000000, 5000000000, 10000000000, 30000000000,
                                                60000000000}};
struct metric exec_seconds = {
    .name = "holt_command_seconds",
    .help = "How long commands ran.",
    .kind = METRIC_HISTOGRAM,
    .bounds = &run_times,
};
static struct metric results_metric = {
    .name = "holt_commands_total",
    .help = "Commands that ended, by result: success is the exit status 0.",
    .kind = METRIC_COUNTER,
};
static struct metric *results[EXEC_RESULTS];

void exec_metrics_add(void)
{
    metric_add(&exec_seconds);
    results[EXEC_RESULT_SUCCESS] = metric_child(&results_metric, "result=\"success\"");
    results[EXEC_RESULT_FAILED] = metric_child(&results_metric, "result=\"failed\"");
}

int64_t exec_results(enum exec_result r)
{
    assert(r < EXEC_RESULTS);
    return metric_value(results[r]);
}

static void exec_count_end(const struct exec *x)
{
    bool well = x->sm.state == EXEC_EXITED && x->exit_code == 0;

    metric_inc(results[well ? EXEC_RESULT_SUCCESS : EXEC_RESULT_FAILED], 1);
    metric_observe(&exec_seconds, x->duration_ms * 1000000);
}

/* --- the object --- */

static void exec_count_live(struct exec *x, int by)
{
    struct sandbox_commands *c = &x->set->counts;

    assert(by > 0 || c->live > 0);
    c->live += (size_t)by;
    if (x->flags & EXEC_STANDING)
        c->standing += (size_t)by;
}

/* What must hold when it has moved; aborts: a fault of ours. */
static void exec_verify(const struct exec *x)
{
    assert(x->refs > 0 && x->set == exec_set_of(x->sandbox));
    assert(x->set->counts.live <= x->set->count);
    assert(!x->ended_saved); /* an end that was committed is never left */
    if (x->sm.state == EXEC_RUNNING)
        assert(x->started_ms > 0);
    if (!exec_is_live(x))
        assert(!x->start && x->ended_us >= x->created_us && list_is_empty(&x->unsafe));
    assert(x->counted >= 0 && (x->share || x->counted == 0));
}

static void exec_moved(struct sm *m, int from)
{
    struct exec *x = CONTAINER_OF(m, struct exec, sm);

    if (m->state == EXEC_RUNNING) {
        if (x->started_ms == 0)
            x->started_ms = clock_wall_ms();
    } else if (from <= EXEC_RUNNING) {
        x->ended_us = execs_moment(x->set->all);
        if (x->duration_ms == 0 && x->started_ms > 0)
            x->duration_ms = i64_max(x->ended_us / 1000 - x->started_ms, 0);
        exec_count_live(x, -1);
        exec_count_end(x);
    }
    log_debug("exec", LOG_C("id", x->id), LOG_C("state", sm_name(m)),
              LOG_C("why", x->failure ? x->failure : ""));
    exec_verify(x);
}

struct exec *exec_new(struct sandbox *s, const char *id)
{
    struct exec *x = xzalloc(sizeof *x);
    struct exec_set *set = exec_set_of(s);
    AUTO(mem_free) char *path = xasprintf("%s/%s/%s.log", set->all->dir, sandbox_id(s), id);

    x->refs = 1;
    x->set = set;
    x->sandbox = sandbox_ref(s);
    x->sm = (struct sm){.table = exec_states, .on_move = exec_moved, .state = EXEC_STARTING};
    x->exit_code = -1;
    x->idle_since_ms = clock_mono_ms();
    (void)snprintf(x->id, sizeof x->id, "%s", id);
    list_init(&x->link);
    list_init(&x->unsafe);
    list_init(&x->share_link);
    list_init(&x->readers);
    list_init(&x->waits);
    exec_log_init(&x->log, path, set->all->output_bytes);
    return x;
}

struct exec *exec_ref(struct exec *x)
{
    assert(x->refs > 0 && thread_is_loop());
    x->refs++;
    return x;
}

static void stop_timers(struct exec *x)
{
    timer_stop(&x->begin);
    timer_stop(&x->check);
    timer_stop(&x->deadline);
}

struct exec *exec_unref(struct exec *x)
{
    assert(!x || (x->refs > 0 && thread_is_loop()));
    if (!x || --x->refs > 0)
        return NULL;
    assert(list_is_empty(&x->link) && !x->share);
    assert(!x->ch && list_is_empty(&x->readers) && list_is_empty(&x->waits));
    stop_timers(x);
    timer_stop(&x->tell);
    list_unlink(&x->unsafe);
    exec_log_done(&x->log);
    buf_done(&x->in);
    arena_done(&x->start_mem);
    mem_free(x->argv);
    mem_free(x->cwd);
    mem_free(x->user);
    mem_free(x->failure);
    mem_free(x->name);
    if (x->tx_hook)
        x->tx_hook->free(x->tx_hook_arg);
    sandbox_unref(x->sandbox);
    mem_free(x);
    return NULL;
}

bool exec_is_live(const struct exec *x)
{
    return x->sm.state <= EXEC_RUNNING;
}

void exec_add(struct exec *x)
{
    assert(list_is_empty(&x->link));
    list_push(&x->set->list, &x->link);
    x->set->count++;
    if (exec_is_live(x))
        exec_count_live(x, 1);
    output_share_join(x);
}

/* Reads the state of a log file written by an earlier holtd. */
int exec_warm(struct exec *x, struct err *e)
{
    if (!x->log_cold)
        return 0;
    if (exec_log_recover(&x->log, e) < 0)
        return -1;
    x->log_cold = false;
    output_share_count(x);
    return 0;
}

void exec_detach(struct exec *x)
{
    struct guest_exec *ch = TAKE(x->ch);

    if (ch)
        guest_exec_drop(ch);
}

void exec_forget(struct exec *x)
{
    struct err gone = {.code = ERR_GONE, .msg = "the sandbox was destroyed"};

    exec_detach(x);
    stop_timers(x);
    output_share_leave(x);
    list_unlink(&x->unsafe);
    list_unlink(&x->link);
    journals_wake(x->set);
    assert(x->set->count > 0);
    x->set->count--;
    if (execs_are_closed(x->set->all)) /* it continues without us, and clients are notified */
        gone = (struct err){.code = ERR_CANCELLED, .msg = "holtd is stopping"};
    else if (x->sm.state == EXEC_STARTING && sandbox_is_listed(x->sandbox))
        gone =
            (struct err){.code = ERR_UNAVAILABLE, .msg = "holtd ended before the command started"};
    if (exec_is_live(x)) {
        exec_count_live(x, -1);
        if (x->started)
            TAKE(x->started)(x->started_arg, NULL, &gone);
        readers_end(x, &gone);
        waits_end(x, &gone);
    } else if (execs_are_closed(x->set->all)) {
        readers_end(x, &gone);
        waits_end(x, &gone);
    }
    exec_unref(x);
}

struct sandbox *exec_sandbox(const struct exec *x)
{
    return x->sandbox;
}

const char *exec_state_name(enum exec_state s)
{
    return exec_states[s].name;
}

struct exec *exec_find(struct sandbox *s, struct str id, struct err *e)
{
    LIST_EACH (&exec_set_of(s)->list, node) {
        struct exec *x = LIST_ENTRY(node, struct exec, link);

        if (str_eq_c(id, x->id))
            return x;
    }
    err_set(e, ERR_NOT_FOUND, 0, "sandbox '%s' has no command '" STR_FMT "'", sandbox_id(s),
            (int)size_min(id.n, 64), id.p ? id.p : "");
    err_object(e, "sandbox", sandbox_id(s));
    err_hint(e, "holt ps %s lists them; only the newest %lld are kept", sandbox_id(s),
             (long long)exec_set_of(s)->all->execs_max);
    return NULL;
}

struct exec *exec_newest(struct sandbox *s, struct err *e)
{
    struct exec *found = NULL;

    LIST_EACH (&exec_set_of(s)->list, node) {
        struct exec *x = LIST_ENTRY(node, struct exec, link);

        if (!found || strcmp(x->id, found->id) > 0)
            found = x;
    }
    if (found)
        return found;
    err_set(e, ERR_NOT_FOUND, 0, "sandbox '%s' has not run any command yet", sandbox_id(s));
    err_object(e, "sandbox", sandbox_id(s));
    err_hint(e, "run one: holt exec %s -- COMMAND", sandbox_id(s));
    return NULL;
}

struct exec *exec_named(struct sandbox *s, struct str name)
{
    struct exec *found = NULL;

    LIST_EACH (&exec_set_of(s)->list, node) {
        struct exec *x = LIST_ENTRY(node, struct exec, link);

        if (name.n == 0 || !x->name || !str_eq_c(name, x->name))
            continue;
        if (!found || exec_is_live(x) || (!exec_is_live(found) && x->ended_us > found->ended_us))
            found = x;
    }
    return found;
}

struct exec *exec_next(struct sandbox *s, struct str after)
{
    LIST_EACH (&exec_set_of(s)->list, node) {
        struct exec *x = LIST_ENTRY(node, struct exec, link);
        struct str id = str_of(x->id);
        int order = memcmp(id.p, after.p ? after.p : "", size_min(id.n, after.n));

        if (order > 0 || (order == 0 && id.n > after.n))
            return x;
    }
    return NULL;
}

static struct str text(const char *s)
{
    return str_of(s ? s : "");
}

void exec_info(const struct exec *x, struct exec_info *ret)
{
    int64_t now = clock_wall_ms();

    *ret = (struct exec_info){
        .id = x->id,
        .sandbox = sandbox_id(x->sandbox),
        .state = (enum exec_state)x->sm.state,
        .argv = x->argv,
        .argc = x->argc,
        .cwd = text(x->cwd),
        .user = text(x->user),
        .failure = text(x->failure),
        .pty = x->flags & EXEC_PTY,
        .timed_out = x->flags & EXEC_TIMED_OUT,
        .cancelled = x->flags & EXEC_CANCELLED,
        .oom = x->flags & EXEC_OOM,
        .takes_input = exec_is_live(x) && !x->in_eof && (x->flags & (EXEC_STDIN | EXEC_PTY)) != 0,
        .exit_code = x->exit_code,
        .signal = x->signal,
        .created_ms = x->created_us / 1000,
        .started_ms = x->started_ms,
        .ended_ms = x->ended_us / 1000,
        .created_us = x->created_us,
        .ended_us = x->ended_us,
        .duration_ms =
            exec_is_live(x) && x->started_ms > 0 ? i64_max(now - x->started_ms, 0) : x->duration_ms,
        .timeout_ms = x->timeout_ms,
        .user_us = x->user_us,
        .system_us = x->system_us,
        .max_rss_kib = x->max_rss_kib,
        .out_from = x->log.from[LOG_OUT],
        .out_end = x->log.end[LOG_OUT],
        .err_from = x->log.from[LOG_ERR],
        .err_end = x->log.end[LOG_ERR],
        .pid = x->pid,
        .name = text(x->name),
        .rows = x->log.rows,
        .cols = x->log.cols,
    };
}

/* --- the end --- */

void exec_tell_started(struct exec *x, const struct err *e)
{
    exec_cb started = TAKE(x->started);

    if (started)
        started(x->started_arg, e->code == ERR_NONE ? x : NULL, e);
}

static void end_saved(struct exec *x, const struct err *e)
{
    struct sandbox *s = x->sandbox;

    if (e->code != ERR_NONE) {
        x->unsaved = true;
        return;
    }
    x->unsaved = false;
    x->ended_saved = true;
    point_reached("end saved");
    if (x->ch) {
        guest_exec_forget(TAKE(x->ch));
    } else if (sandbox_link(s) && (x->listed || x->sm.state != EXEC_LOST)) {
        const struct guest_exec_row row = {.id = str_of(x->id),
                                           .out_end = (uint64_t)x->log.end[LOG_OUT],
                                           .err_end = (uint64_t)x->log.end[LOG_ERR]};

        exec_set_forget(x->set, &row);
    }
    if (x->flags & EXEC_ROW_OUTPUT)
        exec_log_unlink(&x->log);
    x->idle_since_ms = clock_mono_ms();
    exec_tell_started(x, e);
    exec_wake(x);
    journals_wake(x->set);
    sandbox_exec_over(s);
}

static const char *end_event(const struct exec *x)
{
    if (x->sm.state == EXEC_LOST)
        return "exec.lost";
    if (x->sm.state == EXEC_FAILED)
        return "exec.failed";
    return x->flags & EXEC_TIMED_OUT   ? "exec.timed_out"
           : x->flags & EXEC_CANCELLED ? "exec.cancelled"
                                       : "exec.exited";
}

void exec_end(struct exec *x, enum exec_state to)
{
    bool small = false;
    struct err e = {0};

    if (!exec_is_live(x))
        return;
    stop_timers(x);
    list_unlink(&x->unsafe);
    arena_done(&x->start_mem);
    x->start = NULL;
    buf_done(&x->in);
    sm_move(&x->sm, (int)to);
    if (exec_log_settle(&x->log, &small, &e) < 0)
        log_warn("an output log could not be moved into its row; it stays a file",
                 LOG_C("exec", x->id), LOG_E(&e));
    else if (small)
        x->flags |= EXEC_ROW_OUTPUT;
    output_share_count(x);
    exec_save(x, end_event(x), NULL, end_saved);
}

void exec_lose(struct exec *x, const char *why)
{
    exec_detach(x);
    text_set(&x->failure, str_of(why));
    exec_end(x, EXEC_LOST);
}

void exec_fail(struct exec *x, const struct err *e)
{
    exec_detach(x);
    text_set(&x->failure, str_of(e->msg));
    exec_end(x, EXEC_FAILED);
}

/* --- kill and deadlines --- */

static void kill_done(void *arg, const struct err *e)
{
    struct exec *x = arg;

    if (e->code != ERR_NONE)
        log_warn("the runtime could not kill a command", LOG_C("exec", x->id), LOG_E(e));
    exec_unref(x);
}

static void kill_late(struct timer *t)
{
    struct exec *x = CONTAINER_OF(t, struct exec, deadline);

    if (!exec_is_live(x))
        return;
    if (x->kills > 2) {
        exec_lose(x, x->no_room ? "it was killed, and its last output was lost: the disk is full"
                                : "it was killed, but its end was not reported");
        return;
    }
    if (!x->no_room && /* init cannot report its end now */
        !sandbox_kill(x->sandbox, x->kills == 1 ? DRIVER_WORK : DRIVER_ALL, kill_done, exec_ref(x)))
        exec_unref(x);
    x->kills++;
    timer_set(x->set->all->timers, &x->deadline, clock_mono_ms() + LATE_MS, kill_late);
}

void exec_kill(struct exec *x, uint32_t flag)
{
    if (!exec_is_live(x))
        return;
    x->flags |= flag;
    if (x->start && !x->ch) {
        exec_lose(x, "it was cancelled before it started");
        return;
    }
    if (x->ch)
        guest_exec_signal(x->ch, SIGKILL, GUEST_SCOPE_ALL);
    if (x->kills > 0)
        return;
    x->kills = 1;
    timer_set(x->set->all->timers, &x->deadline, clock_mono_ms() + LATE_MS, kill_late);
    exec_log_read_on(x);
}

static void deadline_due(struct timer *t)
{
    exec_kill(CONTAINER_OF(t, struct exec, deadline), EXEC_TIMED_OUT);
}

void exec_arm(struct exec *x)
{
    int64_t left;

    if (x->timeout_ms <= 0 || x->kills > 0 || !exec_is_live(x))
        return;
    left = x->started_ms + x->timeout_ms - clock_wall_ms();
    /* A changed clock must not extend a deadline beyond the requested time. */
    left = i64_max(0, i64_min(left, x->timeout_ms));
    timer_set(x->set->all->timers, &x->deadline, i64_max(clock_mono_ms() + left, 1), deadline_due);
}

/* --- starting --- */

static void start_saved(struct exec *x, const struct err *e)
{
    if (e->code != ERR_NONE && x->start && !x->ch && exec_waits_for_row(x)) {
        exec_tell_started(x, e);
        exec_forget(x); /* neither a row nor init has it */
        return;
    }
    if (e->code != ERR_NONE) {
        x->flags |= EXEC_CANCELLED;
        if (x->ch)
            guest_exec_signal(x->ch, SIGKILL, GUEST_SCOPE_ALL);
        exec_tell_started(x, e);
        return;
    }
    x->row = ROW_SAVED;
    journals_wake(x->set);
    if (x->start && !x->ch && sandbox_link(x->sandbox))
        exec_send_start(x);
    exec_started_if_all(x);
}

static void begin_late(struct timer *t)
{
    struct exec *x = CONTAINER_OF(t, struct exec, begin);
    struct err e = {0};

    err_set(&e, ERR_UNAVAILABLE, 0, "the sandbox's init does not answer");
    exec_fail(x, &e);
}

void exec_begin(struct exec *x, const char *actor)
{
    bool send = sandbox_link(x->sandbox) && !exec_waits_for_row(x);

    exec_add(x);
    sandbox_touch(x->sandbox);
    x->flags |= send ? EXEC_SENT : 0;
    exec_save(x, "exec.started", actor, start_saved);
    timer_set(x->set->all->timers, &x->begin, clock_mono_ms() + BEGIN_MS, begin_late);
    if (send)
        exec_send_start(x);
}

static bool is_unread(const struct exec *x)
{
    return x->sm.state == EXEC_RUNNING && (x->flags & EXEC_BLOCKS) &&
           (x->flags & EXEC_FOR_READER) && list_is_empty(&x->readers) &&
           clock_mono_ms() - x->idle_since_ms > UNREAD_MS;
}

void exec_tick(struct exec *x)
{
    if (is_unread(x)) {
        exec_let_go(x);
        exec_save(x, "exec.unread", NULL, NULL);
    }
    if (x->unsaved) {
        x->unsaved = false;
        exec_save(x, end_event(x), NULL, end_saved);
    }
    if (x->ended_saved && list_is_empty(&x->readers) &&
        clock_mono_ms() - x->idle_since_ms > IDLE_MS)
        exec_log_forget(&x->log);
}
