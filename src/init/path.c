#include "init/path.h"

#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DEPTH_MAX 128 /* of directories held open while removing */

static int open_in_root(const char *path, int flags, mode_t mode)
{
    struct open_how how = {
        .flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
        .mode = flags & O_CREAT ? mode : 0,
        .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
    };
    AUTO(fd_close) int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    long fd;

    if (root < 0)
        return -errno;
    do
        fd = syscall(SYS_openat2, root, path, &how, sizeof how);
    while (fd < 0 && (errno == EAGAIN || errno == EINTR)); /* a rename raced: openat2(2) */
    return fd < 0 ? -errno : (int)fd;
}

static int copy_path(struct str path, char *to, struct err *e)
{
    if (path.n >= PATH_MAX)
        return err_set(e, ERR_INVALID, ENAMETOOLONG, "a path of %zu bytes", path.n);
    memcpy(to, path.p, path.n);
    to[path.n] = '\0';
    return 0;
}

static int path_failed(struct str path, int sys, struct err *e)
{
    enum err_code code = err_code_from_errno(sys);

    if (sys == ENOTDIR || sys == EISDIR || sys == ELOOP || sys == ENAMETOOLONG)
        code = ERR_INVALID;
    if (sys == ENOTEMPTY)
        code = ERR_CONFLICT;
    return err_set(e, code, sys, "'%.*s'", (int)size_min(path.n, 200), path.p);
}

int path_open(struct str path, int flags, mode_t mode, struct err *e)
{
    char text[PATH_MAX];
    int fd;

    if (copy_path(path, text, e) < 0)
        return -1;
    fd = open_in_root(text, flags, mode);
    return fd < 0 ? path_failed(path, -fd, e) : fd;
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
            if (mkdirat(dir, name, mode) < 0 && errno != EEXIST) {
                (void)path_failed(upto, errno, e);
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
    if (depth >= DEPTH_MAX)
        return -ELOOP;
    fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) < 0 || st.st_dev != dev) {
        fd_close(fd);
        return -EBUSY; /* something is mounted there */
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
        return path_failed(str_of(name), errno, e);
    r = remove_tree(dir, name, st.st_dev, 0);
    return r < 0 ? path_failed(str_of(name), -r, e) : 0;
}
