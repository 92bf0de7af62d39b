#include "api/run.h"

#include "api/collect.h"
#include "api/feed.h"
#include "api/handlers.h"
#include "base/log.h"
#include "base/mem.h"

/* --- the steps --- */

struct run {
    struct api *api;
    struct principal by;
    const struct run_ops *ops; /* NULL: forgotten */
    void *arg;
    struct arena arena; /* of the spec, which must wait for the sandbox */
    struct exec_spec spec;
    struct exec_input input;
    struct sandbox *sandbox; /* once it runs */
    bool pending;            /* a create or start is under way */
    bool ending;
};

static void run_free(struct run *run)
{
    sandbox_unref(run->sandbox);
    arena_done(&run->arena);
    mem_free(run);
}

static void destroyed(void *arg, struct sandbox *s, const struct err *e)
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
        sandbox_destroy(run->sandbox, &run->by, destroyed, run);
    else
        destroyed(run, NULL, &none);
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
        if (run->input.bytes.n > 0 || run->input.eof)
            feed_start(run->api->consoles, x, run->input.bytes, run->input.eof);
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
    }
}

/* The spec's texts are the request's: the command starts later, when that may have gone. */
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
    run->input.bytes = arena_str(a, run->input.bytes);
}

struct run *run_start(struct request *r, const struct run_in *in, const struct run_ops *ops,
                      void *arg, struct err *e)
{
    struct run *run = xzalloc(sizeof *run);
    struct sandbox_spec spec;

    *run = (struct run){.api = r->api, .by = request_who(r), .ops = ops, .arg = arg};
    if (spec_read_exec(&in->exec, &run->arena, &run->spec, &run->input, e) < 0 ||
        spec_read_sandbox(r, &in->sandbox, &run->arena, &spec, e) < 0) {
        run_free(run);
        return NULL;
    }
    keep_texts(run);
    if (ops->reads && in->exec.on_full != OP_ON_FULL_DROP)
        run->spec.block_when_full = true;
    spec.memory_upper = in->sandbox.upper != OP_UPPER_DISK;
    spec.one_shot = true;
    run->pending = true;
    sandbox_create(r->api->c.sandboxes, &spec, &run->by, sandbox_made, run);
    return run;
}

/* --- POST: the reply is the command's end and output --- */

struct run_job {
    struct waiter waiter;
    struct api *api;
    struct run *run;
    struct exec *x;
    struct exec_wait *wait;
    struct collect collect;
    struct err e; /* what the reply will say, after the sandbox is gone */
    bool ending;
};

static void job_free(struct run_job *j)
{
    exec_wait_cancel(j->wait);
    collect_done(&j->collect);
    exec_unref(j->x);
    mem_free(j);
}

static void asker_gone(struct waiter *w)
{
    struct run_job *j = CONTAINER_OF(w, struct run_job, waiter);

    run_forget(j->run);
    job_free(j);
}

static void job_destroyed(void *arg)
{
    struct run_job *j = arg;
    struct request *r = waiter_end(&j->waiter);
    struct jw w;

    if (j->e.code != ERR_NONE) {
        request_fail(r, &j->e);
    } else {
        w = request_json(r);
        collect_write(&w, j->x, &j->collect);
        request_send_json(r, 0);
    }
    job_free(j);
}

static void job_failed(void *arg, const struct err *e)
{
    struct run_job *j = arg;

    j->e = *e;
    run_end(j->run);
}

static void gathered(void *arg, const struct err *e)
{
    job_failed(arg, e); /* or has not failed: then the code is none */
}

static void ended(void *arg, struct exec *x, const struct err *e)
{
    struct run_job *j = arg;

    j->wait = NULL;
    if (e->code == ERR_NONE)
        collect_start(&j->collect, x, (size_t)j->api->c.conf->body_max, gathered, j);
    else
        job_failed(j, e);
}

static void job_started(void *arg, struct exec *x)
{
    struct run_job *j = arg;

    j->x = exec_ref(x);
    j->wait = exec_wait(x, ended, j);
}

void run_run(struct request *r)
{
    static const struct run_ops ops = {
        .started = job_started, .failed = job_failed, .destroyed = job_destroyed};
    const struct run_in *in = r->in;
    struct run_job *j;
    struct err e = {0};

    if (in->exec.stdin_open) {
        err_set(&e, ERR_INVALID, 0, "field 'stdin_open': nobody could write to it in this form");
        err_hint(&e, "give 'stdin', or use the WebSocket form: GET /holt/v1/run");
        request_fail(r, &e);
        return;
    }
    if (spec_check_unread(&in->exec, &e) < 0) {
        request_fail(r, &e);
        return;
    }
    j = xzalloc(sizeof *j);
    j->api = r->api;
    j->waiter.gone = asker_gone;
    request_wait(r, &j->waiter);
    j->run = run_start(r, in, &ops, j, &e);
    if (j->run)
        return;
    (void)waiter_end(&j->waiter);
    mem_free(j);
    request_fail(r, &e);
}
