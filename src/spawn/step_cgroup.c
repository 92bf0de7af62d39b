/* step_cgroup: control groups: v2 if available, v1 for limits that v2 lacks here. */
#include "spawn/sandbox.h"

#include "base/fd.h"
#include "spawn/guards.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#define CPU_PERIOD_US 100000
#define STEPS_AT_ONCE 400 /* steps in the tree of groups before others get their turn */
#define NESTED_DEPTH 32   /* of groups made by a sandbox with nesting */
#define NESTED_GROUPS 4096
#define SOCKET_SHARE 4 /* v1 counts socket buffers separately: a part of the limit in addition */
#define HUGE_MAX 8
#define CGROUP_PURE "/sys/fs/cgroup" /* v2 here, or beside v1 */
#define CGROUP_HYBRID "/sys/fs/cgroup/unified"

static const char *const cg1_names[CG1_COUNT] = {"memory", "pids", "cpu"};
static const uint32_t cg1_features[CG1_COUNT] = {SPAWN_CAN_MEMORY, SPAWN_CAN_PIDS, SPAWN_CAN_CPU};

static char huge_names[HUGE_MAX][40]; /* hugetlb.SIZE.max of v2, one per size of huge pages */
static size_t huge_n;
static bool sockets_counted; /* v1: TCP's and UDP's buffers */

static char group_name[64]; /* our group below each mount: one name per installation */

static int put(int dir, const char *name, const char *fmt, ...) PRINTF_LIKE(3, 4);
static int put(int dir, const char *name, const char *fmt, ...)
{
    AUTO(fd_close) int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);
    char text[64];
    va_list ap;

    if (fd < 0)
        return -errno;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return fd_write_all(fd, text, strlen(text));
}

static uint64_t get(int dir, const char *name, const char *key)
{
    AUTO(fd_close) int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    AUTO(buf_done) struct buf text = {0};
    struct str rest;
    uint64_t v = 0;

    if (fd < 0 || fd_read_all(fd, 65536, &text) < 0)
        return 0;
    rest = buf_str(&text);
    while (rest.n > 0) {
        struct str value, line = str_cut(rest, '\n', &rest);

        value = key ? (struct str){0} : line;
        if (key && str_eq_c(str_cut(line, ' ', &value), key))
            return str_parse_u64(value, &v) == 0 ? v : 0;
        if (!key)
            return str_parse_u64(value, &v) == 0 ? v : 0;
    }
    return 0;
}

static const char *huge_path(const char *size, const char *file)
{
    static char path[96];

    (void)snprintf(path, sizeof path, "%.40s/%s", size, file);
    return path;
}

/* Pages of the host's pool of huge pages are counted by no memory cgroup. */
static bool host_has_huge_pages(void)
{
    DIR *d = opendir("/sys/kernel/mm/hugepages");
    const struct dirent *entry;
    bool has = false;

    while (d && !has && (entry = readdir(d)))
        has = entry->d_name[0] != '.' &&
              (get(dirfd(d), huge_path(entry->d_name, "nr_hugepages"), NULL) ||
               get(dirfd(d), huge_path(entry->d_name, "nr_overcommit_hugepages"), NULL));
    if (d)
        (void)closedir(d);
    return has;
}

/* At the top of the hierarchy; for an ordinary user in the delegated group.  controller: NULL means
 * v2. */
static int open_group(const char *mount, const char *controller)
{
    AUTO(fd_close)
    int parent = host.rootless ? delegated_open(mount, controller)
                               : open(mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (parent < 0 || (mkdirat(parent, group_name, 0755) < 0 && errno != EEXIST))
        return -1;
    return openat(parent, group_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* dir: the group itself. */
static int remove_group(int dir, const char *name)
{
    AUTO(fd_close) int parent = openat(dir, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return parent < 0 || unlinkat(parent, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

/* The files that limit huge pages, from a group of ours: v2 only. */
static void find_huge_limits(void)
{
    AUTO(fd_close) int probe = -1;
    DIR *d;
    const struct dirent *entry;

    if (host.cg2 < 0)
        return;
    (void)put(host.cg2, "../cgroup.subtree_control", "+hugetlb");
    if (put(host.cg2, "cgroup.subtree_control", "+hugetlb") < 0)
        return;
    probe = openat(host.cg2, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    d = probe < 0 ? NULL : fdopendir(TAKE_FD(probe));
    while (d && huge_n < HUGE_MAX && (entry = readdir(d))) {
        struct str name = str_of(entry->d_name);

        if (str_starts(name, STR("hugetlb.")) && str_ends(name, STR("B.max")) &&
            name.n < sizeof huge_names[0])
            (void)snprintf(huge_names[huge_n++], sizeof huge_names[0], "%s", entry->d_name);
    }
    if (d)
        (void)closedir(d);
}

/* Buffers of sockets: v2 counts them as memory.  v1 counts them separately, for groups whose limit
 * was once set; we set it once, for good: the first time patches the running kernel. */
static void count_sockets(void)
{
    sockets_counted = host.cg1[CG1_MEMORY] < 0 ||
                      put(host.cg1[CG1_MEMORY], "memory.kmem.tcp.limit_in_bytes", "-1") == 0;
}

/* The mount points are systemd's convention; a host without any works, and reports what it cannot
 * do. */
int host_open_cgroups(struct err *e)
{
    bool pure = access(CGROUP_PURE "/cgroup.controllers", F_OK) == 0;
    char mount[64];
    struct stat st;

    if (fstat(host.state, &st) < 0)
        return err_set(e, ERR_INTERNAL, errno, "stat the state directory");
    (void)snprintf(group_name, sizeof group_name, "holt-%" PRIx64 "-%" PRIx64, (uint64_t)st.st_dev,
                   (uint64_t)st.st_ino);
    host.cg2 = open_group(pure ? CGROUP_PURE : CGROUP_HYBRID, NULL);
    if (host.cg2 >= 0)
        host.features |= SPAWN_CAN_FREEZE | SPAWN_CAN_KILL_TREE;
    for (int i = 0; i < CG1_COUNT; i++) {
        (void)snprintf(mount, sizeof mount, "/sys/fs/cgroup/%s", cg1_names[i]);
        host.cg1[i] = pure ? -1 : open_group(mount, cg1_names[i]);
        if (host.cg1[i] >= 0)
            host.features |= cg1_features[i];
        if (pure && host.cg2 >= 0) {
            char on[32];

            (void)snprintf(on, sizeof on, "+%s", cg1_names[i]);
            (void)put(host.cg2, "../cgroup.subtree_control", "%s", on);
            if (put(host.cg2, "cgroup.subtree_control", "%s", on) == 0)
                host.features |= cg1_features[i];
        }
    }
    count_sockets();
    find_huge_limits();
    return 0;
}

void host_close_cgroups(void)
{
    parked_end_all();
    for (int i = 0; i < CG1_COUNT; i++)
        (void)remove_group(host.cg1[i], group_name);
    (void)remove_group(host.cg2, group_name);
}

static uint64_t wanted_limit(const struct sandbox *s, int i)
{
    if (guard_left_out("limits"))
        return 0;
    if (i == CG1_PIDS && s->pids == 0 && host.cg1[CG1_PIDS] < 0)
        return host.default_pids; /* v2: costs nothing; v1: step_processes uses an rlimit */
    return i == CG1_MEMORY ? s->memory_bytes : i == CG1_PIDS ? s->pids : s->cpu_millis;
}

static int limit_v1(int dir, int i, uint64_t v)
{
    int r;

    if (i == CG1_MEMORY) {
        r = put(dir, "memory.limit_in_bytes", "%" PRIu64, v);
        return r < 0 || !sockets_counted || guard_left_out("sockets")
                   ? r
                   : put(dir, "memory.kmem.tcp.limit_in_bytes", "%" PRIu64, v / SOCKET_SHARE);
    }
    if (i == CG1_PIDS)
        return put(dir, "pids.max", "%" PRIu64, v);
    r = put(dir, "cpu.cfs_period_us", "%d", CPU_PERIOD_US);
    return r < 0 ? r : put(dir, "cpu.cfs_quota_us", "%" PRIu64, v * CPU_PERIOD_US / 1000);
}

/* No swap in addition to memory: the limit covers both.  Kernels without swap lack the file. */
static int limit_v2(int dir, int i, uint64_t v)
{
    if (i == CG1_MEMORY) {
        int r = put(dir, "memory.swap.max", "0");

        return r < 0 && r != -ENOENT ? r : put(dir, "memory.max", "%" PRIu64, v);
    }
    if (i == CG1_PIDS)
        return put(dir, "pids.max", "%" PRIu64, v);
    return put(dir, "cpu.max", "%" PRIu64 " %d", v * CPU_PERIOD_US / 1000, CPU_PERIOD_US);
}

static int open_child(int parent, const char *id)
{
    if (mkdirat(parent, id, 0755) < 0)
        return -errno;
    return openat(parent, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* What a memory cgroup does not count.  False: the limit can be bypassed. */
static bool limit_the_rest(struct sandbox *s)
{
    bool all = huge_n > 0 && s->cg2 >= 0;

    for (size_t i = 0; all && i < huge_n; i++)
        all = put(s->cg2, huge_names[i], "0") == 0;
    return sockets_counted && (all || !host_has_huge_pages());
}

static int limit_one(struct sandbox *s, int i, struct err *e)
{
    AUTO(fd_close) int dir = -1;
    int r;

    if (wanted_limit(s, i) == 0 || !(host.features & cg1_features[i]))
        return 0; /* `enforced` in the reply tells so */
    if (host.cg1[i] >= 0) {
        s->v1.made = true;
        dir = s->v1.by ? openat(host.cg1[i], s->id, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                       : open_child(host.cg1[i], s->id);
        r = dir < 0 ? dir : limit_v1(dir, i, wanted_limit(s, i));
    } else {
        r = limit_v2(s->cg2, i, wanted_limit(s, i));
    }
    if (r < 0)
        return err_set(e, err_code_from_errno(-r), -r, "limit %s", cg1_names[i]);
    if (i != CG1_MEMORY || limit_the_rest(s))
        s->enforced |= cg1_features[i];
    return 0;
}

/* init is in ID itself, which passes no controller on and so may have processes; ID/work belongs to
 * the sandbox's root, and init makes one group per command in it.  To put a child there it must own
 * ID's list of processes as well (cgroups(7), delegation); the limits, in ID, stay ours.  A group
 * beside work would not do for init: where cgroup namespaces are delegation boundaries (mount
 * option nsdelegate, systemd's choice), work must be below its namespace's root. */
static int delegate(struct sandbox *s)
{
    static const char *const owned[] = {"cgroup.procs", "work", "work/cgroup.procs",
                                        "work/cgroup.subtree_control"};
    uint32_t root = idmap_base(s->ids.slot);

    if (mkdirat(s->cg2, "work", 0755) < 0)
        return -errno;
    /* A container runtime looks for groups of its own there, whatever our umask. */
    if (s->oci && fchmod(s->cg2, 0755) < 0)
        return -errno;
    for (size_t i = 0; i < ARRAY_LEN(owned); i++)
        if (fchownat(s->cg2, owned[i], root, root, 0) < 0)
            return -errno;
    s->cg2_work = openat(s->cg2, "work", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return s->cg2_work < 0 ? -errno : 0;
}

/* Groups with a process in them, renamed: the child is then cloned there.  With a limit of one
 * process the parked one would use it up. */
static int take_parked(struct sandbox *s)
{
    if ((!wanted_limit(s, CG1_MEMORY) && !wanted_limit(s, CG1_PIDS) && !wanted_limit(s, CG1_CPU)) ||
        s->pids == 1)
        return 0;
    s->v1.by = parked_take();
    if (!s->v1.by)
        return 0;
    s->v1.made = true;
    for (int i = 0; i < CG1_COUNT; i++)
        if (host.cg1[i] >= 0 &&
            renameat(host.cg1[i], parked_group(s->v1.by), host.cg1[i], s->id) < 0)
            return -errno;
    return 0;
}

int step_cgroup(struct sandbox *s, struct err *e)
{
    int r = take_parked(s);

    if (r < 0)
        return err_set(e, err_code_from_errno(-r), -r, "take cgroups made ahead");

    if (host.cg2 >= 0) {
        s->cg2 = open_child(host.cg2, s->group);
        r = s->cg2 < 0 ? s->cg2 : delegate(s);
        /* only there a cgroup filesystem can be reached */
        if (r == 0 && (s->flags & SPAWN_NESTING)) {
            (void)put(s->cg2, "cgroup.max.depth", "%d", NESTED_DEPTH);
            (void)put(s->cg2, "cgroup.max.descendants", "%d", NESTED_GROUPS);
        }
    }
    if (r < 0)
        return err_set(e, err_code_from_errno(-r), -r, "make its cgroup");
    for (int i = 0; i < CG1_COUNT; i++)
        if (host.cg1[i] >= 0 && limit_one(s, i, e) < 0)
            return -1;
    return 0;
}

/* Those of v1 were set before the child was cloned into them. */
int step_limits(struct sandbox *s, struct err *e)
{
    for (int i = 0; i < CG1_COUNT; i++)
        if (host.cg1[i] < 0 && limit_one(s, i, e) < 0)
            return -1;
    return 0;
}

/* Entering v1 groups later would take longer than being cloned in them. */
bool cgroup_can_limit(const struct spawn_create *c)
{
    return !(host.cg1[CG1_MEMORY] >= 0 && c->memory_bytes) &&
           !(host.cg1[CG1_PIDS] >= 0 && c->pids) && !(host.cg1[CG1_CPU] >= 0 && c->cpu_millis);
}

/* The first group in this one: 1, or 0 if there is none. */
static int first_group(int dir, char *name, size_t size)
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    int found = 0;

    while (d && !found && (entry = readdir(d)))
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.') {
            (void)snprintf(name, size, "%s", entry->d_name);
            found = 1;
        }
    if (d)
        (void)closedir(d);
    else
        fd_close(fd);
    return found;
}

/* The name of a group in its parent. */
static int name_above(int above, ino_t inode, char *name, size_t size)
{
    int fd = openat(above, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    int r = -ENOENT;

    while (d && r < 0 && (entry = readdir(d)))
        if (entry->d_ino == inode) {
            (void)snprintf(name, size, "%s", entry->d_name);
            r = 0;
        }
    if (d)
        (void)closedir(d);
    else
        fd_close(fd);
    return r;
}

/* Removes an empty group; *at is then its parent. */
static int remove_leaf(int *at, ino_t inode)
{
    AUTO(fd_close) int above = openat(*at, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char name[NAME_MAX + 1];
    int r = above < 0 ? -errno : name_above(above, inode, name, sizeof name);

    if (r < 0)
        return r;
    if (unlinkat(above, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        return -errno;
    fd_close(*at);
    *at = TAKE_FD(above);
    return 0;
}

/* One step down, or the removal of a group without children.  1: top itself has no children
 * left. */
static int remove_step(int *at, ino_t top)
{
    char below[NAME_MAX + 1];
    struct stat st;
    int fd;

    if (first_group(*at, below, sizeof below)) {
        fd = openat(*at, below, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
            return -errno;
        fd_close(*at);
        *at = fd;
        return 0;
    }
    if (fstat(*at, &st) < 0)
        return -errno;
    return st.st_ino == top ? 1 : remove_leaf(at, st.st_ino);
}

/* The usual case: groups in it, and none below those.  False: there are more, or processes. */
static bool remove_flat(int dir, const char *name)
{
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), tries = 0;
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    bool flat = true;

    while (d && flat && (entry = readdir(d)))
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
            flat = tries++ < STEPS_AT_ONCE && unlinkat(fd, entry->d_name, AT_REMOVEDIR) == 0;
    if (d)
        (void)closedir(d);
    else
        fd_close(fd);
    return flat && (unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT);
}

/* The sandbox's root may have nested groups, as deep as the kernel allows: removes all, the deepest
 * first, some at a time.  One descriptor, which keeps its position for the next call, and no
 * recursion: parents are found by "..". */
static int remove_below(int dir, const char *name, int *at)
{
    struct stat top;
    int r = 0;

    if (*at < 0 && remove_flat(dir, name))
        return 0;
    if (fstatat(dir, name, &top, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (*at < 0)
        *at = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    for (int i = 0; r == 0 && i < STEPS_AT_ONCE; i++)
        r = remove_step(at, top.st_ino);
    if (r == 0 || r == -EBUSY)
        return -EBUSY;
    fd_close(*at);
    *at = -1;
    if (r < 0)
        return r == -ENOENT ? -EBUSY : r; /* removed by another process: start again from the top */
    return unlinkat(dir, name, AT_REMOVEDIR) < 0 && errno != ENOENT ? -errno : 0;
}

/* EBUSY while the last process has not quite ended. */
int undo_cgroup(struct sandbox *s)
{
    int r = 0;

    oom_unwatch(s);
    parked_drop(s->v1.by);
    s->v1.by = NULL;
    for (int i = 0; i < CG1_COUNT; i++)
        if (host.cg1[i] >= 0 && s->v1.made && unlinkat(host.cg1[i], s->id, AT_REMOVEDIR) < 0 &&
            errno != ENOENT)
            r = -errno;
    if (host.cg2 < 0)
        return r;
    if (s->cg2 >= 0)
        (void)remove_below(s->cg2, "work",
                           &s->cg2_undo); /* groups left in it keep the group itself */
    if (unlinkat(host.cg2, s->group, AT_REMOVEDIR) < 0 && errno != ENOENT)
        return -errno; /* keeps s->cg2 for the next attempt */
    fd_close(s->cg2);
    fd_close(s->cg2_work);
    fd_close(s->cg2_undo);
    s->cg2 = s->cg2_work = s->cg2_undo = -1;
    return r;
}

int step_cgroup_v1(struct sandbox *s, struct err *e)
{
    for (int i = 0; !s->v1.entered && i < CG1_COUNT; i++) {
        char name[64];
        int r;

        if (host.cg1[i] < 0 || wanted_limit(s, i) == 0)
            continue;
        (void)snprintf(name, sizeof name, "%s/cgroup.procs", s->id);
        r = put(host.cg1[i], name, "%d", s->pid);
        if (r < 0)
            return err_set(e, ERR_INTERNAL, -r, "enter cgroup %s", cg1_names[i]);
    }
    return 0;
}

/* Group by group, and only those in use: a killed group kills every later child too (Linux 6.12,
 * kill_seq), so init's spare groups must not be touched. */
static int kill_commands(int group)
{
    int work = openat(group, "work", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
    DIR *dir = work < 0 ? NULL : fdopendir(work);
    struct dirent *d;

    if (!dir) {
        fd_close(work);
        return -errno;
    }
    while ((d = readdir(dir))) {
        char name[sizeof d->d_name + 16];

        if (d->d_type != DT_DIR || d->d_name[0] == '.')
            continue;
        (void)snprintf(name, sizeof name, "%s/cgroup.events", d->d_name);
        if (get(work, name, "populated") == 0)
            continue;
        (void)snprintf(name, sizeof name, "%s/cgroup.kill", d->d_name);
        if (put(work, name, "1") < 0 && errno != ENOENT)
            r = -errno;
    }
    /* We put no process into work itself; kill those that moved there. */
    if (get(work, "cgroup.procs", NULL) != 0)
        r = put(work, "cgroup.kill", "1");
    (void)closedir(dir);
    return r;
}

/* With a kernel of its own its commands are in no group of the host's. */
static bool has_command_groups(const struct sandbox *s)
{
    return s->cg2 >= 0 && !(s->oci && (s->oci->bits & OCI_OWN_KERNEL));
}

int cgroup_kill(struct sandbox *s, bool only_work)
{
    if (only_work ? !has_command_groups(s) : s->cg2 < 0)
        return -ENOSYS;
    return only_work ? kill_commands(s->cg2) : put(s->cg2, "cgroup.kill", "1");
}

/* The commands only: a frozen init could not reply. */
int cgroup_freeze(struct sandbox *s, bool on)
{
    return has_command_groups(s) ? put(s->cg2, "work/cgroup.freeze", on ? "1" : "0") : -ENOSYS;
}

bool cgroup_can_freeze(const struct sandbox *s)
{
    return has_command_groups(s);
}

bool cgroup_is_frozen(const struct sandbox *s)
{
    return has_command_groups(s) && get(s->cg2, "work/cgroup.events", "frozen") == 1;
}

/* ID/name of one v1 hierarchy. */
static uint64_t get_v1(const struct sandbox *s, int i, const char *name, const char *key)
{
    char path[96];

    (void)snprintf(path, sizeof path, "%s/%s", s->id, name);
    return get(host.cg1[i], path, key);
}

/* All interfaces but lo; lo alone if there is no other: then it carries the proxy's traffic. */
static void net_stats(const struct sandbox *s, struct spawn_stats *to)
{
    AUTO(buf_done) struct buf text = {0};
    char path[48];
    struct str rest;
    uint64_t lo[2] = {0, 0};

    (void)snprintf(path, sizeof path, "/proc/%d/net/dev", s->pid);
    if (s->pid == 0 || file_read(path, 65536, &text) < 0)
        return;
    rest = buf_str(&text);
    while (rest.n > 0) {
        struct str line = str_cut(rest, '\n', &rest), numbers, name;
        unsigned long long rx = 0, tx = 0;
        char copy[256];

        name = str_trim(str_cut(line, ':', &numbers));
        (void)snprintf(copy, sizeof copy, STR_FMT, STR_ARG(numbers));
        if (sscanf(copy, " %llu %*u %*u %*u %*u %*u %*u %*u %llu", &rx, &tx) != 2)
            continue;
        if (str_eq_c(name, "lo")) {
            lo[0] = rx;
            lo[1] = tx;
        } else {
            to->net_rx_bytes += rx;
            to->net_tx_bytes += tx;
        }
    }
    if (to->net_rx_bytes + to->net_tx_bytes == 0) {
        to->net_rx_bytes = lo[0];
        to->net_tx_bytes = lo[1];
    }
}

/* An upper in memory is a tmpfs, and the root's statfs is the upper's. */
static uint64_t memory_upper_bytes(const struct sandbox *s)
{
    char path[48];
    struct statfs fs;

    (void)snprintf(path, sizeof path, "/proc/%d/root/", s->pid);
    if (s->pid == 0 || (s->flags & SPAWN_UPPER_DISK) || statfs(path, &fs) < 0)
        return 0;
    return (uint64_t)(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize;
}

uint64_t cgroup_oom_kills(const struct sandbox *s)
{
    if (host.cg1[CG1_MEMORY] >= 0)
        return s->v1.made ? get_v1(s, CG1_MEMORY, "memory.oom_control", "oom_kill") : 0;
    return s->cg2 < 0 ? 0 : get(s->cg2, "memory.events", "oom_kill");
}

/* init alone is one process with some memory: a 0 means that no cgroup counts it. */
static void add_uncounted(const struct sandbox *s, struct spawn_stats *to)
{
    struct spawn_stats living = {0};

    if (to->memory_bytes > 0 && to->pids > 0 && to->cpu_us > 0)
        return;
    proc_stats(s->pid, &living);
    if (to->memory_bytes == 0)
        to->memory_bytes = living.memory_bytes;
    if (to->pids == 0)
        to->pids = living.pids;
    if (to->cpu_us == 0)
        to->cpu_us = living.cpu_us;
    if (to->memory_peak_bytes < to->memory_bytes)
        to->memory_peak_bytes = to->memory_bytes; /* a lower bound */
}

void cgroup_stats(struct sandbox *s, struct spawn_stats *to)
{
    *to =
        (struct spawn_stats){.oom_kills = cgroup_oom_kills(s), .disk_bytes = memory_upper_bytes(s)};
    if (s->cg2 >= 0) {
        to->cpu_us = get(s->cg2, "cpu.stat", "usage_usec");
        to->memory_bytes = get(s->cg2, "memory.current", NULL);
        to->memory_peak_bytes = get(s->cg2, "memory.peak", NULL);
        to->pids = get(s->cg2, "pids.current", NULL);
    }
    if (host.cg1[CG1_MEMORY] >= 0 && s->v1.made) {
        to->memory_bytes = get_v1(s, CG1_MEMORY, "memory.usage_in_bytes", NULL);
        to->memory_peak_bytes = get_v1(s, CG1_MEMORY, "memory.max_usage_in_bytes", NULL);
    }
    if (host.cg1[CG1_PIDS] >= 0 && s->v1.made)
        to->pids = get_v1(s, CG1_PIDS, "pids.current", NULL);
    add_uncounted(s, to);
    net_stats(s, to);
}
