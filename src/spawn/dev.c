/* dev: the /dev shared by all sandboxes: made once, read-only, one mount in each. */
#include "spawn/host.h"

#include "base/fd.h"
#include "spawn/guards.h"
#include "spawn/idmap.h"
#include "spawn/mnt.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

static const struct {
    const char *name;
    unsigned major, minor;
} nodes[] = {
    {"null", 1, 3},   {"zero", 1, 5},    {"full", 1, 7},
    {"random", 1, 8}, {"urandom", 1, 9}, {"tty", 5, 0},
};
static const struct {
    const char *name, *to;
} links[] = {
    {"fd", "/proc/self/fd"},       {"stdin", "/proc/self/fd/0"}, {"stdout", "/proc/self/fd/1"},
    {"stderr", "/proc/self/fd/2"}, {"ptmx", "pts/ptmx"},
};

/* Without root no node can be made: binds the host's over an empty file. */
static int bind_node(int dir, const char *name)
{
    char from[64], to[64];
    AUTO(fd_close) int fd = openat(dir, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0666);

    (void)snprintf(from, sizeof from, "/dev/%s", name);
    (void)snprintf(to, sizeof to, "/proc/self/fd/%d", fd);
    if (fd < 0 || mount(from, to, NULL, MS_BIND, NULL) < 0)
        return -errno;
    return 0;
}

static int make_nodes(int dir, struct err *e)
{
    for (size_t i = 0; i < ARRAY_LEN(nodes); i++) {
        dev_t dev = makedev(nodes[i].major, nodes[i].minor);
        int r;

        if (mknodat(dir, nodes[i].name, S_IFCHR | 0666, dev) == 0) {
            (void)!fchmodat(dir, nodes[i].name, 0666, 0);
            continue;
        }
        r = errno == EPERM ? bind_node(dir, nodes[i].name) : -errno;
        if (r < 0)
            return err_set(e, ERR_UNSUPPORTED, -r, "make device '%s'", nodes[i].name);
    }
    for (size_t i = 0; i < ARRAY_LEN(links); i++)
        if (symlinkat(links[i].to, dir, links[i].name) < 0)
            return err_set(e, ERR_INTERNAL, errno, "make link '/dev/%s'", links[i].name);
    if (mkdirat(dir, "pts", 0755) < 0 || mkdirat(dir, "shm", 01777) < 0)
        return err_set(e, ERR_INTERNAL, errno, "make '/dev/pts'");
    return 0;
}

int host_make_dev(struct err *e)
{
    AUTO(fd_close) int dir = -1;
    char path[64];
    int r;

    if (mkdirat(host.state, "dev", 0700) < 0 && errno != EEXIST)
        return err_set(e, err_code_from_errno(errno), errno, "make the shared /dev");
    dir = openat(host.state, "dev", O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", dir);
    if (dir < 0 || mount("holt-dev", path, "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=755,size=64k") < 0)
        return err_set(e, ERR_UNSUPPORTED, errno, "mount the shared /dev");
    host.dev = openat(host.state, "dev", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (host.dev < 0)
        return err_set(e, ERR_INTERNAL, errno, "open the shared /dev");
    if (make_nodes(host.dev, e) < 0)
        return -1;
    /* User xattrs on tmpfs (Linux 6.6): an overlay in a user namespace needs them on its upper. */
    host.memory_overlay = fsetxattr(host.dev, "user.holt", "", 0, 0) == 0;
    (void)fremovexattr(host.dev, "user.holt");
    host.memory_idmapped = !host.rootless && idmap_probe(host.dev) == 0;
    if (guard_left_out("dev_readonly"))
        return 0;
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", host.dev);
    r = mnt_set(path, MOUNT_ATTR_RDONLY); /* otherwise sandboxes could communicate through it */
    return r < 0 ? err_set(e, ERR_INTERNAL, -r, "make the shared /dev read-only") : 0;
}
