/* What the child gives up before it becomes init. */
#include "spawn/sandbox.h"

#include "base/fd.h"
#include "spawn/guards.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BIT(cap) (1ULL << (cap))

/* What root in a container needs, and CAP_WAKE_ALARM, which init keeps for itself: see
 * src/init/launch.c. */
static const uint64_t kept_caps = BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER) |
                                  BIT(CAP_FSETID) | BIT(CAP_KILL) | BIT(CAP_SETGID) |
                                  BIT(CAP_SETUID) | BIT(CAP_SETPCAP) | BIT(CAP_NET_BIND_SERVICE) |
                                  BIT(CAP_SYS_CHROOT) | BIT(CAP_SETFCAP) | BIT(CAP_WAKE_ALARM);

/* Without a cgroup the rlimit serves as well, as long as there is one user: it counts a user's
 * processes in the user namespace (Linux 5.14), and none there can raise it or become another. */
bool rlimit_holds_pids(const struct sandbox *s)
{
    return s->pids != 0 && !(host.features & SPAWN_CAN_PIDS) && !host.many_ids;
}

int step_rlimits(struct sandbox *s, struct err *e)
{
    struct rlimit core = {0, 0}, processes = {s->pids, s->pids};

    if (guard_left_out("rlimits"))
        return 0;
    if (setrlimit(RLIMIT_CORE, &core) < 0)
        return err_set(e, ERR_INTERNAL, errno, "limit core files");
    if (rlimit_holds_pids(s) && setrlimit(RLIMIT_NPROC, &processes) < 0)
        return err_set(e, ERR_INTERNAL, errno, "limit processes");
    return 0; /* that of open files is the commands', not init's: it sets it for each */
}

static const struct host_filter *filter_of(const struct sandbox *s)
{
    return s->flags & SPAWN_NESTING ? &host.nesting_filter : &host.filter;
}

/* Nothing is inherited but three, in their places, and, until exec, what exec closes. */
int step_descriptors(struct sandbox *s, struct err *e)
{
    const int from[] = {s->listener, filter_of(s)->command_fd, s->cg2_work};
    int above[ARRAY_LEN(from)];

    host.init = fcntl(host.init, F_DUPFD_CLOEXEC, 10); /* out of the way of 3, 4 and 5 */
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
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {
        {.effective = (uint32_t)kept_caps, .permitted = (uint32_t)kept_caps},
        {.effective = (uint32_t)(kept_caps >> 32), .permitted = (uint32_t)(kept_caps >> 32)},
    };

    (void)s;
    for (int cap = 0; cap < 64 && !guard_left_out("caps"); cap++) {
        if ((kept_caps & BIT(cap)) || prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0)
            continue;
        if (errno == EINVAL)
            break; /* past the kernel's last */
        return err_set(e, ERR_INTERNAL, errno, "drop capability %d", cap);
    }
    if (!guard_left_out("caps") && syscall(SYS_capset, &head, data) < 0)
        return err_set(e, ERR_INTERNAL, errno, "set capabilities");
    if (!guard_left_out("no_new_privs") && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_set(e, ERR_INTERNAL, errno, "set no_new_privs");
    return 0;
}

/* Last: earlier steps need calls that it forbids.  The second filter is init's to install in each
 * command: it takes clone3 away, by which init puts a command into its cgroup. */
int step_seccomp(struct sandbox *s, struct err *e)
{
    if (guard_left_out("seccomp"))
        return 0;
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter_of(s)->all) < 0)
        return err_set(e, ERR_UNSUPPORTED, errno, "install the filter");
    return 0;
}
