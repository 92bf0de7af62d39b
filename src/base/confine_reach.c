/* confine_reach: makes a directory reachable below parents that another user may not search. */
#include "base/confine.h"

#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Whether `uid`, without groups, may search the directory.  Ignores access control lists: at worst
 * we replace a parent that was searchable already. */
static bool may_search(const char *dir, uid_t uid)
{
    struct stat st;

    if (stat(dir, &st) < 0)
        return false;
    return (st.st_mode & (st.st_uid == uid ? S_IXUSR : S_IXOTH)) != 0;
}

/* The first parent that is closed to the user; "" if there is none. */
static void find_closed(const char *path, uid_t uid, char *ret)
{
    for (const char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
        (void)snprintf(ret, PATH_MAX, "%.*s", (int)(at - path), path);
        if (!may_search(ret, uid))
            return;
    }
    ret[0] = '\0';
}

struct way {
    char path[PATH_MAX], closed[PATH_MAX];
    int tree; /* the directory as a detached mount */
};

static void ways_done(struct way *w, size_t n)
{
    for (size_t i = 0; i < n; i++)
        fd_close(w[i].tree);
    mem_free(w);
}

static int open_ways(const char *const *dirs, size_t n, uid_t uid, struct way *ret, size_t *count)
{
    for (size_t i = 0; i < n; i++) {
        struct way *w = &ret[*count];

        if (!realpath(dirs[i], w->path))
            continue; /* missing: the code that needs it reports that */
        find_closed(w->path, uid, w->closed);
        if (w->closed[0] == '\0')
            continue;
        w->tree = (int)syscall(SYS_open_tree, AT_FDCWD, w->path,
                               OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
        if (w->tree < 0)
            return -errno;
        ++*count;
    }
    return 0;
}

static int make_point(const struct way *w)
{
    struct stat st;
    int fd, r;

    if (fstat(w->tree, &st) < 0)
        return -errno;
    if (S_ISDIR(st.st_mode))
        return dir_make_all(w->path, 0755);
    AUTO(mem_free) char *above = xstrdup(w->path);

    *strrchr(above, '/') = '\0';
    r = dir_make_all(above, 0755);
    fd = r < 0 ? -1 : open(w->path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    r = r < 0 ? r : fd < 0 ? -errno : 0;
    fd_close(fd);
    return r;
}

static int lay_way(const struct way *w, uid_t uid)
{
    int r;

    /* An earlier directory may have opened it already. */
    if (!may_search(w->closed, uid) &&
        mount("holt", w->closed, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0711,size=64k") <
            0)
        return -errno;
    r = make_point(w);
    if (r < 0)
        return r;
    return syscall(SYS_move_mount, w->tree, "", AT_FDCWD, w->path, MOVE_MOUNT_F_EMPTY_PATH) < 0
               ? -errno
               : 0;
}

int confine_reach(const char *const *dirs, size_t n, uid_t uid)
{
    struct way *ways = xzalloc((n + 1) * sizeof *ways);
    mode_t mask = umask(022);
    size_t count = 0;
    int r = 0;

    /* Clone the trees in the new namespace: those of the old one would belong to another. */
    for (size_t i = 0; r == 0 && i < n; i++) {
        char path[PATH_MAX], closed[PATH_MAX] = "";

        if (realpath(dirs[i], path))
            find_closed(path, uid, closed);
        r = closed[0] != '\0';
    }
    if (r > 0 && (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0))
        r = -errno;
    if (r > 0 && (r = open_ways(dirs, n, uid, ways, &count)) == 0)
        r = 1;
    for (size_t i = 0; r > 0 && i < count; i++) {
        int failed = lay_way(&ways[i], uid);

        r = failed < 0 ? failed : r;
    }
    ways_done(ways, count);
    (void)umask(mask);
    return r;
}
