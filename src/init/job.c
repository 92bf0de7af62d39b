/* job: file work in a child process, streamed through pipes. */
#include "init/job.h"

#include "base/fd.h"
#include "base/loop.h"
#include "base/mem.h"
#include "init/conn.h"
#include "init/file.h"
#include "init/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STEP (32 * 1024)

struct outcome { /* in a page shared with the child */
    bool done;
    bool has_stat;
    struct stat st;
    struct err err;
};

struct job {
    struct list node;
    struct channel ch;
    pid_t pid;
    unsigned streams;
    bool reaped;
    bool in_eof;
    int status;
    struct watch in, out;
    struct buf in_pending, kept;
    struct flow_in in_flow;
    struct flow_out out_flow;
    struct outcome *outcome;
};

static struct list jobs = {&jobs, &jobs};
static uint32_t job_n;

static void job_free(struct job *j)
{
    loop_remove(&j->in);
    loop_remove(&j->out);
    buf_done(&j->in_pending);
    buf_done(&j->kept);
    if (j->outcome)
        (void)munmap(j->outcome, sizeof *j->outcome);
    mem_free(j);
}

static void job_gone(struct channel *ch)
{
    struct job *j = CONTAINER_OF(ch, struct job, ch);

    if (!j->reaped)
        (void)kill(j->pid, SIGKILL); /* not waited for yet, so the pid is still its own */
    list_unlink(&j->node);
    job_n--;
    job_free(j);
}

/* ---- end ---- */

static void why_it_failed(const struct job *j, struct err *e)
{
    if (j->outcome->done) {
        *e = j->outcome->err;
        e->msg[sizeof e->msg - 1] = e->object[sizeof e->object - 1] = '\0';
        e->hint[sizeof e->hint - 1] = '\0';
        return;
    }
    (void)err_set(e, ERR_INTERNAL, 0, "the process of the operation was ended by signal %d",
                  WIFSIGNALED(j->status) ? WTERMSIG(j->status) : 0);
    (void)err_hint(e, "something in the sandbox killed it, or it ran out of memory");
}

static void finish(struct job *j)
{
    const struct outcome *o = j->outcome;
    struct err e = {0};

    if (!o->done || o->err.code != ERR_NONE) {
        why_it_failed(j, &e);
        channel_close(&j->ch, &e);
        return;
    }
    if (j->streams & JOB_GIVES)
        (void)conn_data(&j->ch, GUEST_OUT, j->out_flow.sent, STR(""), true);
    file_send_done(j->ch.number, o->has_stat ? &o->st : NULL, "");
    if (j->streams)
        channel_close(&j->ch, NULL);
    else
        channel_end(&j->ch); /* like an operation that init does itself */
}

static bool job_fill(struct channel *ch)
{
    struct job *j = CONTAINER_OF(ch, struct job, ch);
    struct str bytes = buf_str(&j->kept);
    size_t n;

    if (bytes.n == 0 && j->reaped && j->out.fd < 0) {
        finish(j);
        return true;
    }
    bytes.n = size_min(bytes.n, flow_room(&j->out_flow));
    if (bytes.n == 0)
        return false;
    n = conn_data(ch, GUEST_OUT, j->out_flow.sent, bytes, false);
    flow_sent(&j->out_flow, n);
    buf_take(&j->kept, n);
    loop_want(&j->out, EPOLLIN);
    return true;
}

void job_reaped(pid_t pid, int status)
{
    LIST_EACH (&jobs, node) {
        struct job *j = LIST_ENTRY(node, struct job, node);

        if (j->pid != pid || j->reaped)
            continue;
        j->reaped = true;
        j->status = status;
        return;
    }
}

bool job_is(pid_t pid)
{
    LIST_EACH (&jobs, node) {
        const struct job *j = LIST_ENTRY(node, struct job, node);

        if (j->pid == pid && !j->reaped)
            return true;
    }
    return false;
}

void job_wake_all(void)
{
    LIST_EACH (&jobs, node) {
        const struct job *j = LIST_ENTRY(node, struct job, node);

        if (!j->reaped)
            (void)kill(j->pid, SIGCONT);
    }
}

/* ---- streams ---- */

static void on_out(struct watch *w, uint32_t events)
{
    struct job *j = CONTAINER_OF(w, struct job, out);
    char *room;
    ssize_t n;

    (void)events;
    if (buf_len(&j->kept) >= STEP) {
        loop_want(w, EPOLLET); /* the job blocks until holtd makes room */
        return;
    }
    if (buf_reserve(&j->kept, STEP, &room) < 0)
        return;
    n = read(w->fd, room, STEP);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0)
        loop_remove(w);
    buf_added(&j->kept, n > 0 ? (size_t)n : 0);
}

static void job_feed(struct job *j)
{
    struct guest_msg ack = {.type = GUEST_ACK, .channel = j->ch.number, .stream = GUEST_IN};
    ssize_t n = 0;

    if (j->in.fd >= 0 && buf_len(&j->in_pending) > 0)
        n = write(j->in.fd, buf_data(&j->in_pending), buf_len(&j->in_pending));
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        loop_remove(&j->in); /* it has ended; its outcome has the reason */
    buf_take(&j->in_pending, n > 0 ? (size_t)n : 0);
    if (j->in.fd < 0)
        buf_clear(&j->in_pending);
    if (flow_ack(&j->in_flow, j->in_flow.got - buf_len(&j->in_pending), false, &ack.u.ack))
        (void)conn_send(&ack);
    if (j->in_eof && buf_len(&j->in_pending) == 0)
        loop_remove(&j->in);
    loop_want(&j->in, buf_len(&j->in_pending) > 0 ? (uint32_t)EPOLLOUT : (uint32_t)EPOLLET);
}

static void on_in(struct watch *w, uint32_t events)
{
    struct job *j = CONTAINER_OF(w, struct job, in);

    if (events & EPOLLERR)
        loop_remove(w); /* it no longer reads */
    job_feed(j);
}

static void job_on_msg(struct channel *ch, const struct guest_msg *m)
{
    struct job *j = CONTAINER_OF(ch, struct job, ch);
    struct str fresh;
    struct err e;

    if (m->type == GUEST_ACK && m->stream == GUEST_OUT) {
        if (flow_on_ack(&j->out_flow, &m->u.ack, &e) < 0)
            channel_close(ch, &e);
        return;
    }
    if (m->type != GUEST_DATA)
        return;
    if (flow_on_data(&j->in_flow, &m->u.data, &fresh, &e) < 0) {
        channel_close(ch, &e);
        return;
    }
    if (j->in.fd >= 0)
        buf_add_str(&j->in_pending, fresh);
    j->in_eof = j->in_eof || (m->flags & GUEST_EOF);
    job_feed(j);
}

static const struct channel_ops job_channel = {job_on_msg, job_fill, job_gone};

/* ---- start ---- */

void job_write(int out, const void *p, size_t n)
{
    if (fd_write_all(out, p, n) < 0)
        _exit(1);
}

static void run_child(const struct guest_file_call *c, job_fn *run, const int *ends,
                      struct outcome *o)
{
    struct stat st = {0};

    /* Init holds 0, 1 and 2 on /dev/null, so no pipe end is one of them. */
    if ((ends[0] >= 0 && dup2(ends[0], 0) < 0) || (ends[1] >= 0 && dup2(ends[1], 1) < 0))
        return;
    (void)syscall(SYS_close_range, 3U, INT_MAX, 0U);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* in case init is not PID 1 */
    launch_oom_first();
    if (run(c, ends[0] >= 0 ? 0 : -1, ends[1] >= 0 ? 1 : -1, &st, &o->err) == 0)
        o->err.code = ERR_NONE;
    o->has_stat = st.st_mode != 0;
    o->st = st;
    o->done = true;
}

/* ends: the child's input and output, then our ends of them. */
static int make_pipes(unsigned streams, int *ends, struct err *e)
{
    int p[2];

    if (streams & JOB_TAKES) {
        if (pipe2(p, O_CLOEXEC) < 0)
            return err_set(e, err_code_from_errno(errno), errno, "make a pipe");
        ends[0] = p[0];
        ends[2] = p[1];
    }
    if (streams & JOB_GIVES) {
        if (pipe2(p, O_CLOEXEC) < 0)
            return err_set(e, err_code_from_errno(errno), errno, "make a pipe");
        ends[1] = p[1];
        ends[3] = p[0];
    }
    for (int i = 2; i < 4; i++)
        if (ends[i] >= 0 && fcntl(ends[i], F_SETFL, O_NONBLOCK) < 0)
            return err_set(e, ERR_INTERNAL, errno, "make a pipe non-blocking");
    return 0;
}

static int prepare(struct job *j, unsigned streams, int *ends, struct err *e)
{
    void *page =
        mmap(NULL, sizeof *j->outcome, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int r = 0;

    if (page == MAP_FAILED)
        return err_set(e, err_code_from_errno(errno), errno, "map a page");
    j->outcome = page;
    if (make_pipes(streams, ends, e) < 0)
        return -1;
    if (ends[2] >= 0)
        r = loop_try_add(&j->in, TAKE_FD(ends[2]), on_in);
    if (r == 0 && ends[3] >= 0)
        r = loop_try_add(&j->out, TAKE_FD(ends[3]), on_out);
    return r < 0 ? err_set(e, err_code_from_errno(-r), -r, "watch a pipe") : 0;
}

static int begin(struct job *j, const struct guest_msg *m, job_fn *run, unsigned streams,
                 struct err *e)
{
    int ends[4] = {-1, -1, -1, -1};
    int r = prepare(j, streams, ends, e);

    if (r == 0) {
        j->pid = fork();
        if (j->pid == 0) {
            run_child(&m->u.file, run, ends, j->outcome);
            _exit(0);
        }
        if (j->pid < 0) {
            (void)err_set(e, ERR_LIMIT, errno, "start a process for the operation");
            r = err_hint(e,
                         "end processes of the sandbox, or create it with a higher limit ('pids')");
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        fd_close(ends[i]);
    return r;
}

int job_start(const struct guest_msg *m, job_fn *run, unsigned streams, struct err *e)
{
    struct job *j;

    if (job_n >= JOBS_MAX) {
        (void)err_set(e, ERR_LIMIT, 0, "%d long file operations are running already", JOBS_MAX);
        return err_limit_fixed(e, JOBS_MAX, "wait for one to end");
    }
    j = xzalloc(sizeof *j);
    j->in.fd = j->out.fd = -1;
    j->streams = streams;
    if (begin(j, m, run, streams, e) < 0) {
        job_free(j);
        return -1;
    }
    flow_in_init(&j->in_flow, 0, GUEST_WINDOW_DOWN);
    flow_out_init(&j->out_flow, 0, GUEST_WINDOW_UP);
    list_push(&jobs, &j->node);
    job_n++;
    channel_open(&j->ch, m->channel, &job_channel);
    loop_want(&j->out, EPOLLIN);
    return 0;
}
