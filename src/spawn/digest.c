/* digest: hashes a tree. */
#include "spawn/digest.h"

#include "base/enc.h"
#include "base/fd.h"
#include "spawn/copy.h"
#include "spawn/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define DEPTH_MAX 1000
#define XATTR_MAX 65536

static void add_text(struct digest *d, const char *p, size_t n)
{
    uint64_t size = n;

    hash_add(&d->hash, &size, sizeof size);
    hash_add(&d->hash, p, n);
}

static void add_number(struct digest *d, uint64_t v)
{
    hash_add(&d->hash, &v, sizeof v);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int add_xattrs(struct digest *d, int fd)
{
    static char list[XATTR_MAX], value[XATTR_MAX];
    static const char *names[XATTR_MAX / 8]; /* "user.x" and its NUL are the shortest */
    ssize_t n = flistxattr(fd, list, sizeof list);
    size_t count = 0;

    if (n < 0)
        return errno == EOPNOTSUPP ? 0 : -errno;
    for (const char *at = list; at < list + n && count < ARRAY_LEN(names); at += strlen(at) + 1)
        if (copy_keeps_xattr(at))
            names[count++] = at;
    qsort(names, count, sizeof *names, by_name);
    add_number(d, count);
    for (size_t i = 0; i < count; i++) {
        ssize_t size = fgetxattr(fd, names[i], value, sizeof value);

        if (size < 0)
            return -errno;
        add_text(d, names[i], strlen(names[i]));
        add_text(d, value, (size_t)size);
    }
    return 0;
}

static int add_file(struct digest *d, int dir, const char *name)
{
    AUTO(fd_close)
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOATIME | O_CLOEXEC);
    static char block[1 << 18];
    ssize_t n;
    int r;

    if (fd < 0)
        return -errno;
    r = add_xattrs(d, fd);
    if (r < 0)
        return r;
    while ((n = read(fd, block, sizeof block)) > 0)
        hash_add(&d->hash, block, (size_t)n);
    return n < 0 ? -errno : 0;
}

static int add_target(struct digest *d, int dir, const char *name)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(dir, name, target, sizeof target);

    if (n < 0)
        return -errno;
    add_text(d, target, (size_t)n);
    return 0;
}

static int add_dir(struct digest *d, int dir, int depth);

static int add_subdir(struct digest *d, int dir, const char *name, int depth)
{
    AUTO(fd_close) int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0 || depth >= DEPTH_MAX)
        return fd < 0 && errno != EMFILE ? -errno : -ELOOP;
    return add_dir(d, fd, depth + 1);
}

static int add_entry(struct digest *d, int dir, const char *name, int depth)
{
    struct stat st;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    d->entries++;
    d->bytes += (uint64_t)st.st_blocks * 512;
    add_text(d, name, strlen(name));
    add_number(d, st.st_mode);
    add_number(d, (uint64_t)st.st_uid - d->root);
    add_number(d, (uint64_t)st.st_gid - d->root);
    if (S_ISDIR(st.st_mode))
        return add_subdir(d, dir, name, depth);
    add_number(d, st.st_nlink);
    add_number(d, S_ISREG(st.st_mode) ? (uint64_t)st.st_size : (uint64_t)st.st_rdev);
    return S_ISREG(st.st_mode)   ? add_file(d, dir, name)
           : S_ISLNK(st.st_mode) ? add_target(d, dir, name)
                                 : 0;
}

static int add_dir(struct digest *d, int dir, int depth)
{
    AUTO(tree_names_done) struct tree_names names = {0};
    int r = add_xattrs(d, dir);

    if (r == 0)
        r = tree_names(dir, &names);
    add_number(d, names.n);
    for (size_t i = 0; r == 0 && i < names.n; i++)
        r = add_entry(d, dir, names.list[i], depth);
    return r;
}

int digest_tree(struct digest *d, int dir, char to[2 * HASH_SIZE + 1])
{
    static const char kind[] = "holt tree 1\n"; /* no archive has this digest */
    unsigned char raw[HASH_SIZE];
    struct stat st;
    int r;

    hash_init(&d->hash);
    hash_add(&d->hash, kind, sizeof kind - 1);
    if (fstat(dir, &st) < 0)
        return -errno;
    add_number(d, st.st_mode);
    r = add_dir(d, dir, 0);
    hash_end(&d->hash, raw);
    enc_hex(raw, sizeof raw, to);
    return r;
}
