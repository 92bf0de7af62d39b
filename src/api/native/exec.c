/* exec: commands: create, list, get, wait, signal, resize, cancel. */
#include "api/idempotency.h"
#include "api/native/handlers.h"
#include "api/reply_list.h"
#include "api/share/command.h"
#include "api/share/sandbox.h"
#include "api/share/tracer.h"
#include "base/mem.h"
#include "core/exec/feed.h"

/* --- as JSON --- */

static void write_usage(struct jw *w, const struct exec_info *i)
{
    jw_key(w, "usage");
    if (!i->ended_ms) {
        jw_null(w);
        return;
    }
    jw_object(w);
    jw_kint(w, "user_us", i->user_us);
    jw_kint(w, "system_us", i->system_us);
    jw_kint(w, "max_rss_kib", i->max_rss_kib);
    jw_object_end(w);
}

void exec_write_members(struct jw *w, const struct exec *x)
{
    struct exec_info i;

    exec_info(x, &i);
    jw_kc(w, "id", i.id);
    jw_kc(w, "sandbox", i.sandbox);
    jw_kc(w, "state", exec_state_name(i.state));
    jw_key(w, "command");
    jw_array(w);
    for (size_t k = 0; k < i.argc; k++)
        jw_str(w, i.argv[k]);
    jw_array_end(w);
    jw_ktext(w, "cwd", i.cwd);
    jw_ktext(w, "user", i.user);
    jw_kbool(w, "pty", i.pty);
    jw_kint_if(w, "exit_code", i.exit_code >= 0, i.exit_code);
    jw_kint_if(w, "signal", i.signal > 0, i.signal);
    jw_kbool(w, "timed_out", i.timed_out);
    jw_kbool(w, "cancelled", i.cancelled);
    jw_kbool(w, "oom", i.oom);
    jw_ktime(w, "created_at", i.created_ms);
    jw_ktime(w, "started_at", i.started_ms);
    jw_ktime(w, "ended_at", i.ended_ms);
    jw_kint_if(w, "duration_ms", i.ended_ms > 0, i.duration_ms);
    jw_kint(w, "stdout_bytes", i.out_end);
    jw_kint(w, "stderr_bytes", i.err_end);
    write_usage(w, &i);
    jw_ktext(w, "failure", i.failure);
}

void exec_write_json(struct jw *w, const struct exec *x)
{
    jw_object(w);
    exec_write_members(w, x);
    jw_object_end(w);
}

/* --- create: in the background, or with its output after its end --- */

struct exec_job {
    struct waiter waiter;
    struct command *command; /* NULL: in the background */
    struct api *api;
    struct buf input;
    bool input_eof, cancel;
};

static void job_free(struct exec_job *j)
{
    buf_done(&j->input);
    mem_free(j);
}

static void reply(struct request *r, int status, const struct exec *x, const struct collect *c)
{
    struct jw w = request_json(r);

    collect_write(&w, x, c);
    request_send_json(r, status);
}

static void asker_gone(struct waiter *w)
{
    struct exec_job *j = CONTAINER_OF(w, struct exec_job, waiter);

    command_drop(j->command, j->cancel);
    job_free(j);
}

static void command_ended(void *arg, struct exec *x, const struct collect *c, const struct err *e)
{
    struct exec_job *j = arg;
    struct request *r = waiter_end(&j->waiter);

    job_free(j);
    if (e->code != ERR_NONE)
        request_fail(r, e);
    else
        reply(r, 0, x, c);
}

static void in_background(void *arg, struct exec *x, const struct err *e)
{
    struct exec_job *j = arg;
    struct request *r = waiter_end(&j->waiter);

    if (x && (buf_len(&j->input) > 0 || j->input_eof))
        feed_start(j->api->consoles, x, buf_str(&j->input), j->input_eof);
    job_free(j);
    if (r && x)
        reply(r, 202, x, NULL);
    else if (r)
        request_fail(r, e);
}

static int check_leaving(const struct exec_create_in *in, struct err *e)
{
    if (!in->background || !in->cancel_on_disconnect)
        return 0;
    err_set(e, ERR_INVALID, 0,
            "field 'cancel_on_disconnect': with 'background' no client waits for its end");
    return err_hint(e, "leave out one of the two");
}

void exec_create_run(struct request *r)
{
    static const struct command_ops ops = {.done = command_ended};
    const struct exec_create_in *in = r->in;
    struct sandbox *s = request_sandbox(r, in->id);
    struct principal by = request_who(r);
    struct exec_input input;
    struct exec_spec spec;
    struct exec_job *j;
    struct err e = {0};

    if (!s)
        return;
    if (check_leaving(in, &e) < 0 ||
        spec_read_exec(&in->exec, xchg_arena(r->x), &spec, &input, &e) < 0 ||
        (!in->background && spec_check_unread(&in->exec, &e) < 0)) {
        request_fail(r, &e);
        return;
    }
    tracer_spec(r, &spec);
    idem_of_exec(r, &spec);
    if (spec.again.n > 0) /* it got that before, or the part that a dead holtd passed on */
        input = (struct exec_input){0};
    j = xzalloc(sizeof *j);
    j->api = r->api;
    j->cancel = in->cancel_on_disconnect;
    request_wait(r, &j->waiter);
    if (in->background) {
        j->input_eof = input.eof;
        buf_add_str(&j->input, input.bytes);
        exec_start(s, &spec, &by, in_background, j);
    } else {
        j->waiter.gone = asker_gone;
        j->command = command_start(r->api, s, &spec, &input, &by, &ops, j);
    }
}

/* --- list, get --- */

void exec_list_run(struct request *r)
{
    const struct exec_list_in *in = r->in;
    struct sandbox *s = request_sandbox(r, in->id);
    struct reply_list l;
    struct exec_info i;
    struct jw w;

    if (!s)
        return;
    w = request_json(r);
    reply_list_begin(&l, &w, "execs", STR(""), in->limit);
    for (struct exec *x = exec_next(s, in->cursor); x && !l.more; x = exec_next(s, str_of(i.id))) {
        exec_info(x, &i);
        if ((in->state < 0 || (int)i.state == in->state) && reply_list_take(&l, str_of(i.id)))
            exec_write_json(&w, x);
    }
    reply_list_end(&l);
    request_send_json(r, 0);
}

static void send_exec(struct request *r, const struct exec *x)
{
    struct jw w = request_json(r);

    exec_write_json(&w, x);
    request_send_json(r, 0);
}

void exec_get_run(struct request *r)
{
    const struct exec_id_in *in = r->in;
    AUTO(exec_unref) struct exec *x = request_exec(r, in->id, in->exec);

    if (x)
        send_exec(r, x);
}

/* --- wait --- */

struct wait_job {
    struct waiter waiter;
    struct exec_wait *wait;
};

static void waiter_gone(struct waiter *w)
{
    struct wait_job *j = CONTAINER_OF(w, struct wait_job, waiter);

    exec_wait_cancel(j->wait);
    mem_free(j);
}

static void wait_ended(void *arg, struct exec *x, const struct err *e)
{
    AUTO(mem_free) struct wait_job *j = arg;
    struct request *r = waiter_end(&j->waiter);

    if (e->code != ERR_NONE)
        request_fail(r, e);
    else
        send_exec(r, x);
}

void exec_wait_run(struct request *r)
{
    const struct exec_id_in *in = r->in;
    AUTO(exec_unref) struct exec *x = request_exec(r, in->id, in->exec);
    struct wait_job *j;

    if (!x)
        return;
    j = xzalloc(sizeof *j);
    j->waiter.gone = waiter_gone;
    request_wait(r, &j->waiter);
    j->wait = exec_wait(x, wait_ended, j);
}

/* --- signal, resize, cancel --- */

struct act_job {
    struct waiter waiter;
};

static void action_done(void *arg, struct exec *x, const struct err *e)
{
    AUTO(mem_free) struct act_job *j = arg;
    struct request *r = waiter_end(&j->waiter);

    if (r && e->code != ERR_NONE)
        request_fail(r, e);
    else if (r)
        send_exec(r, x);
}

static struct act_job *act(struct request *r)
{
    struct act_job *j = xzalloc(sizeof *j);

    request_wait(r, &j->waiter);
    return j;
}

void exec_signal_run(struct request *r)
{
    const struct exec_signal_in *in = r->in;
    AUTO(exec_unref) struct exec *x = request_exec(r, in->id, in->exec);
    struct err e = {0};
    int sig = 0;

    if (!x)
        return;
    if (signal_parse(in->signal, &sig, &e) < 0)
        request_fail(r, &e);
    else
        exec_signal(x, sig, action_done, act(r));
}

void exec_resize_run(struct request *r)
{
    const struct exec_resize_in *in = r->in;
    AUTO(exec_unref) struct exec *x = request_exec(r, in->id, in->exec);

    if (x)
        exec_resize(x, (int)in->rows, (int)in->cols, action_done, act(r));
}

void exec_cancel_run(struct request *r)
{
    const struct exec_id_in *in = r->in;
    AUTO(exec_unref) struct exec *x = request_exec(r, in->id, in->exec);

    if (x)
        exec_cancel(x, action_done, act(r));
}
