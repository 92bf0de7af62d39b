/* fake_box: one sandbox of the fake driver: a directory and a process. */
#include "driver/fake/fake_box.h"

#include "base/fd.h"
#include "base/mem.h"
#include "driver/procs.h"
#include "driver/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define LISTEN_FD 9 /* init's descriptor */

static int open_pidfd(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

static bool is_alive(const struct box *b)
{
    struct proc p;

    return b->pid > 0 && proc_read(b->pid, &p) == 0 && p.start == b->start && p.state != 'Z';
}

void box_done(struct box *b)
{
    fd_close(b->pidfd);
    b->pidfd = -1;
}

/* ---- meta ---- */

int box_save(const struct box_home *h, const struct box *b)
{
    AUTO(mem_free) char *path = xasprintf("%s/meta", b->id);
    AUTO(mem_free) char *fresh = xasprintf("%s/meta.new", b->id);
    AUTO(mem_free)
    char *text =
        xasprintf("%d %" PRIu64 " %d %s\n", b->pid, b->start, b->confirmed, h->installation);
    AUTO(fd_close) int fd = openat(h->dir, fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int r = fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));

    if (r == 0 && renameat(h->dir, fresh, h->dir, path) < 0)
        r = -errno;
    return r;
}

int box_load(const struct box_home *h, const char *id, struct box *ret, struct err *e)
{
    AUTO(mem_free) char *path = xasprintf("%s/meta", id);
    AUTO(fd_close) int fd = openat(h->dir, path, O_RDONLY | O_CLOEXEC);
    char text[256], whose[64];
    struct box b = {.pidfd = -1};
    int confirmed;
    ssize_t n;

    if (fd < 0)
        return err_set(e, ERR_NOT_FOUND, errno, "there is no sandbox '%s'", id);
    n = read(fd, text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    if (sscanf(text, "%d %" SCNu64 " %d %63s", &b.pid, &b.start, &confirmed, whose) != 4)
        return err_set(e, ERR_INTERNAL, 0, "the notes on sandbox '%s' cannot be read", id);
    if (strcmp(whose, h->installation) != 0)
        return err_set(e, ERR_NOT_FOUND, 0, "sandbox '%s' is another installation's", id);
    (void)snprintf(b.id, sizeof b.id, "%s", id);
    b.confirmed = confirmed != 0;
    b.pidfd = b.pid > 0 ? open_pidfd(b.pid) : -1;
    /* checked while holding the pidfd: it is the same process */
    if (b.pidfd < 0 || !is_alive(&b)) {
        box_done(&b);
        b.pid = 0;
    }
    *ret = b;
    return 0;
}

/* ---- start ---- */

/* Through /proc, since sun_path holds 108 bytes and a state directory may be anywhere. */
static void socket_address(int dir, const char *id, struct sockaddr_un *to)
{
    *to = (struct sockaddr_un){.sun_family = AF_UNIX};
    (void)snprintf(to->sun_path, sizeof to->sun_path, "/proc/self/fd/%d/%s/init.sock", dir, id);
}

static int listen_at(const struct box_home *h, const char *id, struct err *e)
{
    AUTO(mem_free) char *path = xasprintf("%s/init.sock", id);
    AUTO(fd_close) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un at;

    socket_address(h->dir, id, &at);
    (void)unlinkat(h->dir, path, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) < 0 || listen(fd, 8) < 0)
        return err_set(e, ERR_INTERNAL, errno, "listen for sandbox '%s'", id);
    return TAKE_FD(fd);
}

static int run_init(const struct box_home *h, struct box *b, int listener, struct err *e)
{
    AUTO(mem_free) char *cwd = xasprintf("/proc/self/fd/%d/%s/root", h->dir, b->id);
    char number[] = {'0' + LISTEN_FD, '\0'}, name[] = "holt-init", option[] = "--listen-fd";
    char *argv[] = {name, option, number, NULL}, *envp[] = {NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none;
    int r;

    sigemptyset(&none);
    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawnattr_init(&how);
    (void)posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
    (void)posix_spawnattr_setsigmask(&how, &none);
    r = posix_spawn_file_actions_addchdir_np(&files, cwd);
    for (int fd = 0; fd <= 2 && r == 0; fd++) /* it outlives us: do not share our terminal */
        r = posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
    if (r == 0)
        r = posix_spawn_file_actions_adddup2(&files, listener, LISTEN_FD);
    if (r == 0)
        r = posix_spawn(&b->pid, h->init, &files, &how, argv, envp);
    (void)posix_spawn_file_actions_destroy(&files);
    (void)posix_spawnattr_destroy(&how);
    return r != 0 ? err_set(e, ERR_INTERNAL, r, "run '%s'", h->init) : 0;
}

static int note_process(const struct box_home *h, struct box *b, struct err *e)
{
    struct proc p;
    int r;

    b->pidfd = open_pidfd(b->pid); /* our child, not yet waited for: the pid is its own */
    if (b->pidfd < 0)
        return err_set(e, ERR_INTERNAL, errno, "watch the init of sandbox '%s'", b->id);
    r = proc_read(b->pid, &p);
    if (r == 0) {
        b->start = p.start;
        r = box_save(h, b);
    }
    return r < 0 ? err_set(e, ERR_INTERNAL, -r, "note the init of sandbox '%s'", b->id) : 0;
}

static int start_in(const struct box_home *h, struct box *b, struct err *e)
{
    AUTO(fd_close) int listener = listen_at(h, b->id, e);
    /* dup2 to its own number would leave close-on-exec set. */
    AUTO(fd_close) int other = listener == LISTEN_FD ? fcntl(listener, F_DUPFD_CLOEXEC, 10) : -1;

    if (listener < 0 || run_init(h, b, other >= 0 ? other : listener, e) < 0)
        return -1;
    if (note_process(h, b, e) == 0)
        return 0;
    (void)kill(b->pid, SIGKILL);
    (void)waitpid(b->pid, NULL, 0);
    box_done(b);
    return -1;
}

int box_start(const struct box_home *h, bool again, struct box *b, struct err *e)
{
    AUTO(mem_free) char *root = xasprintf("%s/root", b->id);
    struct stat st;

    b->pidfd = -1;
    if (again && fstatat(h->dir, root, &st, 0) < 0)
        return err_set(e, ERR_NOT_FOUND, 0, "sandbox '%s' has no files to start from", b->id);
    if (!again && mkdirat(h->dir, b->id, 0700) < 0)
        return err_set(e, errno == EEXIST ? ERR_CONFLICT : err_code_from_errno(errno), errno,
                       "make the directory of sandbox '%s'", b->id);
    if ((!again && mkdirat(h->dir, root, 0755) < 0) || start_in(h, b, e) < 0) {
        if (e->code == ERR_NONE)
            (void)err_set(e, err_code_from_errno(errno), errno, "make '%s'", root);
        if (!again)
            (void)!tree_remove(h->dir, b->id);
        return -1;
    }
    return 0;
}

int box_connect(const struct box_home *h, const char *id)
{
    AUTO(fd_close) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_un at;

    socket_address(h->dir, id, &at);
    if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at) < 0)
        return -errno;
    return TAKE_FD(fd);
}

/* ---- signals ---- */

/* init and its descendants as they are now; empty if init has ended. */
static int look(const struct box *b, struct procs *ret)
{
    int r;

    *ret = (struct procs){0};
    if (!is_alive(b))
        return 0;
    r = procs_look(ret);
    if (r < 0)
        return r;
    procs_keep_tree(ret, b->pid);
    if (ret->count > 0 && ret->items[0].start != b->start)
        ret->count = 0;
    return 0;
}

bool box_kill(struct box *b, enum driver_scope scope, bool patient)
{
    AUTO(procs_done) struct procs p = {0};
    size_t left = 0;

    if (look(b, &p) < 0)
        return false;
    for (size_t i = 1; i < p.count; i++) {
        bool zombie = p.items[i].state == 'Z';

        if (!zombie)
            (void)kill(p.items[i].pid, SIGKILL);
        left += !zombie || patient;
    }
    if (left > 0)
        return false;
    if (scope == DRIVER_WORK || p.count == 0)
        return true;
    (void)syscall(SYS_pidfd_send_signal, b->pidfd, SIGKILL, NULL, 0);
    return false; /* the next look sees it as dead */
}

int box_reap(struct box *b, int *ret_status, bool *ret_known)
{
    siginfo_t si = {0};

    if (b->pid == 0)
        return 0;
    *ret_known = waitid((idtype_t)P_PIDFD, (id_t)b->pidfd, &si, WEXITED | WNOHANG) == 0;
    if (*ret_known && si.si_pid == 0)
        return 0;
    if (!*ret_known && is_alive(b))
        return 0; /* not our child, and alive */
    *ret_status = si.si_code == CLD_EXITED ? W_EXITCODE(si.si_status, 0) : si.si_status;
    b->pid = 0;
    return 1;
}

int box_pause(struct box *b, bool on, struct err *e)
{
    AUTO(procs_done) struct procs p = {0};
    int r = look(b, &p);

    if (r < 0)
        return err_set(e, ERR_INTERNAL, -r, "look at the processes of sandbox '%s'", b->id);
    if (p.count == 0)
        return err_set(e, ERR_CONFLICT, 0, "sandbox '%s' does not run", b->id);
    for (size_t i = 1; i < p.count; i++)
        (void)kill(p.items[i].pid, on ? SIGSTOP : SIGCONT);
    return 0;
}

int box_stats(const struct box_home *h, const struct box *b, struct driver_stats *ret,
              struct err *e)
{
    AUTO(mem_free) char *root = xasprintf("%s/root", b->id);
    AUTO(procs_done) struct procs p = {0};
    int r = look(b, &p);

    if (r < 0)
        return err_set(e, ERR_INTERNAL, -r, "look at the processes of sandbox '%s'", b->id);
    *ret = (struct driver_stats){.disk_bytes = tree_bytes(h->dir, root)};
    for (size_t i = 0; i < p.count; i++) {
        ret->memory_bytes += p.items[i].rss_bytes;
        ret->cpu_us += p.items[i].cpu_us;
        ret->pids++;
    }
    ret->memory_peak_bytes = ret->memory_bytes; /* /proc keeps no history */
    return 0;
}
