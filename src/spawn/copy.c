/* copy: copies a tree with everything that a layer keeps. */
#include "spawn/copy.h"

#include "base/fd.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define DEPTH_MAX 1000 /* two descriptors each */
#define XATTR_LIST_MAX 65536
#define XATTR_VALUE_MAX 65536

/* ---- attributes ---- */

/* Of overlayfs's own marks, those that a lower layer needs.  The others name inodes and layers of
 * the upper they were made in. */
bool copy_keeps_xattr(const char *name)
{
    struct str s = str_of(name);

    if (str_starts(s, STR("user.overlay.")))
        return str_eq_c(s, "user.overlay.opaque") || str_eq_c(s, "user.overlay.whiteout") ||
               str_starts(s, STR("user.overlay.overlay."));
    return str_starts(s, STR("user.")) || str_eq_c(s, "security.capability") ||
           str_starts(s, STR("system.posix_acl_"));
}

static int copy_xattrs(int from, int to)
{
    static char names[XATTR_LIST_MAX], value[XATTR_VALUE_MAX];
    ssize_t n = flistxattr(from, names, sizeof names);

    if (n < 0)
        return errno == EOPNOTSUPP ? 0 : -errno;
    for (const char *name = names; name < names + n; name += strlen(name) + 1) {
        ssize_t size = copy_keeps_xattr(name) ? fgetxattr(from, name, value, sizeof value) : -1;

        if (size >= 0 && fsetxattr(to, name, value, (size_t)size, 0) < 0)
            return -errno;
    }
    return 0;
}

/* The owner first: a change of it clears set-user-ID bits and capabilities. */
static int copy_attributes(int from, int to, const struct stat *st)
{
    const struct timespec times[] = {st->st_atim, st->st_mtim};
    int r;

    if (fchown(to, st->st_uid, st->st_gid) < 0 || fchmod(to, st->st_mode & 07777) < 0)
        return -errno;
    r = copy_xattrs(from, to);
    return r == 0 && futimens(to, times) < 0 ? -errno : r;
}

/* ---- files ---- */

static int copy_range(int from, int to, off_t at, off_t end)
{
    char block[65536];

    while (at < end) {
        off_t in = at, out = at;
        ssize_t n = copy_file_range(from, &in, to, &out, (size_t)(end - at), 0);

        if (n < 0 && (errno == EXDEV || errno == EINVAL || errno == EOPNOTSUPP)) {
            n = pread(from, block,
                      sizeof block < (size_t)(end - at) ? sizeof block : (size_t)(end - at), at);
            if (n > 0 && pwrite(to, block, (size_t)n, at) != n)
                return -ENOSPC;
        }
        if (n <= 0)
            return n < 0 ? -errno : 0; /* it became shorter: by init, which is not frozen */
        at += n;
    }
    return 0;
}

/* A clone shares the blocks where the filesystem can (btrfs, xfs); otherwise the data is copied,
 * without its holes. */
static int copy_content(int from, int to, off_t size)
{
    off_t at, end = 0;

    if (ioctl(to, FICLONE, from) == 0)
        return 0;
    while (end < size && (at = lseek(from, end, SEEK_DATA)) >= 0) {
        int r;

        end = lseek(from, at, SEEK_HOLE);
        r = end < 0 ? -errno : copy_range(from, to, at, end);
        if (r < 0)
            return r;
    }
    return ftruncate(to, size) < 0 ? -errno : 0;
}

static int copy_file(struct copy *c, int from, int to, const char *name, const struct stat *st)
{
    AUTO(fd_close)
    int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOATIME | O_CLOEXEC);
    AUTO(fd_close) int out = -1;
    struct stat now;
    int r;

    if (in < 0 || fstat(in, &now) < 0)
        return -errno;
    if (!S_ISREG(now.st_mode))
        return -EAGAIN;
    if (c->bytes_max != 0 && c->bytes + (uint64_t)st->st_blocks * 512 > c->bytes_max)
        return -EDQUOT;
    out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (out < 0)
        return -errno;
    r = copy_content(in, out, now.st_size);
    if (r == 0)
        r = copy_attributes(in, out, &now);
    return r;
}

static int copy_symlink(int from, int to, const char *name)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(from, name, target, sizeof target - 1);

    if (n < 0)
        return -errno;
    target[n] = '\0';
    return symlinkat(target, to, name) < 0 ? -errno : 0;
}

/* Links, pipes, sockets and whiteouts. */
static int copy_node(int from, int to, const char *name, const struct stat *st)
{
    const struct timespec times[] = {st->st_atim, st->st_mtim};
    int r = 0;

    if (S_ISLNK(st->st_mode))
        r = copy_symlink(from, to, name);
    else if (mknodat(to, name, st->st_mode & S_IFMT, 0) < 0)
        r = -errno;
    if (r < 0)
        return r;
    if (fchownat(to, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0 ||
        utimensat(to, name, times, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (!S_ISLNK(st->st_mode) && fchmodat(to, name, st->st_mode & 07777, 0) < 0)
        return -errno;
    return 0;
}

static bool is_whiteout(const struct stat *st)
{
    return S_ISCHR(st->st_mode) && st->st_rdev == 0;
}

static bool is_device(const struct stat *st)
{
    return S_ISBLK(st->st_mode) || (S_ISCHR(st->st_mode) && !is_whiteout(st));
}

static int copy_leaf(struct copy *c, int from, int to, const char *name, const struct stat *st)
{
    return S_ISREG(st->st_mode) ? copy_file(c, from, to, name, st) : copy_node(from, to, name, st);
}

/* The first name of an inode is copied, and kept by its number in `links`; the others become links
 * to that.  So no list of inodes is needed, however many there are. */
static int copy_linked(struct copy *c, int from, int to, const char *name, const struct stat *st)
{
    char known[32];
    int r;

    (void)snprintf(known, sizeof known, "%" PRIu64, (uint64_t)st->st_ino);
    if (linkat(c->links, known, to, name, 0) == 0)
        return 0;
    if (errno != ENOENT && errno != EMLINK)
        return -errno;
    (void)unlinkat(c->links, known, 0);
    r = copy_leaf(c, from, to, name, st);
    return r == 0 && linkat(to, name, c->links, known, 0) < 0 ? -errno : r;
}

/* ---- directories ---- */

static int copy_dir(struct copy *c, int from, int to, int depth);

static int copy_subdir(struct copy *c, int from, int to, const char *name, int depth)
{
    AUTO(fd_close)
    int in = openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    AUTO(fd_close) int out = -1;

    if (in < 0 || mkdirat(to, name, 0700) < 0)
        return errno == EMFILE ? -ELOOP : -errno;
    out = openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (out < 0)
        return errno == EMFILE ? -ELOOP : -errno;
    return depth >= DEPTH_MAX ? -ELOOP : copy_dir(c, in, out, depth + 1);
}

static int copy_entry(struct copy *c, int from, int to, const char *name, int depth)
{
    struct stat st;
    int r;

    if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (is_device(&st))
        return 0;
    if (S_ISDIR(st.st_mode))
        r = copy_subdir(c, from, to, name, depth);
    else
        r = st.st_nlink > 1 ? copy_linked(c, from, to, name, &st)
                            : copy_leaf(c, from, to, name, &st);
    if (r == -ENOENT)
        return 0; /* removed meanwhile by init, which is not frozen */
    c->entries++;
    c->bytes += (uint64_t)st.st_blocks * 512;
    return r;
}

static int copy_dir(struct copy *c, int from, int to, int depth)
{
    int fd = fcntl(from, F_DUPFD_CLOEXEC, 3), r = 0;
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    struct stat st;

    if (!d) {
        r = errno == EMFILE ? -ELOOP : -errno;
        fd_close(fd);
        return r;
    }
    while (r == 0 && (entry = readdir(d)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            r = copy_entry(c, from, to, entry->d_name, depth);
    (void)closedir(d);
    if (r == 0 && fstat(from, &st) < 0)
        r = -errno;
    return r == 0 ? copy_attributes(from, to, &st) : r;
}

int copy_tree(struct copy *c, int from, int to)
{
    return copy_dir(c, from, to, 0);
}
