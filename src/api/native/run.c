/* run: runs a command in a sandbox of its own. */
#include "api/native/run.h"

#include "api/idempotency.h"
#include "api/native/handlers.h"
#include "api/share/collect.h"
#include "api/share/tracer.h"
#include "base/log.h"
#include "base/mem.h"

struct run *run_ask(struct request *r, const struct run_in *in, const struct run_ops *ops,
                    void *arg, struct err *e)
{
    AUTO(arena_done) struct arena arena = {0}; /* the run copies what it needs */
    const struct principal by = request_who(r);
    struct sandbox_spec box;
    struct exec_spec command;
    struct exec_input input;

    if (spec_read_exec(&in->exec, &arena, &command, &input, e) < 0 ||
        spec_read_sandbox(r, &in->sandbox, &arena, &box, e) < 0)
        return NULL;
    if (ops->reads && in->exec.on_full != OP_ON_FULL_DROP)
        command.block_when_full = command.for_reader = true;
    command.quiet_start = !ops->reads && input.bytes.n == 0 && !input.eof;
    box.name = in->name;
    box.traits.memory_upper = in->sandbox.upper != OP_UPPER_DISK;
    tracer_spec(r, &command);
    idem_of_exec(r, &command);
    return run_start(r->api->c.sandboxes,
                     &(struct run_spec){.sandbox = &box,
                                        .exec = &command,
                                        .input = input.bytes,
                                        .input_eof = input.eof,
                                        .consoles = r->api->consoles},
                     &by, ops, arg);
}

/* --- POST: the reply has the command's end and output --- */

struct run_job {
    struct waiter waiter;
    struct api *api;
    struct run *run;
    struct exec *x;
    struct exec_wait *wait;
    struct collect collect;
    struct err e;      /* sent in the reply after the sandbox is removed */
    struct idem *idem; /* or NULL: the key is held until the end */
    struct buf reply;
};

static void job_free(struct run_job *j)
{
    exec_wait_cancel(j->wait);
    collect_done(&j->collect);
    exec_unref(j->x);
    idem_unref(j->idem);
    buf_done(&j->reply);
    mem_free(j);
}

static void asker_gone(struct waiter *w)
{
    struct run_job *j = CONTAINER_OF(w, struct run_job, waiter);

    if (!j->run)
        return; /* its reply is being kept */
    run_forget(j->run);
    job_free(j);
}

/* A reply that was not kept makes a repetition fail; the command is not run twice. */
static void reply_kept(void *arg, const struct err *e)
{
    struct run_job *j = arg;
    struct request *r = waiter_end(&j->waiter);

    if (e->code != ERR_NONE)
        log_warn("the reply of a run is not kept", LOG_E(e));
    if (r)
        request_send(r, 0, "application/json", buf_str(&j->reply));
    job_free(j);
}

static void job_destroyed(void *arg)
{
    struct run_job *j = arg;
    struct jw w = {.to = &j->reply};
    const struct err none = {0};

    j->run = NULL;
    if (j->e.code != ERR_NONE) {
        request_fail(waiter_end(&j->waiter), &j->e);
        job_free(j);
        return;
    }
    collect_write_run(&w, j->x, &j->collect);
    buf_add_char(&j->reply, '\n');
    if (j->idem && buf_len(&j->reply) <= IDEM_REPLY_MAX)
        idem_keep_reply(TAKE(j->idem), buf_str(&j->reply), reply_kept, j);
    else
        reply_kept(j, &none);
}

static void job_failed(void *arg, const struct err *e)
{
    struct run_job *j = arg;

    j->e = *e;
    run_end(j->run);
}

static void output_gathered(void *arg, const struct err *e)
{
    job_failed(arg, e); /* success has the code ERR_NONE */
}

static void command_ended(void *arg, struct exec *x, const struct err *e)
{
    struct run_job *j = arg;

    j->wait = NULL;
    if (e->code == ERR_NONE)
        collect_start(&j->collect, x, (size_t)j->api->c.conf->body_max, output_gathered, j);
    else
        job_failed(j, e);
}

static void job_started(void *arg, struct exec *x)
{
    struct run_job *j = arg;

    j->x = exec_ref(x);
    j->wait = exec_wait(x, command_ended, j);
}

void run_run(struct request *r)
{
    static const struct run_ops ops = {
        .started = job_started, .failed = job_failed, .destroyed = job_destroyed};
    const struct run_in *in = r->in;
    struct run_job *j;
    struct err e = {0};

    if (in->exec.stdin_open) {
        err_set(&e, ERR_INVALID, 0, "field 'stdin_open': this form of run cannot write to it");
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
    j->idem = idem_ref(r->idem);
    j->waiter.gone = asker_gone;
    request_wait(r, &j->waiter);
    j->run = run_ask(r, in, &ops, j, &e);
    if (j->run)
        return;
    (void)waiter_end(&j->waiter);
    job_free(j);
    request_fail(r, &e);
}
