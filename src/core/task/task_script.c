/* task_script: runs a short shell script in a task's sandbox and keeps its output. */
#include "core/task/task_internal.h"

#include "base/mem.h"

#define OUTPUT_MAX (64 * 1024)

struct script {
    struct task *t;
    void (*done)(struct task *t, int exit_code, struct str output, const struct err *e);
    struct exec *x;
    struct buf output;
    int exit_code;
};

static void script_over(struct script *j, const struct err *e)
{
    struct task *t = j->t;

    t->busy = false;
    if (!t->all->closed)
        j->done(t, j->exit_code, buf_str(&j->output), e);
    exec_unref(j->x);
    buf_done(&j->output);
    mem_free(j);
}

static int script_bytes(void *arg, enum exec_which stream, int64_t offset, int64_t time_us,
                        struct str bytes)
{
    struct script *j = arg;
    size_t room = OUTPUT_MAX - size_min(buf_len(&j->output), OUTPUT_MAX);

    (void)stream, (void)offset, (void)time_us;
    buf_add(&j->output, bytes.p, size_min(bytes.n, room));
    return 0;
}

static int script_gap(void *arg, enum exec_which stream, int64_t from, int64_t to)
{
    (void)arg, (void)stream, (void)from, (void)to;
    return 0;
}

static void script_read(void *arg, const struct err *e)
{
    script_over(arg, e);
}

static void script_ended(void *arg, struct exec *x, const struct err *e)
{
    static const struct exec_reader_ops ops = {
        .bytes = script_bytes, .gap = script_gap, .end = script_read};
    struct script *j = arg;
    struct exec_info i;

    if (e->code != ERR_NONE) {
        script_over(j, e);
        return;
    }
    exec_info(x, &i);
    j->exit_code = i.exit_code;
    (void)exec_read(x, EXEC_BOTH, 0, 0, false, &ops, j);
}

static void script_started(void *arg, struct exec *x, const struct err *e)
{
    struct script *j = arg;

    if (!x || e->code != ERR_NONE) {
        script_over(j, e);
        return;
    }
    j->x = exec_ref(x);
    (void)exec_wait(x, script_ended, j);
}

void task_script_run(struct task *t, const struct task_script *s)
{
    struct principal by = task_principal(t);
    const struct str argv[] = {STR("/bin/sh"), STR("-c"), str_of(s->text)};
    struct script *j = xzalloc(sizeof *j);

    t->busy = true;
    j->t = t;
    j->done = s->done;
    j->exit_code = -1;
    exec_start(t->s,
               &(struct exec_spec){.argv = argv,
                                   .argc = ARRAY_LEN(argv),
                                   .env = s->env,
                                   .env_count = s->env_count,
                                   .cwd = s->cwd,
                                   .merge = true,
                                   .kill_rest = true,
                                   .timeout_ms = s->time_ms,
                                   .output_bytes = OUTPUT_MAX},
               &by, script_started, j);
}
