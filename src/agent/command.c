/* command: starts, feeds and reaps the agent's commands. */
#include "agent/command.h"

#include "agent/launch.h"
#include "agent/link.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/mem.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define ID_MAX 63
#define LINE_MAX_BYTES 256
#define KEEP_MAX (1 << 20) /* of one stream: then the command waits */
#define INPUT_MAX (1 << 20)
#define PIECE (16 * 1024)
#define READS_PER_TURN 8

struct ring { /* stdout or stderr: [from, end) is kept */
    struct command *c;
    struct watch w;
    struct buf kept;
    uint64_t from, sent, end;
    bool closed;
};

struct command {
    struct list node;
    char id[ID_MAX + 1];
    char line[LINE_MAX_BYTES];
    pid_t pid; /* of its session too */
    bool pty;
    struct ring out[2];
    struct watch in; /* of the pipe; a terminal's is out[0].w */
    int failure_fd;  /* the errno of an execve that failed */
    struct buf input;
    bool input_eof;
    bool goes; /* the server has said where it stands, or does not count */
    bool exited, told;
    bool unwanted; /* the server does not know it */
    int code;
    char failure[128];
    int64_t started_ms, ended_ms;
};

static struct list all = {&all, &all};
static size_t count;
static bool counts; /* the server sends OutputStored */
static struct watch children = {.fd = -1};

static void command_pump(struct command *c);

static struct command *find(struct str id)
{
    LIST_EACH (&all, node) {
        struct command *c = LIST_ENTRY(node, struct command, node);

        if (str_eq_c(id, c->id))
            return c;
    }
    return NULL;
}

static void command_free(struct command *c)
{
    list_unlink(&c->node);
    count--;
    for (int i = 0; i < 2; i++) {
        loop_remove(&c->out[i].w);
        buf_done(&c->out[i].kept);
    }
    loop_remove(&c->in);
    fd_close(c->failure_fd);
    buf_done(&c->input);
    mem_free(c);
}

/* --- output --- */

static size_t kept_unread(const struct ring *r)
{
    return buf_len(&r->kept);
}

static void ring_want(struct ring *r)
{
    /* a pipe that is hung up would be reported without pause: at its edge, once */
    uint32_t events = kept_unread(r) < KEEP_MAX ? (uint32_t)EPOLLIN : (uint32_t)EPOLLET;

    if (r->closed)
        return;
    if (r->c->pty && buf_len(&r->c->input) > 0)
        events |= EPOLLOUT;
    loop_want(&r->w, events);
}

static void ring_close(struct ring *r)
{
    r->closed = true;
    loop_remove(&r->w);
}

/* What a command leaves in its pipe is read; then it is closed, whoever else has it. */
static void ring_read(struct ring *r)
{
    char bytes[PIECE];

    for (int i = 0; (i < READS_PER_TURN || r->c->exited) && !r->closed; i++) {
        size_t room = KEEP_MAX - size_min(kept_unread(r), KEEP_MAX);
        ssize_t n = room > 0 ? read(r->w.fd, bytes, size_min(room, sizeof bytes)) : -1;

        if (room == 0)
            break;
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
            if (errno == EAGAIN && r->c->exited)
                ring_close(r);
            break;
        }
        if (n <= 0) { /* EIO: nobody has the terminal any more */
            ring_close(r);
            break;
        }
        buf_add(&r->kept, bytes, (size_t)n);
        r->end += (size_t)n;
    }
    ring_want(r);
}

static void ring_drop(struct ring *r, uint64_t upto)
{
    if (upto <= r->from || upto > r->end)
        return;
    buf_take(&r->kept, (size_t)(upto - r->from));
    buf_shrink(&r->kept, 4096);
    r->from = upto;
    r->sent = r->sent < upto ? upto : r->sent;
    ring_want(r);
}

static void ring_send(struct ring *r)
{
    while (r->sent < r->end && link_takes()) {
        struct str rest = str_skip(buf_str(&r->kept), (size_t)(r->sent - r->from));

        rest.n = size_min(rest.n, PIECE);
        link_output(str_of(r->c->id), r == &r->c->out[1], counts ? (int64_t)r->sent : -1, rest);
        r->sent += rest.n;
    }
    if (!counts)
        ring_drop(r, r->sent);
}

static bool is_whole(const struct command *c)
{
    return c->exited && c->out[0].closed && c->out[1].closed && c->out[0].sent == c->out[0].end &&
           c->out[1].sent == c->out[1].end;
}

static void command_pump(struct command *c)
{
    for (int i = 0; i < 2 && c->exited; i++)
        if (!c->out[i].closed)
            ring_read(&c->out[i]);
    if (!c->goes || c->told)
        return;
    ring_send(&c->out[0]);
    ring_send(&c->out[1]);
    if (!is_whole(c) || !link_takes())
        return;
    link_result(str_of(c->id), c->code, c->failure, c->ended_ms - c->started_ms);
    c->told = true;
    if (!counts)
        command_free(c);
}

static void input_write(struct command *c);

static void on_output(struct watch *w, uint32_t events)
{
    struct ring *r = CONTAINER_OF(w, struct ring, w);
    struct command *c = r->c;

    if (c->pty && (events & EPOLLOUT))
        input_write(c);
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        ring_read(r);
    command_pump(c);
}

/* --- input --- */

static int input_fd(const struct command *c)
{
    return c->pty ? c->out[0].w.fd : c->in.fd;
}

static void input_close(struct command *c)
{
    buf_done(&c->input);
    if (!c->pty)
        loop_remove(&c->in);
}

static void input_write(struct command *c)
{
    while (buf_len(&c->input) > 0 && input_fd(c) >= 0) {
        ssize_t n = write(input_fd(c), buf_data(&c->input), buf_len(&c->input));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0) { /* it has closed it: dropped, as with any pipe */
            input_close(c);
            return;
        }
        buf_take(&c->input, (size_t)n);
    }
    if (buf_len(&c->input) == 0 && c->input_eof) {
        input_close(c);
        return;
    }
    if (c->pty)
        ring_want(&c->out[0]);
    else if (c->in.fd >= 0)
        loop_want(&c->in, buf_len(&c->input) > 0 ? (uint32_t)EPOLLOUT : 0);
}

static void on_input(struct watch *w, uint32_t events)
{
    struct command *c = CONTAINER_OF(w, struct command, in);

    if (events & (EPOLLERR | EPOLLHUP) && !(events & EPOLLOUT))
        input_close(c);
    else
        input_write(c);
}

void commands_input(struct str id, struct str data, bool eof)
{
    struct command *c = find(id);

    if (!c || c->exited || c->input_eof || input_fd(c) < 0)
        return;
    if (buf_len(&c->input) + data.n > INPUT_MAX) {
        log_warn("a command does not read its input: some is dropped", LOG_C("command", c->id));
        data.n = 0;
    }
    buf_add_str(&c->input, data);
    if (eof && c->pty)
        buf_add_char(&c->input, '\004'); /* as typed: the terminal's end of file */
    c->input_eof = eof && !c->pty;
    input_write(c);
}

/* --- start --- */

static void watch_ring(struct command *c, int i, int fd)
{
    struct ring *r = &c->out[i];

    r->c = c;
    r->w.fd = -1;
    r->closed = fd < 0;
    if (fd < 0)
        return;
    loop_add(&r->w, fd, on_output);
    ring_want(r);
}

static void keep_line(struct command *c, const struct agentic_command_request *q)
{
    size_t n = 0;

    n += (size_t)snprintf(c->line, sizeof c->line, "%.*s", (int)size_min(q->command.n, 200),
                          q->command.p ? q->command.p : "");
    for (size_t i = 0; i < q->args_count && n < sizeof c->line - 1; i++)
        n += (size_t)snprintf(c->line + n, sizeof c->line - n, " %.*s",
                              (int)size_min(q->args[i].n, 200), q->args[i].p ? q->args[i].p : "");
}

void commands_start(const struct agentic_command_request *q)
{
    struct launched l = {.in = -1, .out = -1, .err = -1, .failure = -1};
    struct command *c;
    struct err e = {0};

    if (q->command_id.n == 0 || q->command_id.n > ID_MAX || find(q->command_id))
        return;
    if (count >= COMMANDS_MAX) {
        link_result(q->command_id, 125, "this agent runs too many commands", 0);
        return;
    }
    if (launch(q, &l, &e) < 0) {
        link_result(q->command_id, 125, e.msg, 0);
        return;
    }
    c = xzalloc(sizeof *c);
    memcpy(c->id, q->command_id.p, q->command_id.n);
    keep_line(c, q);
    list_push(&all, &c->node);
    count++;
    c->pid = l.pid;
    c->pty = q->allocate_pty;
    c->failure_fd = l.failure;
    c->goes = true;
    c->started_ms = clock_wall_ms();
    c->in.fd = -1;
    watch_ring(c, 0, l.out);
    watch_ring(c, 1, l.err);
    if (l.in >= 0)
        loop_add(&c->in, l.in, on_input);
}

/* --- the end --- */

static void read_failure(struct command *c)
{
    int sys = 0;

    if (read(c->failure_fd, &sys, sizeof sys) != (ssize_t)sizeof sys || sys == 0)
        return;
    c->code = sys == ENOENT || sys == ENOTDIR ? 127 : sys == EACCES || sys == ENOEXEC ? 126 : 125;
    errno = sys;
    (void)snprintf(c->failure, sizeof c->failure, "%m");
}

static void command_exited(struct command *c, int status)
{
    c->exited = true;
    c->ended_ms = clock_wall_ms();
    c->code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    read_failure(c);
    input_close(c);
    if (c->unwanted)
        command_free(c);
    else
        command_pump(c);
}

static void on_children(struct watch *w, uint32_t events)
{
    struct signalfd_siginfo s[16];
    int status;
    pid_t pid;

    (void)events;
    (void)!read(w->fd, s, sizeof s);
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        LIST_EACH (&all, node) {
            struct command *c = LIST_ENTRY(node, struct command, node);

            if (c->pid == pid && !c->exited) {
                command_exited(c, status);
                break;
            }
        }
}

void commands_init(void)
{
    sigset_t mask;

    (void)sigemptyset(&mask);
    (void)sigaddset(&mask, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &mask, NULL);
    loop_add(&children, signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK), on_children);
    loop_want(&children, EPOLLIN);
}

/* --- signals --- */

/* A shell gives each job a group of its own: a kill reaches the whole session. */
static void command_signal(struct command *c, int signal)
{
    pid_t front;

    if (c->exited || signal <= 0 || signal > SIGRTMAX)
        return;
    if (signal == SIGKILL || signal == SIGHUP) {
        launch_signal_session(c->pid, signal);
        return;
    }
    front = c->pty && !c->out[0].closed ? tcgetpgrp(c->out[0].w.fd) : -1;
    (void)kill(front > 0 ? -front : -c->pid, signal);
}

void commands_control(const struct agentic_pty_control *q)
{
    struct command *c = find(q->command_id);
    struct winsize size = {0};

    if (!c)
        return;
    if (q->action_case == 3) {
        command_signal(c, q->signal->signal_number);
        return;
    }
    if (q->action_case != 2 || !c->pty || c->out[0].closed || q->resize->rows > 4096 ||
        q->resize->cols > 4096)
        return;
    size.ws_row = (unsigned short)q->resize->rows;
    size.ws_col = (unsigned short)q->resize->cols;
    (void)ioctl(c->out[0].w.fd, TIOCSWINSZ, &size);
}

void commands_end(const struct str *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct command *c = find(ids[i]);

        if (!c)
            continue;
        command_signal(c, SIGKILL);
        if (c->exited)
            command_free(c);
        else
            c->unwanted = true;
    }
}

void commands_terminate(int signal)
{
    LIST_EACH (&all, node)
        command_signal(LIST_ENTRY(node, struct command, node), signal);
}

/* --- the link --- */

void commands_stored(const struct agentic_output_stored *q)
{
    struct command *c = find(q->command_id);

    if (!c)
        return;
    ring_drop(&c->out[0], q->stdout_offset);
    ring_drop(&c->out[1], q->stderr_offset);
    if (q->ended && c->exited) {
        command_free(c);
        return;
    }
    if (c->goes)
        return;
    c->goes = true;
    c->told = false;
    for (int i = 0; i < 2; i++) { /* what was sent on the last link may be lost */
        uint64_t at = i ? q->stderr_offset : q->stdout_offset;

        c->out[i].sent = at < c->out[i].from  ? c->out[i].from
                         : at > c->out[i].end ? c->out[i].end
                                              : at;
    }
    command_pump(c);
}

void commands_linked(bool server_counts)
{
    counts = server_counts;
    LIST_EACH (&all, node) {
        struct command *c = LIST_ENTRY(node, struct command, node);

        c->goes = !counts;
    }
    commands_pump();
}

void commands_pump(void)
{
    LIST_EACH (&all, node)
        command_pump(LIST_ENTRY(node, struct command, node));
}

size_t commands_live(void)
{
    size_t n = 0;

    LIST_EACH (&all, node)
        n += !LIST_ENTRY(node, struct command, node)->exited;
    return n;
}

size_t commands_report(struct arena *a, struct agentic_active_session **ret)
{
    size_t n = 0;

    *ret = arena_zalloc(a, (count + 1) * sizeof **ret);
    LIST_EACH (&all, node) {
        const struct command *c = LIST_ENTRY(node, struct command, node);

        (*ret)[n++] = (struct agentic_active_session){
            .command_id = str_of(c->id),
            .session_type = c->pty ? AGENTIC_SESSION_TYPE_SESSION_TYPE_INTERACTIVE
                                   : AGENTIC_SESSION_TYPE_SESSION_TYPE_HEADLESS,
            .command = str_of(c->line),
            .started_at_ms = c->started_ms,
            .pid = c->pid,
            .is_pty = c->pty,
        };
    }
    return n;
}
