/* step_clone: clones the child into its namespaces and cgroup. */

/* Into its own user, pid, mount, ipc and uts namespaces, a network namespace made in advance and
 * its v2 cgroup; it waits until its ids are mapped, and then for the claim. */
#include "spawn/sandbox.h"

#include "base/fd.h"
#include "base/point.h"
#include "spawn/guards.h"
#include "spawn/mnt.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define INIT_OOM_ADJ "100" /* above the host's programs, below its own commands (init/launch.c) */

static void init_child(void *arg)
{
    setup_child(arg);
}

/* By a parked process, if one is in the sandbox's v1 groups; it enters the network namespace that
 * step_socket moved holt-spawn into. */
static long clone_by_parked(struct sandbox *s, struct clone_args *args)
{
    AUTO(fd_close) int netns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    long pid = netns < 0 ? -errno : parked_clone(s->v1.by, args, netns, init_child, s);

    parked_drop(s->v1.by);
    s->v1.by = NULL;
    s->v1.entered = pid > 0;
    return pid;
}

static long clone_child(struct sandbox *s, struct clone_args *args)
{
    long pid;

    if (s->v1.by)
        return clone_by_parked(s, args);
    pid = syscall(SYS_clone3, args, sizeof *args);
    if (pid == 0)
        setup_child(s);
    return pid < 0 ? -errno : pid;
}

int step_clone(struct sandbox *s, struct err *e)
{
    int pidfd = -1;
    struct clone_args args = {
        .flags = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS |
                 CLONE_PIDFD | CLONE_CLEAR_SIGHAND,
        .pidfd = (uint64_t)(uintptr_t)&pidfd,
        .exit_signal = SIGCHLD,
    };
    long pid;

    if (guard_left_out("queues"))
        args.flags &= ~(uint64_t)CLONE_NEWIPC;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s->go) < 0 ||
        pipe2(s->report, O_CLOEXEC | O_NONBLOCK) < 0 || pipe2(s->more, O_CLOEXEC) < 0)
        return err_set(e, err_code_from_errno(errno), errno, "make a pipe");
    s->dev_tree = mnt_clone(host.dev, true);
    if (s->dev_tree < 0)
        return err_set(e, ERR_UNSUPPORTED, -s->dev_tree, "detach the shared /dev");
    if (s->oci && (s->init_tree = host_init_tree(s->oci, e)) < 0)
        return -1;
    if (s->cg2 >= 0) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (unsigned)s->cg2;
    }
    pid = clone_child(s, &args);
    if (pid < 0)
        return err_set(e, err_code_from_errno((int)-pid), (int)-pid, "clone");
    point_reached("cloned");
    s->pid = (pid_t)pid;
    s->ended.fd = pidfd;
    fd_close(s->go[0]);
    fd_close(s->report[1]);
    fd_close(s->more[0]);
    fd_close(s->listener);
    fd_close(s->dev_tree);
    fd_close(s->init_tree);
    fd_close(s->cg2_work);
    s->go[0] = s->report[1] = s->more[0] = s->listener = s->dev_tree = -1;
    s->init_tree = s->cg2_work = -1;
    return 0;
}

/* The process has ended: sandbox.c calls this after reaping it. */
int undo_clone(struct sandbox *s)
{
    for (int i = 0; i < 2; i++) {
        if (s->go[i] != s->built.fd)
            fd_close(s->go[i]);
        if (s->report[i] != s->told.fd)
            fd_close(s->report[i]);
        fd_close(s->more[i]);
        s->go[i] = s->report[i] = s->more[i] = -1;
    }
    fd_close(s->dev_tree);
    fd_close(s->init_tree);
    s->dev_tree = s->init_tree = -1;
    loop_remove(&s->told);
    loop_remove(&s->built);
    loop_remove(&s->ended);
    return 0;
}

static int write_map(pid_t pid, const char *which, uint32_t base)
{
    char path[48], text[48];
    AUTO(fd_close) int fd = -1;

    (void)snprintf(path, sizeof path, "/proc/%d/%s", pid, which);
    if (host.rootless && host.many_ids) /* a line may not span two lines of our own map */
        (void)snprintf(text, sizeof text, "0 0 1\n1 1 %d\n", HOST_IDS - 1);
    else
        (void)snprintf(text, sizeof text, "0 %u %u\n", base, host.many_ids ? HOST_IDS : 1);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
}

int step_id_map(struct sandbox *s, struct err *e)
{
    uint32_t base = idmap_base(s->ids.slot);
    int r = write_map(s->pid, "uid_map", base);

    if (r == 0)
        r = write_map(s->pid, "gid_map", base);
    return r < 0 ? err_set(e, err_code_from_errno(-r), -r, "map its users") : 0;
}

/* A command may lower its score to init's (proc(5)), and init starts with ours, which may be far
 * below all others: the host's programs would then be killed for a sandbox's memory.  Written with
 * CAP_SYS_RESOURCE, it is the lowest that anything inside can have. */
int step_oom_score(struct sandbox *s, struct err *e)
{
    char path[48];
    AUTO(fd_close) int fd = -1;
    int r;

    if (guard_left_out("oom_score"))
        return 0;
    (void)snprintf(path, sizeof path, "/proc/%d/oom_score_adj", s->pid);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    r = fd < 0 ? -errno : fd_write_all(fd, INIT_OOM_ADJ, sizeof INIT_OOM_ADJ - 1);
    return r < 0 ? err_set(e, err_code_from_errno(-r), -r, "set its oom_score_adj") : 0;
}

/* From here on the child is root in its namespaces.  Without a byte: holt-spawn failed or died, so
 * exit. */
int step_wait(struct sandbox *s, struct err *e)
{
    char byte;
    ssize_t n;

    do
        n = read(s->go[0], &byte, 1);
    while (n < 0 && errno == EINTR);
    if (n != 1)
        _exit(1);
    if (syscall(SYS_setresgid, 0, 0, 0) < 0 || syscall(SYS_setresuid, 0, 0, 0) < 0)
        return err_set(e, ERR_INTERNAL, errno, "become root inside");
    if (unshare(CLONE_NEWCGROUP) < 0) /* after the attach, or it would show the host's paths */
        return err_set(e, ERR_INTERNAL, errno, "make a cgroup namespace");
    return 0;
}

int step_hostname(struct sandbox *s, struct err *e)
{
    if (sethostname(s->hostname, strlen(s->hostname)) < 0)
        return err_set(e, ERR_INTERNAL, errno, "set '%s'", s->hostname);
    return 0;
}
