/* shared: memory volumes shared by sandboxes. */
#include "spawn/shared.h"

#include "base/fd.h"
#include "spawn/host.h"
#include "spawn/idmap.h"
#include "spawn/mnt.h"
#include "wire/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

static struct {
    char id[SPAWN_ID_MAX + 1];
    int root; /* mounted in our mount namespace; -1: only in the sandboxes */
    uint32_t users;
} volumes[SHARED_MAX];

static ptrdiff_t find(const char *id)
{
    ptrdiff_t unused = -1;

    for (ptrdiff_t i = 0; i < SHARED_MAX; i++) {
        if (volumes[i].users > 0 && strcmp(volumes[i].id, id) == 0)
            return i;
        if (volumes[i].users == 0 && unused < 0)
            unused = i;
    }
    return unused;
}

static void join(ptrdiff_t i, shared_set *set)
{
    if (*set & (1ULL << i))
        return; /* twice in one sandbox */
    *set |= 1ULL << i;
    volumes[i].users++;
}

static int open_point(const char *id, int flags)
{
    char name[SPAWN_ID_MAX + 8];

    (void)snprintf(name, sizeof name, "shm/%s", id);
    if ((mkdirat(host.state, "shm", 0700) < 0 && errno != EEXIST) ||
        (mkdirat(host.state, name, 0700) < 0 && errno != EEXIST))
        return -errno;
    return openat(host.state, name, flags | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Mounted at shm/ID: a copy of an unattached mount can be made only since Linux 6.15. */
static int make(ptrdiff_t i, const char *id, uint64_t size)
{
    AUTO(fd_close) int tree = mnt_tmpfs(size, "1777");
    AUTO(fd_close) int point = open_point(id, O_PATH);
    char path[48];
    int r;

    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", point);
    r = tree < 0 ? tree : point < 0 ? point : mnt_attach(tree, path);
    if (r < 0)
        return r;
    (void)snprintf(volumes[i].id, sizeof volumes[i].id, "%s", id);
    volumes[i].root = open_point(id, O_RDONLY);
    if (volumes[i].root < 0 || fchown(volumes[i].root, idmap_stored(), idmap_stored()) < 0)
        return -errno;
    return 0;
}

static void drop(ptrdiff_t i)
{
    char name[SPAWN_ID_MAX + 8], path[48];

    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", volumes[i].root);
    if (volumes[i].root >= 0)
        (void)umount2(path, MNT_DETACH);
    fd_close(volumes[i].root);
    volumes[i].root = -1;
    (void)snprintf(name, sizeof name, "shm/%s", volumes[i].id);
    (void)unlinkat(host.state, name, AT_REMOVEDIR);
    (void)unlinkat(host.state, "shm", AT_REMOVEDIR);
}

int shared_open(const char *id, uint64_t size, shared_set *set, struct err *e)
{
    ptrdiff_t i = find(id);
    int r = 0, fd;

    if (i < 0) {
        (void)err_set(e, ERR_LIMIT, 0, "more than %d memory volumes are in use", SHARED_MAX);
        return err_limit_fixed(e, SHARED_MAX, "destroy a sandbox that mounts one");
    }
    if (volumes[i].users == 0) {
        volumes[i].root = -1;
        r = make(i, id, size);
    }
    if (r < 0)
        drop(i);
    if (r < 0)
        return err_set(e, ERR_UNSUPPORTED, -r, "make memory volume '%s'", id);
    if (volumes[i].root < 0) {
        (void)err_set(e, ERR_CONFLICT, 0, "memory volume '%s' belongs to an earlier holt-spawn",
                      id);
        return err_hint(e, "destroy the sandboxes that mount it first");
    }
    join(i, set);
    fd = openat(volumes[i].root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? err_set(e, ERR_INTERNAL, errno, "open memory volume '%s'", id) : fd;
}

void shared_found(const char *id, shared_set *set)
{
    ptrdiff_t i = find(id);

    if (i < 0)
        return;
    if (volumes[i].users == 0) {
        (void)snprintf(volumes[i].id, sizeof volumes[i].id, "%s", id);
        volumes[i].root = -1;
    }
    join(i, set);
}

void shared_close(shared_set *set)
{
    for (size_t i = 0; i < SHARED_MAX; i++)
        if ((*set & (1ULL << i)) && --volumes[i].users == 0)
            drop((ptrdiff_t)i);
    *set = 0;
}

int shared_bytes(const char *id, uint64_t *ret)
{
    ptrdiff_t i = find(id);
    struct statfs st;

    *ret = 0;
    if (i < 0 || volumes[i].users == 0)
        return 0;
    if (volumes[i].root < 0)
        return -ESTALE;
    if (fstatfs(volumes[i].root, &st) < 0)
        return -errno;
    *ret = (uint64_t)(st.f_blocks - st.f_bfree) * (uint64_t)st.f_bsize;
    return 0;
}

const char *shared_name(size_t i)
{
    return volumes[i].id;
}
