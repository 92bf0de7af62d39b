/* netns: network namespaces made in advance. */

/* Making one inside the clone blocks the parent for 0.5 ms; entering a ready one costs a
 * tenth.  Each belongs to an empty user namespace of its own: the sandbox's root has no rights over
 * it, and the kernel sends no uevents there, as it does to all that belong to the host's user
 * namespace.  holt-spawn itself uses no network, so it moves from one to the next. */
#include "spawn/host.h"

#include "base/fd.h"
#include "spawn/guards.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define STACK (64 * 1024)

static int write_file(const char *path, const char *text)
{
    AUTO(fd_close) int fd = open(path, O_WRONLY | O_CLOEXEC);

    return fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
}

static int loopback_up(void)
{
    struct ifreq ifr = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    AUTO(fd_close) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &ifr) < 0)
        return -errno;
    return 0;
}

/* In a child that shares our memory and descriptors, while we wait (vfork(2)): it opens the
 * namespace for us, and exits. */
static int netns_child(void *arg)
{
    int *ret = arg, r = loopback_up();

    /* Low ports are free to every user inside: the sandbox's root has no capability over this
     * namespace. */
    (void)!write_file("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
    *ret = r < 0 ? r : open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (r == 0 && *ret < 0)
        *ret = -errno;
    _exit(0);
}

static int make_one(struct err *e)
{
    static char stack[STACK] __attribute__((aligned(16)));
    int flags = CLONE_VM | CLONE_VFORK | CLONE_FILES | CLONE_NEWNET | SIGCHLD;
    int fd = -ECHILD, status;
    pid_t pid;

    if (!guard_left_out("uevents"))
        flags |= CLONE_NEWUSER;
    pid = clone(netns_child, stack + sizeof stack, flags, &fd);
    if (pid < 0)
        return err_set(e, err_code_from_errno(errno), errno, "make a network namespace");
    (void)waitpid(pid, &status, 0);
    return fd < 0 ? err_set(e, err_code_from_errno(-fd), -fd, "set up a network namespace") : fd;
}

bool netns_fill_one(void)
{
    struct err e;
    int fd;

    if (host.netns_n >= host.netns_want)
        return false;
    fd = make_one(&e);
    if (fd < 0)
        return false; /* the create that needs one will report why */
    host.netns[host.netns_n++] = fd;
    return true;
}

int netns_enter(struct err *e)
{
    AUTO(fd_close) int fd = -1;

    if (guard_left_out("network"))
        return 0;
    fd = host.netns_n > 0 ? host.netns[--host.netns_n] : make_one(e);
    if (fd < 0)
        return -1;
    if (setns(fd, CLONE_NEWNET) < 0)
        return err_set(e, err_code_from_errno(errno), errno, "enter a network namespace");
    return 0;
}
