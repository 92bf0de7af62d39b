/* step_rights: the rights that the child drops before it becomes init. */
#include "spawn/sandbox.h"

#include "base/fd.h"
#include "spawn/guards.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BIT(cap) (1ULL << (cap))

/* What root in a container needs, and CAP_WAKE_ALARM, which init keeps for itself: see
 * src/init/launch.c. */
#define NAMED(cap) {cap, #cap}
static const struct {
    int cap;
    const char *name;
} kept_rows[] = {
    NAMED(CAP_CHOWN),      NAMED(CAP_DAC_OVERRIDE), NAMED(CAP_FOWNER),
    NAMED(CAP_FSETID),     NAMED(CAP_KILL),         NAMED(CAP_SETGID),
    NAMED(CAP_SETUID),     NAMED(CAP_SETPCAP),      NAMED(CAP_NET_BIND_SERVICE),
    NAMED(CAP_SYS_CHROOT), NAMED(CAP_SETFCAP),      NAMED(CAP_WAKE_ALARM),
};

static uint64_t kept_caps(void)
{
    uint64_t bits = 0;

    for (size_t i = 0; i < ARRAY_LEN(kept_rows); i++)
        bits |= BIT(kept_rows[i].cap);
    return bits;
}

void rights_capabilities(struct buf *json)
{
    for (size_t i = 0; i < ARRAY_LEN(kept_rows); i++)
        buf_printf(json, "%s\"%s\"", i ? "," : "", kept_rows[i].name);
}

/* Without a cgroup the rlimit works as long as there is one user: it counts a user's processes in
 * the user namespace (Linux 5.14), and none there can raise it or change its user. */
bool rlimit_holds_pids(const struct sandbox *s)
{
    return s->pids != 0 && !(host.features & SPAWN_CAN_PIDS) && !host.many_ids;
}

/* The default limit.  With v1 groups it would make spares useless (a process cannot enter them in
 * time), so it is per user there. */
static uint32_t default_by_rlimit(const struct sandbox *s)
{
    bool v2 = (host.features & SPAWN_CAN_PIDS) && host.cg1[CG1_PIDS] < 0;

    return s->pids == 0 && !v2 ? host.default_pids : 0;
}

/* From outside: init may already be running. */
int step_processes(struct sandbox *s, struct err *e)
{
    uint32_t most = rlimit_holds_pids(s) ? s->pids : default_by_rlimit(s);
    struct rlimit l = {most, most};

    if (guard_left_out("rlimits") || most == 0)
        return 0;
    if (prlimit(s->pid, RLIMIT_NPROC, &l, NULL) < 0)
        return err_set(e, ERR_INTERNAL, errno, "limit processes");
    return 0; /* the limit of open files is for commands, not init, which sets it for each */
}

int step_core(struct sandbox *s, struct err *e)
{
    struct rlimit none = {0, 0};

    (void)s;
    if (!guard_left_out("rlimits") && setrlimit(RLIMIT_CORE, &none) < 0)
        return err_set(e, ERR_INTERNAL, errno, "limit core files");
    return 0;
}

static int by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* Early: a spare waits for long, and descriptors of others that it holds would stay open.  The
 * child keeps what it needs until exec. */
int step_alone(struct sandbox *s, struct err *e)
{
    int kept[] = {STDERR_FILENO, s->listener,  host.command_filter, s->cg2_work, s->more[0],
                  s->go[0],      s->report[1], host.init,           s->dev_tree, s->init_tree};

    fd_close(s->go[1]); /* otherwise holt-spawn's death would not end the wait */
    fd_close(s->more[1]);
    s->go[1] = s->more[1] = -1;
    if (guard_left_out("descriptors"))
        return 0;
    qsort(kept, ARRAY_LEN(kept), sizeof *kept, by_number);
    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        unsigned from = (unsigned)kept[i] + 1,
                 to = i + 1 < ARRAY_LEN(kept) ? (unsigned)kept[i + 1] - 1 : ~0U;

        if (kept[i] >= STDERR_FILENO && from <= to && syscall(SYS_close_range, from, to, 0U) < 0)
            return err_set(e, ERR_INTERNAL, errno, "close the rest");
    }
    return 0;
}

/* Only four descriptors are inherited, at fixed numbers; others are closed by exec. */
int step_descriptors(struct sandbox *s, struct err *e)
{
    const int from[] = {s->listener, host.command_filter, s->cg2_work, s->more[0]};
    int above[ARRAY_LEN(from)];

    host.init = fcntl(host.init, F_DUPFD_CLOEXEC, 10); /* out of the way of 3 to 6 */
    s->report[1] = fcntl(s->report[1], F_DUPFD_CLOEXEC, 10);
    for (size_t i = 0; i < ARRAY_LEN(from); i++)
        above[i] = from[i] < 0 ? -1 : fcntl(from[i], F_DUPFD_CLOEXEC, 10);
    if (!guard_left_out("descriptors") &&
        syscall(SYS_close_range, 3U, ~0U, 4U /* CLOSE_RANGE_CLOEXEC */) < 0)
        return err_set(e, ERR_INTERNAL, errno, "close the rest");
    for (size_t i = 0; i < ARRAY_LEN(from); i++)
        if (above[i] >= 0 && dup2(above[i], SETUP_LISTEN_FD + (int)i) < 0)
            return err_set(e, ERR_INTERNAL, errno, "hand over what init needs");
    return 0;
}

int step_capabilities(struct sandbox *s, struct err *e)
{
    const uint64_t kept = kept_caps();
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {
        {.effective = (uint32_t)kept, .permitted = (uint32_t)kept},
        {.effective = (uint32_t)(kept >> 32), .permitted = (uint32_t)(kept >> 32)},
    };

    (void)s;
    for (int cap = 0; cap < 64 && !guard_left_out("caps"); cap++) {
        if ((kept & BIT(cap)) || prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0)
            continue;
        if (errno == EINVAL)
            break; /* past the kernel's last capability */
        return err_set(e, ERR_INTERNAL, errno, "drop capability %d", cap);
    }
    if (!guard_left_out("caps") && syscall(SYS_capset, &head, data) < 0)
        return err_set(e, ERR_INTERNAL, errno, "set capabilities");
    if (!guard_left_out("no_new_privs") && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_set(e, ERR_INTERNAL, errno, "set no_new_privs");
    return 0;
}

#ifdef HOLT_TEST_GUARDS
#define LISTENER_FD 7 /* the first that init does not know */

/* For tests/integration/test_programs.py: calls that the filter refuses wait for the process that
 * takes init's descriptor 7, so that they can be listed. */
static int install_heard(const struct sock_fprog *program)
{
    struct sock_filter heard[BPF_MAXINSNS];
    struct sock_fprog p = {program->len, heard};
    long fd;

    memcpy(heard, program->filter, program->len * sizeof *heard);
    for (size_t i = 0; i < p.len; i++)
        if (heard[i].code == (BPF_RET | BPF_K) &&
            (heard[i].k & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO)
            heard[i].k = SECCOMP_RET_USER_NOTIF;
    fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &p);
    if (fd < 0 || dup2((int)fd, LISTENER_FD) < 0 || fcntl(LISTENER_FD, F_SETFD, 0) < 0)
        return -errno;
    return 0;
}
#else
#define install_heard(program) (-ENOSYS)
#endif

/* Last: earlier steps need calls that it forbids.  init installs the second filter in each command:
 * it removes clone3, which init needs to put a command into its cgroup. */
int step_seccomp(struct sandbox *s, struct err *e)
{
    enum calls_kind kind = s->flags & SPAWN_WIDE ? CALLS_WIDE : CALLS_NARROW;
    const struct sock_fprog *program = &host.filters[kind][s->flags & SPAWN_NESTING ? 1 : 0];
    int r = 0;

    if (guard_left_out("silence"))
        r = install_heard(program);
    else if (!guard_left_out("seccomp"))
        r = filter_install(program);
    return r < 0 ? err_set(e, ERR_UNSUPPORTED, -r, "install the filter") : 0;
}
