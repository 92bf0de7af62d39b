/* delegated: without root, the cgroup we were started in, if it was delegated to us. */

/* As a user manager does with Delegate=yes (cgroups(7), "Delegation";
 * systemd.resource-control(5)). */
#include "spawn/host.h"

#include "base/fd.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* The group for the daemons: a v2 group that passes controllers on may not have processes
 * itself.  The user unit names it too, for their next start. */
#define LEAF "holt-self"
#define MOVE_ROUNDS 5
#define PROCS_SIZE 65536

/* "4:memory:/path", "1:cpu,cpuacct:/path"; of v2 "0::/path". */
static bool is_hierarchy(struct str controllers, const char *controller)
{
    if (!controller)
        return controllers.n == 0;
    while (controllers.n > 0)
        if (str_eq_c(str_cut(controllers, ',', &controllers), controller))
            return true;
    return false;
}

static bool own_path(const char *controller, char *to, size_t size)
{
    AUTO(buf_done) struct buf text = {0};
    struct str rest;

    if (file_read("/proc/self/cgroup", PROCS_SIZE, &text) < 0)
        return false;
    rest = buf_str(&text);
    while (rest.n > 0) {
        struct str path, names;

        (void)str_cut(str_cut(rest, '\n', &rest), ':', &path);
        names = str_cut(path, ':', &path);
        if (path.n > 1 && path.n < size && is_hierarchy(names, controller)) {
            (void)snprintf(to, size, STR_FMT, STR_ARG(path));
            return true;
        }
    }
    return false;
}

static void move_all(int from, int to)
{
    AUTO(fd_close) int list = openat(from, "cgroup.procs", O_RDONLY | O_CLOEXEC);
    AUTO(buf_done) struct buf text = {0};
    struct str rest;

    if (list < 0 || fd_read_all(list, PROCS_SIZE, &text) < 0)
        return;
    for (rest = buf_str(&text); rest.n > 0;) {
        AUTO(fd_close) int fd = openat(to, "cgroup.procs", O_WRONLY | O_CLOEXEC);
        struct str pid = str_cut(rest, '\n', &rest);

        if (fd >= 0)
            (void)!write(fd, pid.p, pid.n);
    }
}

/* Moves all processes of the group, holtd and us included, below it, if it has controllers to pass
 * on. */
static void make_room(int group)
{
    AUTO(fd_close) int controllers = openat(group, "cgroup.controllers", O_RDONLY | O_CLOEXEC);
    AUTO(fd_close) int leaf = -1;
    char byte;

    if (controllers < 0 || read(controllers, &byte, 1) != 1 || byte == '\n')
        return;
    (void)mkdirat(group, LEAF, 0755);
    leaf = openat(group, LEAF, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int round = 0; leaf >= 0 && round < MOVE_ROUNDS; round++) /* they may fork meanwhile */
        move_all(group, leaf);
}

int delegated_open(const char *mount, const char *controller)
{
    char path[512], full[640], *last;
    int fd;

    if (!own_path(controller, path, sizeof path))
        return -1;
    last = strrchr(path, '/');
    if (last && strcmp(last + 1, LEAF) == 0)
        *last = '\0';
    (void)snprintf(full, sizeof full, "%s%s", mount, path);
    if (access(full, W_OK) < 0)
        return -1;
    fd = open(full, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && !controller)
        make_room(fd);
    return fd;
}
