/* inside: resolves paths in a root that is being built; no other file does. */
#include "spawn/inside.h"

#include "base/fd.h"
#include "spawn/guards.h"
#include "spawn/mnt.h"
#include "wire/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* With the guard left out, a path is resolved from the caller's own root. */
static int resolve(int root, const char *path, int flags, unsigned more)
{
    struct open_how how = {.flags = (unsigned)flags | O_CLOEXEC,
                           .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | more};
    long fd;

    path += strspn(path, "/");
    if (guard_left_out("inside"))
        how.resolve = 0;
    fd = syscall(SYS_openat2, root, *path ? path : ".", &how, sizeof how);
    return fd < 0 ? -errno : (int)fd;
}

int inside_open(int root, const char *path, int flags)
{
    return resolve(root, path, flags, 0);
}

int inside_open_plain(int root, const char *path, int flags)
{
    return resolve(root, path, flags, RESOLVE_NO_XDEV);
}

int inside_open_strict(int root, const char *path, int flags)
{
    return resolve(root, path, flags, RESOLVE_NO_SYMLINKS);
}

static int make_one(int parent, const char *name, size_t n, bool file)
{
    char entry[NAME_MAX + 1];

    if (n > NAME_MAX)
        return -ENAMETOOLONG;
    memcpy(entry, name, n);
    entry[n] = '\0';
    return (file ? mknodat(parent, entry, S_IFREG | 0644, 0) : mkdirat(parent, entry, 0755)) < 0
               ? -errno
               : 0;
}

int inside_make(int root, const char *path, bool file)
{
    AUTO(fd_close) int at = inside_open(root, "/", O_PATH);
    char upto[SPAWN_PATH_MAX + 1];
    const char *end = path;

    while (at >= 0) {
        const char *name = end + strspn(end, "/");
        size_t n = strcspn(name, "/");
        int fd, r = 0;

        if (n == 0)
            break;
        end = name + n;
        (void)snprintf(upto, sizeof upto, "%.*s", (int)(end - path), path);
        fd = inside_open(root, upto, O_PATH);
        if (fd == -ENOENT) {
            r = make_one(at, name, n, file && end[strspn(end, "/")] == '\0');
            fd = r < 0 ? r : inside_open(root, upto, O_PATH);
        }
        fd_close(at);
        at = fd;
    }
    return TAKE_FD(at);
}

int inside_write_new(int dir, const char *name, struct str a, struct str b)
{
    AUTO(fd_close)
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    int r;

    if (fd < 0)
        return -errno;
    r = fd_write_all(fd, a.p, a.n);
    if (r == 0)
        r = fd_write_all(fd, b.p, b.n);
    return r == 0 && fchmod(fd, 0644) < 0 ? -errno : r;
}

int inside_replace(int root, const char *path, struct str a, struct str b)
{
    const char *name = strrchr(path, '/') + 1;
    char dir[SPAWN_PATH_MAX + 1], temporary[NAME_MAX + 1];
    AUTO(fd_close) int parent = -1;
    int r;

    if (strlen(path) > SPAWN_PATH_MAX || strlen(name) + sizeof ".holt" > sizeof temporary)
        return -ENAMETOOLONG;
    (void)snprintf(dir, sizeof dir, "%.*s", (int)(name - path), path);
    (void)snprintf(temporary, sizeof temporary, "%s.holt", name);
    parent = inside_open(root, dir, O_PATH | O_DIRECTORY);
    if (parent < 0)
        return parent;
    (void)unlinkat(parent, temporary, 0);
    r = inside_write_new(parent, temporary, a, b);
    if (r == 0 && renameat(parent, temporary, parent, name) < 0)
        r = -errno;
    if (r < 0)
        (void)unlinkat(parent, temporary, 0);
    return r;
}

static int read_link(int fd, char *to, size_t size)
{
    char link[48];
    ssize_t n;

    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    n = readlink(link, to, size - 1);
    if (n <= 0 || (size_t)n >= size - 1)
        return n < 0 ? -errno : -ENAMETOOLONG;
    to[n] = '\0';
    return 0;
}

/* As the kernel shows both from here; nothing is moved meanwhile. */
int inside_path_of(int root, int fd, char *to, size_t size)
{
    char top[PATH_MAX], path[PATH_MAX];
    size_t n;
    int r = read_link(root, top, sizeof top);

    if (r == 0)
        r = read_link(fd, path, sizeof path);
    if (r < 0)
        return r;
    n = strcmp(top, "/") == 0 ? 0 : strlen(top);
    if (strncmp(path, top, n) != 0 || (path[n] != '/' && path[n] != '\0'))
        return -EXDEV;
    return (size_t)snprintf(to, size, "%s", path[n] ? path + n : "/") < size ? 0 : -ENAMETOOLONG;
}

/* ---- mounts ---- */

static const struct {
    const char *path;
    bool below; /* everything below it is closed too */
} closed[] = {
    {"/", false},
    {"/proc", true},
    {"/sys", true},
    {"/dev", true},
    {SPAWN_RELAY_PATH, true},
    {SPAWN_CA_PATH, true},
    {SPAWN_INIT_PATH, true},
};

/* Single slashes, no "." and no ".." (which at the top is the top). */
static void normalize(struct str path, char *to, size_t size)
{
    size_t n = 0;

    while (path.n > 0) {
        struct str part = str_cut(path, '/', &path);

        if (part.n == 0 || str_eq_c(part, "."))
            continue;
        if (str_eq_c(part, "..")) {
            do
                n -= n > 0;
            while (n > 0 && to[n] != '/');
            continue;
        }
        if (n + 1 + part.n >= size)
            break;
        to[n++] = '/';
        memcpy(to + n, part.p, part.n);
        n += part.n;
    }
    if (n == 0)
        to[n++] = '/';
    to[n] = '\0';
}

bool inside_is_closed(struct str path)
{
    char plain[PATH_MAX];

    normalize(path, plain, sizeof plain);
    for (size_t i = 0; i < ARRAY_LEN(closed); i++) {
        size_t n = strlen(closed[i].path);

        if (strncmp(plain, closed[i].path, n) == 0 &&
            (plain[n] == '\0' || (closed[i].below && plain[n] == '/')))
            return true;
    }
    return false;
}

int inside_attach(int root, int tree, const char *path)
{
    AUTO(fd_close) int at = inside_open_strict(root, path, O_PATH);
    char real[PATH_MAX];
    struct stat st;
    int r;

    if (at >= 0 && !guard_left_out("inside")) /* without a link it is where it is written */
        return inside_is_closed(str_of(path)) && !guard_left_out("targets")
                   ? -EPERM
                   : mnt_attach_fd(tree, at);
    fd_close(at);
    at = -1;
    if (fstat(tree, &st) < 0)
        return -errno;
    at = inside_make(root, path, !S_ISDIR(st.st_mode));
    r = at < 0 ? at : inside_path_of(root, at, real, sizeof real);
    if (r < 0)
        return r;
    if (inside_is_closed(str_of(real)) && !guard_left_out("targets"))
        return -EPERM;
    return mnt_attach_fd(tree, at);
}
