/* The root filesystem: a writable layer, and in it the host image: /usr read-only, the rest made
 * up. */
#include "spawn/sandbox.h"

#include "base/fd.h"
#include "spawn/mnt.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TMPFS_DEFAULT (512ULL << 20)

int step_root(struct sandbox *s, struct err *e)
{
    char options[80];
    int r;

    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return err_set(e, ERR_INTERNAL, errno, "cut off the host's mounts");
    if (s->root_tree >= 0) {
        r = mnt_attach(s->root_tree, SETUP_ROOT);
        return r < 0 ? err_set(e, ERR_UNSUPPORTED, -r, "attach the writable layer") : 0;
    }
    (void)snprintf(options, sizeof options, "mode=755,size=%llu,nr_inodes=200000",
                   (unsigned long long)(s->disk_bytes ? s->disk_bytes : TMPFS_DEFAULT));
    if (mount("holt", SETUP_ROOT, "tmpfs", MS_NOSUID | MS_NODEV, options) < 0)
        return err_set(e, ERR_INTERNAL, errno, "mount the writable layer");
    return 0;
}

static const struct {
    const char *name;
    mode_t mode;
} dirs[] = {
    {"usr", 0755},
    {"etc", 0755},
    {"var", 0755},
    {"opt", 0755},
    {"home", 0755},
    {"root", 0700},
    {"tmp", 01777},
    {"run", 0755},
    {"proc", 0555},
    {"dev", 0755},
    {"sys", 0555},
    {"mnt", 0755},
    {"var/tmp", 01777},
    {"var/lib", 0755},
    {"var/log", 0755},
    {"var/cache", 0755},
    {"workspace", 0755},
    {"mnt/user-data", 0755},
    {"mnt/user-data/uploads", 0755},
    {"mnt/user-data/outputs", 0755},
};

static const struct {
    const char *name, *content;
} files[] = {
    {"etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"
                   "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"},
    {"etc/group", "root:x:0:\ntty:x:5:\nnogroup:x:65534:\n"},
    {"etc/hosts", "127.0.0.1 localhost\n::1 localhost\n"},
    {"etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"},
    {"etc/resolv.conf", ""},
};

/* Of the host, and no secret: programs do not run without. */
static const char *const shared[] = {"/etc/alternatives", "/etc/ssl/certs", "/etc/ld.so.cache"};

static int make_file(int root, const char *name, const char *content)
{
    AUTO(fd_close) int fd = openat(root, name, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0644);

    return fd < 0 ? -errno : fd_write_all(fd, content, strlen(content));
}

/* /bin, /lib and their kin, as the host has them: links into /usr, or directories of their own. */
static int make_top_link(int root, const char *name)
{
    char from[32], to[128];
    struct stat st;
    ssize_t n;

    (void)snprintf(from, sizeof from, "/%s", name);
    if (lstat(from, &st) < 0)
        return 0;
    if (S_ISLNK(st.st_mode)) {
        n = readlink(from, to, sizeof to - 1);
        if (n < 0)
            return -errno;
        to[n] = '\0';
        return symlinkat(to, root, name) < 0 && errno != EEXIST ? -errno : 0;
    }
    (void)snprintf(to, sizeof to, SETUP_ROOT "/%s", name);
    if ((mkdirat(root, name, 0755) < 0 && errno != EEXIST) ||
        mount(from, to, NULL, MS_BIND | MS_REC, NULL) < 0)
        return -errno;
    return mnt_set(to, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

static int make_skeleton(int root)
{
    static const char *const tops[] = {"bin", "sbin", "lib", "lib32", "lib64", "libx32"};
    int r = 0;

    for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
        if (mkdirat(root, dirs[i].name, dirs[i].mode) < 0 && errno != EEXIST)
            return -errno;
        if ((dirs[i].mode & 01000) && fchmodat(root, dirs[i].name, dirs[i].mode, 0) < 0)
            return -errno; /* the umask took bits away */
    }
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(tops); i++)
        r = make_top_link(root, tops[i]);
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(files); i++)
        r = make_file(root, files[i].name, files[i].content);
    if (r == 0 && symlinkat("../usr/lib/os-release", root, "etc/os-release") < 0 && errno != EEXIST)
        r = -errno;
    return r;
}

static int bind_readonly(const char *from, const char *to)
{
    if (mount(from, to, NULL, MS_BIND | MS_REC, NULL) < 0)
        return -errno;
    return mnt_set(to, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

static int bind_shared(int root, const char *path)
{
    char to[128];
    struct stat st;
    int r = 0;

    if (stat(path, &st) < 0)
        return 0;
    if (strcmp(path, "/etc/ssl/certs") == 0 && mkdirat(root, "etc/ssl", 0755) < 0 &&
        errno != EEXIST)
        return -errno;
    (void)snprintf(to, sizeof to, SETUP_ROOT "%s", path);
    if (!S_ISDIR(st.st_mode))
        r = make_file(root, path + 1, "");
    else if (mkdirat(root, path + 1, 0755) < 0 && errno != EEXIST)
        r = -errno;
    return r < 0 ? r : bind_readonly(path, to);
}

int step_host_image(struct sandbox *s, struct err *e)
{
    AUTO(fd_close) int root = open(SETUP_ROOT, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int r;

    (void)s;
    if (root < 0)
        return err_set(e, ERR_INTERNAL, errno, "open the new root");
    (void)umask(0022);
    r = make_skeleton(root);
    if (r == 0)
        r = bind_readonly("/usr", SETUP_ROOT "/usr");
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(shared); i++)
        r = bind_shared(root, shared[i]);
    return r < 0 ? err_set(e, ERR_INTERNAL, -r, "make the host image") : 0;
}

/* ---- what the kernel shows ---- */

int step_proc(struct sandbox *s, struct err *e)
{
    (void)s;
    if (mount("proc", SETUP_ROOT "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0) {
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
    int r = mnt_attach(s->dev_tree, SETUP_ROOT "/dev");

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
    if (chdir(SETUP_ROOT) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
        umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
        return err_set(e, ERR_INTERNAL, errno, "change the root");
    if (s->flags & SPAWN_ROOTFS_RO) {
        static const char *const kept[] = {"/tmp", "/run"};

        for (size_t i = 0; i < ARRAY_LEN(kept); i++)
            if (mount("holt", kept[i], "tmpfs", MS_NOSUID | MS_NODEV, "size=64m,mode=1777") < 0)
                return err_set(e, ERR_INTERNAL, errno, "mount %s", kept[i]);
        if (mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, NULL) <
            0)
            return err_set(e, ERR_INTERNAL, errno, "make the root read-only");
    }
    return 0;
}

static int write_once(const char *path, const char *text)
{
    AUTO(fd_close) int fd = open(path, O_WRONLY | O_CLOEXEC);

    return fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
}

/* The filter refuses them too; this holds for whoever finds a way around it.  Then /proc is shut.
 */
int step_namespaces_shut(struct sandbox *s, struct err *e)
{
    static const char *const masked[] = {"/proc/kcore", "/proc/keys", "/proc/sysrq-trigger",
                                         "/proc/timer_list"};
    int r = write_once("/proc/sys/user/max_user_namespaces", "0");

    (void)s;
    if (r < 0)
        return err_set(e, ERR_INTERNAL, -r, "forbid user namespaces");
    for (size_t i = 0; i < ARRAY_LEN(masked); i++)
        if (access(masked[i], F_OK) == 0 && mount("/dev/null", masked[i], NULL, MS_BIND, NULL) < 0)
            return err_set(e, ERR_INTERNAL, errno, "mask %s", masked[i]);
    if (mount("/proc/sys", "/proc/sys", NULL, MS_BIND, NULL) < 0 ||
        mount(NULL, "/proc/sys", NULL,
              MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        return err_set(e, ERR_INTERNAL, errno, "make /proc/sys read-only");
    return 0;
}
