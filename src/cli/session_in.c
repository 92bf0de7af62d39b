/* session_in: input, signals and terminal size of an attached command. */
#include "cli/session_in.h"

#include "base/clock.h"
#include "cli/term.h"
#include "net/ws_client.h"

#include <signal.h>
#include <unistd.h>

#define TWICE_MS 1000
#define CTRL_C 3

/* clang-format off */
static const struct {
    int number;
    const char *name;
    bool tty; /* caught only if we use the terminal */
} signal_table[SESSION_SIGNALS] = {
    {SIGINT, "INT", false}, {SIGTERM, "TERM", false}, {SIGHUP, "HUP", false}, {SIGQUIT, "QUIT", false},
    {SIGUSR1, "USR1", false}, {SIGUSR2, "USR2", false}, {SIGWINCH, "WINCH", true}, {SIGTSTP, "TSTP", true},
};
/* clang-format on */

/* --- signals --- */

static void send_size(struct session *s)
{
    char text[80];
    int rows, cols;

    if (s->observer)
        return;
    term_size(&rows, &cols);
    (void)snprintf(text, sizeof text, "{\"type\":\"resize\",\"rows\":%d,\"cols\":%d}", rows, cols);
    session_send(s, text);
}

static void be_raw(struct session *s)
{
    struct err ignored;

    if (s->raw && s->started && term_raw(&ignored) < 0)
        s->raw = false; /* the terminal is gone; its end of input reports that too */
}

static void stop_here(struct session *s)
{
    term_restore();
    (void)raise(SIGSTOP);
    be_raw(s);
    send_size(s);
}

static void cut(struct session *s, int number)
{
    if (s->started && (s->spec->kills || (s->spec->owns && s->sent > 0)))
        session_signal(s, "KILL"); /* the server would not notice our end behind unread input */
    session_leave(s, s->observer ? SESSION_DETACHED : SESSION_CUT, s->observer ? 0 : 128 + number);
}

static void pass_on(struct session *s, int number, const char *name)
{
    int64_t now = clock_mono_ms();
    bool twice = number == SIGINT && s->last_int_ms && now - s->last_int_ms < TWICE_MS;

    if (number == SIGINT)
        s->last_int_ms = now;
    if (twice || s->exited || s->no_reader || s->observer || !s->open)
        cut(s, number);
    else if (!s->started)
        s->held_signal = name;
    else
        session_signal(s, name);
}

static void on_signal(uv_signal_t *h, int number)
{
    struct session *s = h->data;

    if (number == SIGWINCH) {
        send_size(s);
        return;
    }
    if (number == SIGTSTP) {
        stop_here(s);
        return;
    }
    for (size_t i = 0; i < SESSION_SIGNALS; i++)
        if (signal_table[i].number == number)
            pass_on(s, number, signal_table[i].name);
}

/* A signal that our parent chose to ignore (nohup, a background job) stays ignored. */
static bool is_ignored(int number)
{
    struct sigaction a;

    return sigaction(number, NULL, &a) == 0 && a.sa_handler == SIG_IGN;
}

static void catch_signals(struct session *s)
{
    for (size_t i = 0; i < SESSION_SIGNALS; i++) {
        uv_signal_t *h = &s->signals[s->signal_count];

        if ((signal_table[i].tty && !s->raw) || is_ignored(signal_table[i].number))
            continue;
        if (uv_signal_init(s->loop, h) < 0)
            return;
        h->data = s;
        s->signal_count++;
        (void)uv_signal_start(h, on_signal, signal_table[i].number);
    }
}

/* --- input --- */

static void send_input(struct session *s, struct str frame)
{
    s->sent += (int64_t)frame.n - 1;
    if (ws_client_send(s->ws, WS_OP_BINARY, frame) > 0)
        source_read(&s->in, false);
}

/* Byte 0 of a frame is its kind: input. */
static void send_typed(struct session *s, struct str bytes)
{
    bool leaves;

    buf_clear(&s->typed);
    buf_add_char(&s->typed, 0);
    leaves = detach_filter(&s->detach, bytes, &s->typed);
    if (buf_len(&s->typed) > 1)
        send_input(s, buf_str(&s->typed));
    if (!leaves)
        return;
    session_send(s, "{\"type\":\"detach\"}");
    session_leave(s, SESSION_DETACHED, 0);
}

/* An observer's keys: only those that leave mean something. */
static void watch_keys(struct session *s, struct str bytes)
{
    if (!s->raw || bytes.n == 0)
        return;
    buf_clear(&s->typed);
    if (detach_filter(&s->detach, bytes, &s->typed) || memchr(bytes.p, CTRL_C, bytes.n))
        session_leave(s, SESSION_DETACHED, 0);
}

static void on_part(struct source *in, struct str bytes)
{
    struct session *s = in->arg;

    if (!s->open || s->left)
        return;
    if (s->observer) {
        watch_keys(s, bytes);
        return;
    }
    if (bytes.n == 0) {
        s->eof = true;
        session_send(s, "{\"type\":\"eof\"}");
    } else if (s->raw && s->detach.count > 0) {
        send_typed(s, bytes);
    } else {
        in->room[0] = 0;
        send_input(s, str_make(in->room, 1 + bytes.n));
    }
}

void session_in_room(struct session *s)
{
    if (s->started && !s->left && !s->exited)
        source_read(&s->in, true);
}

void session_in_start(struct session *s)
{
    bool again = s->lost_ms != 0;

    if (s->started && !again)
        return;
    s->started = true;
    s->lost_ms = 0;
    s->retrying = false;
    be_raw(s);
    if (s->raw)
        send_size(s);
    if (s->held_signal)
        session_signal(s, s->held_signal);
    s->held_signal = NULL;
    if (s->eof && !s->observer)
        session_send(s, "{\"type\":\"eof\"}");
    session_in_room(s);
}

void session_in_init(struct session *s)
{
    s->raw = s->spec->tty && s->spec->input && term_is_on(STDIN_FILENO);
    s->observer = s->spec->observes;
    s->shows_terminal = s->spec->tty && term_is_on(STDOUT_FILENO);
    s->in.part = on_part;
    s->in.arg = s;
    if (s->spec->input && (!s->spec->observes || s->raw) &&
        source_init(&s->in, s->loop, STDIN_FILENO) < 0)
        s->eof = true;
    catch_signals(s);
}

void session_in_close(struct session *s)
{
    source_close(&s->in);
    for (size_t i = 0; i < s->signal_count; i++)
        uv_close((uv_handle_t *)&s->signals[i], NULL);
    s->signal_count = 0;
}
