/* confine: seccomp, Landlock, capabilities and user of one of our own processes. */
#include "base/confine.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef PR_SET_MDWE /* Linux 6.3 */
#define PR_SET_MDWE 65
#define PR_MDWE_REFUSE_EXEC_GAIN 1UL
#endif
#ifndef LANDLOCK_ACCESS_FS_REFER /* Landlock ABI 2 */
#define LANDLOCK_ACCESS_FS_REFER (1ULL << 13)
#endif
#define ACCESS_FS_TRUNCATE (1ULL << 14)  /* Landlock ABI 3 */
#define ACCESS_FS_IOCTL_DEV (1ULL << 15) /* Landlock ABI 5 */

/* ---- system calls ---- */

#define TABLES_MAX 8

int confine_calls(const struct filter_table *tables, size_t n)
{
    const struct filter_rule ourselves = {.when = {{FILTER_EQ, 0, (uint32_t)getpid()}},
                                          .answer = FILTER_ALLOW};
    const struct filter_row abort_row = {.name = "tgkill",
                                         .nr = SYS_tgkill,
                                         .answer = FILTER_ERRNO(EPERM),
                                         .rules = &ourselves,
                                         .rule_n = 1};
    struct filter_table all[TABLES_MAX] = {{&abort_row, 1}};
    struct sock_fprog program;
    int r;

    assert(n < TABLES_MAX);
    memcpy(all + 1, tables, n * sizeof *tables);
    r = filter_compile(all, n + 1, FILTER_ERRNO(ENOSYS), &program);
    if (r < 0)
        return r;
    r = filter_install(&program);
    filter_done(&program);
    return r;
}

/* ---- files ---- */

#define READ_FILE (LANDLOCK_ACCESS_FS_READ_FILE)
#define READ_TREE (READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define WRITE_FILE (READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | ACCESS_FS_TRUNCATE)
#define WRITE_TREE                                                                                 \
    (WRITE_FILE | READ_TREE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |     \
     LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |    \
     LANDLOCK_ACCESS_FS_REFER)
#define COPY_TREE                                                                                  \
    (WRITE_TREE | LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_MAKE_FIFO |                     \
     LANDLOCK_ACCESS_FS_MAKE_CHAR)
#define FIRST_VERSION ((1ULL << 13) - 1) /* all rights of Landlock ABI 1 */

int confine_paths_version(void)
{
    long v = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

    return v < 0 ? 0 : (int)v;
}

static uint64_t handled_by(int version)
{
    return FIRST_VERSION | (version >= 2 ? LANDLOCK_ACCESS_FS_REFER : 0) |
           (version >= 3 ? ACCESS_FS_TRUNCATE : 0) | (version >= 5 ? ACCESS_FS_IOCTL_DEV : 0);
}

static int add_path(int set, const struct confine_path *p, uint64_t handled)
{
    AUTO(fd_close) int fd = open(p->path, O_PATH | O_CLOEXEC);
    struct landlock_path_beneath_attr rule = {.parent_fd = fd};
    bool write = p->access != CONFINE_READ;
    struct stat st;

    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR || errno == EACCES ? 0 : -errno;
    if (fstat(fd, &st) < 0)
        return -errno;
    rule.allowed_access = S_ISDIR(st.st_mode) ? (p->access == CONFINE_COPY ? COPY_TREE
                                                 : write                   ? WRITE_TREE
                                                                           : READ_TREE)
                                              : (write ? WRITE_FILE : READ_FILE);
    rule.allowed_access &= handled;
    return syscall(SYS_landlock_add_rule, set, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0 ? -errno
                                                                                         : 0;
}

int confine_paths(const struct confine_path *paths, size_t n)
{
    int version = confine_paths_version();
    struct landlock_ruleset_attr attr = {.handled_access_fs = handled_by(version)};
    AUTO(fd_close) int set = -1;
    int r = 0;

    if (version == 0)
        return -EOPNOTSUPP;
    set = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);
    if (set < 0)
        return -errno;
    for (size_t i = 0; r == 0 && i < n; i++)
        r = add_path(set, &paths[i], attr.handled_access_fs);
    if (r < 0)
        return r;
    return syscall(SYS_landlock_restrict_self, set, 0) < 0 ? -errno : 0;
}

/* ---- capabilities and user ---- */

static uint64_t permitted_caps(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {0};

    if (syscall(SYS_capget, &head, data) < 0)
        return 0;
    return data[0].permitted | (uint64_t)data[1].permitted << 32;
}

/* A process without capabilities skips capset(2): a service manager may forbid the call. */
static int set_caps(uint64_t keep)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {
        {.effective = (uint32_t)keep, .permitted = (uint32_t)keep},
        {.effective = (uint32_t)(keep >> 32), .permitted = (uint32_t)(keep >> 32)},
    };

    return permitted_caps() != 0 && syscall(SYS_capset, &head, data) < 0 ? -errno : 0;
}

/* EPERM: an ordinary user, with nothing to drop. */
static int drop_bounding(uint64_t keep)
{
    for (int cap = 0; cap < 64; cap++) {
        if (keep & (1ULL << cap) || prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0)
            continue;
        if (errno == EINVAL || errno == EPERM)
            break; /* past the kernel's last capability */
        return -errno;
    }
    return 0;
}

int confine_caps(uint64_t keep)
{
    int r = drop_bounding(keep);

    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    return r < 0 ? r : set_caps(keep & permitted_caps());
}

/* A change of user clears the parent death signal (prctl(2)), so set it again: a test or a
 * supervisor may rely on it. */
int confine_user(uid_t uid, gid_t gid, uint64_t keep)
{
    int death = 0, r;

    (void)prctl(PR_GET_PDEATHSIG, &death, 0, 0, 0);
    r = drop_bounding(keep);
    if (r < 0)
        return r;
    if (keep && prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0)
        return -errno;
    if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
        return -errno;
    (void)prctl(PR_SET_PDEATHSIG, death, 0, 0, 0);
    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    return set_caps(keep & permitted_caps());
}

int confine_self(void)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return -errno;
    (void)prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0);
    return 0;
}
