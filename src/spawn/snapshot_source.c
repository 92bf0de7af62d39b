/* snapshot_source: finds the writable layer of a sandbox: a directory, or in an image. */
#include "spawn/snapshot.h"

#include "base/fd.h"
#include "spawn/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* Own directories with a limit are images beside it, and no part of a layer. */
static bool has_own_images(int dir)
{
    for (size_t n = 0; n < SPAWN_MOUNTS_MAX; n++) {
        char name[16];

        (void)snprintf(name, sizeof name, "own-%zu", n);
        if (faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            return true;
    }
    return false;
}

/* Its image may be mounted already: by itself, while it runs. */
static int open_image(const struct sandbox *s, int dir)
{
    AUTO(fd_close) int tree = -1;
    int fd;

    if (s->disk >= 0)
        return fcntl(s->disk, F_DUPFD_CLOEXEC, 3);
    tree = disk_mount_again(dir);
    if (tree < 0)
        return tree;
    fd = openat(tree, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int snapshot_open_disk(struct sandbox *s)
{
    AUTO(fd_close) int dir = -1;
    int fd;

    if (!s)
        return -ENOENT;
    if (!(s->flags & SPAWN_UPPER_DISK))
        return -EOPNOTSUPP;
    dir = openat(host.boxes, s->id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return -errno;
    if (has_own_images(dir))
        return -EOPNOTSUPP;
    if (disk_is_there(dir))
        return open_image(s, dir);
    fd = openat(dir, "fs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int snapshot_open_upper(struct sandbox *s)
{
    AUTO(fd_close) int disk = snapshot_open_disk(s);
    int fd;

    if (disk < 0)
        return disk;
    fd = openat(disk, "upper", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}
