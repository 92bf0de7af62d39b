/* tree: removes and measures trees, in part by a child. */
#include "spawn/tree.h"

#include "base/fd.h"
#include "base/launch.h"
#include "base/mem.h"
#include "spawn/own_rights.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEPTH_MAX 2048 /* directories held open at once; deeper trees: see below */

static DIR *open_dir(int dir, const char *name)
{
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);

    if (!d)
        fd_close(fd);
    return d;
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* A directory deeper than the limit is moved up to the top, where it is shallow again. */
static int move_up(int top, int dir, const char *name)
{
    static unsigned n;
    char aside[32];

    (void)snprintf(aside, sizeof aside, "holt-deep-%u", n++);
    return renameat(dir, name, top, aside) < 0 ? -errno : -ERESTART;
}

static int remove_at(int top, int dir, const char *name, int depth, int *budget)
{
    struct dirent *entry;
    DIR *d;
    int r = 0;

    if (budget && (*budget)-- <= 0)
        return -EAGAIN;
    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -errno;
    if (unlinkat(dir, name, AT_REMOVEDIR) == 0)
        return 0;
    if (errno != ENOTEMPTY && errno != EEXIST)
        return -errno;
    if (depth >= DEPTH_MAX)
        return move_up(top, dir, name);
    d = open_dir(dir, name);
    if (!d) /* an entry directly below the top cannot be moved up */
        return errno == EMFILE && depth > 1 ? move_up(top, dir, name) : -errno;
    while (r == 0 && (entry = readdir(d)))
        if (!is_dots(entry->d_name))
            r = remove_at(top, dirfd(d), entry->d_name, depth + 1, budget);
    (void)closedir(d);
    return r == 0 && unlinkat(dir, name, AT_REMOVEDIR) < 0 ? -errno : r;
}

int tree_remove(int dir, const char *name, int *budget)
{
    for (;;) {
        AUTO(fd_close)
        int top = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int r = remove_at(top, dir, name, 0, budget);

        if (r != -ERESTART)
            return r;
    }
}

/* Blocks, as du counts them: a file with several names counts once per name. */
static uint64_t measure_at(int dir, const char *name, int depth)
{
    struct dirent *entry;
    struct stat st;
    uint64_t sum;
    DIR *d;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    sum = (uint64_t)st.st_blocks * 512;
    if (!S_ISDIR(st.st_mode) || depth >= DEPTH_MAX || !(d = open_dir(dir, name)))
        return sum;
    while ((entry = readdir(d)))
        if (!is_dots(entry->d_name))
            sum += measure_at(dirfd(d), entry->d_name, depth + 1);
    (void)closedir(d);
    return sum;
}

/* ---- names ---- */

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int tree_names(int dir, struct tree_names *ret)
{
    const struct dirent *entry;
    DIR *d = open_dir(dir, ".");

    if (!d)
        return -errno;
    while ((entry = readdir(d))) {
        if (is_dots(entry->d_name))
            continue;
        if (ret->n == ret->size) {
            ret->size = ret->size ? ret->size * 2 : 16;
            ret->list = xrealloc(ret->list, ret->size * sizeof *ret->list);
        }
        ret->list[ret->n++] = xstrdup(entry->d_name);
    }
    (void)closedir(d);
    if (ret->n > 1)
        qsort(ret->list, ret->n, sizeof *ret->list, by_bytes);
    return 0;
}

void tree_names_done(struct tree_names *n)
{
    for (size_t i = 0; i < n->n; i++)
        mem_free(n->list[i]);
    mem_free(n->list);
    *n = (struct tree_names){0};
}

/* ---- the child ---- */

struct answer {
    int result;
    uint64_t bytes;
};

static void on_told(struct watch *w, uint32_t events)
{
    struct tree_job *j = CONTAINER_OF(w, struct tree_job, told);
    struct answer a = {-EIO, 0}; /* it died without a reply */
    int status;

    (void)events;
    (void)!read(w->fd, &a, sizeof a);
    loop_remove(w);
    (void)waitpid(j->pid, &status, 0);
    j->pid = 0;
    j->ended = true;
    j->result = a.result;
    j->bytes = a.bytes;
    if (j->on_end)
        j->on_end(j);
}

static int begin(struct tree_job *j, int dir, const char *name, bool removes)
{
    pid_t parent;
    int p[2];

    if (pipe2(p, O_CLOEXEC) < 0)
        return -errno;
    j->ended = false;
    parent = getpid();
    j->pid = fork();
    if (j->pid == 0) {
        struct answer a = {0, 0};

        launch_tie(parent);
        own_rights_of_walker(dir);
        if (removes)
            a.result = tree_remove(dir, name, NULL);
        else
            a.bytes = measure_at(dir, name, 0);
        (void)!write(p[1], &a, sizeof a);
        _exit(0);
    }
    fd_close(p[1]);
    if (j->pid < 0) {
        j->pid = 0;
        fd_close(p[0]);
        return -EAGAIN;
    }
    loop_add(&j->told, p[0], on_told);
    loop_want(&j->told, EPOLLIN);
    return 0;
}

int tree_remove_by_job(struct tree_job *j, int dir, const char *name)
{
    int budget = TREE_AT_ONCE, r;

    if (j->pid != 0)
        return -EBUSY;
    if (j->ended) {
        j->ended = false;
        return j->result;
    }
    r = tree_remove(dir, name, &budget);
    if (r != -EAGAIN)
        return r;
    r = begin(j, dir, name, true);
    return r < 0 ? r : -EBUSY;
}

int tree_measure(struct tree_job *j, int dir, const char *name)
{
    return j->pid != 0 ? -EBUSY : begin(j, dir, name, false);
}
