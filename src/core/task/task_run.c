/* task_run: the agent's command: starts once, is followed, and found again after a restart. */
#include "core/task/task_internal.h"

#include "base/clock.h"
#include "base/mem.h"
#include "core/sandbox/commands.h"
#include "link/guest.h"

#include <stdio.h>

#define TERMINAL_ROWS 50
#define TERMINAL_COLS 220 /* wide: fewer lines of an agent are folded */

/* --- follow --- */

static void run_over(struct task *t)
{
    AUTO(buf_done) struct buf counts = {0};
    struct jw w = {.to = &counts};
    struct exec_info i;

    exec_info(t->x, &i);
    t->exit_code = i.exit_code;
    t->cpu_us = i.user_us + i.system_us;
    jw_object(&w);
    progress_write(&w, &t->progress);
    jw_object_end(&w);
    text_set(&t->counts, buf_str(&counts));
    t->x = exec_unref(t->x);
    if (task_stops(t))
        return;
    if (t->error[0])
        ; /* it was ended for a reason */
    else if (i.timed_out) {
        t->timed_out = true;
        text_set(&t->error, STR("it ran longer than 'lifecycle.timeout'"));
    } else if (i.state == EXEC_LOST || i.state == EXEC_FAILED)
        text_set(&t->error, i.failure.n > 0 ? i.failure : STR("its command was lost"));
    else if (i.oom)
        text_set(&t->error, STR("it was killed: its sandbox has no more memory"));
    else if (i.exit_code != 0)
        text_set(&t->error,
                 str_of(arena_printf(&t->a, "its command ended with status %d", i.exit_code)));
    else if (t->progress.failed)
        text_set(&t->error, STR("its agent says that it failed"));
    task_go(t, TASK_COMPLETING, "collecting the artifacts");
}

static void run_ended_maybe(struct task *t)
{
    if (!t->reader_over || !t->exec_over)
        return;
    t->busy = false;
    run_over(t);
}

static int run_bytes(void *arg, enum exec_which stream, int64_t offset, int64_t time_us,
                     struct str bytes)
{
    struct task *t = arg;

    (void)stream;
    task_log_add(t, offset, bytes);
    progress_feed(&t->progress, bytes, time_us / 1000);
    task_tell(t);
    return 0;
}

static int run_gap(void *arg, enum exec_which stream, int64_t from, int64_t to)
{
    (void)arg, (void)stream, (void)from, (void)to; /* an earlier holtd has written them */
    return 0;
}

static void run_read(void *arg, const struct err *e)
{
    struct task *t = arg;

    (void)e;
    t->reader = NULL;
    t->reader_over = true;
    if (!t->all->closed)
        run_ended_maybe(t);
}

static void run_ended(void *arg, struct exec *x, const struct err *e)
{
    struct task *t = arg;

    (void)x, (void)e;
    t->wait = NULL;
    t->exec_over = true;
    if (!t->all->closed)
        run_ended_maybe(t);
}

static void follow(struct task *t, struct exec *x)
{
    static const struct exec_reader_ops ops = {.bytes = run_bytes, .gap = run_gap, .end = run_read};

    t->x = exec_ref(x);
    t->busy = true;
    t->reader_over = t->exec_over = false;
    progress_done(&t->progress);
    progress_init(&t->progress);
    t->wait = exec_wait(x, run_ended, t);
    t->reader = exec_read(x, EXEC_STDOUT, 0, 0, true, &ops, t);
    if (t->cancel)
        task_stop(t);
}

/* --- start --- */

struct run_commit { /* the move to running, in the transaction of the command's row */
    struct task *t;
    struct row *row;
    struct buf data;
    char id[TASK_ID_SIZE], owner[64];
};

static void commit_ready(void *arg, const void *object)
{
    struct run_commit *c = arg;
    struct exec_info i;

    exec_info(object, &i);
    (void)snprintf(c->t->exec, sizeof c->t->exec, "%s", i.id);
    if (c->t->sm.state == TASK_READY)
        task_state_set(c->t, TASK_RUNNING, "running");
    task_event_data(c->t, &c->data);
    c->row = row_take(&task_columns, c->t);
}

static int commit_write(struct store_tx *tx, void *arg, struct err *e)
{
    const struct run_commit *c = arg;

    if (row_save(tx, c->row, e) < 0)
        return -1;
    task_put_event(tx, c->id, "task_run.running", c->owner, buf_str(&c->data));
    return 0;
}

static void commit_free(void *arg)
{
    struct run_commit *c = arg;

    row_free(c->row);
    buf_done(&c->data);
    mem_free(c);
}

static void run_started(void *arg, struct exec *x, const struct err *e)
{
    struct task *t = arg;
    struct principal by = task_principal(t);

    t->busy = false;
    if (t->all->closed)
        return;
    if (!x) {
        if (!task_stops(t))
            task_fail(t, e);
        return;
    }
    t->shown = t->sm.state;
    if (t->card[0] && t->all->cards.move)
        t->all->cards.move(t->all->cards.arg, &by, t->card, TASK_RUNNING, "");
    task_tell(t);
    follow(t, x);
}

static void take_path(void *arg, struct str text)
{
    if (str_starts(text, STR("PATH=")))
        buf_add_str(arg, str_skip(text, strlen("PATH=")));
}

/* The tools for all tasks in front of those of its image. */
static struct str path_of(struct task *t)
{
    AUTO(buf_done) struct buf path = {0};

    buf_add_c(&path, "/mnt/global/bin:");
    exec_each_env(t->s, take_path, &path);
    return arena_str(&t->a, buf_str(&path));
}

#define RUN_ENV 6
static struct pair *run_env(struct task *t)
{
    struct pair *to = arena_zalloc(&t->a, (RUN_ENV + t->m.env_count) * sizeof *to);

    to[0] = (struct pair){STR("TASK_ID"), str_of(t->id)};
    to[1] = (struct pair){STR("PATH"), path_of(t)};
    to[2] = (struct pair){STR("INBOX"), STR("/mnt/inbox/current")};
    to[3] = (struct pair){STR("OUTBOX"), STR("/mnt/outbox")};
    to[4] = (struct pair){STR("TERM"), STR("xterm-256color")};
    /* an agent that refuses to work as root may here: the sandbox is the boundary */
    to[5] = (struct pair){STR("IS_SANDBOX"), STR("1")};
    if (t->m.env_count > 0)
        memcpy(&to[RUN_ENV], t->m.env, t->m.env_count * sizeof *to);
    return to;
}

static void start_command(struct task *t)
{
    static const struct tx_hook hook = {
        .ready = commit_ready, .write = commit_write, .free = commit_free};
    struct principal by = task_principal(t);
    struct run_commit *c = xzalloc(sizeof *c);
    struct str *argv;
    size_t argc;

    c->t = t;
    memcpy(c->id, t->id, sizeof c->id);
    memcpy(c->owner, t->owner, sizeof c->owner);
    manifest_argv(&t->m, &t->a, &argv, &argc);
    t->busy = true;
    exec_start(t->s,
               &(struct exec_spec){.argv = argv,
                                   .argc = argc,
                                   .env = run_env(t),
                                   .env_count = RUN_ENV + t->m.env_count,
                                   .cwd = STR("/mnt/inbox/current"),
                                   .pty = true,
                                   .want_stdin = true,
                                   .rows = TERMINAL_ROWS,
                                   .cols = TERMINAL_COLS,
                                   .timeout_ms = t->m.timeout_ms,
                                   .kill_rest = true,
                                   .name = STR(TASK_SESSION),
                                   .tx_hook = &hook,
                                   .tx_hook_arg = c},
               &by, run_started, t);
}

/* Its sandbox, with a reference in t->s. */
static bool has_sandbox(struct task *t)
{
    struct sandbox *s;

    if (t->s)
        return true;
    s = sandboxes_get(t->all->c.sandboxes, str_of(t->sandbox));
    if (!s) {
        task_failed(t, "its sandbox '%s' is gone", t->sandbox);
        return false;
    }
    t->s = sandbox_ref(s);
    return true;
}

void agent_begin(struct task *t)
{
    if (has_sandbox(t))
        start_command(t);
}

/* A command without a row never ran: init was to hear of it after the commit. */
void agent_follow(struct task *t)
{
    struct err e = {0};
    struct exec *x;

    if (!has_sandbox(t))
        return;
    x = exec_find(t->s, str_of(t->exec), &e);
    if (x)
        follow(t, x);
    else
        start_command(t);
}

/* --- stop --- */

static void kill_asked(void *arg, struct exec *x, const struct err *e)
{
    (void)arg, (void)x, (void)e; /* its end is told to run_ended */
}

void task_stop(struct task *t)
{
    if (t->x)
        exec_cancel(t->x, kill_asked, NULL);
    if (t->tool) {
        struct tool *tool = TAKE(t->tool);

        tool_cancel(tool);
        t->busy = false;
        (void)task_stops(t);
    } else if (t->collecting) {
        collect_stop(t);
        (void)task_stops(t);
    } else if (t->build) {
        outfit_stop(t);
        t->busy = false;
        (void)task_stops(t);
    }
}

void task_let_go(struct task *t)
{
    if (t->tool)
        tool_cancel(TAKE(t->tool));
    outfit_stop(t);
    exec_wait_cancel(TAKE(t->wait));
    exec_reader_end(TAKE(t->reader));
    if (t->collecting)
        collect_stop(t);
    t->x = exec_unref(t->x);
    t->s = sandbox_unref(t->s);
}
