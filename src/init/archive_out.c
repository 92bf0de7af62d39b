/* archive_out: writes a tree of the sandbox as a tar stream. */
#include "init/archive.h"

#include "base/fd.h"
#include "base/mem.h"
#include "init/path.h"
#include "init/rules.h"
#include "wire/tar.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#define PART (64 * 1024)
#define LINKS_MAX 4096 /* files with several names that are remembered; a power of two */
#define LINK_NAMES_MAX (1024 * 1024)

struct link_seen {
    dev_t dev;
    ino_t ino;
    char *name; /* NULL: a free slot */
};

struct walk {
    int out;
    struct buf head;             /* of the next entry */
    char name[TAR_NAME_MAX + 1]; /* in the archive */
    size_t name_n;
    char part[PART];
    struct link_seen links[LINKS_MAX];
    size_t link_n, link_bytes;
    struct err *e;
};

static int archive_failed(struct walk *w, const char *what, int sys)
{
    return path_failed(what, str_make(w->name, w->name_n), sys, w->e);
}

/* The name this file already has in the archive; else NULL, and it is remembered while there is
 * room: past that, each name gets a copy. */
static const char *seen_before(struct walk *w, const struct stat *st)
{
    size_t at = ((size_t)st->st_ino * 2654435761U) % LINKS_MAX;

    while (w->links[at].name) {
        if (w->links[at].ino == st->st_ino && w->links[at].dev == st->st_dev)
            return w->links[at].name;
        at = (at + 1) % LINKS_MAX;
    }
    if (w->link_n < LINKS_MAX / 2 && w->link_bytes + w->name_n < LINK_NAMES_MAX) {
        w->links[at] = (struct link_seen){st->st_dev, st->st_ino, xstrndup(w->name, w->name_n)};
        w->link_n++;
        w->link_bytes += w->name_n;
    }
    return NULL;
}

static int put_entry(struct walk *w, enum tar_kind kind, const struct stat *st, struct str link)
{
    struct tar_entry t = {
        .kind = kind,
        .name = str_make(w->name, w->name_n),
        .link = link,
        .mode = st->st_mode & 07777,
        .uid = st->st_uid,
        .gid = st->st_gid,
        .size = kind == TAR_FILE ? (uint64_t)st->st_size : 0,
        .mtime_s = st->st_mtim.tv_sec,
        .mtime_ns = (uint32_t)st->st_mtim.tv_nsec,
    };

    buf_clear(&w->head);
    if (tar_write_head(&w->head, &t, w->e) < 0)
        return -1;
    job_write(w->out, buf_data(&w->head), buf_len(&w->head));
    return 0;
}

/* Writes exactly size bytes, as the header announced: a file that shrinks meanwhile is padded with
 * zeros. */
static int put_content(struct walk *w, int fd, uint64_t size)
{
    uint64_t left = size;

    while (left > 0) {
        size_t want = (size_t)(left < PART ? left : PART);
        ssize_t n = read(fd, w->part, want);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return archive_failed(w, "read", errno);
        if (n == 0) {
            memset(w->part, 0, want);
            n = (ssize_t)want;
        }
        job_write(w->out, w->part, (size_t)n);
        left -= (uint64_t)n;
    }
    buf_clear(&w->head);
    tar_write_pad(&w->head, size);
    job_write(w->out, buf_data(&w->head), buf_len(&w->head));
    return 0;
}

static int put_file(struct walk *w, int dir, const char *name)
{
    AUTO(fd_close)
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat st;
    const char *first;

    if (fd < 0 && (errno == ENOENT || errno == ELOOP || errno == ENXIO))
        return 0; /* it was removed or replaced */
    if (fd < 0 || fstat(fd, &st) < 0)
        return archive_failed(w, "open", errno);
    if (!S_ISREG(st.st_mode) || path_check_kernel(fd) < 0)
        return 0;
    first = st.st_nlink > 1 ? seen_before(w, &st) : NULL;
    if (first)
        return put_entry(w, TAR_HARDLINK, &st, str_of(first));
    if (put_entry(w, TAR_FILE, &st, STR("")) < 0)
        return -1;
    return put_content(w, fd, (uint64_t)st.st_size);
}

static int put_link(struct walk *w, int dir, const char *name, const struct stat *st)
{
    char link[PATH_MAX];
    ssize_t n = readlinkat(dir, name, link, sizeof link - 1);

    return n <= 0 ? 0 : put_entry(w, TAR_SYMLINK, st, str_make(link, (size_t)n));
}

static int put_dir(struct walk *w, int fd, int depth);

static int put_named(struct walk *w, int dir, const char *name, int depth)
{
    struct stat st;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : archive_failed(w, "stat", errno);
    if (S_ISLNK(st.st_mode))
        return put_link(w, dir, name, &st);
    if (S_ISREG(st.st_mode))
        return put_file(w, dir, name);
    if (S_ISFIFO(st.st_mode))
        return put_entry(w, TAR_FIFO, &st, STR(""));
    if (S_ISDIR(st.st_mode)) {
        int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (fd < 0)
            return errno == ENOENT || errno == ENOTDIR || errno == ELOOP
                       ? 0
                       : archive_failed(w, "open", errno);
        return put_dir(w, fd, depth + 1);
    }
    return 0;
}

static int put_children(struct walk *w, DIR *d, int depth)
{
    size_t base = w->name_n;
    struct dirent *entry;
    int r = 0;

    while (r == 0 && (entry = readdir(d))) {
        size_t n = strlen(entry->d_name);

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (base + n + 1 > TAR_NAME_MAX)
            return archive_failed(w, "name something in", ENAMETOOLONG);
        memcpy(w->name + base, entry->d_name, n);
        w->name_n = base + n;
        r = put_named(w, dirfd(d), entry->d_name, depth);
        w->name_n = base;
    }
    return r;
}

/* Takes fd.  w->name is the directory's name; a slash is added. */
static int put_dir(struct walk *w, int fd, int depth)
{
    size_t base = w->name_n;
    struct stat st;
    DIR *d = NULL;
    int r;

    w->name[w->name_n++] = '/';
    if (path_check_kernel(fd) < 0)
        r = 0;
    else if (depth > PATH_DEPTH_MAX)
        r = archive_failed(w, "go deeper than", ELOOP);
    else if (fstat(fd, &st) < 0 || !(d = fdopendir(fd)))
        r = archive_failed(w, "open", errno);
    else if ((r = put_entry(w, TAR_DIR, &st, STR(""))) == 0)
        r = put_children(w, d, depth);
    if (d)
        (void)closedir(d);
    else
        fd_close(fd);
    w->name_n = base;
    return r;
}

static int begin(struct walk *w, const struct guest_file_call *c, struct stat *ret)
{
    AUTO(fd_close) int fd = path_open(c->path, O_RDONLY | O_DIRECTORY, 0, w->e);
    AUTO(fd_close) int dir = -1;
    char name[256];

    /* The whole tree must be readable: one with holes would look complete. */
    if (fd >= 0 && rules_check_tree(fd, "", RULES_READ, w->e) < 0)
        return -1;
    if (fd >= 0) {
        w->name[w->name_n++] = '.';
        (void)fstat(fd, ret);
        return put_dir(w, TAKE_FD(fd), 0);
    }
    if (w->e->sys != ENOTDIR && w->e->sys != ELOOP)
        return -1;
    dir = path_parent(c->path, name, w->e);
    if (dir < 0 || rules_check_entry(dir, name, RULES_READ, w->e) < 0)
        return -1;
    if (fstatat(dir, name, ret, AT_SYMLINK_NOFOLLOW) < 0)
        return path_failed("stat", c->path, errno, w->e);
    w->name_n = strlen(name);
    memcpy(w->name, name, w->name_n);
    return put_named(w, dir, name, 0);
}

int archive_out(const struct guest_file_call *c, int in, int out, struct stat *ret, struct err *e)
{
    struct walk *w = xzalloc(sizeof *w); /* not freed: the process ends with it */

    (void)in;
    w->out = out;
    w->e = e;
    if (begin(w, c, ret) < 0)
        return -1;
    buf_clear(&w->head);
    tar_write_end(&w->head);
    job_write(out, buf_data(&w->head), buf_len(&w->head));
    return 0;
}
