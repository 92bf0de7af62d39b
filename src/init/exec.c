/* exec: commands: start, input, output, signals, exit. */
#include "init/exec.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/loop.h"
#include "base/mem.h"
#include "init/conn.h"
#include "init/group.h"
#include "init/kin.h"
#include "init/launch.h"
#include "init/order.h"
#include "init/ring.h"
#include "init/term.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define READ_STEP (64 * 1024)  /* what a pipe holds */
#define WIDE_PIPE (256 * 1024) /* that of a command with much output */
#define PAGE 4096
#define QUIET_MS 20       /* idle time before memory is given back (that costs page faults) */
#define TERM_DRAIN_MS 100 /* a terminal delivers its last bytes late (tty flip buffers) */

struct out { /* stdout or stderr */
    struct exec *exec;
    struct watch w;
    struct ring kept; /* [flow.acked, end) */
    struct flow_out flow;
    uint64_t drain;  /* bytes still to read after the command's end */
    uint64_t behind; /* it waits until the other stream was read up to here; 0: it does not */
    bool eof_sent;
    bool wide; /* the pipe was made larger */
    bool more; /* the last read was full: there may be more in the pipe */
};

struct exec {
    struct list node;
    struct channel ch;
    char id[GUEST_EXEC_ID_MAX + 1];
    pid_t pid; /* 0: it never ran */
    uint32_t flags;
    uint32_t group; /* its cgroup, or its mark; 0: none was made */
    uint64_t ooms;  /* OOM kills of this sandbox when it started */
    bool ended;     /* reaped, or it never ran */
    bool exit_sent; /* on this channel */
    int64_t born_ns, ended_ms;
    struct out out[2]; /* streams 1 and 2 */
    struct order order;
    struct watch in;
    struct buf in_pending;
    struct flow_in in_flow;
    bool in_eof;
    struct guest_exec_exit exit;
};

static struct list execs = {&execs, &execs};
static uint32_t exec_n;

static void on_out(struct watch *w, uint32_t events);
static void on_in(struct watch *w, uint32_t events);

static struct exec *find(struct str id)
{
    LIST_EACH (&execs, node) {
        struct exec *x = LIST_ENTRY(node, struct exec, node);

        if (str_eq_c(id, x->id))
            return x;
    }
    return NULL;
}

static void exec_free(struct exec *x)
{
    group_remove(x->group);
    list_unlink(&x->node);
    exec_n--;
    loop_remove(&x->in);
    buf_done(&x->in_pending);
    for (int i = 0; i < 2; i++) {
        loop_remove(&x->out[i].w);
        ring_done(&x->out[i].kept);
    }
    order_done(&x->order);
    mem_free(x);
}

/* ---- output ---- */

static int out_index(const struct out *o)
{
    return (int)(o - o->exec->out);
}

static struct out *out_other(const struct out *o)
{
    return &o->exec->out[1 - out_index(o)];
}

static void out_close(struct out *o)
{
    o->more = false;
    loop_remove(&o->w);
    loop_want(&out_other(o)->w, EPOLLIN); /* it may have waited for this one */
}

static bool out_is_drained(const struct out *o)
{
    bool terminal = o->exec->flags & GUEST_EXEC_PTY;

    if (!o->exec->ended)
        return false;
    return terminal ? clock_mono_ms() - o->exec->ended_ms > TERM_DRAIN_MS : o->drain == 0;
}

/* Most commands print little: allocate a whole step only after a first page of output. */
static ssize_t out_read(struct out *o, size_t room)
{
    char page[PAGE];
    bool first = o->kept.size == 0;
    char *to = page;
    ssize_t n;

    room = first ? size_min(room, sizeof page) : ring_room(&o->kept, room, &to);
    n = read(o->w.fd, to, room);
    o->more = n == (ssize_t)room;
    if (n > 0 && first)
        ring_add(&o->kept, page, (size_t)n);
    else if (n > 0)
        ring_added(&o->kept, (size_t)n);
    if (n > 0)
        order_add(&o->exec->order, out_index(o), o->kept.end);
    return n;
}

/* What may be kept: as much as holtd has granted.  After an attach it may be less than there is. */
static size_t out_room(const struct out *o)
{
    size_t granted = (size_t)(o->flow.limit - o->flow.acked), kept = ring_len(&o->kept);

    granted = size_min(granted, GUEST_WINDOW_WIDE);
    return kept < granted ? granted - kept : 0;
}

/* The command fills its pipe faster than we read: a larger one saves switches between the two.
 * The kernel may refuse it (pipe(7), pipe-user-pages-soft). */
static void widen(struct out *o)
{
    if (!o->wide && !(o->exec->flags & GUEST_EXEC_PTY))
        (void)fcntl(o->w.fd, F_SETPIPE_SZ, WIDE_PIPE);
    o->wide = true;
}

static void out_take(struct out *o)
{
    size_t room = size_min(out_room(o), o->wide ? WIDE_PIPE : READ_STEP);
    bool last = o->exec->ended && !(o->exec->flags & GUEST_EXEC_PTY);
    ssize_t n;

    if (last)
        room = size_min(room, o->drain);
    if (room == 0) {
        loop_want(&o->w, EPOLLET); /* full: the command blocks until holtd acknowledges */
        if (out_is_drained(o))
            out_close(o);
        return;
    }
    n = out_read(o, room);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        if (last || out_is_drained(o))
            out_close(o);
        return;
    }
    if (n <= 0) { /* end of the pipe; EIO: the last process has closed the terminal */
        out_close(o);
        return;
    }
    if (n == READ_STEP)
        widen(o);
    if (last)
        o->drain -= (size_t)n;
    if (out_is_drained(o))
        out_close(o);
}

/* What lies in the other pipe since its last read may be older: that is read first.  True: there
 * is no room for it, and this one waits. */
static bool out_must_wait(struct out *o)
{
    struct out *other = out_other(o);
    int left = 0;

    if (other->more && o->behind == 0 && ioctl(other->w.fd, FIONREAD, &left) == 0)
        o->behind = other->kept.end + (uint64_t)left;
    while (other->more && other->kept.end < o->behind) {
        if (out_room(other) == 0)
            return true;
        out_take(other);
    }
    o->behind = 0;
    return false;
}

static void on_out(struct watch *w, uint32_t events)
{
    struct out *o = CONTAINER_OF(w, struct out, w);

    (void)events;
    if (out_must_wait(o))
        loop_want(w, EPOLLET);
    else if (w->fd >= 0)
        out_take(o);
}

static bool out_fill(struct exec *x, int i, uint64_t upto)
{
    struct out *o = &x->out[i];
    struct str rest = ring_piece(&o->kept, o->flow.sent);
    bool eof;

    rest.n = size_min(size_min(rest.n, (size_t)(upto - o->flow.sent)), flow_room(&o->flow));
    eof = o->w.fd < 0 && o->flow.sent + rest.n == o->kept.end;
    /* An empty end goes in one packet with the exit, which nearly always follows. */
    if (o->eof_sent || (rest.n == 0 && !(eof && x->ended)))
        return false;
    rest.n = conn_data(&x->ch, (enum guest_stream)(GUEST_OUT + i), o->flow.sent, rest, eof);
    flow_sent(&o->flow, rest.n);
    o->eof_sent = eof && o->flow.sent == o->kept.end;
    return true;
}

static bool send_exit(struct exec *x)
{
    struct guest_msg m = {.type = GUEST_EXEC_EXIT, .channel = x->ch.number};

    if (x->exit_sent || !x->ended || !x->out[0].eof_sent || !x->out[1].eof_sent)
        return false;
    x->exit.out_end = x->out[0].kept.end;
    x->exit.err_end = x->out[1].kept.end;
    m.u.exit = x->exit;
    x->exit_sent = true;
    (void)conn_send(&m);
    return true;
}

static bool exec_fill(struct channel *ch)
{
    struct exec *x = CONTAINER_OF(ch, struct exec, ch);
    uint64_t upto[2] = {x->out[0].flow.sent, x->out[1].flow.sent}, end;
    int next = order_next(&x->order, upto[0], upto[1], &end);
    bool out, err;

    if (next >= 0)
        upto[next] = end;
    out = out_fill(x, 0, upto[0]);
    err = out_fill(x, 1, upto[1]);
    return out || err || send_exit(x);
}

static void on_ack(struct exec *x, const struct guest_msg *m)
{
    struct out *o = &x->out[m->stream - GUEST_OUT];
    struct err e;

    if (flow_on_ack(&o->flow, &m->u.ack, &e) < 0) {
        channel_close(&x->ch, &e);
        return;
    }
    ring_drop(&o->kept, o->flow.acked);
    order_drop(&x->order, x->out[0].flow.acked, x->out[1].flow.acked);
    loop_want(&o->w, EPOLLIN);
    loop_want(&out_other(o)->w, EPOLLIN);
}

static bool out_is_big(const struct out *o)
{
    return ring_len(&o->kept) == 0 && o->kept.size > PAGE;
}

/* ---- input ---- */

static void in_progress(struct exec *x)
{
    struct guest_msg m = {.type = GUEST_ACK, .channel = x->ch.number, .stream = GUEST_IN};
    uint64_t upto = x->in_flow.got - buf_len(&x->in_pending);

    /* After an attach, in_at already counts these bytes as received: do not acknowledge them
     * twice. */
    if (upto > x->in_flow.told && x->ch.number != 0 &&
        flow_ack(&x->in_flow, upto, buf_len(&x->in_pending) == 0, &m.u.ack))
        (void)conn_send(&m);
}

static void in_close(struct exec *x)
{
    buf_done(&x->in_pending);
    loop_remove(&x->in);
}

static void in_write(struct exec *x)
{
    ssize_t n = 0;

    if (buf_len(&x->in_pending) > 0)
        n = write(x->in.fd, buf_data(&x->in_pending), buf_len(&x->in_pending));
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        in_close(x);
        in_progress(x);
        return;
    }
    buf_take(&x->in_pending, n > 0 ? (size_t)n : 0);
    in_progress(x);
    if (buf_len(&x->in_pending) > 0) {
        loop_want(&x->in, EPOLLOUT);
        return;
    }
    loop_want(&x->in, 0);
    if (x->in_eof && (x->flags & GUEST_EXEC_PTY)) {
        x->in_eof = false;
        (void)!write(x->in.fd, "\004", 1); /* VEOF, as we configured the terminal */
    } else if (x->in_eof) {
        in_close(x);
    }
}

static void on_in(struct watch *w, uint32_t events)
{
    struct exec *x = CONTAINER_OF(w, struct exec, in);

    if (events & (EPOLLERR | EPOLLHUP)) {
        in_close(x); /* closed by the command; drop further input */
        in_progress(x);
        return;
    }
    in_write(x);
}

static void on_stdin(struct exec *x, const struct guest_msg *m)
{
    struct str fresh;
    struct err e;

    if (flow_on_data(&x->in_flow, &m->u.data, &fresh, &e) < 0) {
        channel_close(&x->ch, &e);
        return;
    }
    if (m->flags & GUEST_EOF)
        x->in_eof = true;
    if (x->in.fd < 0) {
        in_progress(x);
        return;
    }
    buf_add_str(&x->in_pending, fresh);
    in_write(x);
}

/* ---- the channel ---- */

static void send_signal(struct exec *x, const struct guest_exec_signal *s)
{
    pid_t group = 0;

    if (x->ended)
        return;
    if (s->scope == GUEST_SCOPE_LEADER) {
        (void)kill(x->pid, s->signal);
        return;
    }
    if (s->scope == GUEST_SCOPE_ALL) {
        group_signal(x->group, x->pid, false, s->signal);
        return;
    }
    /* The command leads its session; a terminal knows its foreground group. */
    if (x->flags & GUEST_EXEC_PTY)
        (void)ioctl(x->out[0].w.fd, TIOCGPGRP, &group);
    (void)kill(-(group > 1 ? group : x->pid), s->signal);
}

static void exec_on_msg(struct channel *ch, const struct guest_msg *m)
{
    struct exec *x = CONTAINER_OF(ch, struct exec, ch);

    if (m->type == GUEST_ACK) {
        on_ack(x, m);
    } else if (m->type == GUEST_DATA) {
        on_stdin(x, m);
    } else if (m->type == GUEST_EXEC_RESIZE) {
        if ((x->flags & GUEST_EXEC_PTY) && x->out[0].w.fd >= 0)
            term_resize(x->out[0].w.fd, m->u.resize.rows, m->u.resize.cols);
    } else if (m->type == GUEST_EXEC_SIGNAL) {
        send_signal(x, &m->u.signal);
    } else if (m->type == GUEST_EXEC_FORGET && x->ended) {
        channel_close(ch, NULL);
        exec_free(x);
    }
}

static void exec_on_gone(struct channel *ch)
{
    (void)ch; /* the command keeps running; the next attach starts again */
}

static const struct channel_ops exec_channel = {exec_on_msg, exec_fill, exec_on_gone};

/* `known`: holtd may already know this command. */
static void announce(struct exec *x, uint32_t number, bool known)
{
    struct guest_msg m = {.type = GUEST_EXEC_RUNNING, .channel = number};

    channel_open(&x->ch, number, &exec_channel);
    x->exit_sent = false;
    for (int i = 0; i < 2; i++) {
        flow_out_init(&x->out[i].flow, x->out[i].flow.acked, GUEST_WINDOW_UP);
        x->out[i].eof_sent = x->exit.how == GUEST_FAILED; /* it has no streams */
    }
    flow_in_init(&x->in_flow, x->in_flow.got, GUEST_WINDOW_DOWN);
    m.u.running = (struct guest_exec_running){.pid = (uint32_t)x->pid,
                                              .known = known,
                                              .in_at = x->in_flow.got,
                                              .out_from = x->out[0].flow.acked,
                                              .err_from = x->out[1].flow.acked};
    if (x->exit.how != GUEST_FAILED)
        (void)conn_send(&m);
}

static void refuse(uint32_t number, const struct err *e)
{
    struct guest_msg m = {.type = GUEST_RESET, .channel = number};

    m.u.reset.err = *e;
    (void)conn_send(&m);
}

static void out_goes_on_at(struct out *o, uint64_t from)
{
    if (from <= o->flow.acked)
        return;
    ring_drop(&o->kept, from);
    o->flow.acked = from;
    order_drop(&o->exec->order, o->exec->out[0].flow.acked, o->exec->out[1].flow.acked);
    loop_want(&o->w, EPOLLIN);
    loop_want(&out_other(o)->w, EPOLLIN);
}

static void attach(struct exec *x, uint32_t number, uint64_t out_from, uint64_t err_from)
{
    struct err e;

    if (out_from > x->out[0].kept.end || err_from > x->out[1].kept.end) {
        (void)err_set(&e, ERR_RANGE, 0, "exec '%s' has less output", x->id);
        refuse(number, &e);
        return;
    }
    if (x->ch.number != 0) {
        (void)err_set(&e, ERR_CONFLICT, 0, "exec '%s' was attached again", x->id);
        channel_close(&x->ch, &e);
    }
    out_goes_on_at(&x->out[0], out_from);
    out_goes_on_at(&x->out[1], err_from);
    announce(x, number, true);
}

void exec_attach(const struct guest_msg *m)
{
    struct exec *x = find(m->u.attach.id);
    struct err e;

    if (x) {
        attach(x, m->channel, m->u.attach.out_from, m->u.attach.err_from);
        return;
    }
    (void)err_set(&e, ERR_NOT_FOUND, 0, "no exec '" STR_FMT "'", STR_ARG(m->u.attach.id));
    refuse(m->channel, &e);
}

/* ---- start ---- */

struct ends { /* the command's and ours; closed unless taken */
    int theirs[3], ours[3];
};
static void ends_close(struct ends *n)
{
    for (int i = 0; i < 3; i++) {
        bool shared = i > 0 && n->theirs[i] == n->theirs[0];

        if (!shared)
            fd_close(n->theirs[i]);
        fd_close(n->ours[i]);
    }
}
static inline void ends_close_p(struct ends *n)
{
    ends_close(n);
}

static int pipe_to(int *read_end, int *write_end, int *nonblocking, struct err *e)
{
    int p[2];

    if (pipe2(p, O_CLOEXEC) < 0)
        return err_set(e, err_code_from_errno(errno), errno, "make a pipe");
    *read_end = p[0];
    *write_end = p[1];
    if (fcntl(*nonblocking, F_SETFL, O_NONBLOCK) < 0)
        return err_set(e, ERR_INTERNAL, errno, "make a pipe non-blocking");
    return 0;
}

static int make_terminal(const struct guest_exec_start *s, struct ends *n, struct err *e)
{
    int slave;

    if (term_open(s->rows, s->cols, &n->ours[1], &slave, e) < 0)
        return -1;
    for (int i = 0; i < 3; i++)
        n->theirs[i] = slave;
    n->ours[0] = fcntl(n->ours[1], F_DUPFD_CLOEXEC, 3);
    return n->ours[0] < 0 ? err_set(e, err_code_from_errno(errno), errno, "open a terminal") : 0;
}

static int make_ends(const struct guest_exec_start *s, struct ends *n, struct err *e)
{
    if (s->flags & GUEST_EXEC_PTY)
        return make_terminal(s, n, e);
    if (s->flags & GUEST_EXEC_STDIN) {
        if (pipe_to(&n->theirs[0], &n->ours[0], &n->ours[0], e) < 0)
            return -1;
    } else {
        n->theirs[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (n->theirs[0] < 0)
            return err_set(e, ERR_INTERNAL, errno, "open /dev/null");
    }
    if (pipe_to(&n->ours[1], &n->theirs[1], &n->ours[1], e) < 0)
        return -1;
    if (!(s->flags & GUEST_EXEC_MERGE))
        return pipe_to(&n->ours[2], &n->theirs[2], &n->ours[2], e);
    n->theirs[2] = fcntl(n->theirs[1], F_DUPFD_CLOEXEC, 3);
    return n->theirs[2] < 0 ? err_set(e, err_code_from_errno(errno), errno, "merge stderr") : 0;
}

static int watch_ends(struct exec *x, struct ends *n, struct err *e)
{
    int r = 0;

    if (n->ours[0] >= 0)
        r = loop_try_add(&x->in, TAKE_FD(n->ours[0]), on_in);
    for (int i = 0; r == 0 && i < 2; i++)
        if (n->ours[1 + i] >= 0)
            r = loop_try_add(&x->out[i].w, TAKE_FD(n->ours[1 + i]), on_out);
    return r < 0 ? err_set(e, err_code_from_errno(-r), -r, "watch the command's pipes") : 0;
}

static int run(struct exec *x, const struct guest_exec_start *s, struct err *e)
{
    AUTO(ends_close) struct ends n = {{-1, -1, -1}, {-1, -1, -1}};
    struct launch_io io;
    AUTO(fd_close) int group = -1;
    int r;

    if (kin_is_paused()) {
        (void)err_set(e, ERR_CONFLICT, 0, "the sandbox is paused");
        return err_hint(e, "resume it first");
    }
    if (make_ends(s, &n, e) < 0)
        return -1;
    x->ooms = group_ooms();
    r = group_make(&x->group, &group);
    if (r < 0)
        return err_set(e, err_code_from_errno(-r), -r, "make a cgroup for the command");
    io = (struct launch_io){.in = n.theirs[0],
                            .out = n.theirs[1],
                            .err = n.theirs[2],
                            .terminal = s->flags & GUEST_EXEC_PTY,
                            .group = group,
                            .mark = group_mark(x->group)};
    x->born_ns = clock_mono_ns();
    if (watch_ends(x, &n, e) < 0 || launch(s, &io, &x->pid, e) < 0) {
        loop_remove(&x->in);
        loop_remove(&x->out[0].w);
        loop_remove(&x->out[1].w);
        return -1;
    }
    loop_want(&x->out[0].w, EPOLLIN);
    loop_want(&x->out[1].w, EPOLLIN);
    return 0;
}

void exec_start(const struct guest_msg *m)
{
    const struct guest_exec_start *s = &m->u.start;
    struct exec *x = find(s->id);
    struct err e = {0};

    if (x) {
        attach(x, m->channel, x->out[0].flow.acked, x->out[1].flow.acked);
        return;
    }
    if (exec_n >= GUEST_EXECS_MAX) {
        (void)err_set(&e, ERR_LIMIT, 0, "there are %d execs already", GUEST_EXECS_MAX);
        (void)err_limit_fixed(&e, GUEST_EXECS_MAX, "wait for a command to end");
        refuse(m->channel, &e);
        return;
    }
    x = xzalloc(sizeof *x);
    memcpy(x->id, s->id.p, s->id.n);
    x->flags = s->flags;
    x->in.fd = x->out[0].w.fd = x->out[1].w.fd = -1;
    x->out[0].exec = x->out[1].exec = x;
    list_push(&execs, &x->node);
    exec_n++;
    if (run(x, s, &e) < 0) {
        x->ended = true;
        x->exit = (struct guest_exec_exit){.how = GUEST_FAILED, .err = e};
    }
    announce(x, m->channel, false);
}

/* ---- the end ---- */

static uint64_t us(const struct timeval *t)
{
    return (uint64_t)t->tv_sec * 1000000 + (uint64_t)t->tv_usec;
}

/* Other processes may hold the pipe and keep writing: only the bytes in it now are the command's.
 */
static uint64_t bytes_left(const struct out *o)
{
    int left = 0;

    if (o->w.fd < 0 || (o->exec->flags & GUEST_EXEC_PTY) || ioctl(o->w.fd, FIONREAD, &left) < 0)
        return 0;
    return (uint64_t)left;
}

static void finish(struct exec *x, int status, const struct rusage *ru)
{
    bool signalled = WIFSIGNALED(status);

    x->ended = true;
    x->ended_ms = clock_mono_ms();
    x->exit = (struct guest_exec_exit){
        .how = signalled ? GUEST_SIGNALLED : GUEST_EXITED,
        .code = (uint8_t)(signalled ? WTERMSIG(status) : WEXITSTATUS(status)),
        .core = signalled && WCOREDUMP(status),
        .user_us = us(&ru->ru_utime),
        .system_us = us(&ru->ru_stime),
        .max_rss_kib = (uint64_t)ru->ru_maxrss,
        .wall_us = (uint64_t)(clock_mono_ns() - x->born_ns) / 1000,
    };
    /* A shell whose child was killed exits with 128 + 9. */
    if (x->exit.code == (signalled ? SIGKILL : 128 + SIGKILL))
        x->exit.oom = group_ooms() > x->ooms;
    if (x->flags & GUEST_EXEC_KILL_REST)
        group_signal(x->group, x->pid, true, SIGKILL);
    in_close(x);
    for (int i = 0; i < 2; i++)
        x->out[i].drain = bytes_left(&x->out[i]);
    for (int i = 0; i < 2; i++) {
        struct out *o = &x->out[i];

        if (o->drain > 0 || (x->flags & GUEST_EXEC_PTY))
            on_out(&o->w, EPOLLIN);
        else
            out_close(o);
    }
}

void exec_reaped(pid_t pid, int status, const struct rusage *ru)
{
    LIST_EACH (&execs, node) {
        struct exec *x = LIST_ENTRY(node, struct exec, node);

        if (x->pid != pid || x->ended)
            continue;
        finish(x, status, ru);
        return;
    }
}

/* Terminals held open after their command's end, and memory to give back. */
int exec_timeout_ms(void)
{
    int64_t soonest = -1;

    LIST_EACH (&execs, node) {
        struct exec *x = LIST_ENTRY(node, struct exec, node);
        int64_t left = x->ended_ms + TERM_DRAIN_MS + 1 - clock_mono_ms();

        if (!x->ended || x->out[0].w.fd < 0 || !(x->flags & GUEST_EXEC_PTY))
            left = out_is_big(&x->out[0]) || out_is_big(&x->out[1]) ? QUIET_MS : INT64_MAX;
        if (left < INT64_MAX)
            soonest = soonest < 0 ? i64_max(left, 0) : i64_min(soonest, i64_max(left, 0));
    }
    return (int)soonest;
}

void exec_tick(void)
{
    LIST_EACH (&execs, node) {
        struct exec *x = LIST_ENTRY(node, struct exec, node);

        for (int i = 0; i < 2 && loop_was_idle(); i++)
            ring_shrink(&x->out[i].kept, PAGE);
        if (x->ended && x->out[0].w.fd >= 0 && (x->flags & GUEST_EXEC_PTY) &&
            out_room(&x->out[0]) > 0 && out_is_drained(&x->out[0]))
            on_out(&x->out[0].w, EPOLLIN);
    }
}

/* ---- lists ---- */

uint32_t exec_rows(struct guest_exec_row *rows)
{
    uint32_t n = 0;

    LIST_EACH (&execs, node) {
        struct exec *x = LIST_ENTRY(node, struct exec, node);

        rows[n++] = (struct guest_exec_row){
            .id = str_of(x->id),
            .state = x->ended ? GUEST_EXEC_ENDED : GUEST_EXEC_LIVE,
            .in_at = x->in_flow.got,
            .out_from = x->out[0].flow.acked,
            .out_end = x->out[0].kept.end,
            .err_from = x->out[1].flow.acked,
            .err_end = x->out[1].kept.end,
        };
    }
    return n;
}

void exec_count(struct guest_stats *s)
{
    LIST_EACH (&execs, node) {
        struct exec *x = LIST_ENTRY(node, struct exec, node);

        *(x->ended ? &s->execs_ended : &s->execs_live) += 1;
        s->buffered += ring_len(&x->out[0].kept) + ring_len(&x->out[1].kept);
    }
}
