/* calls: the tables of system calls of sandboxes: allowed ones by purpose, and refused ones. */
#include "spawn/calls.h"

#include "spawn/guards.h"

#include <errno.h>
#include <linux/prctl.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* linux/sched.h; for unshare only: clone has the signal in these bits */
#define CLONE_NEWTIME_FLAG 0x80U
#define NEW_NAMESPACES                                                                             \
    (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS |     \
     CLONE_NEWCGROUP)
#define WIDE_END 451 /* wide decides up to here; later numbers are unknown: ENOSYS */

/* Without a matching rule, ENOSYS: libraries then fall back to an older call or do without.  EPERM
 * where programs expect it for a missing right, and where ENOSYS would look like a broken
 * kernel. */
#define NO_CALL FILTER_ERRNO(ENOSYS)
#define NOT_ALLOWED FILTER_ERRNO(EPERM)

/* ---- arguments ---- */

#define WHEN(op, arg, value)                                                                       \
    {                                                                                              \
        {                                                                                          \
            FILTER_##op, (arg), (uint32_t)(value)                                                  \
        }                                                                                          \
    }
#define WHEN2(op, arg, value, op2, arg2, value2)                                                   \
    {                                                                                              \
        {FILTER_##op, (arg), (uint32_t)(value)},                                                   \
        {                                                                                          \
            FILTER_##op2, (arg2), (uint32_t)(value2)                                               \
        }                                                                                          \
    }

/* Threads and processes, but no namespaces.  clone3 has its flags behind a pointer: the commands'
 * own filter returns ENOSYS, and libc falls back to clone. */
static const struct filter_rule clone_rules[] = {
    {WHEN(ANY, 0, NEW_NAMESPACES), NOT_ALLOWED},
};
static const struct filter_rule unshare_rules[] = {
    {WHEN(ANY, 0, NEW_NAMESPACES | CLONE_NEWTIME_FLAG), NOT_ALLOWED},
};

/* Terminal calls that affect its other readers, the console, or the kernel's modules. */
static const struct filter_rule ioctl_rules[] = {
    {WHEN(EQ, 1, TIOCSTI), NOT_ALLOWED}, /* types into the terminal, for another process to read */
    {WHEN(EQ, 1, TIOCLINUX), NOT_ALLOWED}, /* the same through the console's selection */
    {WHEN(EQ, 1, TIOCSETD), NOT_ALLOWED},  /* loads a line discipline: slip, gsm and others */
    {WHEN(EQ, 1, TIOCCONS), NOT_ALLOWED},  /* redirects the console's output */
};

/* Families other than these four are not namespaced (AF_VSOCK), or make the host load a module.  Of
 * the four, only protocols that are always present: others (SCTP, DCCP, L2TP) load a module too,
 * and netlink's give access to nftables, xfrm, crypto. */
#define PROTOCOL(family, protocol) {WHEN2(EQ, 0, family, EQ, 2, protocol), FILTER_ALLOW}
enum {
    PROTO_ICMP = 1, /* ping(8) without a raw socket */
    PROTO_TCP = 6,
    PROTO_UDP = 17,
    PROTO_ICMPV6 = 58,
    PROTO_MPTCP = 262,       /* Go's servers try it first (1.24) */
    NETLINK_OF_ROUTES = 0,   /* getifaddrs(3) */
    NETLINK_OF_SOCKETS = 4,  /* ss(8) */
    NETLINK_OF_AUDIT = 9,    /* useradd(8), PAM: the reply is that there is none */
    NETLINK_OF_DEVICES = 15, /* libudev, in browsers: receives nothing here (netns.c) */
};
static const struct filter_rule socket_rules[] = {
    {WHEN(EQ, 0, AF_UNIX), FILTER_ALLOW},
    PROTOCOL(AF_INET, 0),
    PROTOCOL(AF_INET, PROTO_TCP),
    PROTOCOL(AF_INET, PROTO_UDP),
    PROTOCOL(AF_INET, PROTO_ICMP),
    PROTOCOL(AF_INET, PROTO_MPTCP),
    PROTOCOL(AF_INET6, 0),
    PROTOCOL(AF_INET6, PROTO_TCP),
    PROTOCOL(AF_INET6, PROTO_UDP),
    PROTOCOL(AF_INET6, PROTO_ICMPV6),
    PROTOCOL(AF_INET6, PROTO_MPTCP),
    PROTOCOL(AF_NETLINK, NETLINK_OF_ROUTES),
    PROTOCOL(AF_NETLINK, NETLINK_OF_SOCKETS),
    PROTOCOL(AF_NETLINK, NETLINK_OF_AUDIT),
    PROTOCOL(AF_NETLINK, NETLINK_OF_DEVICES),
    {WHEN(EQ, 0, AF_INET), FILTER_ERRNO(EPROTONOSUPPORT)},
    {WHEN(EQ, 0, AF_INET6), FILTER_ERRNO(EPROTONOSUPPORT)},
    {WHEN(EQ, 0, AF_NETLINK), FILTER_ERRNO(EPROTONOSUPPORT)},
};
static const struct filter_rule family_rules[] = {
    {WHEN(EQ, 0, AF_UNIX), FILTER_ALLOW},
    {WHEN(EQ, 0, AF_INET), FILTER_ALLOW},
    {WHEN(EQ, 0, AF_INET6), FILTER_ALLOW},
    {WHEN(EQ, 0, AF_NETLINK), FILTER_ALLOW},
};

/* The result of uname and address randomization (setarch(8), gdb, sanitizers); nothing that maps
 * page zero or makes readable memory executable. */
enum { PERSONA_LINUX32 = 0x8, PERSONA_UNAME26 = 0x20000, PERSONA_NO_RANDOM = 0x40000 };
static const struct filter_rule personality_rules[] = {
    {WHEN(EQ, 0, 0), FILTER_ALLOW},
    {WHEN(EQ, 0, 0xffffffff), FILTER_ALLOW}, /* a query */
    {WHEN(EQ, 0, PERSONA_LINUX32), FILTER_ALLOW},
    {WHEN(EQ, 0, PERSONA_UNAME26), FILTER_ALLOW},
    {WHEN(EQ, 0, PERSONA_UNAME26 | PERSONA_LINUX32), FILTER_ALLOW},
    {WHEN(EQ, 0, PERSONA_NO_RANDOM), FILTER_ALLOW},
    {WHEN(EQ, 0, PERSONA_NO_RANDOM | PERSONA_LINUX32), FILTER_ALLOW},
};

/* All options that affect only the caller and that a kernel of this age knows. */
enum { PRCTL_SCHED_CORE = 62, PRCTL_LAST = 78, PRCTL_NAME_MEMORY = 0x53564d41 };
static const struct filter_rule prctl_rules[] = {
    {WHEN(EQ, 0, PR_SET_MM), NOT_ALLOWED}, /* its memory layout in /proc: could be forged */
    {WHEN(EQ, 0, PR_MCE_KILL), NOT_ALLOWED},
    {WHEN(EQ, 0, PRCTL_SCHED_CORE), FILTER_ERRNO(EINVAL)}, /* core scheduling */
    {WHEN(EQ, 0, PR_SET_PTRACER), FILTER_ALLOW},
    {WHEN(EQ, 0, PRCTL_NAME_MEMORY), FILTER_ALLOW},
    {WHEN(ABOVE, 0, PRCTL_LAST), FILTER_ERRNO(EINVAL)},
};

/* ---- allowed, by purpose ---- */

#define C(call) FILTER_CALL(call)
/* clang-format off */
static const struct filter_row allowed[] = {
    /* files by descriptor */
    C(read), C(write), C(readv), C(writev), C(pread64), C(pwrite64), C(preadv), C(pwritev), C(preadv2), C(pwritev2),
    C(lseek), C(close), C(close_range), C(dup), C(dup3), C(fcntl), C(flock), C(fstat), C(fstatfs), C(ftruncate),
    C(fallocate), C(fadvise64), C(readahead), C(fsync), C(fdatasync), C(sync), C(syncfs), C(sync_file_range),
    C(sendfile), C(splice), C(tee), C(copy_file_range),
    FILTER_RULES(ioctl, ioctl_rules, FILTER_ALLOW),
    /* files by name */
    C(openat), C(openat2), C(newfstatat), C(statx), C(statfs), C(truncate), C(getdents64), C(getcwd), C(chdir), C(fchdir),
    C(mkdirat), C(mknodat), C(unlinkat), C(linkat), C(symlinkat), C(readlinkat), C(renameat), C(renameat2),
    C(faccessat), C(faccessat2), C(fchmod), C(fchmodat), C(fchmodat2), C(fchown), C(fchownat), C(utimensat), C(umask),
    C(chroot), /* needs its capability, which root inside has: debootstrap, sshd, databases */
    C(setxattr), C(lsetxattr), C(fsetxattr), C(getxattr), C(lgetxattr), C(fgetxattr), C(listxattr), C(llistxattr),
    C(flistxattr), C(removexattr), C(lremovexattr), C(fremovexattr), C(setxattrat), C(getxattrat), C(listxattrat),
    C(removexattrat), C(inotify_init1), C(inotify_add_watch), C(inotify_rm_watch),
    /* memory */
    C(brk), C(mmap), C(munmap), C(mremap), C(mprotect), C(madvise), C(mincore), C(msync), C(mlock), C(mlock2), C(munlock),
    C(mlockall), C(munlockall), C(mseal), C(memfd_create), C(pkey_mprotect), C(pkey_alloc), C(pkey_free),
    C(map_shadow_stack), C(membarrier),
    /* for its own pages: JVMs and databases on NUMA machines */
    C(get_mempolicy), C(set_mempolicy), C(mbind),
    /* processes and threads */
    FILTER_RULES(clone, clone_rules, FILTER_ALLOW),
    /* for descriptors and directories, not namespaces */
    FILTER_RULES(unshare, unshare_rules, FILTER_ALLOW),
    C(clone3), /* for init: starts a command in its cgroup; refused to commands */
    C(execve), C(execveat), C(exit), C(exit_group), C(wait4), C(waitid), C(getpid), C(getppid), C(gettid), C(set_tid_address),
    C(setpgid), C(getpgid), C(setsid), C(getsid), C(times), C(getrusage), C(prlimit64), C(getrlimit), C(setrlimit),
    C(pidfd_open), C(pidfd_send_signal),
    FILTER_RULES(personality, personality_rules, NOT_ALLOWED),
    FILTER_RULES(prctl, prctl_rules, FILTER_ALLOW),
    C(futex), C(futex_waitv), C(set_robust_list), C(get_robust_list), C(rseq), C(restart_syscall),
    /* debuggers: processes of the same user, as the kernel checks; never init */
    C(ptrace), C(process_vm_readv), C(process_vm_writev), C(pidfd_getfd), C(process_madvise), C(process_mrelease), C(kcmp),
    /* users and rights: limited by the user namespace and capabilities */
    C(getuid), C(geteuid), C(getgid), C(getegid), C(getgroups), C(getresuid), C(getresgid), C(setuid), C(setgid), C(setreuid),
    C(setregid), C(setresuid), C(setresgid), C(setfsuid), C(setfsgid), C(setgroups), C(capget), C(capset),
    /* can only reduce rights */
    C(seccomp), C(landlock_create_ruleset), C(landlock_add_rule), C(landlock_restrict_self),
    /* signals */
    C(rt_sigaction), C(rt_sigprocmask), C(rt_sigpending), C(rt_sigtimedwait), C(rt_sigqueueinfo), C(rt_tgsigqueueinfo),
    C(rt_sigsuspend), C(rt_sigreturn), C(sigaltstack), C(kill), C(tkill), C(tgkill), C(signalfd4),
    /* time: read it, wait for it */
    C(clock_gettime), C(clock_getres), C(clock_nanosleep), C(nanosleep), C(gettimeofday), C(getitimer), C(setitimer),
    C(timer_create), C(timer_settime), C(timer_gettime), C(timer_getoverrun), C(timer_delete), C(timerfd_create),
    C(timerfd_settime), C(timerfd_gettime),
    /* scheduling: nothing inside may raise a priority */
    C(sched_yield), C(sched_setaffinity), C(sched_getaffinity), C(sched_setscheduler), C(sched_getscheduler),
    C(sched_setparam), C(sched_getparam), C(sched_setattr), C(sched_getattr), C(sched_get_priority_max),
    C(sched_get_priority_min), C(sched_rr_get_interval), C(setpriority), C(getpriority), C(ioprio_set), C(ioprio_get), C(getcpu),
    /* waiting for many things */
    C(epoll_create1), C(epoll_ctl), C(epoll_pwait), C(epoll_pwait2), C(ppoll), C(pselect6), C(eventfd2), C(pipe2),
    C(io_setup), C(io_destroy), C(io_submit), C(io_cancel), C(io_getevents), C(io_pgetevents), /* databases; not io_uring */
    /* sockets */
    FILTER_RULES(socket, socket_rules, FILTER_ERRNO(EAFNOSUPPORT)),
    FILTER_RULES(socketpair, family_rules, FILTER_ERRNO(EAFNOSUPPORT)),
    C(bind), C(listen), C(accept), C(accept4), C(connect), C(getsockname), C(getpeername), C(getsockopt), C(setsockopt),
    C(sendto), C(recvfrom), C(sendmsg), C(recvmsg), C(sendmmsg), C(recvmmsg), C(shutdown),
    /* System V and POSIX IPC, in a namespace of their own */
    C(shmget), C(shmat), C(shmdt), C(shmctl), C(semget), C(semop), C(semtimedop), C(semctl), C(msgget), C(msgsnd), C(msgrcv),
    C(msgctl), C(mq_open), C(mq_unlink), C(mq_timedsend), C(mq_timedreceive), C(mq_notify), C(mq_getsetattr),
    /* the machine */
    C(uname), C(sysinfo), C(getrandom),
#ifdef __x86_64__
    C(arch_prctl),
    /* calls that newer architectures no longer have */
    C(open), C(creat), C(stat), C(lstat), C(access), C(poll), C(select), C(pipe), C(dup2), C(getdents), C(rename), C(mkdir),
    C(rmdir), C(link), C(unlink), C(symlink), C(readlink), C(chmod), C(chown), C(lchown), C(mknod), C(utime), C(utimes),
    C(futimesat), C(fork), C(vfork), C(pause), C(alarm), C(getpgrp), C(time), C(epoll_create), C(epoll_wait), C(inotify_init),
    C(signalfd), C(eventfd),
#endif
};

/* ---- refused with a better error than ENOSYS; also in wide ---- */

#define R(call) FILTER_REFUSE(call, EPERM)
static const struct filter_row refused[] = {
    /* the kernel's own code and programs for it */
    R(init_module), R(finit_module), R(delete_module), R(kexec_load), R(kexec_file_load), R(bpf), R(perf_event_open),
    R(userfaultfd), /* stops the kernel in the middle of a copy: many exploits need it */
    /* keys are not namespaced */
    R(keyctl), R(add_key), R(request_key),
    /* file handles lead out of the root */
    R(open_by_handle_at), R(name_to_handle_at), R(fanotify_init), R(fanotify_mark),
    /* they affect the whole machine */
    R(acct), R(swapon), R(swapoff), R(reboot), R(settimeofday), R(clock_settime), R(clock_adjtime), R(adjtimex),
    R(quotactl), R(quotactl_fd), R(vhangup), R(syslog), R(lookup_dcookie), R(move_pages), R(migrate_pages), R(vmsplice),
    /* namespaces and mounts: rows of `nests` allow them in a sandbox with nesting */
    R(setns), R(mount), R(umount2), R(pivot_root), R(move_mount), R(open_tree), R(fsopen), R(fsconfig), R(fsmount),
    R(fspick), R(mount_setattr), R(sethostname), R(setdomainname),
#ifdef __x86_64__
    R(iopl), R(ioperm), R(modify_ldt),
#endif
};

static const struct filter_row nests[] = {
    C(clone), C(unshare), C(setns), C(mount), C(umount2), C(pivot_root), C(move_mount), C(open_tree), C(fsopen),
    C(fsconfig), C(fsmount), C(fspick), C(mount_setattr), C(sethostname), C(setdomainname),
    FILTER_RULES(socket, family_rules, FILTER_ERRNO(EAFNOSUPPORT)), /* nftables in a network of its own */
};

/* Not even in wide, which allows all other numbers up to WIDE_END. */
#define N(call) FILTER_REFUSE(call, ENOSYS)
static const struct filter_row wide_checked[] = {
    N(io_uring_setup), N(io_uring_enter), N(io_uring_register), /* bypasses every filter */
    N(nfsservctl),
#ifdef __x86_64__
    N(uselib), N(ustat), N(sysfs), N(_sysctl),
#endif
    FILTER_RULES(ioctl, ioctl_rules, FILTER_ALLOW),
    FILTER_RULES(clone, clone_rules, FILTER_ALLOW),
    FILTER_RULES(unshare, unshare_rules, FILTER_ALLOW),
    FILTER_RULES(socket, family_rules, FILTER_ERRNO(EAFNOSUPPORT)),
    FILTER_RULES(socketpair, family_rules, FILTER_ERRNO(EAFNOSUPPORT)),
};

/* ---- commands ---- */

/* init's: the kernel requires the same uid, and RLIMIT_CPU kills */
static const struct filter_rule prlimit_rules[] = {
    {WHEN(EQ, 0, 1), NOT_ALLOWED},
};
static const struct filter_row of_commands[] = {
    FILTER_REFUSE(clone3, ENOSYS),
    FILTER_RULES(prlimit64, prlimit_rules, FILTER_ALLOW),
};
/* clang-format on */

/* The numbers that this architecture had assigned up to 5.17: there is a gap before 424. */
#ifdef __x86_64__
#define WIDE_GAP 335
#else
#define WIDE_GAP 295
#endif
static struct filter_row wide_all[WIDE_END];

static struct filter_table all_numbers(void)
{
    size_t n = 0;

    for (int nr = 0; nr < WIDE_END; nr++)
        if (nr < WIDE_GAP || nr >= 424)
            wide_all[n++] = (struct filter_row){.nr = nr, .answer = FILTER_ALLOW};
    return (struct filter_table){wide_all, n};
}

#define TABLE(rows) ((struct filter_table){(rows), ARRAY_LEN(rows)})

struct calls calls_of(enum calls_kind kind, bool nesting)
{
    struct calls c = {.otherwise = NO_CALL};

    if (kind == CALLS_WIDE) {
        c.tables[c.count++] = all_numbers();
        c.tables[c.count++] = TABLE(wide_checked);
    } else {
        c.tables[c.count++] = TABLE(allowed);
    }
    c.tables[c.count++] = TABLE(refused);
    if (nesting)
        c.tables[c.count++] = TABLE(nests);
    return c;
}

struct calls calls_of_commands(void)
{
    struct calls c = {.otherwise = FILTER_ALLOW};

    if (!guard_left_out("command_filter"))
        c.tables[c.count++] = TABLE(of_commands);
    return c;
}
