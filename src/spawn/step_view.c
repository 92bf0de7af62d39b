/* What a sandbox sees besides files: /proc, /dev; then the host's tree goes out of sight. */
#include "spawn/sandbox.h"

#include "base/fd.h"
#include "spawn/guards.h"
#include "spawn/mnt.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NESTED_MAX "128" /* namespaces of each kind */

/* An image may have links where we mount: they are refused, never followed.  Writes a path that
 * names the directory itself. */
static int mount_point(const char *name, char path[static 48], struct err *e)
{
    struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
    AUTO(fd_close) int root = open(SETUP_ROOT, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = root < 0 ? -1 : (int)syscall(SYS_openat2, root, name, &how, sizeof how);

    if (fd < 0)
        return err_set(e, ERR_INVALID, errno, "the image has no plain directory '/%s'", name);
    (void)snprintf(path, 48, "/proc/self/fd/%d", fd);
    return fd;
}

int step_proc(struct sandbox *s, struct err *e)
{
    char to[48];
    AUTO(fd_close) int at = mount_point("proc", to, e);

    (void)s;
    if (at < 0)
        return -1;
    if (mount("proc", to, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0) {
        (void)err_set(e, ERR_UNSUPPORTED, errno, "mount /proc");
        return err_hint(e, "the host's /proc must not be masked (as inside most containers)");
    }
    return 0;
}

/* devpts with its own instance; ids are the sandbox's: gid 5 exists only where ranges are mapped.
 * max: terminals are counted for the whole host (kernel.pty.max, 4096), so one sandbox could take
 * all that others need. */
int step_dev(struct sandbox *s, struct err *e)
{
    const char *pts = host.many_ids ? "newinstance,max=256,ptmxmode=0666,mode=620,gid=5"
                                    : "newinstance,max=256,ptmxmode=0666,mode=620";
    char to[48];
    AUTO(fd_close) int at = mount_point("dev", to, e);
    int r;

    if (at < 0)
        return -1;
    if (guard_left_out("terminals"))
        pts = "newinstance,ptmxmode=0666,mode=620";
    r = mnt_attach(s->dev_tree, to);
    if (r < 0)
        return err_set(e, ERR_UNSUPPORTED, -r, "attach the shared /dev");
    if (mount("devpts", SETUP_ROOT "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, pts) < 0)
        return err_set(e, ERR_UNSUPPORTED, errno, "mount /dev/pts");
    if (mount("shm", SETUP_ROOT "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777,size=64m") <
        0)
        return err_set(e, ERR_INTERNAL, errno, "mount /dev/shm");
    return 0;
}

/* "." twice: the old root ends up on top of the new one and is taken off (pivot_root(2)). */
int step_pivot(struct sandbox *s, struct err *e)
{
    (void)s;
    if (chdir(SETUP_ROOT) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
        umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
        return err_set(e, ERR_INTERNAL, errno, "change the root");
    return 0;
}

static int write_once(const char *path, const char *text)
{
    AUTO(fd_close) int fd = open(path, O_WRONLY | O_CLOEXEC);

    return fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
}

/* The filter refuses them too; this holds for whoever finds a way around it.  With nesting there
 * may be some of each kind: what they take of the kernel's memory is bounded. */
static int limit_namespaces(const struct sandbox *s)
{
    static const char *const kinds[] = {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"};
    int r = 0;

    if (!(s->flags & SPAWN_NESTING))
        return guard_left_out("userns") ? 0 : write_once("/proc/sys/user/max_user_namespaces", "0");
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(kinds); i++) {
        char path[64];

        (void)snprintf(path, sizeof path, "/proc/sys/user/max_%s_namespaces", kinds[i]);
        r = write_once(path, NESTED_MAX);
    }
    return r;
}

/* Then /proc is shut. */
int step_namespaces_shut(struct sandbox *s, struct err *e)
{
    static const char *const masked[] = {"/proc/kcore", "/proc/keys", "/proc/sysrq-trigger",
                                         "/proc/timer_list"};
    int r = limit_namespaces(s);

    if (r < 0)
        return err_set(e, ERR_INTERNAL, -r, "limit its namespaces");
    if (guard_left_out("masks"))
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(masked); i++)
        if (access(masked[i], F_OK) == 0 && mount("/dev/null", masked[i], NULL, MS_BIND, NULL) < 0)
            return err_set(e, ERR_INTERNAL, errno, "mask %s", masked[i]);
    if (mount("/proc/sys", "/proc/sys", NULL, MS_BIND, NULL) < 0 ||
        mount(NULL, "/proc/sys", NULL,
              MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        return err_set(e, ERR_INTERNAL, errno, "make /proc/sys read-only");
    return 0;
}

/* /tmp, /run and the declared mounts stay writable: they are mounts of their own. */
int step_readonly(struct sandbox *s, struct err *e)
{
    static const char *const kept[] = {"/tmp", "/run"};

    if (!(s->flags & SPAWN_ROOTFS_RO) || guard_left_out("readonly"))
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        if (mkdir(kept[i], 0755) < 0 && errno != EEXIST)
            return err_set(e, ERR_INTERNAL, errno, "make %s", kept[i]);
        if (mount("holt", kept[i], "tmpfs", MS_NOSUID | MS_NODEV, "size=64m,mode=1777") < 0)
            return err_set(e, ERR_INTERNAL, errno, "mount %s", kept[i]);
    }
    if (mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, NULL) < 0)
        return err_set(e, ERR_INTERNAL, errno, "make the root read-only");
    return 0;
}
