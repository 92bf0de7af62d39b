/* What the child gives up before it becomes init. */
#include "spawn/sandbox.h"

#include "base/fd.h"

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

int step_rlimits(struct sandbox *s, struct err *e)
{
    struct rlimit core = {0, 0}, files;

    if (setrlimit(RLIMIT_CORE, &core) < 0)
        return err_set(e, ERR_INTERNAL, errno, "limit core files");
    if (s->nofile == 0)
        return 0;
    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        return err_set(e, ERR_INTERNAL, errno, "read the limit of open files");
    /* The hard limit can only go down here: more than it allows is what it allows. */
    files.rlim_max = files.rlim_max < s->nofile ? files.rlim_max : s->nofile;
    files.rlim_cur = files.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &files) < 0)
        return err_set(e, ERR_INTERNAL, errno, "limit open files");
    return 0;
}

/* Nothing is inherited but the socket and, until exec, what exec closes. */
int step_descriptors(struct sandbox *s, struct err *e)
{
    if (s->listener != SETUP_LISTEN_FD) {
        if (s->report[1] == SETUP_LISTEN_FD)
            s->report[1] = fcntl(s->report[1], F_DUPFD_CLOEXEC, 10);
        if (host.init == SETUP_LISTEN_FD)
            host.init = fcntl(host.init, F_DUPFD_CLOEXEC, 10);
        if (dup2(s->listener, SETUP_LISTEN_FD) < 0)
            return err_set(e, ERR_INTERNAL, errno, "hand over init's socket");
    }
    if (syscall(SYS_close_range, SETUP_LISTEN_FD + 1U, ~0U, 4U /* CLOSE_RANGE_CLOEXEC */) < 0)
        return err_set(e, ERR_INTERNAL, errno, "close the rest");
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
    for (int cap = 0; cap < 64; cap++)
        if (!(kept_caps & BIT(cap)) && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 && errno != EINVAL)
            return err_set(e, ERR_INTERNAL, errno, "drop capability %d", cap);
    if (syscall(SYS_capset, &head, data) < 0)
        return err_set(e, ERR_INTERNAL, errno, "set capabilities");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_set(e, ERR_INTERNAL, errno, "set no_new_privs");
    return 0;
}

/* Last: earlier steps need calls that it forbids. */
int step_seccomp(struct sandbox *s, struct err *e)
{
    (void)s;
    for (size_t i = 0; i < ARRAY_LEN(host.filter); i++)
        if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &host.filter[i]) < 0)
            return err_set(e, ERR_UNSUPPORTED, errno, "install the filter");
    return 0;
}
