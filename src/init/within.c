/* within: opens files only inside given directories, after following links. */
#include "init/within.h"

#include "base/fd.h"
#include "init/rules.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

static int outside(struct str path, struct str roots, struct err *e)
{
    err_set(e, ERR_FORBIDDEN, EXDEV, "'%.*s' is outside of the allowed directories",
            (int)size_min(path.n, 120), path.p);
    return err_hint(e, "allowed: %.*s", (int)size_min(roots.n, 120), roots.p);
}

int within_check(int fd, struct str roots, struct str path, struct err *e)
{
    char link[32], real[PATH_MAX];
    ssize_t n;

    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    n = readlink(link, real, sizeof real);
    if (n < 0)
        return path_failed("resolve", path, errno, e);
    for (struct str left = roots; left.n > 0;)
        if (path_is_in(str_make(real, (size_t)n), str_cut(left, ':', &left)))
            return 0;
    return outside(path, roots, e);
}

int within_failed(struct str path, struct str roots, struct err *e)
{
    struct err other = {0};
    AUTO(fd_close) int fd = path_open(path, O_PATH, 0, &other);

    if (fd >= 0 && within_check(fd, roots, path, &other) < 0)
        *e = other;
    return -1;
}

/* The nearest existing parent must be inside: missing directories are created there. */
static int check_above(struct str path, struct str roots, struct err *e)
{
    AUTO(fd_close) int fd = -1;

    while (fd < 0) {
        while (path.n > 0 && path.p[path.n - 1] == '/')
            path.n--;
        while (path.n > 0 && path.p[path.n - 1] != '/')
            path.n--;
        if (path.n == 0)
            return outside(STR("/"), roots, e);
        fd = path_open(path, O_PATH, 0, e);
        if (fd < 0 && e->sys != ENOENT)
            return -1;
    }
    return within_check(fd, roots, path, e);
}

static int make(const struct within_write *w, struct err *e)
{
    struct str above = w->path;
    int fd;

    if (check_above(w->path, w->roots, e) < 0)
        return -1;
    while (above.n > 0 && above.p[above.n - 1] != '/')
        above.n--;
    if (w->parents && above.n > 1 && path_make_all(str_make(above.p, above.n - 1), 0755, e) < 0)
        return -1;
    /* O_EXCL: do not follow a dangling link and create a file elsewhere. */
    fd = path_open_regular(w->path, O_WRONLY | O_CREAT | O_EXCL | w->flags, w->mode, false, e);
    return fd < 0 && e->sys == EEXIST ? outside(w->path, w->roots, e) : fd;
}

int within_open_write(const struct within_write *w, struct err *e)
{
    AUTO(fd_close) int fd = path_open_regular(w->path, O_WRONLY | w->flags, 0, false, e);

    if (fd < 0 && e->sys != ENOENT)
        return within_failed(w->path, w->roots, e);
    if (fd < 0)
        fd = make(w, e);
    if (fd < 0 || within_check(fd, w->roots, w->path, e) < 0)
        return -1;
    if (w->truncate && ftruncate(fd, 0) < 0)
        return path_failed("empty", w->path, errno, e);
    return TAKE_FD(fd);
}
