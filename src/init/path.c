/* path: resolves paths inside the root, safely against races and links. */
#include "init/path.h"

#include "base/fd.h"
#include "init/rules.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#define TRIES 1000 /* attempts at a lookup that races with renames: openat2(2), EAGAIN */

/* Filesystems whose files are not data: writes there act on the kernel, reads show init's own
 * state. */
static const uint32_t kernel_made[] = {
    0x00009fa0, /* proc */
    0x62656572, /* sysfs */
    0x0027e0eb, /* cgroup */
    0x63677270, /* cgroup2 */
    0x64626720, /* debugfs */
    0x74726163, /* tracefs */
    0x73636673, /* securityfs */
    0xcafe4a11, /* bpf */
    0x62656570, /* configfs */
    0x6e736673, /* nsfs */
};

int path_check_kernel(int fd)
{
    struct statfs fs;

    if (fstatfs(fd, &fs) < 0)
        return -errno;
    for (size_t i = 0; i < ARRAY_LEN(kernel_made); i++)
        if ((uint32_t)fs.f_type == kernel_made[i])
            return -EACCES;
    return 0;
}

/* Without openat2 (gVisor): component by component, and no link at all. */
static int open_strict(int dir, const char *path, int flags, mode_t mode)
{
    AUTO(fd_close) int at = openat(dir, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct str rest = str_of(path);
    int fd = -1;

    if (path[0] == '/')
        return -EXDEV;
    while (at >= 0 && fd < 0) {
        struct str part = str_cut(rest, '/', &rest);
        char name[NAME_MAX + 1];
        bool last = rest.n == 0;

        if (part.n > NAME_MAX || str_eq_c(part, ".."))
            return part.n > NAME_MAX ? -ENAMETOOLONG : -EXDEV;
        (void)snprintf(name, sizeof name, STR_FMT, STR_ARG(part));
        fd = openat(at, part.n > 0 ? name : ".",
                    (last ? flags : O_PATH | O_DIRECTORY) | O_NOFOLLOW | O_CLOEXEC, mode);
        if (fd < 0 || last)
            return fd < 0 ? -errno : fd;
        fd_close(at);
        at = fd;
        fd = -1;
    }
    return -errno;
}

/* init's root is the sandbox's: from there a plain open stays inside as well. */
static int open_without(int dir, const char *path, const struct open_how *how)
{
    int fd;

    if (how->resolve & RESOLVE_BENEATH)
        return open_strict(dir, path, (int)how->flags, (mode_t)how->mode);
    fd = openat(dir, path, (int)how->flags, (mode_t)how->mode);
    return fd < 0 ? -errno : fd;
}

static int open_at(int dir, const char *path, int flags, mode_t mode, uint64_t resolve)
{
    struct open_how how = {
        .flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
        .mode = flags & O_CREAT ? mode : 0,
        .resolve = resolve | RESOLVE_NO_MAGICLINKS,
    };
    long fd = -1;

    if (!(flags & O_PATH)) /* openat2 refuses flags that O_PATH would ignore */
        how.flags |= O_NONBLOCK | O_NOCTTY;
    for (int i = 0; fd < 0 && i < TRIES; i++) {
        fd = syscall(SYS_openat2, dir, path, &how, sizeof how);
        if (fd < 0 && errno == ENOSYS)
            return open_without(dir, path, &how);
        if (fd < 0 && errno != EAGAIN && errno != EINTR)
            break;
    }
    return fd < 0 ? -errno : (int)fd;
}

static int open_in_root(const char *path, int flags, mode_t mode)
{
    AUTO(fd_close) int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    return root < 0 ? -errno : open_at(root, path, flags, mode, RESOLVE_IN_ROOT);
}

int path_beneath(int dir, const char *name, int flags)
{
    return open_at(dir, name, flags, 0, RESOLVE_BENEATH);
}

static int copy_path(struct str path, char *to, struct err *e)
{
    if (path.n >= PATH_MAX)
        return err_set(e, ERR_INVALID, ENAMETOOLONG, "a path of %zu bytes", path.n);
    memcpy(to, path.p, path.n);
    to[path.n] = '\0';
    return 0;
}

int path_failed(const char *what, struct str path, int sys, struct err *e)
{
    enum err_code code = err_code_from_errno(sys);

    if (sys == ENOTDIR || sys == EISDIR || sys == ELOOP || sys == ENAMETOOLONG)
        code = ERR_INVALID;
    if (sys == ENOTEMPTY)
        code = ERR_CONFLICT;
    if (sys == EAGAIN || sys == EXDEV) /* a lease is held on it, or names keep changing */
        code = ERR_CONFLICT;
    return err_set(e, code, sys, "%s%s'%.*s'", what, *what ? " " : "", (int)size_min(path.n, 160),
                   path.p);
}

/* A file is created before its place can be checked: so with rules the directory is checked first,
 * and no link at its end is followed. */
static int create_checked(struct str path, int flags, mode_t mode, struct err *e)
{
    char name[256];
    AUTO(fd_close) int dir = path_parent(path, name, e);
    int fd;

    if (dir < 0 || rules_check_entry(dir, name, RULES_WRITE, e) < 0)
        return -1;
    fd = open_at(dir, name, flags | O_EXCL, mode, RESOLVE_BENEATH);
    return fd < 0 ? path_failed("", path, -fd, e) : fd;
}

static int open_or_create(struct str path, int flags, mode_t mode, struct err *e)
{
    bool checked = (flags & O_CREAT) && rules_any();
    char text[PATH_MAX];
    int fd = -ENOENT;

    if (copy_path(path, text, e) < 0)
        return -1;
    if (!checked || !(flags & O_EXCL))
        fd = open_in_root(text, checked ? flags & ~O_CREAT : flags, mode);
    if (checked && fd == -ENOENT)
        return create_checked(path, flags, mode, e);
    return fd < 0 ? path_failed("", path, -fd, e) : fd;
}

static unsigned right_of(int flags)
{
    if (flags & O_PATH)
        return 0; /* for the caller to check */
    return (flags & O_ACCMODE) == O_RDONLY ? RULES_READ
           : (flags & O_ACCMODE) == O_RDWR ? RULES_ALL
                                           : RULES_WRITE;
}

int path_open(struct str path, int flags, mode_t mode, struct err *e)
{
    AUTO(fd_close) int fd = open_or_create(path, flags, mode, e);
    int r;

    if (fd < 0)
        return flags & O_PATH ? -1 : rules_failed(path, right_of(flags), e);
    r = path_check_kernel(fd);
    if (r < 0) {
        (void)err_set(e, ERR_FORBIDDEN, -r, "'%.*s' is a file of the kernel, not of the sandbox",
                      (int)size_min(path.n, 160), path.p);
        return err_hint(e, "run a command in the sandbox that reads it");
    }
    return rules_check_fd(fd, right_of(flags), e) < 0 ? -1 : TAKE_FD(fd);
}

int path_open_regular(struct str path, int flags, mode_t mode, bool truncate, struct err *e)
{
    AUTO(fd_close) int fd = path_open(path, flags, mode, e);
    struct stat st;

    if (fd < 0)
        return -1;
    if (fstat(fd, &st) < 0)
        return path_failed("stat", path, errno, e);
    if (!S_ISREG(st.st_mode)) {
        (void)err_set(e, ERR_INVALID, 0, "'%.*s' is %s, not a regular file",
                      (int)size_min(path.n, 160), path.p,
                      S_ISDIR(st.st_mode)    ? "a directory"
                      : S_ISFIFO(st.st_mode) ? "a FIFO"
                      : S_ISSOCK(st.st_mode) ? "a socket"
                                             : "a device");
        e->sys = S_ISDIR(st.st_mode) ? EISDIR : 0; /* for callers with their own message */
        return -1;
    }
    if (truncate && st.st_size > 0 && ftruncate(fd, 0) < 0)
        return path_failed("empty", path, errno, e);
    return TAKE_FD(fd);
}

int path_parent(struct str path, char *ret_name, struct err *e)
{
    struct str dir = path, name;

    while (dir.n > 1 && dir.p[dir.n - 1] == '/')
        dir.n--;
    name = dir;
    while (dir.n > 0 && dir.p[dir.n - 1] != '/')
        dir.n--;
    name = str_skip(name, dir.n);
    if (name.n == 0 || name.n > 255 || str_eq_c(name, ".") || str_eq_c(name, ".."))
        return err_set(e, ERR_INVALID, 0, "'%.*s' does not name an entry of a directory",
                       (int)size_min(path.n, 200), path.p);
    memcpy(ret_name, name.p, name.n);
    ret_name[name.n] = '\0';
    return path_open(dir.n > 0 ? dir : STR("/"), O_PATH | O_DIRECTORY, 0, e);
}

int path_make_all(struct str path, mode_t mode, struct err *e)
{
    for (size_t i = 1; i <= path.n; i++) {
        struct str upto = str_make(path.p, i);
        char name[256];
        int dir;

        if ((i < path.n && path.p[i] != '/') || path.p[i - 1] == '/')
            continue;
        dir = path_open(upto, O_PATH | O_DIRECTORY, 0, e);
        if (dir < 0 && e->sys == ENOENT) {
            dir = path_parent(upto, name, e);
            if (dir < 0)
                return -1;
            if (rules_check_entry(dir, name, RULES_WRITE, e) < 0 ||
                (mkdirat(dir, name, mode) < 0 && errno != EEXIST &&
                 path_failed("make", upto, errno, e) < 0)) {
                fd_close(dir);
                return -1;
            }
        }
        if (dir < 0)
            return -1;
        fd_close(dir);
    }
    return 0;
}

static int remove_tree(int dir, const char *name, dev_t dev, int depth);

static int remove_content(int fd, dev_t dev, int depth)
{
    DIR *d = fdopendir(fd);
    struct dirent *entry;
    int r = 0;

    if (!d) {
        fd_close(fd);
        return -errno;
    }
    while (r == 0 && (entry = readdir(d)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            r = remove_tree(dirfd(d), entry->d_name, dev, depth + 1);
    (void)closedir(d);
    return r;
}

static int remove_tree(int dir, const char *name, dev_t dev, int depth)
{
    struct stat st;
    int fd, r;

    if (unlinkat(dir, name, 0) == 0)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -errno;
    if (depth >= PATH_DEPTH_MAX)
        return -ELOOP;
    fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) < 0 || st.st_dev != dev) {
        fd_close(fd);
        return -EBUSY; /* a mount point */
    }
    r = remove_content(fd, dev, depth);
    if (r == 0 && unlinkat(dir, name, AT_REMOVEDIR) < 0)
        r = -errno;
    return r;
}

int path_remove_all(int dir, const char *name, struct err *e)
{
    struct stat st;
    int r;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return path_failed("remove", str_of(name), errno, e);
    r = remove_tree(dir, name, st.st_dev, 0);
    return r < 0 ? path_failed("remove", str_of(name), -r, e) : 0;
}
