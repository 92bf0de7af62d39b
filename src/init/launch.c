/* launch: turns an exec_start into a running process. */
#include "init/launch.h"

#include "base/fd.h"
#include "base/mem.h"
#include "init/fence.h"
#include "init/user.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Kept by init and never given to commands.  It grants nothing here, but without it a process may
 * not ptrace init (kernel: the tracer's capabilities must contain the target's). */
#define INIT_ONLY_CAP CAP_WAKE_ALARM
#define START_MS 5000
#define FILES_USUAL 65536     /* open files, if the request sets no limit */
#define TOLD_FD 3             /* the one descriptor left besides 0, 1 and 2 */
#define COMMAND_OOM_ADJ "200" /* commands are OOM-killed before init */
#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

struct plan {
    char *memory; /* holds all texts below */
    char **argv, **envp;
    const char *cwd; /* from the request, or the user's home */
    bool cwd_asked;
    const char *path; /* the PATH used to find the program */
    struct user user;
    char home[sizeof "HOME=" + 256]; /* added if the environment has none */
    struct wire_rows rlimits;
    const struct launch_io *io;
    struct fence fence;
    int told; /* closed by exec or exit */
    sigset_t mask;
    char file[GUEST_PATH_MAX + 260]; /* the candidate being tried */
};

/* Written by the child into a shared page: volatile, or the compiler would drop the stores before
 * _exit as dead. */
struct failure {
    int sys;
    const char *what;
};

static struct sock_fprog filter; /* len 0: none */
static struct rlimit files;      /* limit of commands */
static volatile struct failure *shared;
static sigset_t ignored; /* by init: exec would pass these on (signal(7)) */

/* Init needs three descriptors per command and one per connection.  Commands get less: the daemons
 * above us have raised their soft limit, maybe to a million, and some programs walk over all. */
void launch_files(uint64_t max)
{
    uint64_t most = fd_limit_raise();

    files = (struct rlimit){most < FILES_USUAL ? most : FILES_USUAL, most};
    if (max > 0) /* at most the hard limit */
        files.rlim_cur = files.rlim_max = max < most ? max : most;
}

static void find_ignored(void)
{
    struct sigaction now;

    sigemptyset(&ignored);
    for (int sig = 1; sig < NSIG; sig++)
        if (sigaction(sig, NULL, &now) == 0 && now.sa_handler == SIG_IGN)
            (void)sigaddset(&ignored, sig);
}

/* By its own offset: every init has the same open file. */
static struct sock_fprog read_filter(int fd)
{
    AUTO(buf_done) struct buf program = {0};
    struct sock_fprog f = {0};

    for (char chunk[512]; fd >= 0;) {
        ssize_t n = pread(fd, chunk, sizeof chunk, (off_t)buf_len(&program));

        if (n <= 0)
            break;
        buf_add(&program, chunk, (size_t)n);
    }
    f.len = (unsigned short)(buf_len(&program) / sizeof(struct sock_filter));
    f.filter = f.len > 0 ? (struct sock_filter *)(void *)buf_steal(&program) : NULL;
    return f;
}

int launch_guard(int fd)
{
    AUTO(fd_close) int owned = fd;
    struct sock_fprog f = read_filter(owned);
    int r = f.len == 0 ? -1 : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &f, 0, 0);

    mem_free(f.filter);
    return r;
}

void launch_setup(int fd)
{
    AUTO(fd_close) int owned = fd;
    void *page = mmap(NULL, sizeof(struct failure), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert(page != MAP_FAILED);
    shared = page;
    find_ignored();
    filter = read_filter(owned);
}

/* ---- before the clone ---- */

static char **copy_texts(struct wire_rows rows, char **at)
{
    char **v = xmalloc((rows.count + 2) * sizeof *v); /* room for one more */
    struct wire_text t;
    size_t i = 0;

    while (wire_rows_next(&wire_text_row, &rows, &t)) {
        v[i++] = *at;
        memcpy(*at, t.text.p, t.text.n);
        *at += t.text.n;
        *(*at)++ = '\0';
    }
    v[i] = NULL;
    return v;
}

static const char *env_value(char **envp, const char *name)
{
    size_t n = strlen(name);

    for (; *envp; envp++)
        if (strncmp(*envp, name, n) == 0 && (*envp)[n] == '=')
            return *envp + n + 1;
    return NULL;
}

static void add_home(struct plan *p)
{
    size_t n = 0;

    (void)snprintf(p->home, sizeof p->home, "HOME=%s", p->user.home);
    while (p->envp[n])
        n++;
    p->envp[n++] = p->home;
    p->envp[n] = NULL;
}

static void plan_done(struct plan *p)
{
    fence_done(&p->fence);
    mem_free(p->memory);
    mem_free(p->argv);
    mem_free(p->envp);
}
static inline void plan_done_p(struct plan *p)
{
    plan_done(p);
}

static int plan_make(struct plan *p, const struct guest_exec_start *s, struct err *e)
{
    /* A row is its text and 4 bytes of length, so the texts with their NULs fit. */
    char *at = p->memory = xmalloc(s->argv.raw.n + s->env.raw.n + s->cwd.n + 2);
    const char *path;

    p->argv = copy_texts(s->argv, &at);
    p->envp = copy_texts(s->env, &at);
    p->rlimits = s->rlimits;
    if (user_find(s->user, &p->user, e) < 0)
        return -1;
    p->cwd = p->user.home;
    if (s->cwd.n > 0) {
        memcpy(at, s->cwd.p, s->cwd.n);
        at[s->cwd.n] = '\0';
        p->cwd = at;
        p->cwd_asked = true;
    }
    if (!env_value(p->envp, "HOME"))
        add_home(p);
    path = env_value(p->envp, "PATH");
    p->path = path ? path : DEFAULT_PATH;
    return fence_make(&p->fence, e);
}

/* ---- in the child: system calls only ---- */

static int child_limits(const struct plan *p)
{
    const struct rlimit mark = {p->io->mark, p->io->mark};
    struct wire_rows rows = p->rlimits;
    struct guest_rlimit_row row;

    if (files.rlim_max > 0 && setrlimit(RLIMIT_NOFILE, &files) < 0)
        return -errno;
    while (wire_rows_next(&guest_rlimit_row_layout, &rows, &row)) {
        struct rlimit want = {
            .rlim_cur = row.soft == GUEST_NO_LIMIT ? RLIM_INFINITY : row.soft,
            .rlim_max = row.hard == GUEST_NO_LIMIT ? RLIM_INFINITY : row.hard,
        };

        if (syscall(SYS_prlimit64, 0, row.resource, &want, NULL) < 0)
            return -errno;
    }
    return mark.rlim_max > 0 && setrlimit(RLIMIT_LOCKS, &mark) < 0 ? -errno : 0;
}

/* First: what follows opens nothing that rules are about, and closes the rulesets. */
static int child_fence(const struct plan *p)
{
    return fence_enter(&p->fence);
}

static int child_fds(const struct plan *p)
{
    const struct launch_io *io = p->io;

    if (setsid() < 0)
        return -errno;
    if (io->terminal && ioctl(io->in, TIOCSCTTY, 0) < 0)
        return -errno;
    /* Init holds 0, 1 and 2 open on /dev/null, so none of the three is one of them. */
    if (dup2(io->in, 0) < 0 || dup2(io->out, 1) < 0 || dup2(io->err, 2) < 0)
        return -errno;
    /* Close them now, not at exec: the command's directory may be /proc/self/fd/N.  gVisor takes
     * no descriptor above INT_MAX. */
    if ((p->told != TOLD_FD && dup3(p->told, TOLD_FD, O_CLOEXEC) < 0) ||
        syscall(SYS_close_range, TOLD_FD + 1U, INT_MAX, 0U) < 0)
        return -errno;
    return 0;
}

void launch_oom_first(void)
{
    int fd;

    /* Not dumpable, as init is, we would not own our /proc entries.  No process can trace us
     * meanwhile: we still have the capability. */
    (void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    if (fd >= 0) {
        (void)!write(fd, COMMAND_OOM_ADJ, sizeof COMMAND_OOM_ADJ - 1);
        (void)close(fd);
    }
}

static int child_rights(const struct plan *p)
{
    launch_oom_first();
    (void)prctl(PR_CAPBSET_DROP, INIT_ONLY_CAP, 0, 0, 0); /* EPERM: init does not have it either */
    if (p->user.uid == 0 && p->user.gid == 0)
        return 0;
    if (syscall(SYS_setgroups, 0, NULL) < 0 ||
        syscall(SYS_setresgid, p->user.gid, p->user.gid, p->user.gid) < 0 ||
        syscall(SYS_setresuid, p->user.uid, p->user.uid, p->user.uid) < 0)
        return -errno;
    return 0;
}

static int try_exec(struct plan *p, const char *file)
{
    (void)execve(file, p->argv, p->envp);
    return -errno;
}

/* Like execvp, but with the command's PATH and without allocation. */
static int child_exec(struct plan *p)
{
    const char *name = p->argv[0], *dir = p->path;
    size_t name_n = strlen(name);
    int worst = -ENOENT;

    if (strchr(name, '/') || name_n > 255)
        return try_exec(p, name);
    while (dir) {
        const char *end = strchr(dir, ':');
        size_t n = end ? (size_t)(end - dir) : strlen(dir);
        int r = -ENOENT;

        if (n > 0 && n + name_n + 2 <= sizeof p->file) {
            memcpy(p->file, dir, n);
            p->file[n] = '/';
            memcpy(p->file + n + 1, name, name_n + 1);
            r = try_exec(p, p->file);
        }
        if (r == -EACCES)
            worst = r;
        else if (r != -ENOENT && r != -ENOTDIR)
            return r;
        dir = end ? end + 1 : NULL;
    }
    return worst;
}

static void child_signals(const sigset_t *mask)
{
    struct sigaction dfl = {.sa_handler = SIG_DFL};

    for (int sig = 1; sig < NSIG; sig++)
        if (sigismember(&ignored, sig) == 1)
            (void)sigaction(sig, &dfl, NULL);
    (void)sigprocmask(SIG_SETMASK, mask, NULL);
}

/* A missing home (as that of nobody) is no error: start in the root, as login(1) does. */
static int child_directory(const struct plan *p)
{
    if (chdir(p->cwd) == 0 || (!p->cwd_asked && chdir("/") == 0))
        return 0;
    return -errno;
}

static const char become_user[] = "become its user";

static void child(struct plan *p, volatile struct failure *f)
{
    static const struct {
        int (*run)(const struct plan *p);
        const char *what;
    } steps[] = {
        {child_fence, "hold it to its policies"},
        {child_fds, "set up its descriptors"},
        {child_limits, "set its limits"},
        {child_rights, become_user},
    };

    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        f->what = steps[i].what;
        f->sys = -steps[i].run(p);
        if (f->sys != 0)
            return;
    }
    f->what = p->cwd;
    f->sys = -child_directory(p);
    if (f->sys != 0)
        return;
    child_signals(&p->mask);
    (void)umask(0022);
    f->what = "install its filter";
    if (filter.len > 0 && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) < 0) {
        f->sys = errno;
        return;
    }
    f->what = NULL;
    f->sys = -child_exec(p);
}

/* The code classifies the failure (docs/protocol-guest.md): program not found, program not
 * executable, or a bad setting of the request. */
static int launch_failed(const struct plan *p, const volatile struct failure *f, struct err *e)
{
    bool absent = f->sys == ENOENT || f->sys == ENOTDIR;

    if (!f->what)
        return err_set(e, absent ? ERR_NOT_FOUND : ERR_FORBIDDEN, f->sys, "run '%.200s'",
                       p->argv[0]);
    if (f->what == p->cwd)
        return err_set(e, ERR_INVALID, f->sys, "change to directory '%.200s'", p->cwd);
    if (f->what == become_user && p->user.uid != 0 && (f->sys == EPERM || f->sys == EINVAL))
        return err_set(e, ERR_UNSUPPORTED, 0,
                       "user %u does not exist in this sandbox: without root on the host there is "
                       "only root inside, until newuidmap is installed and /etc/subuid and "
                       "/etc/subgid have ids for the user of holt",
                       p->user.uid);
    return err_set(e, ERR_INTERNAL, f->sys, "run '%.160s': %s", p->argv[0], f->what);
}

/* Like fork (init's memory is small), but started in its cgroup: moving it by cgroup.procs would
 * wait for an RCU grace period, 11 ms when cold.  Without one it is the older call, which gVisor
 * has had before clone3. */
static pid_t clone_into(int group)
{
    struct clone_args args = {
        .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (unsigned)group};

    if (group < 0)
        return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    return (pid_t)syscall(SYS_clone3, &args, sizeof args);
}

/* Waits until the child has executed the command or failed: exec and exit both close its
 * end.  Unlike vfork, with a deadline: root inside may stop the child before exec, a frozen cgroup
 * or a lease on the program's file (fcntl(2)) may hold it.  False: it took too long. */
static bool wait_for_exec(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int r;

    do
        r = poll(&p, 1, START_MS);
    while (r < 0 && errno == EINTR);
    return r > 0;
}

int launch(const struct guest_exec_start *s, const struct launch_io *io, pid_t *ret, struct err *e)
{
    AUTO(plan_done) struct plan p = {.io = io};
    AUTO(fd_close) int ours = -1;
    sigset_t all, old;
    int ends[2];
    bool in_time;
    pid_t pid;

    if (plan_make(&p, s, e) < 0)
        return -1;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_set(e, err_code_from_errno(errno), errno, "make a pipe");
    ours = ends[0];
    p.told = ends[1];
    sigemptyset(&p.mask);
    sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, &old);
    shared->sys = 0;
    pid = clone_into(io->group);
    if (pid == 0) {
        child(&p, shared);
        _exit(127);
    }
    (void)sigprocmask(SIG_SETMASK, &old, NULL);
    fd_close(ends[1]); /* keeps errno */
    if (pid < 0)
        return err_set(e, err_code_from_errno(errno), errno, "run '%.200s'", p.argv[0]);
    in_time = wait_for_exec(ours);
    if (!in_time) {
        (void)kill(pid, SIGKILL);
        (void)err_set(e, ERR_TIMEOUT, 0, "'%.160s' did not start within %d s", p.argv[0],
                      START_MS / 1000);
        return err_hint(e, "the sandbox is paused, or something in it stops new processes");
    }
    if (shared->sys != 0)
        return launch_failed(&p, shared, e); /* the reaper collects it as an unknown child */
    *ret = pid;
    return 0;
}
