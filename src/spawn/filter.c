/* The seccomp filter, compiled once: an allowlist of the calls this build knows, less the ones
 * below. What is not known, a newer kernel's, answers ENOSYS, so that libraries fall back. */
#include "spawn/host.h"

#include "base/fd.h"
#include "base/mem.h"
#include "spawn/guards.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define NEW_NAMESPACES                                                                             \
    (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS |     \
     CLONE_NEWCGROUP)
#define SYSCALL_END 451 /* judged up to here; later ones are unknown, whatever libseccomp knows */

static const struct {
    const char *name;
    int error;
    bool nests; /* allowed to a sandbox with nesting */
} refused[] = {
    {"unshare", EPERM, true},
    {"setns", EPERM, true},
    {"mount", EPERM, true},
    {"umount2", EPERM, true},
    {"umount", EPERM, true},
    {"pivot_root", EPERM, true},
    {"move_mount", EPERM, true},
    {"open_tree", EPERM, true},
    {"fsopen", EPERM, true},
    {"fsconfig", EPERM, true},
    {"fsmount", EPERM, true},
    {"fspick", EPERM, true},
    {"mount_setattr", EPERM, true},
    {"bpf", EPERM},
    {"perf_event_open", EPERM},
    {"userfaultfd", EPERM},
    {"io_uring_setup", ENOSYS},
    {"io_uring_enter", ENOSYS},
    {"io_uring_register", ENOSYS},
    {"keyctl", EPERM},
    {"add_key", EPERM},
    {"request_key", EPERM},
    {"kexec_load", EPERM},
    {"kexec_file_load", EPERM},
    {"init_module", EPERM},
    {"finit_module", EPERM},
    {"delete_module", EPERM},
    {"open_by_handle_at", EPERM},
    {"name_to_handle_at", EPERM},
    {"acct", EPERM},
    {"swapon", EPERM},
    {"swapoff", EPERM},
    {"reboot", EPERM},
    {"settimeofday", EPERM},
    {"clock_settime", EPERM},
    {"clock_adjtime", EPERM},
    {"adjtimex", EPERM},
    {"quotactl", EPERM},
    {"quotactl_fd", EPERM},
    {"iopl", EPERM},
    {"ioperm", EPERM},
    {"vhangup", EPERM},
    {"syslog", EPERM},
    {"lookup_dcookie", EPERM},
    {"nfsservctl", ENOSYS},
    {"uselib", ENOSYS},
    {"ustat", ENOSYS},
    {"sysfs", ENOSYS},
    {"_sysctl", ENOSYS},
    {"modify_ldt", EPERM},
    {"fanotify_init", EPERM},
    {"move_pages", EPERM},
    {"migrate_pages", EPERM},
    {"vmsplice", EPERM},
};

static int refused_error(const char *name, bool nesting)
{
    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        if (strcmp(refused[i].name, name) == 0)
            return nesting && refused[i].nests ? 0 : refused[i].error;
    return 0;
}

/* AF_UNIX, AF_INET, AF_INET6 and AF_NETLINK; others are not namespaced (AF_VSOCK), or make the host
 * load a module.  The kernel looks at the low half of the argument; with high bits set it is
 * greater. */
static int add_families(scmp_filter_ctx ctx)
{
    int r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EAFNOSUPPORT), SCMP_SYS(socket), 1,
                             SCMP_A0(SCMP_CMP_GT, AF_NETLINK));

    for (unsigned family = 0; r == 0 && family < AF_NETLINK; family++)
        if (family != AF_UNIX && family != AF_INET && family != AF_INET6)
            r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EAFNOSUPPORT), SCMP_SYS(socket), 1,
                                 SCMP_A0(SCMP_CMP_MASKED_EQ, 0xffffffffU, family));
    return r;
}

/* For commands: calls that are allowed but for some arguments; and clone3, whose flags are behind a
 * pointer: it answers ENOSYS, and libc falls back to clone, which is checked. */
static int add_checked(scmp_filter_ctx ctx, bool nesting)
{
    int r;

    if (guard_left_out("command_filter"))
        return 0;
    r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl), 1,
                         SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffffU, TIOCSTI));
    if (r == 0)
        r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl), 1,
                             SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffffU, TIOCLINUX));
    if (r == 0)
        r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
    if (r == 0)
        r = add_families(ctx);
    if (r == 0) /* init's limits: the kernel asks for the same uid only, and RLIMIT_CPU kills */
        r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(prlimit64), 1,
                             SCMP_A0(SCMP_CMP_MASKED_EQ, 0xffffffffU, 1));
    for (unsigned bit = 0; r == 0 && !nesting && bit < 32; bit++)
        if (NEW_NAMESPACES & (1U << bit))
            r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                                 SCMP_A0(SCMP_CMP_MASKED_EQ, 1UL << bit, 1UL << bit));
    return r;
}

static int add_rules(scmp_filter_ctx ctx, bool nesting)
{
    int r = 0;

    for (int nr = 0; r == 0 && nr < SYSCALL_END; nr++) {
        AUTO(mem_free) char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, nr);
        int error = name ? refused_error(name, nesting) : 0;

        if (!name || error == ENOSYS)
            continue; /* the default */
        r = seccomp_rule_add(ctx, error ? SCMP_ACT_ERRNO((uint16_t)error) : SCMP_ACT_ALLOW, nr, 0);
    }
    return r;
}

static int compile(uint32_t preset, int (*add)(scmp_filter_ctx ctx, bool nesting), bool nesting)
{
    scmp_filter_ctx ctx = seccomp_init(preset);
    AUTO(fd_close) int fd = memfd_create("holt-filter", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int r = !ctx ? -ENOMEM : fd < 0 ? -errno : 0;

    if (r == 0)
        r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_NNP, 0); /* a step of its own */
    if (r == 0)
        (void)seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* a tree, not a list */
    if (r == 0)
        r = add(ctx, nesting);
    if (r == 0)
        r = seccomp_export_bpf(ctx, fd);
    seccomp_release(ctx);
    if (r == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
        r = -errno;
    return r < 0 ? r : TAKE_FD(fd);
}

/* Two filters, the stricter answer counts: in one, libseccomp would let a rule without arguments
 * override those with, and loading the long one costs 0.1 ms, too much for each command. */
static int compile_both(struct host_filter *f, bool nesting)
{
    AUTO(buf_done) struct buf program = {0};
    AUTO(fd_close) int fd = compile(SCMP_ACT_ERRNO(ENOSYS), add_rules, nesting);
    int r = fd < 0 ? fd : lseek(fd, 0, SEEK_SET) < 0 ? -errno : 0;

    if (r == 0)
        r = fd_read_all(fd, sizeof(struct sock_filter) * BPF_MAXINSNS, &program);
    if (r == 0)
        r = f->command_fd = compile(SCMP_ACT_ALLOW, add_checked, nesting);
    if (r < 0)
        return r;
    f->all.len = (unsigned short)(buf_len(&program) / sizeof(struct sock_filter));
    f->all.filter = (struct sock_filter *)(void *)buf_steal(&program);
    return 0;
}

int host_compile_filter(struct err *e)
{
    int r = compile_both(&host.filter, false);

    if (r == 0 && host.nesting)
        r = compile_both(&host.nesting_filter, true);
    return r < 0 ? err_set(e, ERR_INTERNAL, -r, "compile the seccomp filter") : 0;
}
