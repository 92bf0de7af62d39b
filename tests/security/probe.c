/* probe: escape attempts from inside a sandbox, one per sub-command.  Static, so that it runs in
 * any image.  Prints one line per thing tried, "NAME RESULT": RESULT is `ok` where the attempt
 * succeeded, the errno's name where it was refused, or what was seen.  It judges nothing:
 * test_escape.py does. usage: probe SUB [ARG...]; `probe calls` runs every row of the table of
 * system calls. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

static const char *errno_name(int e)
{
    static const struct {
        int number;
        const char *name;
    } names[] = {
        {EPERM, "EPERM"},           {EACCES, "EACCES"},   {ENOSYS, "ENOSYS"},
        {ENOENT, "ENOENT"},         {EROFS, "EROFS"},     {EINVAL, "EINVAL"},
        {ESRCH, "ESRCH"},           {EBADF, "EBADF"},     {EFAULT, "EFAULT"},
        {ENODEV, "ENODEV"},         {ENXIO, "ENXIO"},     {EAFNOSUPPORT, "EAFNOSUPPORT"},
        {ENOSPC, "ENOSPC"},         {EIO, "EIO"},         {EAGAIN, "EAGAIN"},
        {ENOTTY, "ENOTTY"},         {ELOOP, "ELOOP"},     {ENETUNREACH, "ENETUNREACH"},
        {EBUSY, "EBUSY"},           {EMFILE, "EMFILE"},   {ECONNREFUSED, "ECONNREFUSED"},
        {EEXIST, "EEXIST"},         {ENOTDIR, "ENOTDIR"}, {EPROTONOSUPPORT, "EPROTONOSUPPORT"},
        {ENOMEM, "ENOMEM"},         {EUSERS, "EUSERS"},   {EADDRNOTAVAIL, "EADDRNOTAVAIL"},
        {ETXTBSY, "ETXTBSY"},       {EISDIR, "EISDIR"},   {ESOCKTNOSUPPORT, "ESOCKTNOSUPPORT"},
        {EOPNOTSUPP, "EOPNOTSUPP"},
    };
    static char other[16];

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (names[i].number == e)
            return names[i].name;
    (void)snprintf(other, sizeof other, "errno%d", e);
    return other;
}

static void say(const char *name, long r)
{
    (void)printf("%s %s\n", name, r < 0 ? errno_name(errno) : "ok");
    (void)fflush(stdout);
}

/* ---- system calls: one row each ---- */

static long call_unshare(int flags)
{
    pid_t pid = fork();
    int status;

    if (pid == 0)
        _exit(syscall(SYS_unshare, flags) < 0 ? errno : 0);
    (void)waitpid(pid, &status, 0);
    errno = WIFEXITED(status) ? WEXITSTATUS(status) : EFAULT;
    return errno == 0 ? 0 : -1;
}

static long call_clone(unsigned long flags)
{
    long pid = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);

    if (pid == 0)
        _exit(0);
    if (pid > 0)
        (void)waitpid((pid_t)pid, NULL, 0);
    return pid;
}

static long call_clone3(uint64_t flags)
{
    uint64_t args[11] = {[0] = flags, [4] = SIGCHLD};
    long pid = syscall(SYS_clone3, args, sizeof args);

    if (pid == 0)
        _exit(0);
    if (pid > 0)
        (void)waitpid((pid_t)pid, NULL, 0);
    return pid;
}

static long call_setns(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    return fd < 0 ? -1 : syscall(SYS_setns, fd, 0);
}

static long call_setns_pidfd(void)
{
    long fd = syscall(SYS_pidfd_open, 1, 0);

    return fd < 0 ? -1 : syscall(SYS_setns, fd, CLONE_NEWNS | CLONE_NEWNET);
}

static long call_bpf(void)
{
    uint64_t attr[16] = {2 | (4ULL << 32), 4 | (1ULL << 32)}; /* an array of one */

    return syscall(SYS_bpf, 0, attr, sizeof attr);
}

static long call_perf(void)
{
    uint64_t attr[16] = {1 | (128ULL << 32), 1};

    return syscall(SYS_perf_event_open, attr, 0, -1, -1, 0);
}

static long call_io_uring(void)
{
    char params[256] = {0};

    return syscall(SYS_io_uring_setup, 4, params);
}

static long call_handle(void)
{
    struct {
        unsigned bytes;
        int type;
        unsigned char handle[128];
    } h = {.bytes = 8, .type = 1, .handle = {2}}; /* inode 2: a filesystem's root */
    int fd = open("/usr", O_RDONLY | O_DIRECTORY);

    return syscall(SYS_open_by_handle_at, fd, &h, O_RDONLY);
}

static long call_name_to_handle(void)
{
    unsigned h[40] = {128};
    int id;

    return syscall(SYS_name_to_handle_at, AT_FDCWD, "/usr", h, &id, 0);
}

static long call_settime(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return syscall(SYS_clock_settime, CLOCK_REALTIME, &now);
}

static long call_settimeofday(void)
{
    struct timeval tv = {time(NULL), 0};

    return syscall(SYS_settimeofday, &tv, NULL);
}

static long call_adjtimex(void)
{
    int buf[64] = {0x0010 /* ADJ_TIMECONST */};

    return syscall(SYS_adjtimex, buf);
}

static long call_socket(unsigned long family, int type, int protocol)
{
    return syscall(SYS_socket, family, type, protocol);
}

static long call_netlink_link(void) /* set lo down: RTM_SETLINK */
{
    struct {
        uint32_t len;
        uint16_t type, flags;
        uint32_t seq, pid;
        uint8_t family, pad;
        uint16_t link_type;
        int32_t index;
        uint32_t link_flags, change;
    } q = {.len = sizeof q, .type = 19, .flags = 5, .seq = 1, .index = 1, .change = 1};
    char reply[512];
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0);
    int error;

    if (fd < 0 || send(fd, &q, sizeof q, 0) < 0 || recv(fd, reply, sizeof reply, 0) < 20)
        return -1;
    memcpy(&error, reply + 16, sizeof error);
    errno = -error;
    return error ? -1 : 0;
}

static long call_uevent(void) /* tells of a device that is none, as udev does */
{
    struct sockaddr_nl all = {.nl_family = AF_NETLINK, .nl_groups = 1};
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 15);

    return fd < 0 ? -1 : sendto(fd, "add@/x", 7, 0, (struct sockaddr *)&all, sizeof all);
}

static long call_socketpair(unsigned long family, int type)
{
    int ends[2];

    return syscall(SYS_socketpair, family, type, 0, ends);
}

static long call_terminal(unsigned long request) /* its argument: a number, or a byte to type */
{
    int master = open("/dev/ptmx", O_RDWR | O_NOCTTY), unlocked = 0, slave;
    int value[4] = {request == TIOCSTI ? 'x' : 0};

    if (master < 0 || ioctl(master, TIOCSPTLCK, &unlocked) < 0)
        return -1;
    slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY);
    return slave < 0 ? -1 : syscall(SYS_ioctl, slave, request, value);
}

static long call_tiocsti(void)
{
    return call_terminal(TIOCSTI);
}

static long call_tiocsti_high(void)
{
    return syscall(SYS_ioctl, 0, 0xff00000000UL | TIOCSTI, "x");
}

static long call_process_vm(void)
{
    char byte;
    struct iovec here = {&byte, 1}, there = {(void *)0x400000, 1};

    return syscall(SYS_process_vm_readv, 1, &here, 1, &there, 1, 0);
}

static long call_pidfd_getfd(void)
{
    long fd = syscall(SYS_pidfd_open, 1, 0);

    return fd < 0 ? -1 : syscall(SYS_pidfd_getfd, fd, 3, 0);
}

static long call_prlimit_init(void)
{
    struct rlimit r = {1, 1};

    return syscall(SYS_prlimit64, 1, RLIMIT_CPU, &r, NULL);
}

static long call_prlimit_up(void)
{
    struct rlimit r;

    (void)getrlimit(RLIMIT_NOFILE, &r);
    r.rlim_cur = ++r.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &r);
}

static long call_fifo(void)
{
    struct sched_param p = {.sched_priority = 50};

    return syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &p);
}

static long call_capset(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{~0U, ~0U, ~0U}, {~0U, ~0U, ~0U}};

    return syscall(SYS_capset, &head, data);
}

static long call_reboot(void) /* CAD off: harmless if it works */
{
    return syscall(SYS_reboot, 0xfee1dead, 0x28121969, 0, NULL);
}

static long call_module(void)
{
    return syscall(SYS_init_module, "x", 1, "");
}

static long call_ptrace(long request)
{
    long r = ptrace(request, 1, NULL, NULL);

    if (r >= 0)
        (void)ptrace(PTRACE_DETACH, 1, NULL, NULL);
    return r;
}

static long call_seccomp_off(void)
{
    return prctl(PR_SET_SECCOMP, 0, 0, 0, 0);
}

static long call_quotactl(void)
{
    return syscall(SYS_quotactl, 0x80000100, "/dev/vda", 0, NULL);
}

struct row {
    const char *name;
    long (*call)(void);
};

#define ROW(name, expression)                                                                      \
    static long name(void)                                                                         \
    {                                                                                              \
        return (expression);                                                                       \
    }
ROW(unshare_user, call_unshare(CLONE_NEWUSER))
ROW(unshare_mnt, call_unshare(CLONE_NEWNS))
ROW(unshare_pid, call_unshare(CLONE_NEWPID))
ROW(unshare_net, call_unshare(CLONE_NEWNET))
ROW(unshare_ipc, call_unshare(CLONE_NEWIPC))
ROW(unshare_uts, call_unshare(CLONE_NEWUTS))
ROW(unshare_cgroup, call_unshare(CLONE_NEWCGROUP))
ROW(unshare_time, call_unshare(0x80))
ROW(clone_user, call_clone(CLONE_NEWUSER))
ROW(clone_user_high, call_clone(CLONE_NEWUSER | 0x100000000UL))
ROW(clone_mnt, call_clone(CLONE_NEWNS))
ROW(clone_net, call_clone(CLONE_NEWNET))
ROW(clone3_plain, call_clone3(0))
ROW(clone3_user, call_clone3(CLONE_NEWUSER))
ROW(clone3_cgroup, call_clone3(0x200000000ULL))
ROW(setns_self, call_setns("/proc/self/ns/mnt"))
ROW(setns_init_net, call_setns("/proc/1/ns/net"))
ROW(setns_pidfd, call_setns_pidfd())
ROW(mount_tmpfs, mount("x", "/mnt", "tmpfs", 0, NULL))
ROW(mount_proc, mount("proc", "/mnt", "proc", 0, NULL))
ROW(mount_sysfs, mount("sysfs", "/mnt", "sysfs", 0, NULL))
ROW(mount_cgroup, mount("cgroup", "/mnt", "cgroup", 0, "memory"))
ROW(mount_cgroup2, mount("cgroup2", "/mnt", "cgroup2", 0, NULL))
ROW(mount_bind, mount("/", "/mnt", NULL, MS_BIND, NULL))
ROW(mount_disk, mount("/dev/vda", "/mnt", "ext4", 0, NULL))
ROW(remount_usr, mount(NULL, "/usr", NULL, MS_REMOUNT | MS_BIND, NULL))
ROW(remount_proc_sys, mount(NULL, "/proc/sys", NULL, MS_REMOUNT | MS_BIND, NULL))
ROW(umount_proc_sys, umount2("/proc/sys", MNT_DETACH))
ROW(umount_keys, umount2("/proc/keys", MNT_DETACH))
ROW(pivot, syscall(SYS_pivot_root, "/", "/mnt"))
ROW(fsopen_, syscall(430, "tmpfs", 0))
ROW(open_tree_, syscall(428, AT_FDCWD, "/", 1))
ROW(move_mount_, syscall(429, AT_FDCWD, "/usr", AT_FDCWD, "/mnt", 0))
ROW(mount_setattr_, syscall(442, AT_FDCWD, "/usr", 0, (uint64_t[4]){0, 1}, 32))
ROW(open_tree_attr_, syscall(467, AT_FDCWD, "/", 1, NULL, 0))
ROW(listmount_, syscall(458, (uint64_t[3]){24, ~0ULL, 0}, (uint64_t[8]){0}, 8, 0))
ROW(bpf_, call_bpf())
ROW(perf_, call_perf())
ROW(userfaultfd_, syscall(SYS_userfaultfd, 1))
ROW(io_uring_, call_io_uring())
ROW(keyctl_session, syscall(SYS_keyctl, 1, 0))
ROW(keyctl_read, syscall(SYS_keyctl, 11, -3, NULL, 0))
ROW(add_key_, syscall(SYS_add_key, "user", "holt", "x", 1, -3))
ROW(request_key_, syscall(SYS_request_key, "user", "holt", NULL, 0))
ROW(kexec_, syscall(SYS_kexec_load, 0, 0, NULL, 0))
ROW(kexec_file_, syscall(SYS_kexec_file_load, -1, -1, 0, NULL, 0))
ROW(finit_module_, syscall(SYS_finit_module, -1, "", 0))
ROW(delete_module_, syscall(SYS_delete_module, "x", 0))
ROW(acct_, syscall(SYS_acct, "/tmp/acct"))
ROW(swapon_, syscall(SYS_swapon, "/tmp/x", 0))
ROW(swapoff_, syscall(SYS_swapoff, "/tmp/x"))
ROW(iopl_, syscall(SYS_iopl, 3))
ROW(ioperm_, syscall(SYS_ioperm, 0x80, 1, 1))
ROW(syslog_, syscall(SYS_syslog, 3, (char[64]){0}, 64))
ROW(modify_ldt_, syscall(SYS_modify_ldt, 0, (char[64]){0}, 64))
ROW(fanotify_, syscall(SYS_fanotify_init, 0, 0))
ROW(move_pages_, syscall(SYS_move_pages, 1, 0UL, NULL, NULL, NULL, 0))
ROW(vhangup_, syscall(SYS_vhangup))
ROW(sethostname_, sethostname("x", 1))
ROW(socket_raw, call_socket(AF_INET, SOCK_RAW, 1))
ROW(socket_raw6, call_socket(AF_INET6, SOCK_RAW, 58))
ROW(socket_packet, call_socket(17, SOCK_RAW, 0x300))
ROW(socket_packet_high, call_socket(0x100000011UL, SOCK_RAW, 0x300))
ROW(socket_vsock, call_socket(40, SOCK_STREAM, 0))
ROW(socket_vsock_high, call_socket(0x100000028UL, SOCK_STREAM, 0))
ROW(socket_alg, call_socket(38, SOCK_SEQPACKET, 0))
ROW(socket_alg_high, call_socket(0xf00000026UL, SOCK_SEQPACKET, 0))
ROW(socket_key, call_socket(15, SOCK_RAW, 2))
ROW(socket_xdp, call_socket(44, SOCK_RAW, 0))
ROW(socket_bluetooth, call_socket(31, SOCK_RAW, 1))
ROW(socket_can, call_socket(29, SOCK_RAW, 1))
ROW(socket_tipc, call_socket(30, SOCK_STREAM, 0))
ROW(socket_sctp, call_socket(AF_INET, SOCK_STREAM, 132))
ROW(socket_sctp6, call_socket(AF_INET6, SOCK_SEQPACKET, 132))
ROW(socket_dccp, call_socket(AF_INET, 6, 33))
ROW(netlink_netfilter, call_socket(AF_NETLINK, SOCK_RAW, 12))
ROW(netlink_xfrm, call_socket(AF_NETLINK, SOCK_RAW, 6))
ROW(netlink_crypto, call_socket(AF_NETLINK, SOCK_RAW, 21))
ROW(socketpair_tipc, call_socketpair(30, SOCK_SEQPACKET))
ROW(socketpair_tipc_high, call_socketpair(0x10000001eUL, SOCK_SEQPACKET))
ROW(socketpair_vsock, call_socketpair(40, SOCK_STREAM))
ROW(socketpair_kcm, call_socketpair(41, SOCK_DGRAM))
ROW(socketpair_smc, call_socketpair(43, SOCK_STREAM))
ROW(socketpair_rxrpc, call_socketpair(33, SOCK_DGRAM))
ROW(tioclinux, call_terminal(TIOCLINUX))
ROW(tioclinux_high, call_terminal(0x7700000000UL | TIOCLINUX))
ROW(tiocsetd, call_terminal(TIOCSETD))
ROW(tiocsetd_high, call_terminal(0xffffffff00000000UL | TIOCSETD))
ROW(tioccons, call_terminal(TIOCCONS))
ROW(persona_exec, syscall(SYS_personality, 0x0400000))
ROW(persona_zero, syscall(SYS_personality, 0x0100000))
ROW(persona_high, syscall(SYS_personality, 0xf00400000UL))
ROW(prctl_mm, prctl(PR_SET_MM, PR_SET_MM_BRK, 0x1000, 0, 0))
ROW(prctl_core, prctl(62, 1, 0, 1, 0))
ROW(fanotify_mark_, syscall(SYS_fanotify_mark, -1, 1, 0, 1, -1, "/"))
ROW(cachestat_, syscall(451, 0, (uint64_t[2]){0}, (uint64_t[5]){0}, 0))
ROW(ptrace_attach, call_ptrace(PTRACE_ATTACH))
ROW(ptrace_seize, call_ptrace(0x4206))
ROW(nice_up, setpriority(PRIO_PROCESS, 0, -10))
ROW(chroot_init_root, chroot("/proc/1/root"))
ROW(mknod_null, mknod("/tmp/n", S_IFCHR | 0666, makedev(1, 3)))
ROW(mknod_mem, mknod("/tmp/m", S_IFCHR | 0666, makedev(1, 1)))
ROW(mknod_disk, mknod("/tmp/d", S_IFBLK | 0666, makedev(254, 0)))

static const struct row rows[] = {
    {"unshare_user", unshare_user},
    {"unshare_mnt", unshare_mnt},
    {"unshare_pid", unshare_pid},
    {"unshare_net", unshare_net},
    {"unshare_ipc", unshare_ipc},
    {"unshare_uts", unshare_uts},
    {"unshare_cgroup", unshare_cgroup},
    {"unshare_time", unshare_time},
    {"clone_user", clone_user},
    {"clone_user_high", clone_user_high},
    {"clone_mnt", clone_mnt},
    {"clone_net", clone_net},
    {"clone3_plain", clone3_plain},
    {"clone3_user", clone3_user},
    {"clone3_cgroup", clone3_cgroup},
    {"setns_self", setns_self},
    {"setns_init_net", setns_init_net},
    {"setns_pidfd", setns_pidfd},
    {"mount_tmpfs", mount_tmpfs},
    {"mount_proc", mount_proc},
    {"mount_sysfs", mount_sysfs},
    {"mount_cgroup", mount_cgroup},
    {"mount_cgroup2", mount_cgroup2},
    {"mount_bind", mount_bind},
    {"mount_disk", mount_disk},
    {"remount_usr", remount_usr},
    {"remount_proc_sys", remount_proc_sys},
    {"umount_proc_sys", umount_proc_sys},
    {"umount_keys", umount_keys},
    {"pivot_root", pivot},
    {"fsopen", fsopen_},
    {"open_tree", open_tree_},
    {"move_mount", move_mount_},
    {"mount_setattr", mount_setattr_},
    {"open_tree_attr", open_tree_attr_},
    {"listmount", listmount_},
    {"bpf", bpf_},
    {"perf_event_open", perf_},
    {"userfaultfd", userfaultfd_},
    {"io_uring_setup", io_uring_},
    {"keyctl_session", keyctl_session},
    {"keyctl_read", keyctl_read},
    {"add_key", add_key_},
    {"request_key", request_key_},
    {"kexec_load", kexec_},
    {"kexec_file_load", kexec_file_},
    {"init_module", call_module},
    {"finit_module", finit_module_},
    {"delete_module", delete_module_},
    {"open_by_handle_at", call_handle},
    {"name_to_handle_at", call_name_to_handle},
    {"acct", acct_},
    {"swapon", swapon_},
    {"swapoff", swapoff_},
    {"reboot", call_reboot},
    {"clock_settime", call_settime},
    {"settimeofday", call_settimeofday},
    {"adjtimex", call_adjtimex},
    {"quotactl", call_quotactl},
    {"iopl", iopl_},
    {"ioperm", ioperm_},
    {"syslog", syslog_},
    {"modify_ldt", modify_ldt_},
    {"fanotify_init", fanotify_},
    {"move_pages", move_pages_},
    {"vhangup", vhangup_},
    {"sethostname", sethostname_},
    {"socket_raw", socket_raw},
    {"socket_raw6", socket_raw6},
    {"socket_packet", socket_packet},
    {"socket_packet_high", socket_packet_high},
    {"socket_vsock", socket_vsock},
    {"socket_vsock_high", socket_vsock_high},
    {"socket_alg", socket_alg},
    {"socket_alg_high", socket_alg_high},
    {"socket_key", socket_key},
    {"socket_xdp", socket_xdp},
    {"socket_bluetooth", socket_bluetooth},
    {"socket_can", socket_can},
    {"socket_tipc", socket_tipc},
    {"socket_sctp", socket_sctp},
    {"socket_sctp6", socket_sctp6},
    {"socket_dccp", socket_dccp},
    {"netlink_uevent", call_uevent},
    {"netlink_netfilter", netlink_netfilter},
    {"netlink_xfrm", netlink_xfrm},
    {"netlink_crypto", netlink_crypto},
    {"socketpair_tipc", socketpair_tipc},
    {"socketpair_tipc_high", socketpair_tipc_high},
    {"socketpair_vsock", socketpair_vsock},
    {"socketpair_kcm", socketpair_kcm},
    {"socketpair_smc", socketpair_smc},
    {"socketpair_rxrpc", socketpair_rxrpc},
    {"tioclinux", tioclinux},
    {"tioclinux_high", tioclinux_high},
    {"tiocsetd", tiocsetd},
    {"tiocsetd_high", tiocsetd_high},
    {"tioccons", tioccons},
    {"personality_exec", persona_exec},
    {"personality_zero", persona_zero},
    {"personality_high", persona_high},
    {"prctl_mm", prctl_mm},
    {"prctl_core", prctl_core},
    {"fanotify_mark", fanotify_mark_},
    {"cachestat", cachestat_},
    {"netlink_link_down", call_netlink_link},
    {"tiocsti", call_tiocsti},
    {"tiocsti_high", call_tiocsti_high},
    {"ptrace_attach_init", ptrace_attach},
    {"ptrace_seize_init", ptrace_seize},
    {"process_vm_readv_init", call_process_vm},
    {"pidfd_getfd_init", call_pidfd_getfd},
    {"prlimit_init", call_prlimit_init},
    {"prlimit_up", call_prlimit_up},
    {"sched_fifo", call_fifo},
    {"nice_up", nice_up},
    {"capset_all", call_capset},
    {"chroot_init_root", chroot_init_root},
    {"seccomp_off", call_seccomp_off},
    {"mknod_null", mknod_null},
    {"mknod_mem", mknod_mem},
    {"mknod_disk", mknod_disk},
};

static int sub_calls(char **args)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (!args[0] || strcmp(args[0], rows[i].name) == 0)
            say(rows[i].name, rows[i].call());
    return 0;
}

/* ---- other ways in: how the process ends is the answer ---- */

static int sub_int80(char **args) /* getpid of the i386 table, past a filter of x86-64 numbers */
{
    long r = 20;

    (void)args;
    __asm__ volatile("int $0x80" : "+a"(r)::"memory", "r8", "r9", "r10", "r11");
    (void)printf("int80 ok %ld\n", r);
    return 0;
}

/* ---- a walk over every number: which of them would the kernel do? ---- */

/* A filter of our own, the weaker, makes every call that holt's lets through wait for an answer, so
 * none of them is done: what the caller gets then is PASSED. */
#define PASSED 4001
#define WALK_MAX 4096
struct walk {
    unsigned count;
    struct question {
        uint64_t nr, args[3];
        int answer;
    } at[WALK_MAX];
    volatile int listener;
    volatile int over;
};

static long ask(struct question *q)
{
    long r;
    register long a3 __asm__("r10") = 0;

    __asm__ volatile("syscall"
                     : "=a"(r)
                     : "a"(q->nr), "D"(q->args[0]), "S"(q->args[1]), "d"(q->args[2]), "r"(a3)
                     : "rcx", "r11", "memory");
    return r;
}

static void walk_child(struct walk *w)
{
    struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
    struct sock_fprog p = {1, &all};
    long fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &p);

    w->listener = fd < 0 ? -errno : (int)fd;
    for (unsigned i = 0; fd >= 0 && i < w->count; i++)
        w->at[i].answer = (int)-ask(&w->at[i]);
    w->over = 1;
    for (;;)
        ;
}

static void walk_serve(struct walk *w, pid_t child)
{
    while (!w->over && waitpid(child, NULL, WNOHANG) == 0) {
        struct seccomp_notif n = {0};
        struct seccomp_notif_resp r = {0};
        struct pollfd p = {.fd = w->listener, .events = POLLIN};

        if (poll(&p, 1, 1) <= 0 || ioctl(w->listener, SECCOMP_IOCTL_NOTIF_RECV, &n) < 0)
            continue;
        r.id = n.id;
        r.error = -PASSED;
        (void)ioctl(w->listener, SECCOMP_IOCTL_NOTIF_SEND, &r);
    }
}

static int sub_walk(char **args) /* NR:A0:A1:A2...; prints one line each: NR:A0:A1:A2 ANSWER */
{
    struct walk *w =
        mmap(NULL, sizeof *w, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char **names = args;
    long pid;

    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); /* where a guard was left out */
    for (; *args && w->count < WALK_MAX; args++) {
        char *end = *args;
        struct question *q = &w->at[w->count++];

        q->nr = strtoull(end, &end, 0);
        for (int i = 0; i < 3 && *end == ':'; i++)
            q->args[i] = strtoull(end + 1, &end, 0);
    }
    pid = syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0); /* its descriptor is ours too */
    if (pid == 0)
        walk_child(w);
    while (pid > 0 && w->listener == 0)
        (void)usleep(1000);
    if (pid < 0 || w->listener < 0) {
        (void)printf("walk %s\n", errno_name(pid < 0 ? errno : -w->listener));
        return 1;
    }
    walk_serve(w, (pid_t)pid);
    (void)kill((pid_t)pid, SIGKILL);
    for (unsigned i = 0; i < w->count; i++)
        (void)printf("%s %s\n", names[i],
                     w->at[i].answer == PASSED ? "ok" : errno_name(w->at[i].answer));
    return 0;
}

/* How a child ends that makes one call of another table: each number of both. */
static int sub_tables(char **args)
{
    (void)args;
    for (unsigned long nr = 0; nr <= 600; nr++)
        for (int table = 0; table < 2; table++) {
            pid_t pid = fork();
            int status = 0;

            if (pid == 0) {
                long r = (long)nr;

                if (table == 0)
                    (void)syscall((long)(0x40000000UL + nr), 0, 0, 0, 0, 0, 0);
                else
                    __asm__ volatile("int $0x80"
                                     : "+a"(r)
                                     : "b"(0), "c"(0), "d"(0)
                                     : "memory", "r8", "r9", "r10", "r11");
                _exit(0);
            }
            (void)waitpid(pid, &status, 0);
            if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSYS)
                (void)printf("%s_%lu status%d\n", table == 0 ? "x32" : "i386", nr, status);
        }
    (void)printf("tables walked\n");
    return 0;
}

static int sub_x32(char **args)
{
    (void)args;
    say("x32", syscall(0x40000000 + SYS_unshare, CLONE_NEWUSER));
    return 0;
}

/* ---- files ---- */

static int sub_read(char **args)
{
    for (; *args; args++) {
        char bytes[4096];
        int fd = open(*args, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, bytes, sizeof bytes);

        if (n < 0)
            say(*args, -1);
        else
            (void)printf("%s read %zd\n", *args, n);
        (void)close(fd);
    }
    return 0;
}

static int sub_write(char **args) /* opens only: a success must change nothing */
{
    for (; *args; args++) {
        int fd = open(*args, O_WRONLY | O_CLOEXEC);

        say(*args, fd);
        (void)close(fd);
    }
    return 0;
}

static int sub_list(char **args)
{
    for (; *args; args++) {
        DIR *d = opendir(*args);
        struct dirent *e;

        if (!d) {
            say(*args, -1);
            continue;
        }
        (void)printf("%s list", *args);
        while ((e = readdir(d)))
            if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
                (void)printf(" %s", e->d_name);
        (void)printf("\n");
        (void)closedir(d);
    }
    return 0;
}

static int sub_link(char **args)
{
    for (; *args; args++) {
        char to[4096];
        ssize_t n = readlink(*args, to, sizeof to - 1);

        if (n < 0)
            say(*args, -1);
        else
            (void)printf("%s link %.*s\n", *args, (int)n, to);
    }
    return 0;
}

static int sub_fds(char **args) /* what leaked: a descriptor's number and what it is */
{
    (void)args;
    for (int fd = 0; fd < 65536; fd++) {
        char path[32], to[256];
        ssize_t n;

        if (fcntl(fd, F_GETFD) < 0)
            continue;
        (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        n = readlink(path, to, sizeof to);
        (void)printf("fd %d %.*s\n", fd, (int)(n < 0 ? 0 : n), to);
    }
    return 0;
}

/* The old way out of a chroot: a directory held open, chroot elsewhere, up until nothing is above.
 */
static int sub_chroot(char **args)
{
    int fd = open("/", O_RDONLY | O_DIRECTORY);

    (void)mkdir("/tmp/jail", 0755);
    say("chroot", chroot("/tmp/jail"));
    (void)!fchdir(fd);
    for (int i = 0; i < 200; i++)
        (void)!chdir("..");
    say("chroot_up", chroot("."));
    return sub_list((char *[]){(char *)"/", args[0] ? args[0] : (char *)"/workspace", NULL});
}

static int sub_exe(char **args) /* CVE-2019-5736: init's program, from here */
{
    (void)args;
    say("open_exe_read", open("/proc/1/exe", O_RDONLY));
    say("open_exe_write", open("/proc/1/exe", O_WRONLY));
    say("open_exe_path", open("/proc/1/exe", O_PATH));
    (void)execl("/proc/1/exe", "holt-init", "--listen-fd", "0", (char *)NULL);
    say("exec_exe", -1);
    return 0;
}

/* ---- others: processes, sockets, queues ---- */

static int sub_kill_init(char **args)
{
    (void)args;
    for (int sig = 1; sig <= 64; sig++)
        (void)kill(1, sig);
    (void)usleep(20000);
    say("init_after_signals", kill(1, 0));
    return 0;
}

static int sub_abstract(char **args)
{
    for (; *args; args++) {
        struct sockaddr_un to = {.sun_family = AF_UNIX};
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);

        (void)snprintf(to.sun_path + 1, sizeof to.sun_path - 1, "%s", *args);
        say(*args,
            connect(fd, (struct sockaddr *)&to,
                    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(*args))));
        (void)close(fd);
    }
    return 0;
}

static int dial(const char *address, int port, int type)
{
    struct sockaddr_in in4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    int v4 = inet_pton(AF_INET, address, &in4.sin_addr) == 1;
    int fd = socket(v4 ? AF_INET : AF_INET6, type | SOCK_NONBLOCK, 0), error = 0, r;
    socklen_t size = sizeof error;
    struct pollfd p = {.events = POLLOUT};

    if (!v4 && inet_pton(AF_INET6, address, &in6.sin6_addr) != 1) {
        errno = EINVAL;
        return -1;
    }
    r = v4 ? connect(fd, (struct sockaddr *)&in4, sizeof in4)
           : connect(fd, (struct sockaddr *)&in6, sizeof in6);
    if (r < 0 && errno == EINPROGRESS) {
        p.fd = fd;
        (void)poll(&p, 1, 1000);
        (void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
        r = (p.revents & POLLOUT) && error == 0 ? 0 : -1;
        errno = error ? error : ETIMEDOUT;
    }
    if (r == 0 && type == SOCK_DGRAM)
        r = (int)send(fd, "holt", 4, 0);
    (void)close(fd);
    return r;
}

static int sub_dial(char **args) /* PORT ADDRESS...: TCP and UDP */
{
    int port = (int)strtol(args[0], NULL, 10);

    for (args++; *args; args++) {
        char name[128];

        (void)snprintf(name, sizeof name, "tcp:%s", *args);
        say(name, dial(*args, port, SOCK_STREAM));
        (void)snprintf(name, sizeof name, "udp:%s", *args);
        say(name, dial(*args, port, SOCK_DGRAM));
    }
    return 0;
}

static int sub_msg_make(char **args)
{
    say("msgget", msgget((key_t)strtol(args[0], NULL, 10), IPC_CREAT | 0666));
    return 0;
}

static int sub_msg_find(char **args)
{
    say("msgget", msgget((key_t)strtol(args[0], NULL, 10), 0));
    return 0;
}

static int sub_ids(char **args) /* a file with set-user-id must give nobody anything */
{
    (void)args;
    (void)printf("uid %u euid %u nnp %d\n", getuid(), geteuid(),
                 prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
    return 0;
}

/* ---- exhaustion ---- */

static int sub_forks(char **args) /* how many processes come to be */
{
    long want = strtol(args[0], NULL, 10), n = 0;

    for (; n < want; n++) {
        pid_t pid = fork();

        if (pid < 0)
            break;
        if (pid == 0) {
            (void)pause();
            _exit(0);
        }
    }
    (void)printf("forks %ld %s\n", n, n < want ? errno_name(errno) : "ok");
    (void)fflush(stdout);
    (void)kill(0, SIGKILL);
    return 0;
}

static int sub_memory(char **args) /* MIB: touched one by one */
{
    long want = strtol(args[0], NULL, 10);

    for (long i = 0; i < want; i++) {
        char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (p == MAP_FAILED) {
            say("memory", -1);
            return 0;
        }
        memset(p, 1, 1 << 20);
    }
    (void)printf("memory ok %ld\n", want);
    return 0;
}

static int sub_fill(char **args) /* FILE MIB */
{
    static char block[1 << 20];
    int fd = open(args[0], O_WRONLY | O_CREAT | O_TRUNC, 0600);
    long want = strtol(args[1], NULL, 10);
    long long n = 0;
    ssize_t r = 0;

    while (n >> 20 < want && (r = write(fd, block, sizeof block)) > 0)
        n += r;
    (void)printf("fill %lld %s\n", n >> 20, r < 0 ? errno_name(errno) : "ok");
    (void)unlink(args[0]);
    return 0;
}

static int sub_inodes(char **args) /* DIR COUNT */
{
    long want = strtol(args[1], NULL, 10), n = 0;

    (void)mkdir(args[0], 0755);
    for (; n < want; n++) {
        char path[256];
        int fd;

        (void)snprintf(path, sizeof path, "%s/%ld", args[0], n);
        fd = open(path, O_CREAT | O_WRONLY, 0600);
        if (fd < 0)
            break;
        (void)close(fd);
    }
    (void)printf("inodes %ld %s\n", n, n < want ? errno_name(errno) : "ok");
    return 0;
}

static int sub_ptys(char **args)
{
    long want = strtol(args[0], NULL, 10), n = 0;

    while (n < want && open("/dev/ptmx", O_RDWR | O_NOCTTY) >= 0)
        n++;
    (void)printf("ptys %ld %s\n", n, n < want ? errno_name(errno) : "ok");
    return 0;
}

static int sub_deep(char **args) /* DIR DEPTH: a tree that a recursive removal must get through */
{
    long want = strtol(args[1], NULL, 10), n = 0;

    (void)mkdir(args[0], 0755);
    if (chdir(args[0]) < 0)
        return 1;
    while (n < want && mkdir("d", 0755) == 0 && chdir("d") == 0)
        n++;
    (void)printf("deep %ld %s\n", n, n < want ? errno_name(errno) : "ok");
    return 0;
}

static int sub_daemon(char **args) /* leaves every session and group that it can leave */
{
    (void)args;
    for (int i = 0; i < 3; i++) {
        if (fork() != 0)
            _exit(0);
        (void)setsid();
    }
    (void)prctl(PR_SET_NAME, "escaped", 0, 0, 0);
    for (int fd = 0; fd < 3; fd++)
        (void)close(fd);
    for (int sig = 1; sig < 32; sig++)
        (void)signal(sig, SIG_IGN);
    for (;;)
        (void)pause();
}

static int
sub_chain(char **args) /* FILE, which grows: the next process is born before the last is found */
{
    int fd = open(args[0], O_CREAT | O_WRONLY | O_APPEND, 0644);

    for (;;) {
        pid_t pid = write(fd, "x", 1) == 1 ? fork() : 1;

        if (pid > 0)
            _exit(0);
        if (pid == 0)
            (void)setsid();
    }
}

static int sub_flip(char **args) /* LINK A B: the link points here and there, without pause */
{
    char other[512];

    (void)snprintf(other, sizeof other, "%s.new", args[0]);
    for (unsigned i = 0; getppid() != 0; i++)
        if (symlink(args[1 + i % 2], other) == 0)
            (void)rename(other, args[0]);
    return 0;
}

static const struct {
    const char *name;
    int (*run)(char **args);
    int args;
} subs[] = {
    {"calls", sub_calls, 0},
    {"int80", sub_int80, 0},
    {"x32", sub_x32, 0},
    {"walk", sub_walk, 1},
    {"tables", sub_tables, 0},
    {"read", sub_read, 1},
    {"write", sub_write, 1},
    {"list", sub_list, 1},
    {"link", sub_link, 1},
    {"fds", sub_fds, 0},
    {"chroot", sub_chroot, 0},
    {"exe", sub_exe, 0},
    {"kill_init", sub_kill_init, 0},
    {"abstract", sub_abstract, 1},
    {"dial", sub_dial, 2},
    {"msg_make", sub_msg_make, 1},
    {"msg_find", sub_msg_find, 1},
    {"ids", sub_ids, 0},
    {"forks", sub_forks, 1},
    {"memory", sub_memory, 1},
    {"fill", sub_fill, 2},
    {"inodes", sub_inodes, 2},
    {"ptys", sub_ptys, 1},
    {"deep", sub_deep, 2},
    {"daemon", sub_daemon, 0},
    {"chain", sub_chain, 1},
    {"flip", sub_flip, 3},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; i < ARRAY_LEN(subs); i++)
        if (argc - 2 >= subs[i].args && strcmp(argv[1], subs[i].name) == 0)
            return subs[i].run(argv + 2);
    (void)fprintf(stderr, "usage: probe SUB [ARG...]\n");
    return 2;
}
