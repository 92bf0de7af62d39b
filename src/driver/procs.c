/* procs: reads processes and their descendants from /proc. */
#include "driver/procs.h"

#include "base/fd.h"
#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define STAT_MAX 2048

/* proc(5), /proc/PID/stat: the name may hold anything, so fields are counted from its last ')'. */
static int parse_stat(const char *text, struct proc *p)
{
    const char *at = strrchr(text, ')');
    unsigned long utime, stime, start;
    long cutime, cstime, rss;
    long tick_us = 1000000 / sysconf(_SC_CLK_TCK);

    if (!at ||
        sscanf(at + 1,
               " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %ld %ld %*d %*d %*d %*d %lu %*u "
               "%ld",
               &p->state, &p->parent, &utime, &stime, &cutime, &cstime, &start, &rss) != 8)
        return -EINVAL;
    p->start = start;
    p->cpu_us = ((int64_t)utime + (int64_t)stime + cutime + cstime) * tick_us;
    p->rss_bytes = rss * sysconf(_SC_PAGESIZE);
    return 0;
}

int proc_read(pid_t pid, struct proc *ret)
{
    char path[64], text[STAT_MAX];
    AUTO(fd_close) int fd = -1;
    ssize_t n;

    (void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? -ESRCH : -errno;
    n = read(fd, text, sizeof text - 1);
    if (n < 0)
        return -errno;
    text[n] = '\0';
    *ret = (struct proc){.pid = pid};
    return parse_stat(text, ret);
}

int procs_look(struct procs *ret)
{
    DIR *dir = opendir("/proc");
    struct procs p = {0};
    struct dirent *d;
    size_t size = 0;

    if (!dir)
        return -errno;
    while ((d = readdir(dir))) {
        struct proc one;
        uint64_t pid;

        if (str_parse_u64(str_of(d->d_name), &pid) < 0 || proc_read((pid_t)pid, &one) < 0)
            continue;
        if (p.count == size) {
            size = size_max(64, size * 2);
            p.items = xrealloc(p.items, size * sizeof *p.items);
        }
        p.items[p.count++] = one;
    }
    (void)closedir(dir);
    *ret = p;
    return 0;
}

void procs_done(struct procs *p)
{
    mem_free(p->items);
    *p = (struct procs){0};
}

static bool is_kept(const struct procs *p, size_t kept, pid_t pid)
{
    for (size_t i = 0; i < kept; i++)
        if (p->items[i].pid == pid)
            return true;
    return false;
}

void procs_keep_tree(struct procs *p, pid_t root)
{
    size_t kept = 0, before;

    do { /* until a pass finds no more; parents may come after their children */
        before = kept;
        for (size_t i = kept; i < p->count; i++) {
            struct proc one = p->items[i];

            if (kept == 0 ? one.pid != root : !is_kept(p, kept, one.parent))
                continue;
            p->items[i] = p->items[kept];
            p->items[kept++] = one;
        }
    } while (kept > before);
    p->count = kept;
}
