/* stdin: writes a command's standard input. */
#include "api/native/handlers.h"
#include "api/share/sandbox.h"
#include "core/exec/console.h"

struct input { /* in the exchange's arena */
    struct request *r;
    struct exec *x;
    struct exec_wait *wait;
    struct console_seat seat;
    struct buf held; /* input that the command does not take yet */
    bool eof, body_over, replied;
};

static void reply(struct input *in, const struct err *e)
{
    if (in->replied)
        return;
    in->replied = true;
    if (e)
        request_fail(in->r, e);
    else
        request_send_empty(in->r);
}

static void write_on(void *arg);

/* Returns the number of body bytes consumed. */
static size_t write_held(struct input *in)
{
    bool last = in->body_over && in->eof;
    size_t n = buf_len(&in->held);
    size_t taken = n || last ? exec_stdin(in->x, buf_str(&in->held), last, write_on, in) : 0;

    buf_take(&in->held, taken);
    if (taken == n && in->body_over)
        reply(in, NULL);
    return taken;
}

static void write_on(void *arg)
{
    struct input *in = arg;

    xchg_consume(in->r->x, write_held(in));
}

static void on_body(struct xchg *x, struct str part)
{
    struct input *in = xchg_arg(x);
    struct err e = {0};

    if (!in->replied && request_still_may(in->r, &e) < 0)
        reply(in, &e);
    if (in->replied) {
        xchg_consume(x, part.n);
        return;
    }
    buf_add_str(&in->held, part);
    xchg_consume(x, write_held(in));
}

static void on_body_end(struct xchg *x)
{
    struct input *in = xchg_arg(x);

    in->body_over = true;
    if (!in->replied)
        (void)write_held(in);
}

static void command_ended(void *arg, struct exec *x, const struct err *cause)
{
    struct input *in = arg;
    struct exec_info i;
    struct err e = {0};

    (void)cause;
    in->wait = NULL;
    exec_info(x, &i);
    err_set(&e, ERR_CONFLICT, 0, "command '%s' has ended and reads no input", i.id);
    err_object(&e, "exec", i.id);
    reply(in, &e);
}

static void on_closed(struct xchg *x, bool done)
{
    struct input *in = xchg_arg(x);

    if (buf_len(&in->held) > 0)
        (void)exec_stdin(in->x, STR(""), false, NULL, NULL); /* cancels the wait for room */
    console_leave(&in->seat);
    exec_wait_cancel(in->wait);
    buf_done(&in->held);
    exec_unref(in->x);
    request_end(in->r, done);
}

void exec_stdin_run(struct request *r)
{
    static const struct xchg_ops ops = {
        .body = on_body, .body_end = on_body_end, .closed = on_closed};
    const struct exec_stdin_in *asked = r->in;
    AUTO(exec_unref) struct exec *x = request_exec(r, asked->id, asked->exec);
    struct input *in = arena_zalloc(xchg_arena(r->x), sizeof *in);
    struct exec_info i;
    struct err e = {0};

    if (!x)
        return;
    exec_info(x, &i);
    if (!i.takes_input) {
        err_set(&e, ERR_CONFLICT, 0, "command '%s' %s", i.id,
                i.ended_ms ? "has ended and reads no input" : "has no open standard input");
        err_object(&e, "exec", i.id);
        err_hint(&e, "start it with \"stdin_open\": true");
        request_fail(r, &e);
        return;
    }
    if (console_sit(r->api->consoles, i.id, CONSOLE_CONTROLLER, false, &in->seat, &e) < 0) {
        request_fail(r, &e);
        return;
    }
    in->r = r;
    in->eof = asked->eof;
    in->wait = exec_wait(x, command_ended, in);
    in->x = TAKE(x);
    xchg_limit_body(r->x, 0);
    xchg_handle(r->x, &ops, in);
}
