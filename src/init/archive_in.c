/* archive_in: extracts a tar stream into a directory of the sandbox. */
#include "init/archive.h"

#include "base/fd.h"
#include "base/mem.h"
#include "init/path.h"
#include "init/rules.h"
#include "wire/tar.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/xattr.h>
#include <unistd.h>

#define PART (64 * 1024)
/* bytes of the names of directories whose times are set at the end */
#define TIMES_MAX (1024 * 1024)
#define TRIES 16 /* attempts to make an entry while others keep creating one there */

struct times { /* of a directory, set last: later entries change them */
    struct timespec mtime;
    char *name;
};

struct extract {
    const struct guest_file_call *call;
    struct tar_reader tar;
    int root;
    int file; /* being written; -1: none */
    char name[TAR_NAME_MAX + 1];
    struct buf times; /* struct times */
    size_t times_bytes;
    struct err *e;
};

static int extract_failed(struct extract *x, const char *what, int sys)
{
    return path_failed(what, x->tar.entry.name, sys, x->e);
}

/* "a/b" for "./a//b/" and "/a/b"; "" for "."; -1 for a name with "..". */
static int clean_name(struct extract *x, struct str name, char *to)
{
    size_t n = 0;

    while (name.n > 0) {
        struct str part = str_cut(name, '/', &name);

        if (part.n == 0 || str_eq_c(part, "."))
            continue;
        if (str_eq_c(part, ".."))
            return err_set(x->e, ERR_INVALID, 0, "the archive's '%.*s' leads out of the directory",
                           (int)size_min(x->tar.entry.name.n, 160), x->tar.entry.name.p);
        if (part.n > NAME_MAX || n + part.n + 1 > TAR_NAME_MAX)
            return extract_failed(x, "make", ENAMETOOLONG);
        if (n > 0)
            to[n++] = '/';
        memcpy(to + n, part.p, part.n);
        n += part.n;
    }
    to[n] = '\0';
    return 0;
}

/* Opens a directory by its clean name ("": the root); `make`: creates missing ones. */
static int open_dir(struct extract *x, char *name, bool make)
{
    int fd = path_beneath(x->root, *name ? name : ".", O_PATH | O_DIRECTORY);
    AUTO(fd_close) int above = -1;
    char *slash;

    if (fd != -ENOENT || !make)
        return fd;
    slash = strrchr(name, '/');
    if (slash)
        *slash = '\0';
    above = slash ? open_dir(x, name, true) : open_dir(x, name + strlen(name), false);
    if (slash)
        *slash = '/';
    if (above < 0)
        return above;
    if (rules_check_entry(above, slash ? slash + 1 : name, RULES_WRITE, x->e) < 0)
        return -EACCES;
    if (mkdirat(above, slash ? slash + 1 : name, 0755) < 0 && errno != EEXIST)
        return -errno;
    return path_beneath(x->root, name, O_PATH | O_DIRECTORY);
}

/* Opens the parent directory of a clean name; *ret_last is the last component, in name, which is
 * cut there. */
static int open_parent(struct extract *x, char *name, bool make, const char **ret_last)
{
    char *slash = strrchr(name, '/');
    int fd, r;

    *ret_last = slash ? slash + 1 : name;
    if (slash)
        *slash = '\0';
    fd = open_dir(x, slash ? name : name + strlen(name), make);
    r = fd < 0 ? fd : path_check_kernel(fd);
    if (r < 0 && fd >= 0)
        fd_close(fd);
    return r < 0 ? r : fd;
}

static struct timespec mtime_of(const struct tar_entry *t)
{
    return (struct timespec){.tv_sec = (time_t)t->mtime_s, .tv_nsec = (long)t->mtime_ns};
}

/* The ids of the call, else those of the archive if requested, else root's. */
static void owner_of(const struct extract *x, uid_t *uid, gid_t *gid)
{
    const struct tar_entry *t = &x->tar.entry;
    bool kept = x->call->flags & GUEST_FILE_OWNER;

    *uid = x->call->uid != GUEST_NO_ID ? x->call->uid : kept ? (uid_t)t->uid : 0;
    *gid = x->call->gid != GUEST_NO_ID ? x->call->gid : kept ? (gid_t)t->gid : 0;
}

/* Kept with owners alone: from the inside they are root's to set, from an archive of a stranger
 * they are not wanted.  After owner and mode, whose changes clear capabilities. */
static int set_xattrs(struct extract *x, int fd)
{
    const struct tar_entry *t = &x->tar.entry;
    static const struct str kept[] = {
        {"user.", 5}, {"security.capability", 19}, {"system.posix_acl_", 17}};

    for (size_t i = 0; i < t->xattr_count; i++) {
        AUTO(mem_free) char *name = str_dup(t->xattrs[i].name);
        bool is_kept = false;

        for (size_t k = 0; k < ARRAY_LEN(kept); k++)
            is_kept = is_kept || str_starts(t->xattrs[i].name, kept[k]);
        if (is_kept && fsetxattr(fd, name, t->xattrs[i].value.p, t->xattrs[i].value.n, 0) < 0)
            return extract_failed(x, "set an attribute of", errno);
    }
    return 0;
}

/* Owner before mode: chown(2) clears set-user-id. */
static int own(struct extract *x, int fd)
{
    uid_t uid;
    gid_t gid;

    owner_of(x, &uid, &gid);
    if ((uid != 0 || gid != 0) && fchown(fd, uid, gid) < 0)
        return extract_failed(x, "change the owner of", errno);
    if (fchmod(fd, x->tar.entry.mode) < 0)
        return extract_failed(x, "change the mode of", errno);
    return x->call->flags & GUEST_FILE_OWNER ? set_xattrs(x, fd) : 0;
}

/* Removes an existing entry, except a directory that is not empty. */
static int clear_way(int dir, const char *last)
{
    if (unlinkat(dir, last, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno == EISDIR && unlinkat(dir, last, AT_REMOVEDIR) == 0)
        return 0;
    return -errno;
}

static int make_file(struct extract *x, int dir, const char *last)
{
    int r = -EEXIST;

    for (int i = 0; r == -EEXIST && i < TRIES; i++) {
        x->file = openat(dir, last, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        r = x->file >= 0 ? 0 : -errno;
        if (r == -EEXIST && clear_way(dir, last) < 0)
            return -errno;
    }
    return r;
}

static void remember_times(struct extract *x)
{
    struct times t = {mtime_of(&x->tar.entry), NULL};
    size_t n = strlen(x->name);

    if (x->times_bytes + n + sizeof t > TIMES_MAX)
        return;
    x->times_bytes += n + sizeof t;
    t.name = xstrdup(x->name);
    buf_add(&x->times, &t, sizeof t);
}

static int make_dir(struct extract *x, int dir, const char *last)
{
    AUTO(fd_close) int fd = -1;

    for (int i = 0; fd < 0 && i < TRIES; i++) {
        if (mkdirat(dir, last, 0700) < 0 && errno != EEXIST)
            return -errno;
        fd = openat(dir, last, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 && errno != ENOTDIR && errno != ELOOP && errno != ENOENT)
            return -errno;
        if (fd < 0)
            (void)unlinkat(dir, last, 0);
    }
    if (fd < 0)
        return -EEXIST;
    if (path_check_kernel(fd) < 0)
        return -EACCES; /* a mount point */
    return own(x, fd);
}

static int make_other(struct extract *x, int dir, const char *last)
{
    const struct tar_entry *t = &x->tar.entry;
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, mtime_of(t)};
    char target[TAR_NAME_MAX + 1];
    uid_t uid;
    gid_t gid;
    int r;

    (void)snprintf(target, sizeof target, STR_FMT, STR_ARG(t->link));
    r = clear_way(dir, last);
    if (r == 0)
        r = (t->kind == TAR_SYMLINK ? symlinkat(target, dir, last)
                                    : mknodat(dir, last, S_IFIFO | (t->mode & 0777), 0)) < 0
                ? -errno
                : 0;
    if (r < 0)
        return r;
    owner_of(x, &uid, &gid);
    if (uid != 0 || gid != 0)
        (void)fchownat(dir, last, uid, gid, AT_SYMLINK_NOFOLLOW);
    (void)utimensat(dir, last, times, AT_SYMLINK_NOFOLLOW);
    return 0;
}

static int make_hardlink(struct extract *x, int dir, const char *last)
{
    char name[TAR_NAME_MAX + 1];
    AUTO(fd_close) int from = -1;
    const char *from_last;
    struct stat a, b;
    int r;

    if (clean_name(x, x->tar.entry.link, name) < 0)
        return -1;
    from = open_parent(x, name, false, &from_last);
    if (from < 0)
        return from;
    if (rules_check_entry(from, from_last, RULES_ALL, x->e) < 0)
        return -1;
    /* A link to itself: removing the existing entry would lose the file. */
    if (fstatat(from, from_last, &a, AT_SYMLINK_NOFOLLOW) == 0 &&
        fstatat(dir, last, &b, AT_SYMLINK_NOFOLLOW) == 0 && a.st_ino == b.st_ino &&
        a.st_dev == b.st_dev)
        return 0;
    r = clear_way(dir, last);
    if (r < 0)
        return r;
    return linkat(from, from_last, dir, last, 0) < 0 ? -errno : 0;
}

static int make_entry(struct extract *x, int dir, const char *last)
{
    switch (x->tar.entry.kind) {
    case TAR_FILE:
        return make_file(x, dir, last);
    case TAR_DIR:
        return make_dir(x, dir, last);
    case TAR_SYMLINK:
    case TAR_FIFO:
        return make_other(x, dir, last);
    case TAR_HARDLINK:
        return make_hardlink(x, dir, last);
    case TAR_CHAR:
    case TAR_BLOCKDEV:
        break;
    }
    return err_set(x->e, ERR_INVALID, 0, "the archive's '%.*s' is a device",
                   (int)size_min(x->tar.entry.name.n, 160), x->tar.entry.name.p);
}

static int on_entry(struct extract *x)
{
    AUTO(fd_close) int dir = -1;
    char name[TAR_NAME_MAX + 1];
    const char *last;
    int r;

    if (clean_name(x, x->tar.entry.name, x->name) < 0)
        return -1;
    if (x->tar.entry.kind == TAR_DIR)
        remember_times(x);
    if (x->name[0] == '\0')
        return x->tar.entry.kind == TAR_DIR ? own(x, x->root) : extract_failed(x, "make", EISDIR);
    memcpy(name, x->name, sizeof name);
    x->e->code = ERR_NONE;
    dir = open_parent(x, name, true, &last);
    if (dir < 0)
        return x->e->code != ERR_NONE ? -1 : extract_failed(x, "open the directory of", -dir);
    if (rules_check_entry(dir, last, RULES_WRITE, x->e) < 0)
        return -1;
    r = make_entry(x, dir, last);
    if (r < 0 && x->e->code == ERR_NONE)
        return extract_failed(x, "make", -r);
    return r;
}

static int on_end(struct extract *x)
{
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, mtime_of(&x->tar.entry)};
    AUTO(fd_close) int file = TAKE_FD(x->file);

    if (file < 0)
        return 0;
    if (own(x, file) < 0)
        return -1;
    (void)futimens(file, times);
    return 0;
}

static int take_part(struct extract *x, struct str part)
{
    struct str data;
    int told;

    while ((told = tar_read(&x->tar, &part, &data, x->e)) > TAR_MORE) {
        int r = 0;

        if (told == TAR_END)
            return 0; /* the remaining input is read and dropped */
        if (told == TAR_ENTRY)
            r = on_entry(x);
        else if (told == TAR_DATA)
            r = fd_write_all(x->file, data.p, data.n);
        else
            r = on_end(x);
        if (told == TAR_DATA && r < 0)
            return extract_failed(x, "write", -r);
        if (r < 0)
            return -1;
    }
    return told < 0 ? -1 : 0;
}

static void set_times(struct extract *x)
{
    size_t n = buf_len(&x->times) / sizeof(struct times);
    const struct times *all = (const void *)buf_data(&x->times);

    while (n-- > 0) {
        struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, all[n].mtime};
        AUTO(fd_close)
        int fd = path_beneath(x->root, all[n].name[0] ? all[n].name : ".", O_RDONLY | O_DIRECTORY);

        if (fd >= 0)
            (void)futimens(fd, times);
    }
}

static int extract_all(struct extract *x, int in)
{
    char *part = xmalloc(PART);
    ssize_t n;

    while ((n = read(in, part, PART)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set(x->e, ERR_INTERNAL, errno, "read the archive");
        if (take_part(x, str_make(part, (size_t)n)) < 0)
            return -1;
    }
    if (!tar_may_end(&x->tar))
        return err_set(x->e, ERR_INVALID, 0, "the archive is cut off");
    set_times(x);
    return 0;
}

int archive_in(const struct guest_file_call *c, int in, int out, struct stat *ret, struct err *e)
{
    struct extract *x = xzalloc(sizeof *x); /* not freed: the process ends with it */

    (void)out;
    x->call = c;
    x->e = e;
    x->file = -1;
    if ((c->flags & GUEST_FILE_PARENTS) && path_make_all(c->path, 0755, e) < 0)
        return -1;
    x->root = path_open(c->path, O_RDONLY | O_DIRECTORY, 0, e);
    if (x->root < 0 || rules_check_fd(x->root, RULES_WRITE, e) < 0 || extract_all(x, in) < 0)
        return -1;
    if (fstat(x->root, ret) < 0)
        return path_failed("stat", c->path, errno, e);
    return 0;
}
