/* step_view: what a sandbox sees besides files: /proc and /dev; then hides the host's tree. */
#include "spawn/sandbox.h"

#include "base/fd.h"
#include "spawn/guards.h"
#include "spawn/inside.h"
#include "spawn/mnt.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NESTED_MAX "128" /* namespaces of each kind */
#define STAGE_PROC SETUP_STAGE "/proc/"
#define KEPT_SIZE (64ULL << 20)

/* devpts with its own instance; ids are the sandbox's: gid 5 exists only with mapped ranges.  max:
 * terminals are counted for the whole host (kernel.pty.max, 4096), so one sandbox could take
 * all. */
int step_dev(struct sandbox *s, struct err *e)
{
    const char *pts = host.many_ids ? "newinstance,max=256,ptmxmode=0666,mode=620,gid=5"
                                    : "newinstance,max=256,ptmxmode=0666,mode=620";
    int r;

    if (guard_left_out("terminals"))
        pts = "newinstance,ptmxmode=0666,mode=620";
    r = mnt_attach(s->dev_tree, SETUP_STAGE "/dev");
    fd_close(s->dev_tree);
    s->dev_tree = -1;
    if (r < 0)
        return err_set(e, ERR_UNSUPPORTED, -r, "attach the shared /dev");
    if (mount("devpts", SETUP_STAGE "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, pts) < 0)
        return err_set(e, ERR_UNSUPPORTED, errno, "mount /dev/pts");
    if (mount("shm", SETUP_STAGE "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777,size=64m") <
        0)
        return err_set(e, ERR_INTERNAL, errno, "mount /dev/shm");
    return 0;
}

static int write_once(const char *path, const char *text)
{
    AUTO(fd_close) int fd = open(path, O_WRONLY | O_CLOEXEC);

    return fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
}

/* The filter refuses them too; this is a second barrier.  With nesting there may be some of each
 * kind: their kernel memory is bounded. */
int view_limit_namespaces(const struct sandbox *s, const char *proc)
{
    static const char *const kinds[] = {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"};
    char path[64];
    int r = 0;

    if (!(s->flags & SPAWN_NESTING)) {
        (void)snprintf(path, sizeof path, "%s/sys/user/max_user_namespaces", proc);
        return guard_left_out("userns") ? 0 : write_once(path, "0");
    }
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(kinds); i++) {
        (void)snprintf(path, sizeof path, "%s/sys/user/max_%s_namespaces", proc, kinds[i]);
        r = write_once(path, NESTED_MAX);
    }
    return r;
}

/* Files that reveal more of the host than a sandbox needs, or could do more; which stay visible,
 * and why: docs/threat-model.md.  Files that only the host's root may read are not listed. */
static const char *const masked_files[] = {
    "kcore",       "keys",          "key-users",     "kallsyms",   "kmsg",
    "cmdline",     "config.gz",     "interrupts",    "timer_list", "timer_stats",
    "sched_debug", "latency_stats", "sysrq-trigger",
};
static const char *const masked_dirs[] = {"acpi", "asound", "bus",      "driver",
                                          "fs",   "irq",    "pressure", "scsi"};

void view_masked_paths(struct buf *json)
{
    if (guard_left_out("masks"))
        return;
    for (size_t i = 0; i < ARRAY_LEN(masked_files); i++)
        buf_printf(json, "%s\"/proc/%s\"", i ? "," : "", masked_files[i]);
    for (size_t i = 0; i < ARRAY_LEN(masked_dirs); i++)
        buf_printf(json, ",\"/proc/%s\"", masked_dirs[i]);
}

static int mask(const char *with, const char *const *names, size_t n, struct err *e)
{
    char path[48];

    for (size_t i = 0; i < n; i++) {
        (void)snprintf(path, sizeof path, STAGE_PROC "%s", names[i]);
        if (mount(with, path, NULL, MS_BIND, NULL) < 0 && errno != ENOENT) /* not in every kernel */
            return err_set(e, ERR_INTERNAL, errno, "mask /proc/%s", names[i]);
    }
    return 0;
}

/* Bound onto itself and made read-only: binds of it are read-only too. */
static int make_empty(struct err *e)
{
    const char *empty = SETUP_STAGE "/empty";

    if ((mkdir(empty, 0555) < 0 && errno != EEXIST) ||
        mount(empty, empty, NULL, MS_BIND, NULL) < 0 ||
        mount(NULL, empty, NULL,
              MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        return err_set(e, ERR_INTERNAL, errno, "make an empty directory");
    return 0;
}

static int shut_proc(struct err *e)
{
    const char *sys = STAGE_PROC "sys";

    if (make_empty(e) < 0 ||
        mask(SETUP_STAGE "/dev/null", masked_files, ARRAY_LEN(masked_files), e) < 0 ||
        mask(SETUP_STAGE "/empty", masked_dirs, ARRAY_LEN(masked_dirs), e) < 0)
        return -1;
    if (mount(sys, sys, NULL, MS_BIND, NULL) < 0 ||
        mount(NULL, sys, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
              NULL) < 0)
        return err_set(e, ERR_INTERNAL, errno, "make /proc/sys read-only");
    return 0;
}

int step_proc(struct sandbox *s, struct err *e)
{
    int r;

    if (mount("proc", SETUP_STAGE "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0) {
        (void)err_set(e, ERR_UNSUPPORTED, errno, "mount /proc");
        return err_hint(e, "the host's /proc must not be masked (as inside most containers)");
    }
    r = view_limit_namespaces(s, SETUP_STAGE "/proc");
    if (r < 0)
        return err_set(e, ERR_INTERNAL, -r, "limit its namespaces");
    return guard_left_out("masks") ? 0 : shut_proc(e);
}

/* An image may have links where we mount: refuses them, never follows. */
static int move_in(int root, const char *name, struct err *e)
{
    AUTO(fd_close) int to = inside_open_strict(root, name, O_PATH | O_DIRECTORY);
    AUTO(fd_close) int from = -1;
    char path[32];
    int r;

    if (to < 0)
        return err_set(e, ERR_INVALID, -to, "the image has no plain directory '/%s'", name);
    (void)snprintf(path, sizeof path, SETUP_STAGE "/%s", name);
    from = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    r = from < 0 ? -errno : mnt_attach_fd(from, to);
    return r < 0 ? err_set(e, ERR_INTERNAL, -r, "move /%s into the root", name) : 0;
}

int step_view(struct sandbox *s, struct err *e)
{
    return move_in(s->root, "proc", e) < 0 || move_in(s->root, "dev", e) < 0 ? -1 : 0;
}

/* "." twice: the old root ends up on top of the new one and is unmounted (pivot_root(2)). */
int step_pivot(struct sandbox *s, struct err *e)
{
    if (fchdir(s->root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
        umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
        return err_set(e, ERR_INTERNAL, errno, "change the root");
    return 0;
}

static bool is_mounted(const struct sandbox *s, const char *path)
{
    struct wire_rows rows = s->ask->mounts;
    struct spawn_mount_row row;

    while (wire_rows_next(&spawn_mount_row_layout, &rows, &row))
        if (str_eq_c(row.target, path))
            return true;
    return false;
}

/* The declared mounts stay writable, and /tmp and /run: they are mounts of their own. */
int step_readonly(struct sandbox *s, struct err *e)
{
    static const char *const kept[] = {"/tmp", "/run"};
    struct mount_attr a = {.attr_set = MOUNT_ATTR_RDONLY};
    int r = 0;

    if (!(s->flags & SPAWN_ROOTFS_RO) || guard_left_out("readonly"))
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        AUTO(fd_close) int tree = -1;

        if (is_mounted(s, kept[i]))
            continue;
        tree = mnt_tmpfs(KEPT_SIZE, "1777");
        r = tree < 0 ? tree : inside_attach(s->root, tree, kept[i]);
        if (r < 0)
            return err_set(e, ERR_INTERNAL, -r, "mount %s", kept[i]);
    }
    r = mnt_set_fd(s->root, &a, false);
    return r < 0 ? err_set(e, ERR_INTERNAL, -r, "make the root read-only") : 0;
}
