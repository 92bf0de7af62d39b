/* doctor_kernel: probes of kernel features. */
#include "cli/doctor.h"
#include "cli/doctor_try.h"

#include "base/fd.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/landlock.h>
#include <linux/mount.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

/* glibc's <sys/mount.h> conflicts with <linux/mount.h> (glibc 2.36). */
extern int mount(const char *source, const char *target, const char *type, unsigned long flags,
                 const void *data);

bool kernel_is_at_least(uint64_t major, uint64_t minor)
{
    struct utsname u = {0};
    uint64_t own_major, own_minor;
    struct str rest;

    (void)uname(&u);
    if (str_parse_u64(str_cut(str_of(u.release), '.', &rest), &own_major) < 0 || !rest.p ||
        str_parse_u64(str_make(rest.p, strspn(rest.p, "0123456789")), &own_minor) < 0)
        return false;
    return own_major > major || (own_major == major && own_minor >= minor);
}

enum check_state probe_kernel(struct finding *f)
{
    struct utsname u = {0};

    (void)uname(&u);
    finding_detail(f, "Linux %s", u.release);
    if (kernel_is_at_least(6, 1))
        return CHECK_OK;
    return kernel_is_at_least(5, 14) ? CHECK_LIMITED : CHECK_MISSING;
}

static void try_userns(int report)
{
    try_unshare(report, CLONE_NEWUSER);
}

enum check_state probe_userns(struct finding *f)
{
    struct try_result r;

    if (read_number("/proc/sys/user/max_user_namespaces") == 0) {
        finding_detail(f, "user.max_user_namespaces is 0");
        finding_remedy(f, "sudo sysctl -w user.max_user_namespaces=65536");
        return CHECK_MISSING;
    }
    if (getuid() != 0 && read_number("/proc/sys/kernel/unprivileged_userns_clone") == 0) {
        finding_detail(f, "kernel.unprivileged_userns_clone is 0");
        finding_remedy(f, "sudo sysctl -w kernel.unprivileged_userns_clone=1");
        return CHECK_MISSING;
    }
    try_run(try_userns, &r);
    if (r.sys == 0) {
        finding_detail(f, "created one%s", getuid() == 0 ? " as root" : "");
        return CHECK_OK;
    }
    finding_detail(f, "%s: %s", r.step, strerror(r.sys));
    return CHECK_MISSING;
}

static void try_userns_mount(int report)
{
    try_unshare(report, CLONE_NEWUSER | CLONE_NEWNS);
    if (mount("holt-doctor", "/tmp", "tmpfs", 0, "size=1m") < 0)
        try_fail(report, "mount", errno);
}

/* The profile of the build tree this program is in, else the one installed by `make install`. */
static void load_profile(struct finding *f)
{
    char exe[PATH_MAX] = "", tool[PATH_MAX + 32];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    char *name = n > 0 ? strrchr(exe, '/') : NULL, *above;

    if (name)
        *name = '\0';
    above = name ? strrchr(exe, '/') : NULL;
    (void)snprintf(tool, sizeof tool, "%.*s/tools/install", above ? (int)(above - exe) : 0, exe);
    if (above && access(tool, X_OK) == 0)
        finding_remedy(f, "sudo %s --apparmor %s", tool, exe);
    else if (access("/etc/apparmor.d/holt-spawn", F_OK) == 0)
        finding_remedy(f, "sudo apparmor_parser -r /etc/apparmor.d/holt-spawn");
}

/* Since Ubuntu 23.10 an unconfined program may make a user namespace but has no capability in it.
 */
enum check_state probe_apparmor(struct finding *f)
{
    int64_t restricted = read_number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns");
    struct try_result r;

    if (restricted <= 0) {
        finding_detail(f, restricted < 0 ? "this kernel has no such restriction" : "it is off");
        return CHECK_OK;
    }
    if (getuid() == 0) {
        finding_detail(f, "it is on, but does not apply to root");
        return CHECK_OK;
    }
    try_run(try_userns_mount, &r);
    if (r.sys == 0) {
        finding_detail(f, "it is on, and a profile exempts this program");
        return CHECK_OK;
    }
    finding_detail(f, "it is on: %s: %s", r.step, strerror(r.sys));
    load_profile(f);
    return CHECK_MISSING;
}

static void make_dir(int report, const char *path)
{
    if (mkdir(path, 0755) < 0)
        try_fail(report, path, errno);
}

static void try_overlay(int report)
{
    try_unshare(report, CLONE_NEWUSER | CLONE_NEWNS);
    if (mount("holt-doctor", "/tmp", "tmpfs", 0, "size=1m") < 0)
        try_fail(report, "mount tmpfs", errno);
    make_dir(report, "/tmp/lower");
    make_dir(report, "/tmp/lower/kept");
    make_dir(report, "/tmp/upper");
    make_dir(report, "/tmp/work");
    make_dir(report, "/tmp/merged");
    if (mount("holt-doctor", "/tmp/merged", "overlay", 0,
              "lowerdir=/tmp/lower,upperdir=/tmp/upper,workdir=/tmp/work,userxattr") < 0)
        try_fail(report, "mount overlay with userxattr", errno);
    make_dir(report, "/tmp/merged/new");
    /* Removing an entry of the lower layer needs a whiteout or an opaque mark, which an overlay
     * without extended attributes cannot write. */
    if (rmdir("/tmp/merged/kept") < 0)
        try_fail(report, "remove a lower directory", errno);
}

enum check_state probe_overlay(struct finding *f)
{
    struct try_result r;

    try_run(try_overlay, &r);
    if (r.sys == 0) {
        finding_detail(f, "mounted one in a user namespace, wrote and removed files");
        return CHECK_OK;
    }
    finding_detail(f, "%s: %s", r.step, strerror(r.sys));
    if (r.sys == ENODEV)
        finding_remedy(f, "sudo modprobe overlay && echo overlay | sudo tee "
                          "/etc/modules-load.d/overlay.conf");
    return CHECK_MISSING;
}

static void write_map(int report, pid_t child, const char *name)
{
    char path[64];
    int fd;

    (void)snprintf(path, sizeof path, "/proc/%d/%s", (int)child, name);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "0 0 1", 5) < 0)
        try_fail(report, name, errno);
    (void)close(fd);
}

/* A process that only holds a user namespace open for the mount's id map. */
static int open_mapped_userns(int report)
{
    int pipe_fds[2];
    char path[64];
    int ns;
    pid_t child;

    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        try_fail(report, "pipe", errno);
    child =
        (pid_t)syscall(SYS_clone, (unsigned long)(CLONE_NEWUSER | SIGCHLD), NULL, NULL, NULL, NULL);
    if (child < 0)
        try_fail(report, "clone a user namespace", errno);
    if (child == 0) {
        char byte;

        (void)close(pipe_fds[1]);
        (void)!read(pipe_fds[0], &byte, 1); /* until the parent has used it */
        _exit(0);
    }
    write_map(report, child, "uid_map");
    write_map(report, child, "gid_map");
    (void)snprintf(path, sizeof path, "/proc/%d/ns/user", (int)child);
    ns = open(path, O_RDONLY | O_CLOEXEC);
    (void)close(pipe_fds[1]);
    if (ns < 0)
        try_fail(report, path, errno);
    return ns;
}

static char idmap_dir[PATH_MAX]; /* for the child; "": a tmpfs of its own */

static void try_idmap(int report)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_IDMAP};
    int tree, ns;

    try_unshare(report, CLONE_NEWNS);
    if (idmap_dir[0] == '\0' && mount("holt-doctor", "/tmp", "tmpfs", 0, "size=1m") < 0)
        try_fail(report, "mount tmpfs", errno);
    tree = (int)syscall(SYS_open_tree, AT_FDCWD, idmap_dir[0] ? idmap_dir : "/tmp",
                        OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (tree < 0)
        try_fail(report, "open_tree", errno);
    ns = open_mapped_userns(report);
    attr.userns_fd = (__u64)(unsigned)ns;
    if (syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attr, sizeof attr) < 0)
        try_fail(report, "mount_setattr", errno);
}

/* As root, on the file system of the layers; other users can map only their own mounts. */
enum check_state probe_idmap(struct finding *f)
{
    AUTO(mem_free) char *place = state_place();
    struct try_result r;

    (void)snprintf(idmap_dir, sizeof idmap_dir, "%s", getuid() == 0 ? place : "");
    try_run(try_idmap, &r);
    if (r.sys == 0) {
        finding_detail(f, "mapped a mount of %s", idmap_dir[0] ? idmap_dir : "tmpfs");
        return CHECK_OK;
    }
    finding_detail(f, "%s: %s", r.step, strerror(r.sys));
    if (r.sys == ENOSYS)
        return CHECK_MISSING;
    if (getuid() != 0)
        finding_detail(f, "only root can map mounts of this host's disks (%s: %s)", r.step,
                       strerror(r.sys));
    return CHECK_LIMITED;
}

enum check_state probe_pidfd(struct finding *f)
{
    AUTO(fd_close) int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

    if (fd < 0) {
        finding_detail(f, "pidfd_open: %s", strerror(errno));
        return CHECK_MISSING;
    }
    if (syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0) < 0) {
        finding_detail(f, "pidfd_send_signal: %s", strerror(errno));
        return CHECK_LIMITED;
    }
    finding_detail(f, "pidfd_open and pidfd_send_signal work");
    return CHECK_OK;
}

/* With a descriptor that is not a cgroup, a kernel that knows the flag fails with EBADF and makes
 * no child. */
enum check_state probe_clone3(struct finding *f)
{
    AUTO(fd_close) int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    struct clone_args args = {
        .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (__u64)(unsigned)null};
    long r;

    r = syscall(SYS_clone3, &args, sizeof args);
    if (r == 0)
        _exit(0); /* impossible, but a child must not continue here */
    if (r > 0)
        (void)waitpid((pid_t)r, NULL, 0);
    if (r > 0 || errno == EBADF) {
        finding_detail(f, "clone3 knows CLONE_INTO_CGROUP");
        return CHECK_OK;
    }
    finding_detail(f, "clone3 with CLONE_INTO_CGROUP: %s", strerror(errno));
    return CHECK_LIMITED;
}

enum check_state probe_seccomp(struct finding *f)
{
    uint32_t notify = SECCOMP_RET_USER_NOTIF, trap = SECCOMP_RET_ERRNO;

    if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &trap) < 0) {
        finding_detail(f, "seccomp filters: %s", strerror(errno));
        return CHECK_MISSING;
    }
    if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &notify) < 0) {
        finding_detail(f, "filters work, user notification does not");
        return CHECK_LIMITED;
    }
    finding_detail(f, "filters and user notification work");
    return CHECK_OK;
}

enum check_state probe_landlock(struct finding *f)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

    if (abi < 1) {
        finding_detail(f, errno == EOPNOTSUPP ? "built in, switched off at boot" : "%s",
                       strerror(errno));
        return CHECK_MISSING;
    }
    finding_detail(f, "ABI %ld", abi);
    return CHECK_OK;
}

static void try_netns(int report)
{
    try_unshare(report, CLONE_NEWNET);
}

enum check_state probe_netns(struct finding *f)
{
    struct try_result r;

    try_run(try_netns, &r);
    if (r.sys == 0) {
        finding_detail(f, "made one");
        return CHECK_OK;
    }
    finding_detail(f, "%s: %s", r.step, strerror(r.sys));
    return CHECK_MISSING;
}

/* Requests the rule set's generation in a network namespace of its own: it succeeds with nftables,
 * and loads the module if permitted. */
static void try_nft(int report)
{
    struct {
        struct nlmsghdr h;
        struct nfgenmsg g;
    } ask = {
        .h = {.nlmsg_len = sizeof ask,
              .nlmsg_type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETGEN,
              .nlmsg_flags = NLM_F_REQUEST},
        .g = {.nfgen_family = AF_UNSPEC, .version = NFNETLINK_V0},
    };
    union {
        struct nlmsghdr h;
        char bytes[1024];
    } answer;
    ssize_t n;
    int fd;

    try_unshare(report, CLONE_NEWNET);
    fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
    if (fd < 0)
        try_fail(report, "netfilter socket", errno);
    if (send(fd, &ask, sizeof ask, 0) < 0)
        try_fail(report, "ask nftables", errno);
    n = recv(fd, &answer, sizeof answer, 0);
    if (n < (ssize_t)sizeof answer.h)
        try_fail(report, "answer of nftables", errno);
    if (answer.h.nlmsg_type == NLMSG_ERROR) {
        struct nlmsgerr e;

        memcpy(&e, NLMSG_DATA(&answer.h), sizeof e);
        try_fail(report, "nftables", -e.error);
    }
}

enum check_state probe_nft(struct finding *f)
{
    struct try_result r;

    try_run(try_nft, &r);
    if (r.sys == 0) {
        finding_detail(f, "answer in a network namespace");
        return CHECK_OK;
    }
    finding_detail(f, "%s: %s", r.step, strerror(r.sys));
    return CHECK_MISSING;
}
