/* fd: reads, writes and replaces whole files; raises the limit of open files. */
#include "base/fd.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

void fd_close(int fd)
{
    int keep = errno;

    if (fd >= 0)
        (void)close(fd);
    errno = keep;
}

uint64_t fd_limit_raise(void)
{
    struct rlimit n = {.rlim_cur = 1024};

    if (getrlimit(RLIMIT_NOFILE, &n) == 0) {
        n.rlim_cur = n.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &n);
        (void)getrlimit(RLIMIT_NOFILE, &n);
    }
    return n.rlim_cur;
}

bool fd_spares_fill(struct fd_spares *s)
{
    int keep = errno;

    while (s->n < FD_SPARES) {
        int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

        if (fd < 0)
            break;
        s->fd[s->n++] = fd;
    }
    errno = keep;
    return s->n == FD_SPARES;
}

void fd_spares_free(struct fd_spares *s)
{
    while (s->n > 0)
        fd_close(s->fd[--s->n]);
}

int fd_write_all(int fd, const void *p, size_t n)
{
    const char *at = p;

    while (n > 0) {
        ssize_t w = write(fd, at, n);

        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0)
            return -errno;
        at += w;
        n -= (size_t)w;
    }
    return 0;
}

int fd_read_all(int fd, size_t limit, struct buf *to)
{
    size_t total = 0;

    for (;;) {
        char *room;
        ssize_t n;
        int r = buf_reserve(to, 4096, &room);

        if (r < 0)
            return r;
        n = read(fd, room, 4096);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            return 0;
        total += (size_t)n;
        if (total > limit)
            return -EFBIG;
        buf_added(to, (size_t)n);
    }
}

int file_read(const char *path, size_t limit, struct buf *to)
{
    AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);

    return fd < 0 ? -errno : fd_read_all(fd, limit, to);
}

static int sync_dir_of(const char *path)
{
    AUTO(mem_free) char *copy = xstrdup(path);
    AUTO(fd_close) int dir = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (dir < 0 || fsync(dir) < 0)
        return -errno;
    return 0;
}

int file_replace(const char *path, mode_t mode, struct str content)
{
    AUTO(mem_free) char *tmp = xasprintf("%s.XXXXXX", path);
    AUTO(fd_close) int fd = mkostemp(tmp, O_CLOEXEC); /* made 0600 */
    int r;

    if (fd < 0)
        return -errno;
    r = fd_write_all(fd, content.p, content.n);
    if (r == 0 && (fchmod(fd, mode) < 0 || fsync(fd) < 0 || rename(tmp, path) < 0))
        r = -errno;
    if (r < 0) {
        (void)unlink(tmp);
        return r;
    }
    return sync_dir_of(path);
}

int dir_make_all(const char *path, mode_t mode)
{
    AUTO(mem_free) char *copy = xstrdup(path);
    struct stat st;

    for (char *at = copy + 1; *at; at++) {
        if (*at != '/')
            continue;
        *at = '\0';
        if (mkdir(copy, mode) < 0 && errno != EEXIST)
            return -errno;
        *at = '/';
    }
    if (mkdir(copy, mode) == 0)
        return 0;
    if (errno != EEXIST)
        return -errno;
    return stat(copy, &st) < 0 ? -errno : S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}
