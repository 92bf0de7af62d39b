/* unpack: extracts a tar stream into a local directory. */
#include "cli/unpack.h"

#include "base/fd.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DIR_MODE 0755

void unpack_init(struct unpack *u, int root, const char *top)
{
    *u = (struct unpack){.root = root, .top = top, .file = -1};
}

void unpack_done(struct unpack *u)
{
    fd_close(u->file);
    tar_reader_done(&u->in);
}

static int open_beneath(int dir, const char *path, int flags)
{
    struct open_how how = {
        .flags = (unsigned)(flags | O_CLOEXEC),
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };

    return (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
}

/* Opens the directory of that name in dir, created if missing. */
static int enter(int dir, const char *name)
{
    int fd = open_beneath(dir, name, O_PATH | O_DIRECTORY);

    if (fd >= 0 || errno != ENOENT)
        return fd;
    if (mkdirat(dir, name, DIR_MODE) < 0 && errno != EEXIST)
        return -1;
    return open_beneath(dir, name, O_PATH | O_DIRECTORY);
}

/* Resolves a name: its directory (a new descriptor) and its last component (in `path`, which is cut
 * up). */
static int walk(const struct unpack *u, char *path, int *ret_dir, char **ret_last)
{
    AUTO(fd_close) int dir = fcntl(u->root, F_DUPFD_CLOEXEC, 0);
    char *slash;

    while (dir >= 0 && (slash = strchr(path, '/'))) {
        int next;

        *slash = '\0';
        next = enter(dir, path);
        fd_close(dir);
        dir = next;
        path = slash + 1;
    }
    if (dir < 0)
        return -1;
    *ret_dir = TAKE_FD(dir);
    *ret_last = path;
    return 0;
}

/* Relative; no component is "", "." or ".."; no NUL. */
static bool name_is_safe(struct str name)
{
    if (name.n == 0 || memchr(name.p, 0, name.n))
        return false;
    for (;;) {
        ptrdiff_t slash = str_index(name, '/');
        struct str part = str_make(name.p, slash < 0 ? name.n : (size_t)slash);

        if (part.n == 0 || str_eq_c(part, ".") || str_eq_c(part, ".."))
            return false;
        if (slash < 0)
            return true;
        name = str_skip(name, (size_t)slash + 1);
    }
}

/* "./a": the rest of the name is below the directory itself. */
static bool is_dotted(const struct tar_entry *t)
{
    return t->kind == TAR_DIR && (str_eq_c(t->name, ".") || str_eq_c(t->name, "./"));
}

/* The entry's name below the root; "": the root itself; NULL: it would lead outside. */
static char *local_name(const struct unpack *u, struct str name)
{
    struct str rest = {0};

    while (str_starts(name, STR("./")))
        name = str_skip(name, 2);
    while (str_ends(name, STR("/")))
        name.n--;
    if (name.n == 0 || str_eq_c(name, "."))
        return xstrdup(u->top ? u->top : "");
    if (!name_is_safe(name))
        return NULL;
    if (u->dotted)
        rest = name;
    else
        (void)str_cut(name, '/', &rest);
    if (!u->top)
        return str_dup(rest);
    return rest.n ? xasprintf("%s/" STR_FMT, u->top, STR_ARG(rest)) : xstrdup(u->top);
}

/* --- one entry --- */

static int make_dir(int dir, const char *name, uint32_t mode)
{
    struct stat st;

    if (mkdirat(dir, name, (mode & 0777) | 0700) == 0)
        return 0;
    if (errno != EEXIST || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -1;
    if (S_ISDIR(st.st_mode))
        return 0;
    errno = ENOTDIR;
    return -1;
}

static int clear_way(int dir, const char *name)
{
    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
        return 0;
    return -1;
}

static int make_file(struct unpack *u, int dir, const char *name, uint32_t mode)
{
    if (clear_way(dir, name) < 0)
        return -1;
    u->file = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode & 0777);
    return u->file < 0 ? -1 : 0;
}

static int make_symlink(int dir, const char *name, struct str link)
{
    AUTO(mem_free) char *to = str_dup(link);

    if (to[0] == '\0') {
        errno = EINVAL;
        return -1;
    }
    return clear_way(dir, name) < 0 ? -1 : symlinkat(to, dir, name);
}

/* Only to a regular file below the root. */
static int make_hardlink(struct unpack *u, int dir, const char *name, struct str link)
{
    AUTO(mem_free) char *path = local_name(u, link);
    AUTO(fd_close) int from = -1;
    struct stat st;
    char *last;

    if (!path || !path[0]) {
        errno = EINVAL;
        return -1;
    }
    if (walk(u, path, &from, &last) < 0 || fstatat(from, last, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -1;
    if (!S_ISREG(st.st_mode)) {
        errno = EINVAL;
        return -1;
    }
    return clear_way(dir, name) < 0 ? -1 : linkat(from, last, dir, name, 0);
}

static int make_entry(struct unpack *u, int dir, const char *name)
{
    const struct tar_entry *t = &u->in.entry;

    switch (t->kind) {
    case TAR_FILE:
        return make_file(u, dir, name, t->mode);
    case TAR_DIR:
        return make_dir(dir, name, t->mode);
    case TAR_SYMLINK:
        return make_symlink(dir, name, t->link);
    case TAR_HARDLINK:
        return make_hardlink(u, dir, name, t->link);
    case TAR_CHAR:
    case TAR_BLOCKDEV:
    case TAR_FIFO:
        break;
    }
    u->left_out++;
    return 0;
}

static int begin_entry(struct unpack *u, struct err *e)
{
    struct str name = u->in.entry.name;
    AUTO(mem_free) char *path = NULL;
    AUTO(fd_close) int dir = -1;
    int shown = (int)size_min(name.n, 120);
    char *last;

    if (u->entries++ == 0)
        u->dotted = is_dotted(&u->in.entry);
    path = local_name(u, name);
    if (!path)
        return err_set(e, ERR_FORBIDDEN, 0,
                       "the archive has the path '%.*s', which leads out of it", shown, name.p);
    if (!path[0])
        return 0;
    if (walk(u, path, &dir, &last) < 0 || make_entry(u, dir, last) < 0)
        return err_set(e, err_code_from_errno(errno), errno, "make '%.*s'", shown, name.p);
    return 0;
}

static int end_entry(struct unpack *u, struct err *e)
{
    struct timespec times[2] = {
        {.tv_nsec = UTIME_OMIT},
        {.tv_sec = u->in.entry.mtime_s, .tv_nsec = (long)u->in.entry.mtime_ns}};
    int r;

    if (u->file < 0)
        return 0;
    (void)futimens(u->file, times); /* a time that this file system cannot store is no failure */
    r = close(u->file);
    u->file = -1;
    return r < 0 ? err_set(e, ERR_INTERNAL, errno, "write a file") : 0;
}

static int write_data(struct unpack *u, struct str data, struct err *e)
{
    int r;

    u->bytes += (int64_t)data.n;
    if (u->file < 0)
        return 0;
    r = fd_write_all(u->file, data.p, data.n);
    if (r < 0)
        return err_set(e, err_code_from_errno(-r), -r, "write '" STR_FMT "'",
                       (int)size_min(u->in.entry.name.n, 120), u->in.entry.name.p);
    return 0;
}

int unpack_feed(struct unpack *u, struct str bytes, struct err *e)
{
    for (;;) {
        struct str data = {0};
        int told = tar_read(&u->in, &bytes, &data, e);

        if (told < 0)
            return err_wrap(e, "the reply is not an archive");
        if (told == TAR_MORE || told == TAR_END)
            return 0;
        if ((told == TAR_ENTRY && begin_entry(u, e) < 0) ||
            (told == TAR_DATA && write_data(u, data, e) < 0) ||
            (told == TAR_ENTRY_END && end_entry(u, e) < 0))
            return -1;
    }
}

int unpack_end(struct unpack *u, struct err *e)
{
    if (u->entries == 0 || !tar_may_end(&u->in))
        return err_set(e, ERR_UNAVAILABLE, 0, "the archive ended early: the copy is incomplete");
    return 0;
}
