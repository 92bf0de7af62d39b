/* keeper: PID 1 around a container: runs the runtime, and parents what it leaves running. */

/* The keeper: PID 1 of a sandbox that a container runtime makes, outside the container.  It runs
 * the runtime's program, tells holt-spawn how that went, and stays as the parent of what the
 * runtime leaves running: it ends with the container's init, and all of it ends with the keeper.
 * Where init cannot inherit a socket, the keeper accepts holtd's connections and hands them in;
 * orders of holt-spawn (wire/init_order.h) it passes on.  It outlives holtd and holt-spawn. */
#include "spawn/oci.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/filter.h"
#include "spawn/calls.h"
#include "wire/init_order.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define RUN_MS 30000 /* how long a runtime may take */
#define LOG_FILE SETUP_BUNDLE "/log"
#define PID_FILE SETUP_BUNDLE "/pid"
#define ARGS_MAX 32
#define LOG_TAIL 160

struct keeper {
    struct sandbox *s;
    int signals; /* signalfd */
    int hand[2]; /* to init: connections and orders; or -1 */
    int guard;   /* a memfd with the long filter; or -1 */
    pid_t init;  /* the container's, as seen here */
    struct init_order done;
};

/* ---- the runtime's program ---- */

static size_t add_all(const char **argv, size_t n, const char *const *more)
{
    for (; more && *more; more++)
        argv[n++] = *more;
    return n;
}

/* Volumes and host directories are written to by others as well. */
static bool has_shared_files(const struct sandbox *s)
{
    struct wire_rows rows = s->ask->mounts;
    struct spawn_mount_row row;

    while (wire_rows_next(&spawn_mount_row_layout, &rows, &row))
        if (row.kind != SPAWN_MOUNT_TMPFS && row.kind != SPAWN_MOUNT_OWN)
            return true;
    return false;
}

static void arguments(const struct sandbox *s, int variant, const char *argv[ARGS_MAX])
{
    const struct oci_runtime *o = s->oci;
    size_t n = 0;

    argv[n++] = o->name;
    argv[n++] = "--root";
    argv[n++] = SETUP_BUNDLE "/state";
    n = add_all(argv, n, o->before[variant]);
    n = add_all(argv, n, has_shared_files(s) ? o->shared : NULL);
    argv[n++] = "run";
    n = add_all(argv, n, o->after);
    argv[n++] = "--detach";
    argv[n++] = "--bundle";
    argv[n++] = SETUP_BUNDLE;
    argv[n++] = "--pid-file";
    argv[n++] = PID_FILE;
    argv[n++] = s->id;
    argv[n] = NULL;
    assert(n < ARGS_MAX);
}

/* In the new process: standard streams, and what init inherits from 3 on.  A runtime that preserves
 * descriptors wants each of them open. */
static NORETURN void become_runtime(const struct keeper *k, int variant)
{
    const struct sandbox *s = k->s;
    static const char *const envp[] = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:"
                                       "/sbin:/bin",
                                       "HOME=/", "TMPDIR=" SETUP_BUNDLE, NULL};
    int log = open(LOG_FILE, O_CREAT | O_TRUNC | O_WRONLY | O_APPEND, 0600);
    int null = open("/dev/null", O_RDWR);
    int from[] = {k->hand[1],          log,         log,  s->listener,
                  host.command_filter, s->cg2_work, null, k->guard};
    const char *argv[ARGS_MAX];
    sigset_t none;

    arguments(s, variant, argv);
    for (size_t i = 0; i < ARRAY_LEN(from); i++)
        from[i] = fcntl(from[i] < 0 ? null : from[i], F_DUPFD, 32);
    for (int i = 0; i < (int)ARRAY_LEN(from); i++)
        (void)!dup2(from[i], i);
    (void)syscall(SYS_close_range, (unsigned)ARRAY_LEN(from), ~0U, 0U);
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)execve(host_runtime_program(s->oci), (char *const *)argv, (char *const *)envp);
    (void)dprintf(STDERR_FILENO, "run '%s': %s\n", host_runtime_program(s->oci), strerror(errno));
    _exit(127);
}

/* The last line that it wrote, in printable letters. */
static void last_words(char *to, size_t size)
{
    AUTO(buf_done) struct buf text = {0};
    struct str all, line = {0};
    size_t n = 0;

    to[0] = '\0';
    if (file_read(LOG_FILE, 65536, &text) < 0)
        return;
    all = str_trim(buf_str(&text));
    while (all.n > 0)
        line = str_cut(all, '\n', &all);
    if (line.n >= size)
        line = str_make(line.p + line.n - size + 1, size - 1);
    for (; n < line.n; n++)
        to[n] = line.p[n] >= ' ' && line.p[n] < 127 ? line.p[n] : '?';
    to[n] = '\0';
}

/* Waits for the runtime; what else ends meanwhile is reaped.  The wait status, or -1: too late. */
static int await_runtime(const struct keeper *k, pid_t pid)
{
    int64_t until = clock_mono_ms() + RUN_MS;
    struct pollfd p = {.fd = k->signals, .events = POLLIN};
    struct signalfd_siginfo si;
    int status;

    for (;;) {
        pid_t one = waitpid(-1, &status, WNOHANG);
        int64_t left = until - clock_mono_ms();

        if (one == pid)
            return status;
        if (one > 0)
            continue;
        if (left <= 0)
            return -1;
        if (poll(&p, 1, (int)left) > 0)
            (void)!read(k->signals, &si, sizeof si);
    }
}

static int run_variant(const struct keeper *k, int variant, struct err *e)
{
    const char *name = k->s->oci->name;
    char words[LOG_TAIL];
    int status;
    long pid = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);

    if (pid == 0)
        become_runtime(k, variant);
    if (pid < 0)
        return err_set(e, err_code_from_errno(errno), errno, "start '%s'", name);
    status = await_runtime(k, (pid_t)pid);
    if (status == 0)
        return 0;
    last_words(words, sizeof words);
    if (status < 0)
        return err_set(e, ERR_TIMEOUT, 0, "%s took longer than %d s: %s", name, RUN_MS / 1000,
                       words);
    return err_set(e, ERR_UNSUPPORTED, 0, "%s failed: %s", name,
                   *words ? words : "it gave no reason");
}

/* A release that does not know the first set of arguments says so by its error, at once. */
static int run_runtime(const struct keeper *k, struct err *e)
{
    const struct oci_runtime *o = k->s->oci;
    uint8_t *known = host_runtime_variant(o);
    struct err first = {0};
    int variant = *known < OCI_VARIANTS ? *known : 0;

    if (run_variant(k, variant, &first) == 0)
        return 0;
    if (variant > 0 || !o->before[1] || first.code == ERR_TIMEOUT || run_variant(k, 1, e) < 0) {
        *e = first;
        return -1;
    }
    *known = 1;
    return 0;
}

static pid_t read_pid(void)
{
    AUTO(buf_done) struct buf text = {0};
    uint64_t pid = 0;

    return file_read(PID_FILE, 64, &text) == 0 &&
                   str_parse_u64(str_trim(buf_str(&text)), &pid) == 0 && pid > 1 && pid < INT32_MAX
               ? (pid_t)pid
               : -1;
}

/* ---- while it runs ---- */

static void send_in(const struct keeper *k, char what, int fd)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    struct iovec iov = {&what, 1};
    struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};

    if (fd >= 0) {
        h.msg_control = control.bytes;
        h.msg_controllen = sizeof control.bytes;
        *CMSG_FIRSTHDR(&h) = (struct cmsghdr){
            .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof fd)};
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&h)), &fd, sizeof fd);
    }
    (void)!sendmsg(k->hand[0], &h, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Those that init does not take are hung up on: holtd tries again. */
static void pass_connection(const struct keeper *k)
{
    AUTO(fd_close) int fd = accept4(k->s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd >= 0)
        send_in(k, INIT_HAND_CONNECTION, fd);
}

/* To an init of this kernel as holt-spawn would do itself; to another over the socket. */
static void pass_order(struct keeper *k)
{
    struct init_order order;
    struct rlimit l;

    if (getrlimit(RLIMIT_LOCKS, &l) < 0)
        return;
    order = init_order_from(l.rlim_cur);
    if (k->hand[0] < 0) {
        if (prlimit(k->init, RLIMIT_LOCKS, &l, NULL) == 0)
            (void)kill(k->init, INIT_LOOK);
        return;
    }
    if (order.kills != k->done.kills)
        send_in(k, INIT_HAND_KILL, -1);
    if (order.paused != k->done.paused)
        send_in(k, order.paused ? INIT_HAND_PAUSE : INIT_HAND_RESUME, -1);
    k->done = order;
}

static void reap(const struct keeper *k)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        if (pid == k->init)
            _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static NORETURN void serve(struct keeper *k)
{
    struct pollfd p[] = {{.fd = k->signals, .events = POLLIN},
                         {.fd = k->hand[0] < 0 ? -1 : k->s->listener, .events = POLLIN}};

    for (;;) {
        struct signalfd_siginfo si = {0};

        reap(k);
        if (poll(p, ARRAY_LEN(p), -1) < 0 && errno != EINTR)
            _exit(1);
        if ((p[0].revents & POLLIN) && read(k->signals, &si, sizeof si) == (ssize_t)sizeof si &&
            si.ssi_signo == INIT_LOOK)
            pass_order(k);
        if (p[1].revents & POLLIN)
            pass_connection(k);
    }
}

/* ---- the beginning ---- */

static int watch_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, INIT_LOOK);
    (void)sigprocmask(SIG_SETMASK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int filter_file(const struct sandbox *s)
{
    enum calls_kind kind = s->flags & SPAWN_WIDE ? CALLS_WIDE : CALLS_NARROW;
    const struct sock_fprog *f = &host.filters[kind][s->flags & SPAWN_NESTING ? 1 : 0];
    AUTO(fd_close) int fd = memfd_create("holt-guard", MFD_CLOEXEC);
    int r = fd < 0 ? -errno : fd_write_all(fd, (const char *)f->filter, f->len * sizeof *f->filter);

    return r < 0 ? -1 : TAKE_FD(fd);
}

/* What only the making needed: nothing of it is in reach while the container runs. */
static void let_go(struct keeper *k)
{
    struct sandbox *s = k->s;

    fd_close(k->hand[1]);
    fd_close(k->guard);
    fd_close(s->root);
    fd_close(s->go[0]);
    fd_close(s->more[0]);
    fd_close(s->cg2_work);
    fd_close(host.init);
    fd_close(host.command_filter);
    if (k->hand[0] < 0)
        fd_close(s->listener);
    fd_close(s->report[1]); /* that is success */
}

/* It is no holt-spawn any more: ps(1), and whoever looks for one, must see that. */
static void take_name(const struct sandbox *s)
{
    char *line = (char *)(uintptr_t)host.command_line.p;

    (void)prctl(PR_SET_NAME, "holt-keeper", 0, 0, 0);
    if (!line)
        return;
    memset(line, 0, host.command_line.n);
    (void)snprintf(line, host.command_line.n, "holt-keeper %s", s->id);
}

void keeper_run(struct sandbox *s)
{
    bool own_kernel = s->oci->bits & OCI_OWN_KERNEL;
    struct keeper k = {.s = s, .hand = {-1, -1}, .guard = -1, .signals = watch_signals()};
    struct err e = {0};

    take_name(s);
    if (k.signals < 0 ||
        (own_kernel && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, k.hand) < 0) ||
        (!own_kernel && (k.guard = filter_file(s)) < 0)) {
        (void)err_set(&e, ERR_INTERNAL, errno, "prepare the runtime");
        setup_fail(s, &e);
    }
    if (run_runtime(&k, &e) < 0)
        setup_fail(s, &e);
    k.init = read_pid();
    if (k.init < 0 || kill(k.init, 0) < 0) {
        char words[LOG_TAIL];

        last_words(words, sizeof words);
        (void)err_set(&e, ERR_UNSUPPORTED, 0, "%s created a container that ended at once: %s",
                      s->oci->name, words);
        setup_fail(s, &e);
    }
    let_go(&k);
    serve(&k);
}
