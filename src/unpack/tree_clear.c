/* tree_clear: removes a tree of any depth. */
#include "unpack/tree_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* An unpacked tree is at most TREE_DEPTH_MAX deep; one that a sandbox wrote may be deeper, and is
 * flattened: directories that are too deep are renamed to the top first. */
#define CLEAR_DEPTH_MAX (2 * TREE_DEPTH_MAX)

struct clear {
    int root;
    uint64_t moved;
};

static int clear_dir(struct clear *c, int dir, int depth, struct err *e);

static int clear_failed(const char *name, struct err *e)
{
    return err_set(e, err_code_from_errno(errno), errno, "remove '%.64s'", name);
}

static int open_child(int dir, const char *name)
{
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0 && errno == EACCES && fchmodat(dir, name, 0700, 0) == 0)
        fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd;
}

static int clear_child(struct clear *c, int dir, const char *name, int depth, struct err *e)
{
    AUTO(fd_close) int child = -1;
    char moved[32];

    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return clear_failed(name, e);
    if (unlinkat(dir, name, AT_REMOVEDIR) == 0)
        return 0;
    if (depth == CLEAR_DEPTH_MAX) {
        (void)snprintf(moved, sizeof moved, ".holt-deep-%llu", (unsigned long long)c->moved++);
        return renameat(dir, name, c->root, moved) < 0 ? clear_failed(name, e) : 0;
    }
    child = open_child(dir, name);
    if (child < 0 || fchmod(child, 0700) < 0)
        return clear_failed(name, e);
    if (clear_dir(c, child, depth + 1, e) < 0)
        return -1;
    return unlinkat(dir, name, AT_REMOVEDIR) < 0 ? clear_failed(name, e) : 0;
}

static void close_dir(DIR **d)
{
    if (*d)
        (void)closedir(*d);
}

static int clear_dir(struct clear *c, int dir, int depth, struct err *e)
{
    __attribute__((cleanup(close_dir))) DIR *d = NULL;
    AUTO(fd_close) int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const struct dirent *en;

    if (copy < 0 || !(d = fdopendir(copy)))
        return clear_failed(".", e);
    copy = -1;
    while ((en = readdir(d)))
        if (strcmp(en->d_name, ".") != 0 && strcmp(en->d_name, "..") != 0 &&
            clear_child(c, dir, en->d_name, depth, e) < 0)
            return -1;
    return 0;
}

int tree_clear(int root, struct err *e)
{
    struct clear c = {.root = root};
    uint64_t before;

    do { /* again for directories moved to the top meanwhile */
        before = c.moved;
        if (clear_dir(&c, root, 0, e) < 0)
            return -1;
    } while (c.moved != before);
    return 0;
}
