/* own: own directories of a sandbox with a limit. */
#include "spawn/own.h"

#include "base/fd.h"
#include "spawn/disk.h"
#include "spawn/idmap.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(SPAWN_MOUNTS_MAX <= 32, "a bit for each in sandbox.own");

static void name_of(size_t n, char to[16])
{
    (void)snprintf(to, 16, "own-%zu", n);
}

static int open_own(const struct sandbox *s, size_t n)
{
    char name[16];

    if (!(s->own & (1U << n))) {
        errno = ENOENT;
        return -1;
    }
    name_of(n, name);
    return openat(s->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int remove_own(const struct sandbox *s, size_t n, int dir)
{
    char name[16];
    int r = disk_remove(dir);

    name_of(n, name);
    return r < 0 ? r : unlinkat(s->dir, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

/* The image's root directory belongs to root inside, as everywhere on disk (idmap.h), and is empty
 * at first. */
static int map(struct sandbox *s, int tree)
{
    AUTO(fd_close) int root = openat(tree, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (root < 0 || fchown(root, idmap_stored(), idmap_stored()) < 0)
        return -errno;
    (void)unlinkat(root, "lost+found", AT_REMOVEDIR);
    return idmap_tree(&s->ids, tree, idmap_stored(), idmap_stored());
}

int own_mount(struct sandbox *s, size_t n, uint64_t bytes)
{
    AUTO(fd_close) int dir = -1;
    AUTO(fd_close) int tree = -1;
    char name[16];
    int r = 0;

    name_of(n, name);
    s->own |= 1U << n;
    if (!(s->flags & SPAWN_RESTART) && mkdirat(s->dir, name, 0700) < 0)
        return -errno;
    dir = open_own(s, n);
    if (dir < 0) /* an earlier run without limits has its files elsewhere */
        return errno == ENOENT ? -EOPNOTSUPP : -errno;
    if (!disk_is_there(dir))
        r = disk_make(dir, bytes);
    tree = r < 0 ? r : disk_mount(dir);
    r = tree < 0 ? tree : map(s, tree);
    if (r < 0 && r != -EBUSY && !(s->flags & SPAWN_RESTART))
        (void)!remove_own(s, n, dir); /* what cannot be removed yet is removed at the end */
    return r < 0 ? r : TAKE_FD(tree);
}

int own_end(struct sandbox *s)
{
    for (size_t n = 0; s->dir >= 0 && n < SPAWN_MOUNTS_MAX; n++) {
        AUTO(fd_close) int dir = open_own(s, n);
        int r;

        if (dir < 0)
            continue;
        r = disk_is_busy(dir);
        r = r > 0 ? -EBUSY : r == 0 && !s->keep ? remove_own(s, n, dir) : r;
        if (r < 0)
            return r;
    }
    return 0;
}

uint64_t own_used(const struct sandbox *s)
{
    uint64_t all = 0;

    for (size_t n = 0; s->dir >= 0 && n < SPAWN_MOUNTS_MAX; n++) {
        AUTO(fd_close) int dir = open_own(s, n);

        all += dir < 0 ? 0 : disk_used(dir, -1);
    }
    return all;
}
