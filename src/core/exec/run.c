/* run: creates a sandbox, runs one command, destroys the sandbox. */
#include "core/exec/run.h"

#include "base/arena.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/exec/feed.h"

/* create ─▶ start ─▶ callback; run_end ─▶ destroy ─▶ callback.  run_end during a create or start
 * waits for it: one step at a time. */
struct run {
    struct principal by;
    const struct run_ops *ops; /* NULL: forgotten */
    void *arg;
    struct arena arena; /* for the spec's texts, needed until the sandbox is ready */
    struct exec_spec spec;
    struct str input;
    bool input_eof;
    struct consoles *consoles;
    struct sandbox *sandbox; /* once it runs */
    bool pending;            /* a create or start is in progress */
    bool ending;
};

static void run_free(struct run *run)
{
    if (run->spec.tx_hook)
        run->spec.tx_hook->free(run->spec.tx_hook_arg);
    sandbox_unref(run->sandbox);
    arena_done(&run->arena);
    mem_free(run);
}

static void sandbox_destroyed(void *arg, struct sandbox *s, const struct err *e)
{
    struct run *run = arg;

    (void)s;
    if (e->code != ERR_NONE && e->code != ERR_NOT_FOUND && e->code != ERR_GONE)
        log_warn("the sandbox of a run is not destroyed yet", LOG_E(e));
    if (run->ops)
        run->ops->destroyed(run->arg);
    run_free(run);
}

static void destroy_now(struct run *run)
{
    struct err none = {0};

    if (run->sandbox)
        sandbox_destroy(run->sandbox, &run->by, sandbox_destroyed, run);
    else
        sandbox_destroyed(run, NULL, &none);
}

void run_end(struct run *run)
{
    if (run->ending)
        return;
    run->ending = true;
    if (!run->pending)
        destroy_now(run);
}

void run_forget(struct run *run)
{
    run->ops = NULL;
    run_end(run);
}

static void fail(struct run *run, const struct err *e)
{
    if (run->ops)
        run->ops->failed(run->arg, e);
    else
        run_end(run);
}

static void exec_started(void *arg, struct exec *x, const struct err *e)
{
    struct run *run = arg;

    run->pending = false;
    if (run->ending) {
        destroy_now(run);
    } else if (!x) {
        fail(run, e);
    } else {
        if (run->input.n > 0 || run->input_eof)
            feed_start(run->consoles, x, run->input, run->input_eof);
        run->ops->started(run->arg, x);
    }
}

static void sandbox_made(void *arg, struct sandbox *s, const struct err *e)
{
    struct run *run = arg;

    run->pending = false;
    if (e->code == ERR_NONE)
        run->sandbox = sandbox_ref(s);
    if (run->ending) {
        destroy_now(run);
    } else if (e->code != ERR_NONE) {
        fail(run, e);
    } else {
        run->pending = true;
        exec_start(s, &run->spec, &run->by, exec_started, run);
        run->spec.tx_hook = NULL; /* the command has it */
    }
}

/* Copies the texts: the command starts later, when the request may have ended. */
static void keep_texts(struct run *run)
{
    struct exec_spec *s = &run->spec;
    struct arena *a = &run->arena;
    struct str *argv = arena_alloc(a, (s->argc + 1) * sizeof *argv);
    struct pair *env = arena_alloc(a, (s->env_count + 1) * sizeof *env);

    for (size_t i = 0; i < s->argc; i++)
        argv[i] = arena_str(a, s->argv[i]);
    for (size_t i = 0; i < s->env_count; i++)
        env[i] = (struct pair){arena_str(a, s->env[i].key), arena_str(a, s->env[i].value)};
    s->argv = argv;
    s->env = env;
    s->shell = s->shell.p ? arena_str(a, s->shell) : s->shell;
    s->cwd = s->cwd.p ? arena_str(a, s->cwd) : s->cwd;
    s->user = s->user.p ? arena_str(a, s->user) : s->user;
    s->trace = s->trace.p ? arena_str(a, s->trace) : s->trace;
    s->trace_parent = s->trace_parent.p ? arena_str(a, s->trace_parent) : s->trace_parent;
    run->input = arena_str(a, run->input);
}

struct run *run_start(struct sandboxes *all, const struct run_spec *spec,
                      const struct principal *by, const struct run_ops *ops, void *arg)
{
    struct run *run = xzalloc(sizeof *run);
    struct sandbox_spec box = *spec->sandbox;

    *run = (struct run){.by = *by,
                        .ops = ops,
                        .arg = arg,
                        .spec = *spec->exec,
                        .input = spec->input,
                        .input_eof = spec->input_eof,
                        .consoles = spec->consoles};
    run->by.token = NULL;
    keep_texts(run);
    box.traits.one_shot = true;
    box.image_command = run->spec.image_command;
    run->pending = true;
    sandbox_create(all, &box, &run->by, sandbox_made, run);
    return run;
}
