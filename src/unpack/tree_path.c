/* tree_path: checks names and resolves them below the directory. */
#include "unpack/tree_internal.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

int tree_refuse(const struct tree *t, struct err *e, const char *fmt, ...)
{
    char why[160];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    return err_set(e, ERR_INVALID, 0, "entry '%.64s' %s", t->path, why);
}

int tree_failed(const struct tree *t, struct err *e, const char *what)
{
    return err_set(e, err_code_from_errno(errno), errno, "%s entry '%.64s'", what, t->path);
}

static int check_component(struct str c, struct err *e)
{
    if (str_eq_c(c, ".."))
        return err_set(e, ERR_INVALID, 0, "has '..' in its name");
    if (c.n > TREE_COMPONENT_MAX)
        return err_set(e, ERR_INVALID, 0, "has a name longer than %d bytes", TREE_COMPONENT_MAX);
    return 0;
}

int tree_clean_name(struct str name, char *to, struct err *e)
{
    size_t n = 0, depth = 0;

    if (name.n == 0 || name.n > TAR_NAME_MAX || memchr(name.p, '\0', name.n))
        return err_set(e, ERR_INVALID, 0,
                       "has a name that is empty, too long or contains a NUL byte");
    if (name.p[0] == '/')
        return err_set(e, ERR_INVALID, 0, "has an absolute name");
    while (name.n > 0) {
        struct str c = str_cut(name, '/', &name);

        if (c.n == 0 || str_eq_c(c, "."))
            continue;
        if (check_component(c, e) < 0)
            return -1;
        if (++depth > TREE_DEPTH_MAX)
            return err_set(e, ERR_INVALID, 0, "is deeper than %d directories", TREE_DEPTH_MAX);
        if (n > 0)
            to[n++] = '/';
        memcpy(to + n, c.p, c.n);
        n += c.n;
    }
    to[n] = '\0';
    return 0;
}

/* Follows links inside the layer that stay below it, as a chrooted tar does; all others fail with
 * EXDEV (openat2(2), Linux 5.6). */
static int open_below(int root, const char *path, uint64_t flags)
{
    struct open_how how = {
        .flags = flags | O_CLOEXEC | O_DIRECTORY,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
    };
    int fd = (int)syscall(SYS_openat2, root, path[0] ? path : ".", &how, sizeof how);

    return fd < 0 ? -errno : fd;
}

int tree_open_dir(const struct tree *t, const char *path)
{
    struct open_how how = {
        .flags = O_RDONLY | O_CLOEXEC | O_DIRECTORY | O_NOFOLLOW,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
    };
    int fd = (int)syscall(SYS_openat2, t->root, path[0] ? path : ".", &how, sizeof how);

    return fd < 0 ? -errno : fd;
}

/* Creates the missing directories of path, one after the other. */
static int make_dirs(struct tree *t, char *path, struct err *e)
{
    for (char *slash = path; slash; slash = strchr(slash + 1, '/')) {
        AUTO(fd_close) int up = -1;
        char *next = slash == path ? path : slash + 1;
        char *end = strchr(next, '/');
        char whole = end ? *end : '\0';
        int r = 0;

        if (slash != path)
            *slash = '\0';
        up = open_below(t->root, slash == path ? "" : path, O_PATH);
        if (slash != path)
            *slash = '/';
        if (end)
            *end = '\0';
        if (up < 0 || (mkdirat(up, next, 0755) < 0 && errno != EEXIST))
            r = up < 0 ? up : -errno;
        if (end)
            *end = whole;
        if (r < 0) {
            errno = -r;
            return tree_failed(t, e, "make the directory of");
        }
    }
    return 0;
}

static int open_parent(struct tree *t, char *parent, bool make, struct err *e)
{
    int dir = open_below(t->root, parent, O_PATH);

    if (dir == -ENOENT && make) {
        if (make_dirs(t, parent, e) < 0)
            return -1;
        dir = open_below(t->root, parent, O_PATH);
    }
    if (dir >= 0)
        return dir;
    if (dir == -EXDEV || dir == -ELOOP)
        return tree_refuse(t, e, "leads out of the layer through a link");
    if (dir == -ENOTDIR || dir == -ENOENT)
        return tree_refuse(t, e, "is below something that is not a directory");
    errno = -dir;
    return tree_failed(t, e, "open the directory of");
}

int tree_place(struct tree *t, const char *path, bool make, struct place *ret, struct err *e)
{
    char parent[TAR_NAME_MAX + 1] = "";
    const char *slash = strrchr(path, '/');
    int dir;

    assert(path[0]);
    if (slash)
        memcpy(parent, path, (size_t)(slash - path)); /* it is already NUL-terminated */
    dir = open_parent(t, parent, make, e);
    if (dir < 0)
        return -1;
    *ret = (struct place){.dir = dir, .name = slash ? slash + 1 : path};
    return 0;
}
