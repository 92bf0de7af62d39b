/* own_rights: the capabilities and system calls that holt-spawn keeps, with the reason for each. */
#include "spawn/own_rights.h"

#include "base/confine.h"
#include "base/log.h"
#include "spawn/calls.h"
#include "spawn/guards.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <sys/prctl.h>

#define BIT(cap) (1ULL << (cap))

/* Of 41.  Processes in a sandbox have none of them: they are in a user namespace of their own. */
static const uint64_t kept =
    BIT(CAP_SYS_ADMIN) |       /* mounts, namespaces, cgroups, idmapped trees, loop devices */
    BIT(CAP_SYS_CHROOT) |      /* setns into a mount namespace */
    BIT(CAP_MKNOD) |           /* the nodes of the shared /dev */
    BIT(CAP_CHOWN) |           /* stored files get the ids of sandboxes' users */
    BIT(CAP_FOWNER) |          /* modes of files of those ids */
    BIT(CAP_FSETID) |          /* keeps their set-group-ID bits */
    BIT(CAP_DAC_OVERRIDE) |    /* make, walk and remove trees of those ids */
    BIT(CAP_DAC_READ_SEARCH) | /* … and open them by O_PATH below closed directories */
    BIT(CAP_SETUID) |          /* id maps of sandboxes; files made as another id */
    BIT(CAP_SETGID) |          /* the same for groups */
    BIT(CAP_SETFCAP) |         /* a map that has the id 0 (Linux 5.12) */
    BIT(CAP_SETPCAP) |         /* to drop capabilities from the bounding set */
    BIT(CAP_KILL) |            /* end processes of a sandbox, which are other users */
    BIT(CAP_SYS_PTRACE) |      /* /proc/PID/ns and statistics of those */
    BIT(CAP_SYS_RESOURCE) |    /* limits above our own, oom_score_adj below it */
    BIT(CAP_NET_ADMIN) |       /* addresses, routes and redirections of sandboxes' networks */
    BIT(CAP_NET_BIND_SERVICE); /* port 53 there */

/* For children that only count or remove files. */
static const uint64_t walker_kept =
    BIT(CAP_DAC_OVERRIDE) | BIT(CAP_DAC_READ_SEARCH) | BIT(CAP_FOWNER) | BIT(CAP_CHOWN);

/* For those that copy: set-group-ID bits and capabilities of files too. */
static const uint64_t copier_kept = BIT(CAP_DAC_OVERRIDE) | BIT(CAP_DAC_READ_SEARCH) |
                                    BIT(CAP_FOWNER) | BIT(CAP_CHOWN) | BIT(CAP_FSETID) |
                                    BIT(CAP_SETFCAP);

/* Sandboxes inherit this filter below their own, so it allows everything the widest of those does,
 * and these calls with any arguments for our own steps.  Everything else is refused to us as well:
 * bpf, perf, kernel modules, kexec, keys, handles of files, the clock, I/O ports, swap, reboot. */
static const struct filter_row own_rows[] = {
    FILTER_CALL(clone),
    FILTER_CALL(clone3),
    FILTER_CALL(unshare),
    FILTER_CALL(setns),
    FILTER_CALL(mount),
    FILTER_CALL(umount2),
    FILTER_CALL(pivot_root),
    FILTER_CALL(chroot),
    FILTER_CALL(open_tree),
    FILTER_CALL(move_mount),
    FILTER_CALL(fsopen),
    FILTER_CALL(fsconfig),
    FILTER_CALL(fsmount),
    FILTER_CALL(fspick),
    FILTER_CALL(mount_setattr),
    FILTER_CALL(socket),
    FILTER_CALL(socketpair),
    FILTER_CALL(ioctl),
    FILTER_CALL(prctl),
    FILTER_CALL(prlimit64),
    FILTER_CALL(seccomp),
    FILTER_CALL(mknodat),
    FILTER_CALL(pidfd_open),
    FILTER_CALL(pidfd_send_signal),
    FILTER_CALL(execve),
    FILTER_CALL(execveat),
    FILTER_CALL(landlock_create_ruleset),
    FILTER_CALL(personality),
    FILTER_CALL(landlock_add_rule),
    FILTER_CALL(landlock_restrict_self),
    FILTER_CALL(setsockopt),
    FILTER_CALL(sethostname),
    FILTER_CALL(ptrace),
};

static int filter_own_calls(void)
{
    struct calls narrow = calls_of(CALLS_NARROW, true), wide = calls_of(CALLS_WIDE, true);
    /* newer calls, by name */
    struct filter_table tables[CALLS_TABLES_MAX + 2] = {narrow.tables[0]};
    struct sock_fprog program;
    int r;

    if (guard_left_out("silence"))
        return 0; /* a call refused here would not reach the sandbox's filter */
    memcpy(tables + 1, wide.tables, wide.count * sizeof *tables);
    tables[wide.count + 1] = (struct filter_table){own_rows, ARRAY_LEN(own_rows)};
    r = filter_compile(tables, wide.count + 2, wide.otherwise, &program);
    if (r < 0)
        return r;
    r = filter_install(&program);
    filter_done(&program);
    return r;
}

int own_rights_give_up(struct err *e)
{
    int r = 0;

    /* NOLINTNEXTLINE(misc-redundant-expression): both are false if no guard can be left out */
    if (!guard_left_out("caps") && !guard_left_out("userns"))
        r = confine_caps(kept);
    if (r < 0)
        return err_set(e, ERR_INTERNAL, -r, "give up capabilities");
    /* newuidmap(1), which is setuid, has run; nothing later may gain rights. */
    if (!guard_left_out("no_new_privs") && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_set(e, ERR_INTERNAL, errno, "set no_new_privs");
    r = guard_left_out("seccomp") || guard_left_out("command_filter") ? 0 : filter_own_calls();
    if (r < 0)
        log_warn("holt-spawn's system calls are not filtered", LOG_C("error", strerror(-r)));
    return 0;
}

void own_rights_of_walker(int dir)
{
    char path[32];

    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", dir);
    (void)!confine_paths(&(struct confine_path){path, CONFINE_WRITE}, 1);
    (void)!confine_caps(walker_kept);
}

void own_rights_of_copier(int from, int to, bool moves)
{
    char source[32], target[32];

    (void)snprintf(source, sizeof source, "/proc/self/fd/%d", from);
    (void)snprintf(target, sizeof target, "/proc/self/fd/%d", to);
    (void)!confine_paths(
        (const struct confine_path[]){{source, moves ? CONFINE_WRITE : CONFINE_READ},
                                      {target, CONFINE_COPY}},
        2);
    (void)!confine_caps(copier_kept);
}
