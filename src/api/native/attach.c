/* attach: attaches a WebSocket to a command; run over a WebSocket. */
#include "api/native/attach_internal.h"
#include "api/native/template.h"
#include "base/clock.h"
#include "core/identity/identity.h"

#define MEMBERS_MS 20 /* changes within this time are one message */
#define LAG_MS 200    /* a client that did not read for this long hears of it */

static const char *const protocols[] = {"holt.attach.v1", NULL};

/* --- the end --- */

static void attach_free(struct attach *a)
{
    buf_done(&a->held);
    buf_done(&a->frame);
    mem_free(a->name);
    mem_free(a);
}

/* Typed input that was not taken is dropped with its client; the wait for room ends. */
void attach_drop_input(struct attach *a)
{
    if (a->x && buf_len(&a->held) > 0)
        (void)exec_stdin(a->x, STR(""), false, NULL, NULL);
    buf_clear(&a->held);
}

/* Detaches from the command, which keeps running. */
static void attach_detach(struct attach *a)
{
    attach_drop_input(a);
    revocable_stream_end(&a->live);
    console_leave(&a->seat);
    attach_screen_end(a);
    timer_stop(&a->members);
    exec_reader_end(a->reader);
    exec_wait_cancel(a->wait);
    a->reader = NULL;
    a->wait = NULL;
    a->x = exec_unref(a->x);
}

static void on_live_end(struct revocable_stream *l, int ws_code, const char *why)
{
    struct attach *a = CONTAINER_OF(l, struct attach, live);

    if (a->ws)
        ws_close(a->ws, ws_code, why);
}

/* The log is read and the exit is committed: reports the exit; a run's sandbox is removed before
 * the socket closes. */
void attach_finish(struct attach *a)
{
    if ((a->raw && !a->read_over) || !a->ended || a->exit_sent || !attach_screen_over(a))
        return;
    a->exit_sent = true;
    say_exec(a, "exit");
    if (a->run)
        run_end(a->run);
    else if (a->ws)
        ws_close(a->ws, WS_NORMAL, "");
}

void attach_fail(struct attach *a, const struct err *e)
{
    say_error(a, e);
    a->exit_sent = true;
    if (a->run)
        run_end(a->run);
    else if (a->ws)
        ws_close(a->ws, WS_NORMAL, "");
}

/* --- output --- */

static int note_full(struct attach *a, int full)
{
    if (full && !a->full_since)
        a->full_since = clock_mono_ms();
    return full;
}

static int on_bytes(void *arg, enum exec_which stream, int64_t offset, int64_t time_us,
                    struct str bytes)
{
    (void)time_us;
    return note_full(arg, say_bytes(arg, stream, offset, bytes));
}

static int on_gap(void *arg, enum exec_which stream, int64_t from, int64_t to)
{
    return note_full(arg, say_gap(arg, stream, from, to));
}

static int on_size(void *arg, int64_t offset, int64_t time_us, int rows, int cols)
{
    (void)time_us;
    return note_full(arg, say_size(arg, offset, rows, cols));
}

static void on_read_end(void *arg, const struct err *e)
{
    struct attach *a = arg;

    a->reader = NULL;
    a->read_over = true;
    if (e->code == ERR_NONE)
        attach_finish(a);
    else
        attach_fail(a, e);
}

static void on_ended(void *arg, struct exec *x, const struct err *e)
{
    struct attach *a = arg;

    (void)x;
    a->wait = NULL;
    a->ended = true;
    if (e->code == ERR_NONE)
        attach_finish(a);
    else
        attach_fail(a, e);
}

void attach_read(struct attach *a, int64_t out_offset, int64_t err_offset)
{
    static const struct exec_reader_ops reads = {
        .bytes = on_bytes, .gap = on_gap, .end = on_read_end, .size = on_size};
    struct exec_info i;

    exec_info(a->x, &i);
    a->sent[0] = out_offset < 0 ? i.out_end : out_offset;
    a->sent[1] = err_offset < 0 ? i.err_end : err_offset;
    a->reader = exec_read(a->x, EXEC_BOTH, a->sent[0], a->sent[1], true, &reads, a);
}

/* --- the socket --- */

static void on_message(struct ws *w, enum ws_kind kind, struct str data)
{
    attach_hear(ws_arg(w), kind, data);
}

static void on_drained(struct ws *w)
{
    struct attach *a = ws_arg(w);
    int64_t since = a->full_since, ms = since ? clock_mono_ms() - since : 0;

    a->full_since = 0;
    if (a->x && ms >= LAG_MS)
        say_lag(a, ms);
    attach_screen_room(a);
    if (a->reader)
        exec_reader_resume(a->reader);
}

static void on_closed(struct ws *w, int code, struct str reason)
{
    struct attach *a = ws_arg(w);
    struct run *run = TAKE(a->run);

    (void)code, (void)reason;
    a->ws = NULL;
    attach_detach(a);
    if (run)
        run_forget(run);
    attach_free(a);
}

static void on_role(struct console_seat *s)
{
    struct attach *a = CONTAINER_OF(s, struct attach, seat);

    if (s->role != CONSOLE_CONTROLLER)
        attach_drop_input(a);
    if (!a->ws)
        return;
    ws_pause(a->ws, false);
    say_role(a);
}

static void members_due(struct timer *t)
{
    say_members(CONTAINER_OF(t, struct attach, members));
}

static void on_members(struct console_seat *s)
{
    struct attach *a = CONTAINER_OF(s, struct attach, seat);

    if (a->ws && a->x && !a->run && !timer_is_set(&a->members))
        timer_set(lives_timers(a->api->screens), &a->members, clock_mono_ms() + MEMBERS_MS,
                  members_due);
}

/* Attached: begins to read from these offsets. */
static void begin(struct attach *a, int64_t out_offset, int64_t err_offset)
{
    say_exec(a, "started");
    say_role(a);
    if (!a->run)
        say_members(a);
    a->wait = exec_wait(a->x, on_ended, a);
    attach_screen_begin(a);
    if (a->raw && !a->screen.repaint)
        attach_read(a, out_offset, err_offset);
}

static const struct ws_ops attach_ops = {
    .message = on_message, .drained = on_drained, .closed = on_closed};

static struct attach *attach_new(struct request *r)
{
    struct attach *a = xzalloc(sizeof *a);

    a->r = r;
    a->api = r->api;
    a->raw = true;
    a->seat.changed = on_role;
    a->seat.members = on_members;
    a->seat.may_control = request_may(r, PERM_SANDBOX_WRITE);
    return a;
}

static enum console_role wanted_role(const struct request *r, int asked)
{
    if (asked == OP_ATTACH_OBSERVER || (asked < 0 && !request_may(r, PERM_SANDBOX_WRITE)))
        return CONSOLE_OBSERVER;
    return asked < 0 ? CONSOLE_ANY : CONSOLE_CONTROLLER;
}

static int check_control(const struct request *r, int role, bool take, struct err *e)
{
    if ((role != OP_ATTACH_CONTROLLER && !take) || request_authorise(r, PERM_SANDBOX_WRITE, e) == 0)
        return 0;
    err_wrap(e, "attach as controller");
    return err_hint(e, "attach with role=observer");
}

/* The name by which the other members know it: the requested one, or that of its token. */
static char *seat_name(const struct request *r, struct str asked)
{
    if (asked.n > 0)
        return str_dup(asked);
    if (r->who.token && r->who.token->name && *r->who.token->name)
        return xstrdup(r->who.token->name);
    return xstrdup(r->who.actor);
}

static int set_up(struct attach *a, const struct exec_attach_in *in, const struct exec_info *i,
                  struct err *e)
{
    a->name = seat_name(a->r, in->name);
    a->seat.name = a->name;
    a->seat.by = a->r->who.actor; /* the seat is left before the request ends */
    a->raw = in->raw;
    a->screen.on = in->screen;
    a->screen.repaint = in->repaint && in->raw;
    a->screen.period_ms = 1000 / in->updates;
    if (!i->pty && (in->screen || in->repaint)) {
        err_set(e, ERR_CONFLICT, 0, "command '%s' has no terminal, so there is no screen", i->id);
        return err_hint(e, "start it with \"pty\": true, or as a session");
    }
    return console_sit(a->api->consoles, i->id, wanted_role(a->r, in->role), in->take, &a->seat, e);
}

void exec_attach_run(struct request *r)
{
    const struct exec_attach_in *in = r->in;
    AUTO(exec_unref) struct exec *x = request_exec(r, in->id, in->exec);
    struct exec_info i;
    struct attach *a;
    struct err e = {0};

    if (!x)
        return;
    if (check_control(r, in->role, in->take, &e) < 0) {
        request_refuse(r, &e);
        return;
    }
    exec_info(x, &i);
    a = attach_new(r);
    if (set_up(a, in, &i, &e) < 0) {
        attach_free(a);
        request_fail(r, &e);
        return;
    }
    a->ws = ws_accept(r->x, protocols, &attach_ops, a);
    if (!a->ws) {
        console_leave(&a->seat);
        attach_free(a);
        return;
    }
    request_count(r, 101);
    revocable_stream_begin(&a->live, r, on_live_end);
    a->x = TAKE(x);
    begin(a, in->stdout_offset, in->stderr_offset);
}

/* --- run.attach: the first message has the command --- */

static void run_started(void *arg, struct exec *x)
{
    struct attach *a = arg;
    struct exec_info i;
    struct err e;

    exec_info(x, &i);
    a->x = exec_ref(x);
    /* Refused only while its input comes from the request's own fields. */
    if (console_sit(a->api->consoles, i.id, CONSOLE_ANY, false, &a->seat, &e) < 0)
        attach_fail(a, &e);
    else
        begin(a, 0, 0);
}

static void run_failed(void *arg, const struct err *e)
{
    attach_fail(arg, e);
}

static void run_destroyed(void *arg)
{
    struct attach *a = arg;

    a->run = NULL;
    if (a->ws)
        ws_close(a->ws, WS_NORMAL, "");
}

static int run_begin(struct attach *a, struct str text, struct err *e)
{
    static const struct run_ops ops = {
        .reads = true, .started = run_started, .failed = run_failed, .destroyed = run_destroyed};
    AUTO(json_decref) json_t *body = NULL; /* run_ask copies what it needs */
    struct request *r = a->r;
    void *in;

    if (json_read(text, &body, e) < 0)
        return err_wrap(e, "the first message");
    if (template_apply(r, &op_run, body, e) < 0)
        return -1;
    if (op_decode(&op_run, NULL, STR(""), body, xchg_arena(r->x), &in, e) < 0)
        return -1;
    a->run = run_ask(r, in, &ops, a, e);
    return a->run ? 0 : -1;
}

static void on_run_message(struct ws *w, enum ws_kind kind, struct str data)
{
    struct attach *a = ws_arg(w);
    struct err e = {0};

    if (a->run_asked) {
        if (a->run && !a->x) {
            err_set(&e, ERR_CONFLICT, 0, "the command is not running yet: wait for 'started'");
            say_error(a, &e);
            return;
        }
        on_message(w, kind, data);
        return;
    }
    a->run_asked = true;
    if (kind != WS_TEXT)
        err_set(&e, ERR_INVALID, 0, "the first message must be the JSON text of a run");
    if (e.code != ERR_NONE || run_begin(a, data, &e) < 0)
        attach_fail(a, &e);
}

void run_attach_run(struct request *r)
{
    static const struct ws_ops ops = {
        .message = on_run_message, .drained = on_drained, .closed = on_closed};
    struct attach *a = attach_new(r);

    a->ws = ws_accept(r->x, protocols, &ops, a);
    if (!a->ws) {
        attach_free(a);
        return;
    }
    request_count(r, 101);
    revocable_stream_begin(&a->live, r, on_live_end);
}
