/* attach: attaches a WebSocket to a command; run over a WebSocket. */
#include "api/native/handlers.h"
#include "api/native/run.h"
#include "api/share/revocable_stream.h"
#include "base/mem.h"
#include "core/exec/console.h"
#include "net/ws.h"

#define FRAME_HEAD 9 /* stream and offset before the bytes */

static const char *const protocols[] = {"holt.attach.v1", NULL};

struct attach { /* on the heap: removing a run's sandbox may take longer than the socket lives */
    struct request *r; /* valid while ws is */
    struct api *api;
    struct ws *ws; /* NULL: closed */
    struct exec *x;
    struct exec_reader *reader;
    struct exec_wait *wait;
    struct console_seat seat;
    struct revocable_stream live;
    struct run *run; /* of run.attach */
    struct buf held; /* input that the command does not take yet */
    struct buf frame;
    bool eof;       /* after `held` */
    bool run_asked; /* the first message of run.attach has arrived */
    bool read_over, ended, exit_sent;
};

/* --- to the client --- */

static void send_text(struct attach *a, struct buf *json)
{
    if (a->ws)
        (void)!ws_send(a->ws, WS_TEXT, buf_str(json)); /* few and small: only output waits */
}

static void send_exec(struct attach *a, const char *type)
{
    AUTO(buf_done) struct buf json = {0};
    struct jw w = {.to = &json};

    jw_object(&w);
    jw_kc(&w, "type", type);
    jw_key(&w, "exec");
    exec_write_json(&w, a->x);
    if (a->run && strcmp(type, "started") == 0) {
        jw_key(&w, "sandbox");
        sandbox_write_brief(&w, exec_sandbox(a->x));
    }
    jw_object_end(&w);
    send_text(a, &json);
}

static void send_error(struct attach *a, const struct err *e)
{
    AUTO(buf_done) struct buf json = {0}, error = {0};
    struct jw w = {.to = &json};
    struct str inner;

    json_error(&error, e); /* {"error": {…}}: its member is ours too */
    inner = str_skip(buf_str(&error), 1);
    jw_object(&w);
    jw_kc(&w, "type", "error");
    buf_add_char(&json, ',');
    buf_add_str(&json, inner);
    send_text(a, &json);
}

static void send_role(struct attach *a)
{
    AUTO(buf_done) struct buf json = {0};
    struct jw w = {.to = &json};

    jw_object(&w);
    jw_kc(&w, "type", "role");
    jw_kc(&w, "role", op_attach_roles[a->seat.role == CONSOLE_CONTROLLER]);
    jw_object_end(&w);
    send_text(a, &json);
}

/* --- the end --- */

static void attach_free(struct attach *a)
{
    buf_done(&a->held);
    buf_done(&a->frame);
    mem_free(a);
}

/* Typed input that was not taken is dropped with its client; the wait for room ends. */
static void drop_input(struct attach *a)
{
    if (a->x && buf_len(&a->held) > 0)
        (void)exec_stdin(a->x, STR(""), false, NULL, NULL);
    buf_clear(&a->held);
}

/* Detaches from the command, which keeps running. */
static void attach_detach(struct attach *a)
{
    drop_input(a);
    revocable_stream_end(&a->live);
    console_leave(&a->seat);
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
static void finish(struct attach *a)
{
    if (!a->read_over || !a->ended || a->exit_sent)
        return;
    a->exit_sent = true;
    send_exec(a, "exit");
    if (a->run)
        run_end(a->run);
    else if (a->ws)
        ws_close(a->ws, WS_NORMAL, "");
}

static void fail(struct attach *a, const struct err *e)
{
    send_error(a, e);
    a->exit_sent = true;
    if (a->run)
        run_end(a->run);
    else if (a->ws)
        ws_close(a->ws, WS_NORMAL, "");
}

/* --- output --- */

static int on_bytes(void *arg, enum exec_which stream, int64_t offset, int64_t time_us,
                    struct str bytes)
{
    struct attach *a = arg;
    unsigned char head[FRAME_HEAD] = {(unsigned char)stream};

    (void)time_us;
    for (int i = 0; i < 8; i++)
        head[1 + i] = (unsigned char)((uint64_t)offset >> (56 - 8 * i));
    buf_clear(&a->frame);
    buf_add(&a->frame, head, sizeof head);
    buf_add_str(&a->frame, bytes);
    return ws_send(a->ws, WS_BINARY, buf_str(&a->frame));
}

static int on_gap(void *arg, enum exec_which stream, int64_t from, int64_t to)
{
    struct attach *a = arg;
    AUTO(buf_done) struct buf json = {0};
    struct jw w = {.to = &json};

    jw_object(&w);
    jw_kc(&w, "type", "gap");
    jw_kc(&w, "stream", op_streams[stream == EXEC_STDERR]);
    jw_kint(&w, "from", from);
    jw_kint(&w, "to", to);
    jw_object_end(&w);
    return ws_send(a->ws, WS_TEXT, buf_str(&json));
}

static void on_read_end(void *arg, const struct err *e)
{
    struct attach *a = arg;

    a->reader = NULL;
    a->read_over = true;
    if (e->code == ERR_NONE)
        finish(a);
    else
        fail(a, e);
}

static void on_ended(void *arg, struct exec *x, const struct err *e)
{
    struct attach *a = arg;

    (void)x;
    a->wait = NULL;
    a->ended = true;
    if (e->code == ERR_NONE)
        finish(a);
    else
        fail(a, e);
}

/* --- input --- */

static void attach_feed(void *arg)
{
    struct attach *a = arg;

    if (!a->x || !a->ws || a->seat.role != CONSOLE_CONTROLLER)
        return;
    buf_take(&a->held, exec_stdin(a->x, buf_str(&a->held), a->eof, attach_feed, a));
    if (buf_len(&a->held) == 0)
        ws_pause(a->ws, false);
}

static void type_bytes(struct attach *a, struct str bytes)
{
    size_t taken = 0;

    if (a->eof)
        return;
    if (buf_len(&a->held) == 0)
        taken = exec_stdin(a->x, bytes, false, attach_feed, a);
    if (taken == bytes.n)
        return;
    buf_add_str(&a->held, str_skip(bytes, taken));
    ws_pause(a->ws, true);
}

static void type_eof(struct attach *a)
{
    if (a->eof)
        return;
    a->eof = true;
    if (buf_len(&a->held) == 0)
        (void)exec_stdin(a->x, STR(""), true, NULL, NULL);
}

static void action_done(void *arg, struct exec *x, const struct err *e)
{
    (void)arg, (void)x, (void)e; /* the command may just have ended: its exit is reported */
}

static int message_resize(struct attach *a, const json_t *m, struct err *e)
{
    json_int_t rows = json_integer_value(json_object_get(m, "rows"));
    json_int_t cols = json_integer_value(json_object_get(m, "cols"));

    if (rows < 1 || rows > UINT16_MAX || cols < 1 || cols > UINT16_MAX)
        return err_set(e, ERR_INVALID, 0, "'rows' and 'cols' must be numbers from 1 to 65535");
    exec_resize(a->x, (int)rows, (int)cols, action_done, NULL);
    return 0;
}

static int message_signal(struct attach *a, const json_t *m, struct err *e)
{
    const json_t *v = json_object_get(m, "signal");
    int sig;

    if (!json_is_string(v))
        return err_set(e, ERR_INVALID, 0, "'signal' must be a signal's name");
    if (signal_parse(str_make(json_string_value(v), json_string_length(v)), &sig, e) < 0)
        return -1;
    exec_signal(a->x, sig, action_done, NULL);
    return 0;
}

static int message_eof(struct attach *a, const json_t *m, struct err *e)
{
    (void)m, (void)e;
    type_eof(a);
    return 0;
}

static int need_control(const struct attach *a, struct err *e)
{
    if (a->seat.role == CONSOLE_CONTROLLER)
        return request_authorise(a->r, PERM_SANDBOX_WRITE, e);
    err_set(e, ERR_FORBIDDEN, 0, "an observer cannot type, resize or signal");
    return err_hint(e, "attach with role=controller");
}

static int on_control(struct attach *a, struct str text, struct err *e)
{
    static const struct {
        const char *type;
        int (*run)(struct attach *a, const json_t *m, struct err *e);
    } kinds[] = {{"eof", message_eof}, {"resize", message_resize}, {"signal", message_signal}};
    AUTO(json_decref) json_t *m = NULL;
    const char *type;

    if (json_read(text, &m, e) < 0)
        return err_wrap(e, "a text message");
    type = json_string_value(json_object_get(m, "type"));
    if (type && strcmp(type, "detach") == 0) {
        ws_close(a->ws, WS_NORMAL, "detached");
        return 0;
    }
    for (size_t i = 0; type && i < ARRAY_LEN(kinds); i++)
        if (strcmp(type, kinds[i].type) == 0)
            return need_control(a, e) < 0 ? -1 : kinds[i].run(a, m, e);
    err_set(e, ERR_INVALID, 0, "a text message has no type that is known here");
    return err_hint(e, "it knows: eof, resize, signal, detach");
}

static int on_input(struct attach *a, struct str data, struct err *e)
{
    struct exec_info i;

    if (data.n == 0 || data.p[0] != 0)
        return err_set(e, ERR_INVALID, 0, "a binary message must begin with the byte 0: input");
    if (need_control(a, e) < 0)
        return -1;
    exec_info(a->x, &i);
    if (!i.takes_input && !a->eof && i.ended_ms == 0)
        return err_set(e, ERR_CONFLICT, 0, "command '%s' has no open standard input", i.id);
    type_bytes(a, str_skip(data, 1));
    return 0;
}

/* A bad message gets an error reply and changes nothing: the terminal stays open. */
static void on_message(struct ws *w, enum ws_kind kind, struct str data)
{
    struct attach *a = ws_arg(w);
    struct err e = {0};

    if (!a->x || a->exit_sent)
        return;
    if ((kind == WS_TEXT ? on_control(a, data, &e) : on_input(a, data, &e)) < 0)
        send_error(a, &e);
}

/* --- the socket --- */

static void on_drained(struct ws *w)
{
    struct attach *a = ws_arg(w);

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

static void on_demoted(struct console_seat *s)
{
    struct attach *a = CONTAINER_OF(s, struct attach, seat);

    drop_input(a);
    if (!a->ws)
        return;
    ws_pause(a->ws, false);
    send_role(a);
}

/* Attached: begins to read from these offsets. */
static void begin(struct attach *a, int64_t out_offset, int64_t err_offset)
{
    static const struct exec_reader_ops reads = {
        .bytes = on_bytes, .gap = on_gap, .end = on_read_end};
    struct exec_info i;

    exec_info(a->x, &i);
    if (out_offset < 0)
        out_offset = i.out_end;
    if (err_offset < 0)
        err_offset = i.err_end;
    send_exec(a, "started");
    send_role(a);
    a->wait = exec_wait(a->x, on_ended, a);
    a->reader = exec_read(a->x, EXEC_BOTH, out_offset, err_offset, true, &reads, a);
}

static const struct ws_ops attach_ops = {
    .message = on_message, .drained = on_drained, .closed = on_closed};

static struct attach *attach_new(struct request *r)
{
    struct attach *a = xzalloc(sizeof *a);

    a->r = r;
    a->api = r->api;
    a->seat.demoted = on_demoted;
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
    if (console_sit(r->api->consoles, i.id, wanted_role(r, in->role), in->take, &a->seat, &e) < 0) {
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
        fail(a, &e);
    else
        begin(a, 0, 0);
}

static void run_failed(void *arg, const struct err *e)
{
    fail(arg, e);
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
            err_set(&e, ERR_CONFLICT, 0, "the command does not run yet: wait for 'started'");
            send_error(a, &e);
            return;
        }
        on_message(w, kind, data);
        return;
    }
    a->run_asked = true;
    if (kind != WS_TEXT)
        err_set(&e, ERR_INVALID, 0, "the first message must be the JSON text of a run");
    if (e.code != ERR_NONE || run_begin(a, data, &e) < 0)
        fail(a, &e);
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
