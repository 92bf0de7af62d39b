/* session: an attached command: connection, output, reconnects, exit. */
#include "cli/session.h"

#include "base/clock.h"
#include "base/mem.h"
#include "cli/notes.h"
#include "cli/request.h"
#include "cli/session_in.h"
#include "cli/term.h"
#include "net/ws_client.h"
#include "proto/json.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#define PROTOCOL "holt.attach.v1"
#define MESSAGE_MAX (4 * 1024 * 1024)
#define OUTPUT_HEAD 9 /* stream, offset */
#define PING_MS 15000
#define GOODBYE_MS 10000 /* from the exit to the server's close */
#define KILL_MS 1000     /* from a signal to SIGKILL, and from there to leaving */
#define RESET_MS 200
#define RETRY_MS 250
#define RETRY_LIMIT_MS 30000

/* --- the end --- */

static void finish(struct session *s)
{
    if (s->over)
        return;
    s->over = true;
    term_restore();
    session_in_close(s);
    sink_close(&s->out[0]);
    sink_close(&s->out[1]);
    uv_close((uv_handle_t *)&s->timer, NULL);
}

static void finish_when_done(struct session *s)
{
    if (!s->ws && !s->retrying && !sink_is_full(&s->out[0]) && !sink_is_full(&s->out[1]))
        finish(s);
}

void session_leave(struct session *s, enum session_how how, int status)
{
    if (s->left)
        return;
    s->left = true;
    s->retrying = false;
    s->end->how = how;
    s->end->status = status;
    term_restore();
    source_read(&s->in, false);
    for (int i = 0; i < 2; i++)
        sink_drop(&s->out[i]);
    (void)uv_timer_stop(&s->timer);
    if (s->ws)
        ws_client_close(s->ws, WS_NORMAL, "");
    finish_when_done(s);
}

static void fail(struct session *s)
{
    if (s->ws)
        ws_client_close(s->ws, WS_NORMAL, "");
}

void session_send(struct session *s, const char *json)
{
    if (s->ws && s->open)
        (void)!ws_client_send(s->ws, WS_OP_TEXT, str_of(json));
}

/* The reader of our output has gone: the command ends as if by SIGPIPE. */
static void on_kill_time(uv_timer_t *t)
{
    struct session *s = t->data;

    if (s->killed) {
        session_leave(s, SESSION_PIPE, 128 + SIGPIPE);
        return;
    }
    s->killed = true;
    session_signal(s, "KILL");
    (void)uv_timer_start(t, on_kill_time, KILL_MS, 0);
}

static void on_sink_turn(struct sink *k)
{
    struct session *s = k->arg;

    if (k == &s->out[0] && k->error && !s->no_reader && !s->left) {
        s->no_reader = true;
        if (s->spec->kills && !s->exited) {
            session_signal(s, "PIPE");
            (void)uv_timer_start(&s->timer, on_kill_time, KILL_MS, 0);
        } else {
            session_leave(s, SESSION_PIPE, 128 + SIGPIPE);
        }
    }
    if (s->ws && !sink_is_full(&s->out[0]) && !sink_is_full(&s->out[1]))
        ws_client_pause(s->ws, false);
    finish_when_done(s);
}

/* --- messages from the server --- */

static void take_output(struct session *s, struct str data)
{
    unsigned stream = data.n >= OUTPUT_HEAD ? (unsigned char)data.p[0] : 0;
    int64_t *seen = &s->seen[stream == 2];
    uint64_t offset = 0;
    struct str bytes;

    if (stream != 1 && stream != 2) {
        (void)err_set(&s->e, ERR_UNAVAILABLE, 0, "the server sent output of an unknown stream");
        fail(s);
        return;
    }
    for (int i = 1; i < OUTPUT_HEAD; i++)
        offset = offset << 8 | (unsigned char)data.p[i];
    bytes = str_skip(data, OUTPUT_HEAD);
    if ((int64_t)offset < *seen) /* repeated after a reconnect */
        bytes = str_skip(bytes, size_min(bytes.n, (size_t)(*seen - (int64_t)offset)));
    *seen = i64_max(*seen, (int64_t)(offset + data.n - OUTPUT_HEAD));
    if (s->shows_terminal)
        modes_feed(&s->modes, bytes);
    sink_write(&s->out[stream == 2], bytes);
    if (s->ws && (sink_is_full(&s->out[0]) || sink_is_full(&s->out[1])))
        ws_client_pause(s->ws, true);
}

static void take_gap(struct session *s, const json_t *m)
{
    const char *stream = json_string_value(json_object_get(m, "stream"));
    int64_t from = json_integer_value(json_object_get(m, "from"));
    int64_t to = json_integer_value(json_object_get(m, "to"));
    AUTO(buf_done) struct buf line = {0};

    buf_printf(&line, "\rholt: %" PRId64 " bytes of %s are no longer kept\r\n", to - from,
               stream && strcmp(stream, "stderr") == 0 ? "stderr" : "stdout");
    sink_write(&s->out[1], buf_str(&line));
    s->seen[stream && strcmp(stream, "stderr") == 0] = to;
}

/* Output goes on after what this draws. */
static void take_repaint(struct session *s, const json_t *m)
{
    const json_t *data = json_object_get(m, "data");
    struct str bytes = str_make(json_string_value(data), json_string_length(data));

    s->seen[0] = json_integer_value(json_object_get(m, "offset"));
    if (s->shows_terminal)
        modes_feed(&s->modes, bytes);
    sink_write(&s->out[0], bytes);
}

static void on_goodbye_late(uv_timer_t *t)
{
    struct session *s = t->data;

    if (s->ws)
        ws_client_close(s->ws, WS_NORMAL, "");
}

static void take_exit(struct session *s, json_t *m)
{
    json_t *exec = json_object_get(m, "exec");

    s->exited = true;
    json_decref(s->end->exec);
    s->end->exec = json_incref(exec);
    if (s->no_reader)
        session_leave(s, SESSION_PIPE, 128 + SIGPIPE);
    source_read(&s->in, false);
    term_restore();
    (void)uv_timer_start(&s->timer, on_goodbye_late, GOODBYE_MS, 0);
}

static void take_role(struct session *s, const char *role)
{
    bool observer = role && strcmp(role, "observer") == 0;

    if (observer && !s->observer)
        sink_write(&s->out[1], STR("\rholt: somebody else controls this command: you only watch "
                                   "(--take takes over)\r\n"));
    s->observer = observer;
}

static void take_text(struct session *s, struct str data)
{
    AUTO(json_decref) json_t *m = NULL;
    const char *type;

    if (json_read(data, &m, &s->e) < 0) {
        s->e.code = ERR_UNAVAILABLE;
        (void)err_wrap(&s->e, "a message of the server is not JSON");
        fail(s);
        return;
    }
    type = json_string_value(json_object_get(m, "type"));
    if (!type)
        type = "";
    if (strcmp(type, "started") == 0) {
        if (s->spec->made_by && !s->started)
            notes_sandbox(json_object_get(m, "sandbox"), s->spec->made_by);
        session_name(s, json_object_get(m, "exec"));
        session_in_start(s);
    } else if (strcmp(type, "repaint") == 0) {
        take_repaint(s, m);
    } else if (strcmp(type, "gap") == 0) {
        take_gap(s, m);
    } else if (strcmp(type, "exit") == 0) {
        take_exit(s, m);
    } else if (strcmp(type, "error") == 0) {
        (void)request_error(json_object_get(m, "error"), &s->said);
    } else if (strcmp(type, "role") == 0) {
        take_role(s, json_string_value(json_object_get(m, "role")));
    }
}

static void on_message(struct ws_client *w, enum ws_op kind, struct str data)
{
    struct session *s = ws_client_arg(w);

    if (s->left)
        return;
    if (kind == WS_OP_BINARY)
        take_output(s, data);
    else
        take_text(s, data);
}

/* --- the connection --- */

static void on_opened(struct ws_client *w)
{
    struct session *s = ws_client_arg(w);

    s->open = true;
    s->ever_open = true;
    if (s->spec->first.n > 0)
        (void)!ws_client_send(w, WS_OP_TEXT, s->spec->first);
    else
        session_in_start(s);
}

static void on_drained(struct ws_client *w)
{
    session_in_room(ws_client_arg(w));
}

static int connect_now(struct session *s);

static void on_retry(uv_timer_t *t)
{
    struct session *s = t->data;

    if (connect_now(s) < 0) {
        s->retrying = false;
        finish_when_done(s);
    }
}

/* A restarted daemon finds its commands again.  Input in transit may be lost, so only a person who
 * is typing is reconnected. */
static bool may_retry(const struct session *s, const struct ws_client_end *end)
{
    if (s->spec->owns && !s->spec->kills)
        return false;
    if (s->left || s->exited || s->no_reader || end->status || s->e.code != ERR_NONE ||
        s->said.code != ERR_NONE)
        return false;
    if (!s->ever_open || (s->sent > 0 && !s->spec->tty))
        return false;
    if (end->e.code == ERR_NONE && end->code != WS_GOING_AWAY && end->code != WS_VANISHED)
        return false;
    return !s->lost_ms || clock_mono_ms() - s->lost_ms < RETRY_LIMIT_MS;
}

static void end_without_exit(struct session *s, const struct ws_client_end *end)
{
    if (s->said.code != ERR_NONE) {
        s->e = s->said;
        return;
    }
    if (end->status) {
        (void)request_refused(s->t, end->status, end->body, &s->e);
        return;
    }
    if (end->e.code != ERR_NONE) {
        s->e = end->e;
        (void)request_failed(s->t, "GET", s->spec->target, &s->e);
        return;
    }
    (void)err_set(&s->e, ERR_UNAVAILABLE, 0, "the server ended the session (%d%s%.*s)", end->code,
                  end->reason.n ? ": " : "", (int)size_min(end->reason.n, 100), end->reason.p);
}

static void on_closed(struct ws_client *w, const struct ws_client_end *end)
{
    struct session *s = ws_client_arg(w);

    s->ws = NULL;
    s->open = false;
    if (may_retry(s, end)) {
        if (!s->lost_ms) {
            s->lost_ms = clock_mono_ms();
            sink_write(&s->out[1], STR("\rholt: the connection is lost; trying again\r\n"));
        }
        s->retrying = true;
        source_read(&s->in, false);
        (void)uv_timer_start(&s->timer, on_retry, RETRY_MS, 0);
        return;
    }
    s->retrying = false;
    if (!s->exited && !s->left && s->e.code == ERR_NONE)
        end_without_exit(s, end);
    source_read(&s->in, false);
    finish_when_done(s);
}

static int connect_now(struct session *s)
{
    static const struct ws_client_ops ops = {
        .opened = on_opened, .message = on_message, .drained = on_drained, .closed = on_closed};
    AUTO(buf_done) struct buf target = {0};

    buf_add_c(&target, s->spec->target);
    if (s->ever_open)
        buf_printf(&target, "%cstdout_offset=%" PRId64 "&stderr_offset=%" PRId64,
                   strchr(s->spec->target, '?') ? '&' : '?', s->seen[0], s->seen[1]);
    return ws_client_start(&(struct ws_client_request){.loop = s->loop,
                                                       .url = &s->url,
                                                       .tls = s->tls,
                                                       .target = buf_cstr(&target),
                                                       .protocol = PROTOCOL,
                                                       .headers = s->headers.v,
                                                       .header_count = s->headers.n,
                                                       .message_max = MESSAGE_MAX,
                                                       .connect_ms = REQUEST_CONNECT_MS,
                                                       .head_ms = 0,
                                                       .ping_ms = PING_MS,
                                                       .ops = &ops,
                                                       .arg = s},
                           &s->ws, &s->e);
}

static void run_loop(struct session *s)
{
    static const int fds[] = {STDOUT_FILENO, STDERR_FILENO};

    if (uv_timer_init(s->loop, &s->timer) < 0)
        abort(); /* it only fills the struct */
    s->timer.data = s;
    for (int i = 0; i < 2; i++) {
        sink_init(&s->out[i], s->loop, fds[i]);
        s->out[i].turn = on_sink_turn;
        s->out[i].arg = s;
    }
    session_in_init(s);
    if (connect_now(s) < 0)
        finish(s);
    while (!s->over || s->asides > 0)
        (void)uv_run(s->loop, UV_RUN_ONCE);
    (void)uv_run(s->loop, UV_RUN_NOWAIT);
    request_loop_end(s->loop);
}

/* A broken pipe is reported by the status alone, as a shell does; a full disk gets a message. */
static int take_leave(const struct session *s, struct err *e)
{
    int broken = s->end->how == SESSION_PIPE ? s->out[0].error : EPIPE;

    if (broken == EPIPE)
        return 0;
    return err_set(e, err_code_from_errno(broken), broken, "write standard output");
}

/* Resets the terminal after a full-screen program that keeps running or was killed.  A stopped
 * terminal (Ctrl-S) is left alone. */
static void reset_terminal(const struct session *s)
{
    AUTO(buf_done) struct buf undo = {0};
    struct pollfd p = {.fd = STDOUT_FILENO, .events = POLLOUT};

    modes_undo(&s->modes, &undo);
    if (buf_len(&undo) > 0 && poll(&p, 1, RESET_MS) > 0)
        (void)!write(STDOUT_FILENO, buf_data(&undo), buf_len(&undo));
}

int session_run(const struct target *t, const struct session_spec *spec, struct session_end *ret,
                struct err *e)
{
    AUTO(mem_free) struct session *s = xzalloc(sizeof *s);
    AUTO(client_url_done) struct client_url url = {0};
    AUTO(dial_tls_free) struct dial_tls *tls = NULL;
    AUTO(request_headers_done) struct request_headers headers = {0};

    *ret = (struct session_end){0};
    if (client_url_parse(t->server, &url, e) < 0)
        return -1;
    if (url.tls && dial_tls_new(t->cacert, &tls, e) < 0)
        return -1;
    request_headers_make(t, &headers);
    *s = (struct session){.t = t, .spec = spec, .url = url, .tls = tls, .end = ret};
    s->headers = headers;
    s->detach = spec->detach;
    s->loop = request_loop(e);
    if (!s->loop)
        return -1;
    run_loop(s);
    reset_terminal(s);
    buf_done(&s->typed);
    mem_free(s->signal_target);
    if (s->left)
        return take_leave(s, e);
    if (s->e.code != ERR_NONE) {
        *e = s->e;
        return -1;
    }
    ret->how = SESSION_EXITED;
    ret->status = session_status(ret->exec);
    return 0;
}
