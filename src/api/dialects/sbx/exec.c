/* exec: runs commands for sbx clients. */
#include "api/dialects/sbx/sbx.h"
#include "api/idempotency.h"
#include "api/share/command.h"
#include "api/share/create_join.h"
#include "api/share/tracer.h"
#include "base/clock.h"
#include "base/enc.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "proto/digest.h"

#define EXPIRED "context deadline exceeded"
#define CODE_EXPIRED 124

/* --- ids --- */

/* Derived from our id: it needs no table, and is the same after a restart. */
void sbx_exec_id(const struct exec *x, char to[SBX_EXEC_ID])
{
    unsigned char hash[SHA256_SIZE];
    struct exec_info i;

    exec_info(x, &i);
    sha256(str_of(i.id), hash);
    enc_hex(hash, (SBX_EXEC_ID - 1) / 2, to);
}

/* Ended ones are kept for a while. */
static bool is_expired(const struct request *r, const struct exec *x)
{
    int64_t keep = sbx_settings(r->api->c.conf)->exec_keep_ms;
    struct exec_info i;

    exec_info(x, &i);
    return keep > 0 && i.ended_ms > 0 && clock_wall_ms() - i.ended_ms > keep;
}

struct exec *sbx_exec_find(struct sandbox *s, struct str name)
{
    bool hash = name.n == SBX_EXEC_ID - 1; /* avoids hashing the ids of all commands otherwise */
    struct exec_info i;
    char id[SBX_EXEC_ID];

    for (struct exec *x = exec_next(s, STR("")); x; x = exec_next(s, str_of(i.id))) {
        exec_info(x, &i);
        if (str_eq_c(name, i.id))
            return x;
        if (hash)
            sbx_exec_id(x, id);
        if (hash && str_eq_c(name, id))
            return x;
    }
    return NULL;
}

static struct exec *find(struct request *r, struct sandbox *s)
{
    struct exec *x = sbx_exec_find(s, r->params.v[1]);

    return x && !is_expired(r, x) ? x : NULL;
}

/* --- results --- */

void sbx_outcome(const struct exec_info *i, struct arena *a, struct sbx_outcome *ret)
{
    bool live = i->state == EXEC_STARTING || i->state == EXEC_RUNNING;

    *ret = (struct sbx_outcome){.status = "failed"};
    if (live) {
        ret->status = i->cancelled ? "canceling" : "running";
    } else if (i->timed_out) {
        *ret = (struct sbx_outcome){"timed_out", true, CODE_EXPIRED, STR(EXPIRED)};
    } else if (i->cancelled) {
        ret->status = "canceled";
    } else if (i->state != EXEC_EXITED) {
        ret->error = i->failure;
    } else {
        ret->has_code = true;
        ret->code = i->exit_code;
        if (i->exit_code == 0)
            ret->status = "completed";
        else
            ret->error =
                str_of(arena_printf(a, "command terminated with exit code %d", i->exit_code));
    }
}

static void write_outcome(struct jw *w, const struct sbx_outcome *o)
{
    jw_kc(w, "status", o->status);
    if (o->has_code)
        jw_kint(w, "exit_code", o->code);
}

static void send_record(struct request *r, const struct sandbox *s, const struct exec *x)
{
    struct jw w = request_json(r);
    struct sbx_outcome o;
    struct exec_info i;
    char id[SBX_EXEC_ID];

    exec_info(x, &i);
    sbx_exec_id(x, id);
    sbx_outcome(&i, xchg_arena(r->x), &o);
    jw_object(&w);
    jw_kstr(&w, "sandbox_id", sbx_namespace(s));
    jw_kc(&w, "exec_id", id);
    write_outcome(&w, &o);
    if (i.started_ms > 0)
        jw_ktime(&w, "started_at", i.started_ms);
    if (i.ended_ms > 0)
        jw_ktime(&w, "finished_at", i.ended_ms);
    if (i.timeout_ms > 0)
        jw_kint(&w, "timeout_seconds", i.timeout_ms / 1000);
    if (o.error.n > 0)
        jw_kstr(&w, "error", o.error);
    jw_object_end(&w);
    sbx_send(r, 200);
}

void sbx_exec_get(struct request *r)
{
    struct sandbox *s = sbx_find(r);
    struct exec *x = s ? find(r, s) : NULL;

    if (x)
        send_record(r, s, x);
    else
        sbx_error(r, 404, "exec not found");
}

void sbx_exec_cancel(struct request *r)
{
    struct sandbox *s = sbx_find(r);
    struct exec *x = s ? find(r, s) : NULL;
    struct exec_info i;

    if (!x) {
        sbx_error(r, 404, "exec not found");
        return;
    }
    exec_info(x, &i);
    if (i.state != EXEC_STARTING && i.state != EXEC_RUNNING) {
        sbx_error(r, 409, "exec is already in terminal state");
        return;
    }
    exec_cancel(x, NULL, NULL);
    send_record(r, s, x);
}

/* --- running --- */

struct exec_request {
    struct sbx_strings command;
    struct sbx_bool async;
    struct sbx_int timeout;
};

static const struct sbx_field exec_fields[] = {
    {"command", SBX_STRINGS, offsetof(struct exec_request, command)},
    {"async", SBX_BOOL, offsetof(struct exec_request, async)},
    {"timeout_seconds", SBX_INT, offsetof(struct exec_request, timeout)},
};
static const struct sbx_form exec_form = {"ExecRequest", exec_fields, ARRAY_LEN(exec_fields)};

struct run_job {
    struct waiter waiter;
    struct command *command;
    struct sbx *sbx;
    bool async, again;
};

/* A waiting client's command ends when the client disconnects; one in the background continues. */
static void asker_gone(struct waiter *w)
{
    struct run_job *j = CONTAINER_OF(w, struct run_job, waiter);

    if (j->command)
        command_drop(j->command, !j->async);
    if (j->async)
        sbx_sidecar_again(j->sbx);
    mem_free(j);
}

static void not_started(struct request *r, const struct err *e)
{
    if (e->code == ERR_CONFLICT || e->code == ERR_UNAVAILABLE)
        sbx_error(r, 409, "sandbox not ready: %s", e->msg);
    else
        sbx_error(r, e->code == ERR_INVALID ? 400 : err_table[e->code].http, "%s", e->msg);
}

static void on_started(void *arg, struct exec *x)
{
    struct run_job *j = arg;
    struct request *r;
    struct jw w;
    char id[SBX_EXEC_ID];

    if (!j->again)
        sbx_sidecar_begin(j->sbx, x);
    if (!j->async)
        return;
    j->sbx->execs++;
    r = waiter_end(&j->waiter);
    command_drop(j->command, false);
    mem_free(j);
    sbx_exec_id(x, id);
    w = request_json(r);
    jw_object(&w);
    jw_kc(&w, "exec_id", id);
    jw_kc(&w, "status", "running");
    jw_object_end(&w);
    sbx_send(r, 200);
}

static void write_stream(struct jw *w, const char *key, const struct buf *bytes)
{
    if (buf_len(bytes) > 0)
        jw_kstr(w, key, buf_str(bytes));
}

/* The original's fields; what it omits for a failed command is sent beside its error.  The original
 * client takes any reply with an "exec_id" for a background command, and prints no output. */
static void send_result(struct request *r, const struct exec *x, const struct collect *c)
{
    struct sbx_outcome o;
    struct exec_info i;
    struct jw w;
    char id[SBX_EXEC_ID];

    exec_info(x, &i);
    sbx_exec_id(x, id);
    sbx_outcome(&i, xchg_arena(r->x), &o);
    if (i.cancelled && !i.timed_out)
        o.error = STR("exec was canceled");
    w = request_json(r);
    jw_object(&w);
    if (o.error.n > 0)
        jw_kstr(&w, "error", o.error);
    write_stream(&w, "stdout", &c->streams[0]);
    write_stream(&w, "stderr", &c->streams[1]);
    write_outcome(&w, &o);
    jw_kc(&w, "sync_exec_id", id);
    if (c->truncated)
        jw_kbool(&w, "truncated", true);
    jw_object_end(&w);
    sbx_of(r->api)->execs += o.error.n == 0;
    sbx_send(r, o.error.n > 0 ? 500 : 200);
}

static void on_ended(void *arg, struct exec *x, const struct collect *c, const struct err *e)
{
    AUTO(mem_free) struct run_job *j = arg;
    struct request *r = waiter_end(&j->waiter);

    if (e->code != ERR_NONE)
        not_started(r, e);
    else
        send_result(r, x, c);
}

static void command_run(struct request *r, struct sandbox *s, const struct err *e)
{
    static const struct command_ops ops = {.started = on_started, .done = on_ended};
    static const struct exec_input nothing = {0};
    const struct config *conf = r->api->c.conf;
    const struct exec_request *q = r->in;
    const struct principal by = request_who(r);
    struct exec_spec spec = {
        .argv = q->command.v,
        .argc = q->command.n,
        .cwd = s ? sbx_workdir(s) : STR(""),
        .timeout_ms = q->timeout.set ? q->timeout.v * 1000 : sbx_settings(conf)->exec_timeout_ms,
    };
    struct run_job *j;

    if (e->code != ERR_NONE) {
        not_started(r, e);
        return;
    }
    j = xzalloc(sizeof *j);
    j->sbx = sbx_of(r->api);
    j->async = q->async.set ? q->async.v : sbx_settings(conf)->async_exec;
    j->waiter.gone = asker_gone;
    request_wait(r, &j->waiter);
    tracer_spec(r, &spec);
    idem_of_exec(r, &spec);
    j->again = spec.again.n > 0;
    j->command = command_start(r->api, s, &spec, &nothing, &by, &ops, j);
}

static int check(const struct request *r, const struct exec_request *q, struct err *e)
{
    int64_t most = sbx_settings(r->api->c.conf)->exec_max_timeout_ms;

    most = most > 0 ? i64_max(most / 1000, 1) : EXEC_TIMEOUT_MAX_MS / 1000;
    if (q->command.n == 0)
        return err_set(e, ERR_INVALID, 0, "command is required");
    if (q->timeout.set && q->timeout.v <= 0)
        return err_set(e, ERR_INVALID, 0, "timeout_seconds must be > 0");
    if (q->timeout.set && q->timeout.v > most)
        return err_set(e, ERR_INVALID, 0, "timeout_seconds must be <= %lld", (long long)most);
    return 0;
}

static void exec_with(struct request *r, struct str body)
{
    struct exec_request *q = arena_zalloc(xchg_arena(r->x), sizeof *q);
    const struct err none = {0};
    struct alias_name name;
    struct sandbox *s;
    struct err e = {0};

    if (sbx_read_body(body, &exec_form, xchg_arena(r->x), &r->body, q, &e) < 0 ||
        check(r, q, &e) < 0) {
        sbx_error(r, 400, "%s", e.msg);
        return;
    }
    r->in = q;
    s = sbx_find(r);
    if (s)
        name = (struct alias_name){STR(SBX_DIALECT), sbx_namespace(s)};
    if (!s)
        sbx_error(r, 404, "sandbox not ready: pods \"" SBX_POD "\" not found");
    else if (!create_join_try(r, name, command_run)) /* wait for one being created */
        command_run(r, s, &none);
}

void sbx_exec(struct request *r)
{
    request_collect(r, exec_with);
}
