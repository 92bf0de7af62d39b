/* dispatch: AgentService.Exec: one command on an agent, its output as it comes, its end last. */
#include "api/dialects/agentic/link.h"
#include "api/share/revocable_stream.h"
#include "base/mem.h"
#include "proto/ws.h"

#define TIMEOUT_DEFAULT_S 300
#define GRPC_FAILED_PRECONDITION 9

struct dispatch { /* it lives until the client has gone and the command has started */
    struct waiter waiter;
    struct revocable_stream live;
    struct exec *x;
    struct exec_reader *reader;
    bool starting;
};

static void dispatch_free(struct dispatch *d)
{
    exec_reader_end(d->reader);
    revocable_stream_end(&d->live);
    exec_unref(d->x);
    mem_free(d);
}

static void dispatch_fail(struct dispatch *d, const struct err *e)
{
    struct request *r = waiter_end(&d->waiter);

    if (r)
        request_fail(r, e);
    dispatch_free(d);
}

/* --- its output --- */

static int on_bytes(void *arg, enum exec_which stream, int64_t offset, int64_t time_us,
                    struct str bytes)
{
    struct dispatch *d = arg;
    const struct agentic_exec_output o = {.stream = stream == EXEC_STDERR
                                                        ? AGENTIC_EXEC_OUTPUT_STREAM_STREAM_STDERR
                                                        : AGENTIC_EXEC_OUTPUT_STREAM_STREAM_STDOUT,
                                          .data = bytes};

    (void)offset, (void)time_us;
    return d->waiter.r ? rpc_send(d->waiter.r, &o) : 0;
}

static int on_gap(void *arg, enum exec_which stream, int64_t from, int64_t to)
{
    (void)arg, (void)stream, (void)from, (void)to; /* it blocks instead */
    return 0;
}

static void on_end(void *arg, const struct err *e)
{
    struct dispatch *d = arg;
    struct agentic_exec_output o = {.complete = true};
    struct exec_info i;
    struct request *r;

    d->reader = NULL;
    if (e->code != ERR_NONE) {
        dispatch_fail(d, e);
        return;
    }
    exec_info(d->x, &i);
    o.exit_code = i.exit_code;
    if (i.timed_out)
        o.error = STR("the command exceeded its time");
    else if (i.state == EXEC_LOST || i.state == EXEC_FAILED)
        o.error = i.failure;
    if (i.state == EXEC_LOST)
        o.exit_code = -1;
    r = waiter_end(&d->waiter);
    if (r) {
        (void)!rpc_send(r, &o); /* the last one */
        rpc_end(r);
    }
    dispatch_free(d);
}

static void on_drained(void *arg)
{
    struct dispatch *d = arg;

    if (d->reader)
        exec_reader_resume(d->reader);
}

/* --- the command --- */

static void command_cancelled(void *arg, struct exec *x, const struct err *e)
{
    (void)arg, (void)x, (void)e;
}

static void asker_gone(struct waiter *w)
{
    struct dispatch *d = CONTAINER_OF(w, struct dispatch, waiter);

    if (d->starting)
        return; /* its callback notices */
    if (d->x)
        exec_cancel(d->x, command_cancelled, NULL);
    dispatch_free(d);
}

static void on_live_end(struct revocable_stream *l, int ws_code, const char *why)
{
    struct dispatch *d = CONTAINER_OF(l, struct dispatch, live);
    struct err e = {0};

    if (ws_code == WS_POLICY && d->x) /* the caller has lost its permission */
        exec_cancel(d->x, command_cancelled, NULL);
    (void)err_set(&e, ERR_UNAVAILABLE, 0, "%s", why);
    dispatch_fail(d, &e);
}

static void command_started(void *arg, struct exec *x, const struct err *e)
{
    static const struct exec_reader_ops ops = {.bytes = on_bytes, .gap = on_gap, .end = on_end};
    struct dispatch *d = arg;

    d->starting = false;
    if (!x) {
        dispatch_fail(d, e);
        return;
    }
    d->x = exec_ref(x);
    if (!d->waiter.r) {
        asker_gone(&d->waiter);
        return;
    }
    rpc_on_drained(d->waiter.r, on_drained, d);
    revocable_stream_begin(&d->live, d->waiter.r, on_live_end);
    d->reader = exec_read(x, EXEC_BOTH, 0, 0, true, &ops, d);
}

static void run_in(struct request *r, struct sandbox *s, const struct agentic_exec_request *q)
{
    struct arena *a = xchg_arena(r->x);
    const struct principal by = request_who(r);
    struct str *argv = arena_zalloc(a, (q->args_count + 1) * sizeof *argv);
    struct pair *env = arena_zalloc(a, (q->env_count + 1) * sizeof *env);
    struct exec_spec spec = {.argv = argv,
                             .argc = q->args_count + 1,
                             .env = env,
                             .env_count = q->env_count,
                             .cwd = q->working_dir,
                             .timeout_ms = 1000LL * TIMEOUT_DEFAULT_S,
                             .kill_rest = true,
                             .block_when_full = true,
                             .for_reader = true};
    struct dispatch *d = xzalloc(sizeof *d);

    argv[0] = q->command;
    for (size_t i = 0; i < q->args_count; i++)
        argv[i + 1] = q->args[i];
    for (size_t i = 0; i < q->env_count; i++)
        env[i] = (struct pair){q->env[i].key, q->env[i].value};
    if (q->timeout_seconds > 0)
        spec.timeout_ms = 1000LL * q->timeout_seconds;
    d->starting = true;
    d->waiter.gone = asker_gone;
    request_wait(r, &d->waiter);
    exec_start(s, &spec, &by, command_started, d);
}

void agentic_dispatch(struct request *r, const void *in)
{
    const struct agentic_exec_request *q = in;
    struct sandbox_info i;
    struct sandbox *s;
    struct err e = {0};

    if (q->command.n == 0) {
        (void)err_set(&e, ERR_INVALID, 0, "the command is empty");
        request_fail(r, &e);
        return;
    }
    s = sandbox_find_as(r->api->c.sandboxes, &r->who, STR(AGENTIC_DIALECT), q->agent_id, &e);
    if (!s) {
        request_fail(r, &e);
        return;
    }
    sandbox_info(s, &i);
    if (i.state == SANDBOX_CREATING || i.state == SANDBOX_STARTING) {
        (void)err_set(&e, ERR_CONFLICT, 0, "agent '" STR_FMT "' is being provisioned",
                      (int)size_min(q->agent_id.n, 64), q->agent_id.p);
        rpc_fail_as(r, GRPC_FAILED_PRECONDITION, &e);
        return;
    }
    run_in(r, s, q);
}
