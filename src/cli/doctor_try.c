/* doctor_try: runs a probe in a child with new namespaces. */
#include "cli/doctor_try.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRY_MS 5000

NORETURN void try_fail(int report_fd, const char *step, int sys)
{
    struct try_result r = {.sys = sys ? sys : EIO};

    (void)snprintf(r.step, sizeof r.step, "%s", step);
    (void)!write(report_fd, &r, sizeof r);
    _exit(1);
}

static void reap(pid_t child)
{
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
}

/* The child reports a failure, or success with errno 0, or dies without a report. */
static void read_report(int fd, struct try_result *ret)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int r = poll(&p, 1, TRY_MS);

    if (r == 0) {
        *ret = (struct try_result){.sys = ETIMEDOUT, .step = "the attempt"};
    } else if (read(fd, ret, sizeof *ret) != (ssize_t)sizeof *ret) {
        *ret = (struct try_result){.sys = EIO, .step = "the attempt"};
    }
    ret->step[sizeof ret->step - 1] = '\0';
}

void try_run(void (*body)(int report_fd), struct try_result *ret)
{
    static const struct try_result fine = {0};
    AUTO(fd_close) int in = -1;
    AUTO(fd_close) int out = -1;
    int fds[2];
    pid_t child;

    if (pipe2(fds, O_CLOEXEC) < 0) {
        *ret = (struct try_result){.sys = errno, .step = "pipe"};
        return;
    }
    in = fds[0];
    out = fds[1];
    child = fork();
    if (child < 0) {
        *ret = (struct try_result){.sys = errno, .step = "fork"};
        return;
    }
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        body(out);
        (void)!write(out, &fine, sizeof fine);
        _exit(0);
    }
    fd_close(TAKE_FD(out));
    read_report(in, ret);
    (void)kill(child, SIGKILL);
    reap(child);
}

static void write_file(int report_fd, const char *path, const char *text)
{
    AUTO(fd_close) int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        try_fail(report_fd, path, errno);
}

void try_unshare(int report_fd, int flags)
{
    char map[64];
    unsigned uid = getuid(), gid = getgid();

    if (uid != 0 || (flags & CLONE_NEWUSER))
        flags |= CLONE_NEWUSER;
    if (unshare(flags) < 0)
        try_fail(report_fd, "unshare", errno);
    if (flags & CLONE_NEWUSER) {
        write_file(report_fd, "/proc/self/setgroups", "deny");
        (void)snprintf(map, sizeof map, "0 %u 1", uid);
        write_file(report_fd, "/proc/self/uid_map", map);
        (void)snprintf(map, sizeof map, "0 %u 1", gid);
        write_file(report_fd, "/proc/self/gid_map", map);
    }
    if ((flags & CLONE_NEWNS) && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        try_fail(report_fd, "make mounts private", errno);
}
