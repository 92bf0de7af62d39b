/* tree: removes and measures directory trees. */
#include "driver/tree.h"

#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_MAX 512 /* descriptors held at once; deeper trees fail with ELOOP */

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Lets an ordinary user read what it owns.  chmod(2) through O_PATH does not follow a link. */
static void allow(int dir, const char *name)
{
    AUTO(fd_close) int fd = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    char path[32];

    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (fd >= 0)
        (void)!chmod(path, 0700);
}

static DIR *open_dir(int dir, const char *name, dev_t device)
{
    AUTO(fd_close)
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    DIR *d;

    if (fd < 0)
        return NULL;
    if (fstat(fd, &st) < 0)
        return NULL;
    if (device != 0 && st.st_dev != device) {
        errno = EXDEV;
        return NULL;
    }
    d = fdopendir(fd);
    if (d)
        fd = -1; /* d owns it now */
    return d;
}

static int remove_in(int dir, const char *name, dev_t device, int depth)
{
    struct stat st;
    struct dirent *d;
    DIR *list;
    int first = 0;

    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -errno;
    if (depth >= DEPTH_MAX)
        return -ELOOP;
    list = open_dir(dir, name, device);
    if (!list && errno == EACCES) {
        allow(dir, name);
        list = open_dir(dir, name, device);
    }
    if (!list)
        return errno == ENOENT ? 0 : -errno;
    if (device == 0 && fstat(dirfd(list), &st) == 0)
        device = st.st_dev;
    (void)!fchmod(dirfd(list), 0700); /* otherwise its owner may not empty it */
    while ((d = readdir(list))) {
        int r = is_dots(d->d_name) ? 0 : remove_in(dirfd(list), d->d_name, device, depth + 1);

        first = first < 0 ? first : r;
    }
    (void)closedir(list);
    if (first == 0 && unlinkat(dir, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        first = -errno;
    return first;
}

int tree_remove(int dir, const char *name)
{
    return remove_in(dir, name, 0, 0);
}

static int64_t bytes_in(int dir, const char *name, dev_t device, int depth)
{
    struct stat st;
    struct dirent *d;
    DIR *list;
    int64_t sum;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || (device != 0 && st.st_dev != device))
        return 0;
    sum = (int64_t)st.st_blocks * 512;
    if (!S_ISDIR(st.st_mode) || depth >= DEPTH_MAX)
        return sum;
    list = open_dir(dir, name, st.st_dev);
    if (!list)
        return sum;
    while ((d = readdir(list)))
        if (!is_dots(d->d_name))
            sum += bytes_in(dirfd(list), d->d_name, st.st_dev, depth + 1);
    (void)closedir(list);
    return sum;
}

int64_t tree_bytes(int dir, const char *name)
{
    return bytes_in(dir, name, 0, 0);
}
