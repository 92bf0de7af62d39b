/* share: the directories of the agentshare, and files below them. */
#include "core/task/share.h"

#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define DEPTH_MAX 64
#define ENTRIES_MAX 10000
#define PUBLIC_DIR 0755 /* sandboxes read as another user */

static const char *const area_names[] = {"global", "inbox", "outbox", "tasks", "archived"};

struct share {
    char *root;
    int fd;
};

const char *share_area_name(enum share_area a)
{
    return area_names[a];
}

const char *share_root(const struct share *s)
{
    return s->root;
}

static int failed(struct err *e, struct str path, const char *what)
{
    int sys = errno;

    return err_set(e, sys == ENOENT || sys == ENOTDIR ? ERR_NOT_FOUND : err_code_from_errno(sys),
                   sys, "%s '" STR_FMT "'", what, (int)size_min(path.n, 128), path.p ? path.p : "");
}

/* umask(2) is 077 here. */
static int make_public(int at, const char *name)
{
    if (mkdirat(at, name, PUBLIC_DIR) < 0)
        return errno == EEXIST ? 0 : -1;
    return fchmodat(at, name, PUBLIC_DIR, 0);
}

int share_open(const char *root, struct share **ret, struct err *e)
{
    struct share *s = xzalloc(sizeof *s);
    int r = dir_make_all(root, PUBLIC_DIR);

    s->root = xstrdup(root);
    s->fd = r < 0 ? -1 : open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (r < 0)
        errno = -r;
    for (size_t i = 0; s->fd >= 0 && i < ARRAY_LEN(area_names); i++)
        if (make_public(s->fd, area_names[i]) < 0)
            r = -1;
    if (s->fd >= 0 && r == 0) {
        *ret = s;
        return 0;
    }
    err_set(e, ERR_INTERNAL, errno, "make the directories of the agentshare in '%s'", root);
    share_free(s);
    return err_hint(e, "the setting 'agentshare' names a directory that holtd may write to");
}

struct share *share_free(struct share *s)
{
    if (!s)
        return NULL;
    fd_close(s->fd);
    mem_free(s->root);
    mem_free(s);
    return NULL;
}

/* --- paths --- */

static int path_wrong(struct str path, const char *why, struct err *e)
{
    err_set(e, ERR_INVALID, 0, "the path '" STR_FMT "' %s", (int)size_min(path.n, 128),
            path.p ? path.p : "", why);
    return err_hint(e, "use a relative path without '..' that leads over no link");
}

/* One component as a text; -1: it is not allowed. */
static int component(struct str part, char name[static NAME_MAX + 1])
{
    if (part.n == 0 || part.n > NAME_MAX || memchr(part.p, '\0', part.n) || str_eq_c(part, ".") ||
        str_eq_c(part, ".."))
        return -1;
    memcpy(name, part.p, part.n);
    name[part.n] = '\0';
    return 0;
}

static int enter(int at, const char *name, bool make)
{
    if (make && make_public(at, name) < 0)
        return -1;
    return openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* The directory of the last component, whose name is written to last. */
static int walk(int dir, struct str path, bool make, char last[static NAME_MAX + 1], struct err *e)
{
    AUTO(fd_close) int at = openat(dir, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct str rest = path;

    if (path.n == 0 || path.p[0] == '/')
        return path_wrong(path, "is not relative", e);
    for (size_t depth = 0; at >= 0 && depth < DEPTH_MAX; depth++) {
        struct str part = str_cut(rest, '/', &rest);
        int next;

        if (component(part, last) < 0)
            return path_wrong(path, "is not allowed", e);
        if (rest.n == 0)
            return TAKE_FD(at);
        next = enter(at, last, make);
        if (next < 0 && (errno == ELOOP || errno == ENOTDIR))
            return path_wrong(path, "leads over a link or a file", e);
        fd_close(at);
        at = next;
    }
    return at < 0 ? failed(e, path, "there is no") : path_wrong(path, "is too deep", e);
}

int share_dir(const struct share *s, enum share_area area, struct str name, bool make,
              struct err *e)
{
    AUTO(fd_close) int at = enter(s->fd, area_names[area], true);
    char text[NAME_MAX + 1];
    int fd;

    if (at < 0)
        return failed(e, str_of(area_names[area]), "open the area");
    if (name.n == 0)
        return TAKE_FD(at);
    if (component(name, text) < 0 || strchr(text, '/'))
        return path_wrong(name, "is not a name", e);
    fd = enter(at, text, make);
    return fd < 0 ? failed(e, name, "there is no directory") : fd;
}

int share_file(int dir, struct str path, int flags, mode_t mode, struct err *e)
{
    char last[NAME_MAX + 1];
    AUTO(fd_close) int at = walk(dir, path, flags & O_CREAT, last, e);
    int fd;

    if (at < 0)
        return -1;
    fd = openat(at, last, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, mode);
    if (fd < 0 && errno == ELOOP)
        return path_wrong(path, "is a link", e);
    if (fd < 0)
        return failed(e, path, "open");
    if (flags & O_CREAT)
        (void)!fchmod(fd, mode);
    return fd;
}

int share_rename(int dir, const char *from, struct str to, struct err *e)
{
    char last[NAME_MAX + 1];
    AUTO(fd_close) int at = walk(dir, to, true, last, e);

    if (at < 0)
        return -1;
    return renameat(dir, from, at, last) < 0 ? failed(e, to, "write") : 0;
}

int share_put(int dir, struct str path, struct str content, mode_t mode, struct err *e)
{
    char temp[48];
    AUTO(fd_close) int fd = -1;
    int r;

    (void)snprintf(temp, sizeof temp, ".new-%d", (int)getpid());
    fd = openat(dir, temp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0)
        return failed(e, path, "write");
    (void)!fchmod(fd, mode);
    r = fd_write_all(fd, content.p, content.n);
    if (r == 0)
        return share_rename(dir, temp, path, e);
    errno = -r;
    (void)failed(e, path, "write");
    (void)unlinkat(dir, temp, 0);
    return -1;
}

/* --- lists --- */

static int by_name(const void *a, const void *b)
{
    const struct share_entry *x = a, *y = b;

    return strcmp(x->name, y->name);
}

/* *ret is the caller's: NULL after an error. */
static DIR *dir_read(int at, const char *name)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);

    if (!d)
        fd_close(fd);
    return d;
}

static int list_entries(DIR *d, share_each each, void *arg)
{
    AUTO(mem_free) struct share_entry *all = xzalloc(ENTRIES_MAX * sizeof *all);
    size_t n = 0;
    const struct dirent *one;

    while (n < ENTRIES_MAX && (one = readdir(d))) {
        if (one->d_name[0] == '.' &&
            (strcmp(one->d_name, ".") == 0 || strcmp(one->d_name, "..") == 0 ||
             strncmp(one->d_name, ".new-", 5) == 0))
            continue;
        if (fstatat(dirfd(d), one->d_name, &all[n].st, AT_SYMLINK_NOFOLLOW) == 0)
            all[n++].name = xstrdup(one->d_name);
    }
    qsort(all, n, sizeof *all, by_name);
    for (size_t i = 0; i < n; i++) {
        each(arg, &all[i]);
        mem_free((void *)(uintptr_t)all[i].name);
    }
    return 0;
}

int share_list(int dir, struct str path, share_each each, void *arg, struct err *e)
{
    char last[NAME_MAX + 1] = ".";
    AUTO(fd_close) int at = -1;
    DIR *d;

    at = path.n == 0 ? openat(dir, ".", O_PATH | O_DIRECTORY | O_CLOEXEC)
                     : walk(dir, path, false, last, e);
    if (at < 0)
        return path.n == 0 ? failed(e, path, "open") : -1;
    d = dir_read(at, last);
    if (!d)
        return failed(e, path, "there is no directory");
    (void)list_entries(d, each, arg);
    (void)closedir(d);
    return 0;
}

/* --- remove --- */

static int remove_all(int at, const char *name, int depth)
{
    const struct dirent *one;
    DIR *d;

    if (unlinkat(at, name, 0) == 0 || errno == ENOENT)
        return 0;
    d = depth < DEPTH_MAX + 2 ? dir_read(at, name) : NULL;
    if (!d)
        return -1;
    while ((one = readdir(d)))
        if (strcmp(one->d_name, ".") != 0 && strcmp(one->d_name, "..") != 0)
            (void)remove_all(dirfd(d), one->d_name, depth + 1);
    (void)closedir(d);
    return unlinkat(at, name, AT_REMOVEDIR);
}

int share_remove(const struct share *s, enum share_area area, struct str name, struct err *e)
{
    AUTO(fd_close) int at = enter(s->fd, area_names[area], false);
    char text[NAME_MAX + 1];

    if (at < 0 || component(name, text) < 0 || strchr(text, '/'))
        return path_wrong(name, "is not a name", e);
    return remove_all(at, text, 0) < 0 ? failed(e, name, "remove") : 0;
}

int share_archive(const struct share *s, enum share_area area, struct str name, struct err *e)
{
    AUTO(mem_free) char *from = xasprintf("%s/" STR_FMT, area_names[area], STR_ARG(name));
    AUTO(mem_free)
    char *to = xasprintf("archived/%s-" STR_FMT, area_names[area], STR_ARG(name));

    if (memchr(name.p, '/', name.n))
        return path_wrong(name, "is not a name", e);
    if (renameat(s->fd, from, s->fd, to) < 0 && errno != ENOENT)
        return failed(e, name, "archive");
    return 0;
}
