/* exec_start: checks and starts commands; signals, cancels, resizes. */
#include "core/exec/exec_internal.h"

#include "base/clock.h"
#include "base/enc.h"
#include "base/mem.h"
#include "ops/exec.h"

#include <signal.h>
#include <stdio.h>

#define START_BYTES (GUEST_START_MAX - 8192) /* arguments and environment */
#define ARGS_MAX 4096
#define OUTPUT_MAX (1LL << 40)
#define PTY_ROWS 24 /* of a terminal whose request gives no size */
#define PTY_COLS 80

/* --- callbacks in the next turn --- */

struct exec_told {
    struct list link;
    struct timer timer;
    struct exec *x;
    exec_cb done;
    void *arg;
    struct err e;
};

static void tell_now(struct timer *t)
{
    struct exec_told *l = CONTAINER_OF(t, struct exec_told, timer);

    list_unlink(&l->link);
    l->done(l->arg, l->e.code == ERR_NONE ? l->x : NULL, &l->e);
    exec_unref(l->x);
    mem_free(l);
}

static void tell(struct execs *all, struct exec *x, exec_cb done, void *arg, const struct err *e)
{
    struct exec_told *l;

    if (!done)
        return;
    l = xzalloc(sizeof *l);
    *l = (struct exec_told){.x = x ? exec_ref(x) : NULL, .done = done, .arg = arg, .e = *e};
    list_push(&all->told, &l->link);
    timer_set(all->timers, &l->timer, TIMER_SOON, tell_now);
}

void execs_tell_all(struct execs *all)
{
    while (!list_is_empty(&all->told)) {
        struct exec_told *l = LIST_ENTRY(all->told.next, struct exec_told, link);

        timer_stop(&l->timer);
        tell_now(&l->timer);
    }
}

/* --- checks --- */

static bool has_nul(struct str s)
{
    return s.n > 0 && memchr(s.p, '\0', s.n) != NULL;
}

static int check_texts(const struct sandbox *s, const struct exec_spec *spec, struct err *e)
{
    const struct sandbox_defaults *d = sandbox_defaults(s);
    size_t bytes = spec->shell.n + spec->cwd.n + spec->user.n + d->env_bytes;

    if (spec->argc == 0 && spec->shell.n == 0)
        return err_set(e, ERR_INVALID, 0, "field 'command': the list is empty");
    if (spec->argc > ARGS_MAX || spec->env_count + d->env_count > ARGS_MAX / 2)
        return err_set(e, ERR_TOO_LARGE, 0, "more than %d arguments or %d variables", ARGS_MAX,
                       ARGS_MAX / 2);
    for (size_t i = 0; i < spec->argc; i++) {
        bytes += spec->argv[i].n + 8;
        if (has_nul(spec->argv[i]))
            return err_set(e, ERR_INVALID, 0, "field 'command': argument %zu contains a NUL byte",
                           i);
    }
    for (size_t i = 0; i < spec->env_count; i++) {
        const struct pair *p = &spec->env[i];

        bytes += p->key.n + p->value.n + 8;
        if (p->key.n == 0 || memchr(p->key.p, '=', p->key.n) || has_nul(p->key) ||
            has_nul(p->value))
            return err_set(e, ERR_INVALID, 0,
                           "field 'env': a name is empty or contains '=', or there is a NUL byte");
    }
    if (has_nul(spec->shell) || has_nul(spec->cwd) || has_nul(spec->user))
        return err_set(e, ERR_INVALID, 0,
                       "the command, its directory or its user contains a NUL byte");
    if (bytes > START_BYTES)
        return err_set(e, ERR_TOO_LARGE, 0,
                       "the command and its environment have more than %d bytes", START_BYTES);
    return 0;
}

static int check_spec(const struct sandbox *s, const struct exec_spec *spec, struct err *e)
{
    if (check_texts(s, spec, e) < 0)
        return -1;
    if (spec->cwd.n > GUEST_PATH_MAX || spec->user.n > 255)
        return err_set(e, ERR_INVALID, 0, "field 'cwd' or 'user' is too long");
    if (spec->timeout_ms < 0 || spec->timeout_ms > EXEC_TIMEOUT_MAX_MS)
        return err_set(e, ERR_INVALID, 0, "field 'timeout_ms' must be from 0 to %lld",
                       (long long)EXEC_TIMEOUT_MAX_MS);
    if (spec->output_bytes < 0 || spec->output_bytes > OUTPUT_MAX)
        return err_set(e, ERR_INVALID, 0, "field 'output_bytes' must be from 0 to %lld",
                       (long long)OUTPUT_MAX);
    if (spec->rows < 0 || spec->rows > OP_PTY_SIDE_MAX || spec->cols < 0 ||
        spec->cols > OP_PTY_SIDE_MAX)
        return err_set(e, ERR_INVALID, 0, "a terminal has 1 to %d rows and columns",
                       OP_PTY_SIDE_MAX);
    return 0;
}

/* Fills in from the image what the request leaves out; its environment: make_start. */
static struct exec_spec with_defaults(const struct sandbox *s, const struct exec_spec *asked)
{
    const struct sandbox_defaults *d = sandbox_defaults(s);
    struct exec_spec spec = *asked;

    if (spec.image_command && spec.argc == 0 && spec.shell.n == 0) {
        spec.argv = d->argv;
        spec.argc = d->argc;
    }
    if (spec.cwd.n == 0 && d->cwd)
        spec.cwd = str_of(d->cwd);
    if (spec.user.n == 0 && d->user)
        spec.user = str_of(d->user);
    return spec;
}

/* A name that could be an id, or stands for one, would hide it. */
static int check_name(struct sandbox *s, struct str name, struct err *e)
{
    const struct exec *x = exec_named(s, name);

    if (id_is_valid("ex", name) || str_eq_c(name, "newest"))
        return err_set(e, ERR_INVALID, 0, "field 'name': '" STR_FMT "' has another meaning",
                       STR_ARG(name));
    if (!x || !exec_is_live(x))
        return 0;
    err_set(e, ERR_CONFLICT, 0, "sandbox '%s' has a session '" STR_FMT "' already", sandbox_id(s),
            STR_ARG(name));
    err_object(e, "exec", x->id);
    return err_hint(e, "attach to it: holt session attach %s " STR_FMT, sandbox_id(s),
                    STR_ARG(name));
}

/* Makes room for one more: drops the oldest ended one. */
static int make_room(struct sandbox *s, struct err *e)
{
    const struct exec_set *set = exec_set_of(s);
    size_t live = set->counts.live;
    bool fits = live < GUEST_EXECS_MAX; /* init's own limit */

    if (fits && (int64_t)set->count < set->all->execs_max)
        return 0;
    LIST_EACH (&set->list, node) {
        struct exec *x = LIST_ENTRY(node, struct exec, link);

        if (x->ended_saved && fits) {
            exec_erase(x);
            return 0;
        }
    }
    err_set(e, ERR_LIMIT, 0, "sandbox '%s' runs %zu commands already", sandbox_id(s), live);
    if (fits)
        err_limit(e, "execs_max", set->all->execs_max,
                  "wait for one to end or cancel one (holt ps %s)", sandbox_id(s));
    else
        err_limit_fixed(e, GUEST_EXECS_MAX, "wait for one to end or cancel one (holt ps %s)",
                        sandbox_id(s));
    return err_object(e, "sandbox", sandbox_id(s));
}

/* The commands one agent runs at a time, in all its sandboxes. */
static int check_share(const struct sandbox *s, const struct principal *by, struct err *e)
{
    const struct exec_set *set = exec_set_of(s);
    const struct ceilings *c = sandboxes_ceilings(set->all->sandboxes);

    if (!ceiling_counts(c, by, CEILING_COMMANDS))
        return 0;
    return ceiling_count(c, by, CEILING_COMMANDS,
                         principal_is_inside(by)
                             ? set->counts.live
                             : sandboxes_live_of(set->all->sandboxes, sandbox_owner(s)),
                         e);
}

/* --- the request to init --- */

static const struct pair default_env[] = {
    {{"PATH", 4}, {"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 60}},
    {{"LANG", 4}, {"C.UTF-8", 7}},
};

static bool is_set(const struct wire_text *env, size_t n, struct str key)
{
    for (size_t i = 0; i < n; i++)
        if (env[i].text.n > key.n && env[i].text.p[key.n] == '=' &&
            memcmp(env[i].text.p, key.p, key.n) == 0)
            return true;
    return false;
}

/* The first source of a variable wins. */
static void add_env(struct arena *a, struct wire_text *env, size_t *n, const struct pair *p,
                    size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!is_set(env, *n, p[i].key))
            env[(*n)++].text = str_of(
                arena_printf(a, STR_FMT "=" STR_FMT, STR_ARG(p[i].key), STR_ARG(p[i].value)));
}

void exec_each_env(const struct sandbox *s, void (*each)(void *arg, struct str text), void *arg)
{
    struct arena a = {0};
    size_t own, n = 0;
    const struct pair *of_sandbox = sandbox_env(s, &a, &own);
    struct wire_text *env = arena_zalloc(&a, (own + ARRAY_LEN(default_env)) * sizeof *env);

    add_env(&a, env, &n, of_sandbox, own);
    add_env(&a, env, &n, default_env, ARRAY_LEN(default_env));
    for (size_t i = 0; i < n; i++)
        each(arg, env[i].text);
    arena_done(&a);
}

static void make_start(struct exec *x, const struct exec_spec *spec)
{
    struct arena *a = &x->start_mem;
    struct guest_exec_start *st = arena_zalloc(a, sizeof *st);
    struct wire_text *argv = arena_zalloc(a, x->argc * sizeof *argv), *env;
    const struct pair term = {STR("TERM"), STR("xterm-256color")},
                      home = {STR("HOME"), STR("/root")}, trace = {STR("TRACEPARENT"), spec->trace};
    size_t n = 0, own;
    const struct pair *of_sandbox = sandbox_env(x->sandbox, a, &own);

    env = arena_zalloc(a, (spec->env_count + own + 5) * sizeof *env);
    for (size_t i = 0; i < x->argc; i++)
        argv[i].text = x->argv[i];
    add_env(a, env, &n, spec->env, spec->env_count);
    add_env(a, env, &n, of_sandbox, own);
    add_env(a, env, &n, default_env, ARRAY_LEN(default_env));
    if (spec->trace.n > 0)
        add_env(a, env, &n, &trace, 1);
    if (spec->user.n == 0)
        add_env(a, env, &n, &home, 1);
    if (spec->pty)
        add_env(a, env, &n, &term, 1);
    *st = (struct guest_exec_start){
        .id = str_of(x->id),
        .flags = (spec->pty ? GUEST_EXEC_PTY : 0U) | (spec->want_stdin ? GUEST_EXEC_STDIN : 0U) |
                 (spec->merge ? GUEST_EXEC_MERGE : 0U) |
                 (spec->kill_rest ? GUEST_EXEC_KILL_REST : 0U),
        .rows = (uint16_t)x->rows,
        .cols = (uint16_t)x->cols,
        .user = str_of(x->user),
        .cwd = str_of(x->cwd),
        .argv = {.count = (uint32_t)x->argc, .items = argv},
        .env = {.count = (uint32_t)n, .items = env},
    };
    x->start = st;
}

static struct exec *from_spec(struct sandbox *s, const struct exec_spec *spec)
{
    const struct str shell[] = {STR("/bin/sh"), STR("-c"), spec->shell};
    char id[ID_SIZE];
    struct exec *x = exec_new(s, id_make("ex", id));
    const uint8_t *epoch = sandbox_epoch(s);
    bool argv = spec->argc > 0;

    x->argc = argv ? spec->argc : ARRAY_LEN(shell);
    x->argv = texts_copy(argv ? spec->argv : shell, x->argc);
    text_set(&x->cwd, spec->cwd);
    text_set(&x->user, spec->user);
    x->tx_hook = spec->tx_hook;
    x->tx_hook_arg = spec->tx_hook_arg;
    x->row = spec->tx_hook ? ROW_FIRST : ROW_QUEUED;
    text_set(&x->failure, STR(""));
    text_set(&x->name, spec->name);
    (void)snprintf(x->trace, sizeof x->trace, STR_FMT, STR_ARG(spec->trace));
    (void)snprintf(x->trace_parent, sizeof x->trace_parent, STR_FMT, STR_ARG(spec->trace_parent));
    x->flags = (spec->pty ? EXEC_PTY : 0U) | (spec->want_stdin ? EXEC_STDIN : 0U) |
               (spec->block_when_full ? EXEC_BLOCKS : 0U) | (spec->standing ? EXEC_STANDING : 0U) |
               (spec->for_reader ? EXEC_FOR_READER : 0U);
    x->timeout_ms = spec->timeout_ms;
    if (epoch)
        enc_hex(epoch, (sizeof x->epoch - 1) / 2, x->epoch);
    x->created_us = execs_moment(x->set->all);
    if (spec->output_bytes > 0)
        x->log.keep = i64_max(spec->output_bytes, LOG_KEEP_MIN);
    x->log.hold = spec->block_when_full;
    x->quiet_start = spec->quiet_start && x->row == ROW_QUEUED;
    if (spec->pty) {
        x->rows = x->log.rows = spec->rows > 0 ? spec->rows : PTY_ROWS;
        x->cols = x->log.cols = spec->cols > 0 ? spec->cols : PTY_COLS;
    }
    make_start(x, spec);
    return x;
}

/* The logs of commands that a sandbox starts itself are on the host's disk, outside its limit: each
 * log is small, and all kept ones together take at most as much as the sandbox may.  With its heads
 * a log can be four times as large as its content (exec_log.h). */
static void bound_log(struct exec *x)
{
    const struct execs *all = x->set->all;
    int64_t most = all->relay_output_bytes, disk = sandbox_traits(x->sandbox)->limits.disk_bytes;

    if (disk > 0)
        most = i64_min(most, i64_max(LOG_KEEP_MIN, disk / (4 * all->execs_max)));
    x->log.keep = i64_min(x->log.keep, most);
}

/* A request that was carried out before: reports the command it started. */
static void start_again(struct sandbox *s, struct str id, exec_cb done, void *arg)
{
    struct err e = {0};
    struct exec *x = exec_find(s, id, &e);

    if (!x) {
        err_set(&e, ERR_CONFLICT, 0, "the command of this Idempotency-Key is no longer kept");
        err_hint(&e, "take a new key to run it again");
        err_object(&e, "sandbox", sandbox_id(s));
    } else if (x->sm.state == EXEC_STARTING) { /* it may still fail */
        err_set(&e, ERR_UNAVAILABLE, 0, "the command with this Idempotency-Key is being started");
        err_hint(&e, "ask again in a moment");
        err_object(&e, "exec", x->id);
    }
    tell(exec_set_of(s)->all, x, done, arg, &e);
}

void exec_start(struct sandbox *s, const struct exec_spec *asked, const struct principal *by,
                exec_cb done, void *arg)
{
    struct exec_spec spec = with_defaults(s, asked);
    struct exec *x;
    struct err e = {0};

    if (spec.again.n > 0) {
        start_again(s, spec.again, done, arg);
        return;
    }
    if (check_spec(s, &spec, &e) < 0 || check_name(s, spec.name, &e) < 0 ||
        sandbox_takes_commands(s, &e) < 0 || exec_apply_policies(s, &spec, by, &e) < 0 ||
        check_share(s, by, &e) < 0 || make_room(s, &e) < 0) {
        if (spec.tx_hook)
            spec.tx_hook->free(spec.tx_hook_arg);
        tell(exec_set_of(s)->all, NULL, done, arg, &e);
        return;
    }
    x = from_spec(s, &spec);
    if (principal_is_inside(by))
        bound_log(x);
    if (ceiling_binds(by))
        x->flags |= EXEC_OF_SHARE;
    x->started = done;
    x->started_arg = arg;
    exec_begin(x, by->actor);
}

/* --- to a running command --- */

static bool must_live(struct exec *x, const char *what, exec_cb done, void *arg)
{
    struct err e = {0};

    if (exec_is_live(x) && x->ch)
        return true;
    if (exec_is_live(x)) {
        err_set(&e, ERR_UNAVAILABLE, 0, "%s '%s': holtd is still connecting to its sandbox", what,
                x->id);
        err_hint(&e, "try again in a moment");
    } else {
        err_set(&e, ERR_CONFLICT, 0, "%s '%s': it has ended", what, x->id);
    }
    err_object(&e, "exec", x->id);
    tell(x->set->all, x, done, arg, &e);
    return false;
}

void exec_signal(struct exec *x, int signal, exec_cb done, void *arg)
{
    struct err e = {0};

    if (signal < 1 || signal > 64) {
        err_set(&e, ERR_INVALID, 0, "field 'signal' must be from 1 to 64");
        tell(x->set->all, x, done, arg, &e);
        return;
    }
    if (!must_live(x, "signal", done, arg))
        return;
    if (signal == SIGKILL)
        exec_kill(x, 0);
    else
        guest_exec_signal(x->ch, signal, GUEST_SCOPE_GROUP);
    sandbox_touch(x->sandbox);
    tell(x->set->all, x, done, arg, &e);
}

void exec_cancel(struct exec *x, exec_cb done, void *arg)
{
    exec_kill(x, EXEC_CANCELLED);
    if (done)
        (void)exec_wait(x, done, arg);
}

/* Into the log before the terminal has it, and into the file: init does not repeat it after a
 * crash. */
static int note_size(struct exec *x, int rows, int cols, struct err *e)
{
    int64_t moment = execs_moment(x->set->all);

    if (x->log.rows == rows && x->log.cols == cols)
        return 0;
    if (!x->log.in_file && exec_spill(x) < 0) {
        err_set(e, ERR_UNAVAILABLE, 0, "resize '%s': its output log cannot be written", x->id);
        return err_hint(e, "free disk space: `holt status` names the state directory");
    }
    if (exec_log_resize(&x->log, &moment, rows, cols, e) < 0)
        return err_wrap(e, "resize '%s'", x->id);
    if (!list_is_empty(&x->readers))
        exec_wake(x);
    return 0;
}

void exec_resize(struct exec *x, int rows, int cols, exec_cb done, void *arg)
{
    struct err e = {0};

    if (rows < 1 || rows > OP_PTY_SIDE_MAX || cols < 1 || cols > OP_PTY_SIDE_MAX)
        err_set(&e, ERR_INVALID, 0, "a terminal has 1 to %d rows and columns", OP_PTY_SIDE_MAX);
    else if (!(x->flags & EXEC_PTY))
        err_set(&e, ERR_CONFLICT, 0, "command '%s' has no terminal", x->id);
    else if (!must_live(x, "resize", done, arg))
        return;
    else if (note_size(x, rows, cols, &e) == 0)
        guest_exec_resize(x->ch, (uint16_t)rows, (uint16_t)cols);
    tell(x->set->all, x, done, arg, &e);
}
