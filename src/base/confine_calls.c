/* confine_calls: the system calls that holtd and holt-egress keep. */
#include "base/confine.h"

#include <asm/ioctls.h>
#include <errno.h>
#include <linux/sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define ANY(call) FILTER_CALL(call)
#define CHECKED_BY(call, list, otherwise) FILTER_RULES(call, list, otherwise)
#define IS(at, v) {.when = {{FILTER_EQ, (at), (v)}}, .answer = FILTER_ALLOW}

/* Threads only: no processes, no namespaces. */
static const struct filter_rule clone_rules[] = {
    {.when = {{FILTER_ANY, 0, CLONE_THREAD}}, .answer = FILTER_ALLOW},
};
/* Writable memory is not executable.  Libraries loaded late never ask for both at once. */
static const struct filter_rule mmap_rules[] = {
    {.when = {{FILTER_ANY, 2, PROT_WRITE}, {FILTER_ANY, 2, PROT_EXEC}},
     .answer = FILTER_ERRNO(EPERM)},
};
static const struct filter_rule mprotect_rules[] = {
    {.when = {{FILTER_ANY, 2, PROT_EXEC}}, .answer = FILTER_ERRNO(EPERM)},
};
static const struct filter_rule own_limit_rules[] = {IS(0, 0)};
/* No typing into a terminal (TIOCSTI) and no device calls. */
static const struct filter_rule ioctl_rules[] = {
    IS(1, FIONBIO), IS(1, FIONREAD),   IS(1, FIOCLEX),  IS(1, FIONCLEX),
    IS(1, TCGETS),  IS(1, TIOCGWINSZ), IS(1, TIOCOUTQ),
};
static const struct filter_rule socket_rules[] = {IS(0, AF_UNIX), IS(0, AF_INET), IS(0, AF_INET6),
                                                  IS(0, AF_NETLINK)};
static const struct filter_rule pair_rules[] = {IS(0, AF_UNIX)};

/* clang-format off */
/* Memory, threads, time, descriptors, sockets, reading files.  A call that only a newer libc makes
 * fails with ENOSYS; libc then falls back to the older call, which is listed. */
static const struct filter_row loop_rows[] = {
    /* the most frequent ones first */
    ANY(epoll_pwait), ANY(read), ANY(write), ANY(readv), ANY(writev),
    ANY(recvfrom), ANY(recvmsg), ANY(sendto), ANY(sendmsg), ANY(futex), ANY(clock_gettime),
    ANY(epoll_ctl), ANY(close), ANY(accept4), ANY(accept), ANY(pread64), ANY(pwrite64),
    /* memory */
    CHECKED_BY(mmap, mmap_rules, FILTER_ALLOW), CHECKED_BY(mprotect, mprotect_rules, FILTER_ALLOW),
    ANY(munmap), ANY(mremap), ANY(madvise), ANY(brk), ANY(msync), ANY(mlock), ANY(mlock2),
    ANY(munlock), ANY(memfd_create), ANY(mincore),
    /* threads; clone3, whose flags a filter cannot see, fails, and libc falls back to clone */
    CHECKED_BY(clone, clone_rules, FILTER_ERRNO(EPERM)), ANY(exit), ANY(exit_group), ANY(set_robust_list),
    ANY(get_robust_list), ANY(rseq), ANY(set_tid_address), ANY(sched_yield),
    ANY(sched_getaffinity), ANY(sched_setaffinity), ANY(sched_getscheduler), ANY(sched_getparam),
    ANY(gettid), ANY(getpid), ANY(getppid), ANY(membarrier), ANY(restart_syscall), ANY(getcpu),
    ANY(prctl), ANY(getrusage), ANY(times), ANY(getpriority),
    /* limits: our own only */
    CHECKED_BY(prlimit64, own_limit_rules, FILTER_ERRNO(EPERM)),
    /* users: queries only */
    ANY(getuid), ANY(geteuid), ANY(getgid), ANY(getegid), ANY(getresuid), ANY(getresgid),
    ANY(getgroups), ANY(capget),
    /* signals; confine_calls adds tgkill to ourselves, which abort() uses */
    ANY(rt_sigaction), ANY(rt_sigprocmask), ANY(rt_sigreturn), ANY(sigaltstack), ANY(rt_sigpending),
    ANY(rt_sigtimedwait), ANY(signalfd4),
    /* time */
    ANY(clock_getres), ANY(clock_nanosleep), ANY(nanosleep), ANY(gettimeofday),
    ANY(timerfd_create), ANY(timerfd_settime), ANY(timerfd_gettime),
    /* waiting */
    ANY(ppoll), ANY(pselect6), ANY(epoll_create1),
    ANY(epoll_pwait2), ANY(eventfd2), ANY(pipe2),
    /* descriptors */
    ANY(dup), ANY(dup3), ANY(fcntl), ANY(close_range), ANY(lseek), ANY(flock),
    CHECKED_BY(ioctl, ioctl_rules, FILTER_ERRNO(ENOTTY)),
    /* sockets */
    CHECKED_BY(socket, socket_rules, FILTER_ERRNO(EAFNOSUPPORT)),
    CHECKED_BY(socketpair, pair_rules, FILTER_ERRNO(EAFNOSUPPORT)), ANY(bind), ANY(listen), ANY(connect),
    ANY(getsockname), ANY(getpeername), ANY(getsockopt), ANY(setsockopt), ANY(shutdown),
    ANY(recvmmsg), ANY(sendmmsg), ANY(splice), ANY(tee), ANY(sendfile),
    /* reading files */
    ANY(openat), ANY(openat2), ANY(faccessat), ANY(faccessat2),
    ANY(fstat), ANY(newfstatat), ANY(statx), ANY(statfs), ANY(fstatfs),
    ANY(readlinkat), ANY(getdents64), ANY(getcwd), ANY(fadvise64), ANY(preadv),
    ANY(preadv2), ANY(readahead),
    /* other calls of libc */
    ANY(getrandom), ANY(uname), ANY(sysinfo), ANY(umask), ANY(getsid), ANY(getpgid),
    ANY(pidfd_open), ANY(waitid),
#ifdef __x86_64__ /* only the x86-64 call table has these */
    ANY(open), ANY(access), ANY(stat), ANY(lstat), ANY(readlink), ANY(getdents), ANY(poll),
    ANY(select), ANY(epoll_wait), ANY(epoll_create), ANY(eventfd), ANY(pipe), ANY(dup2),
    ANY(time), ANY(getpgrp), ANY(arch_prctl), ANY(getrlimit), ANY(setrlimit),
#endif
};

/* Writing files. */
static const struct filter_row file_rows[] = {
    ANY(ftruncate), ANY(truncate), ANY(fallocate), ANY(fsync), ANY(fdatasync), ANY(sync_file_range),
    ANY(syncfs), ANY(pwritev), ANY(pwritev2), ANY(renameat2),
    ANY(unlinkat), ANY(mkdirat), ANY(linkat),
    ANY(fchmod), ANY(fchmodat), ANY(fchown), ANY(utimensat),
    ANY(copy_file_range),
    ANY(inotify_init1), ANY(inotify_add_watch), ANY(inotify_rm_watch),
#ifdef __x86_64__ /* only the x86-64 call table has these */
    ANY(rename), ANY(unlink), ANY(rmdir), ANY(mkdir), ANY(link), ANY(chmod), ANY(creat),
    ANY(futimesat), ANY(renameat),
#endif
};
/* clang-format on */

const struct filter_table confine_loop = {loop_rows, ARRAY_LEN(loop_rows)};
const struct filter_table confine_files = {file_rows, ARRAY_LEN(file_rows)};
