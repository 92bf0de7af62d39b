/* proc_stats: a sandbox's resource use without cgroups: the sum over its live processes. */

/* All of them descend from init, which the kernel makes the parent of orphans (proc(5),
 * task/TID/children). */
#include "spawn/sandbox.h"

#include "base/fd.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define PROCS_MAX 256 /* limit: holt-spawn serves others meanwhile */

struct walk {
    pid_t found[PROCS_MAX];
    size_t n;
};

static size_t read_text(int dir, const char *name, char *to, size_t size)
{
    AUTO(fd_close) int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, to, size - 1);

    to[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

static void add_children(struct walk *w, int process, const char *thread)
{
    char name[64], text[4096];
    struct str rest;
    uint64_t pid;

    (void)snprintf(name, sizeof name, "task/%.20s/children", thread);
    rest = str_make(text, read_text(process, name, text, sizeof text));
    while (rest.n > 0 && w->n < PROCS_MAX)
        if (str_parse_u64(str_cut(rest, ' ', &rest), &pid) == 0 && pid > 0 && pid <= INT32_MAX)
            w->found[w->n++] = (pid_t)pid;
}

static void add_threads_children(struct walk *w, int process)
{
    int fd = openat(process, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *tasks = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *d;

    if (!tasks) {
        fd_close(fd);
        return;
    }
    while ((d = readdir(tasks)) && w->n < PROCS_MAX)
        if (d->d_name[0] != '.')
            add_children(w, process, d->d_name);
    (void)closedir(tasks);
}

/* stat: the name, which may hold anything, ends at the last ')'; then state is field 3, utime 14,
 * stime 15, num_threads 20, rss 24. */
static void add_usage(int process, struct spawn_stats *to)
{
    char text[1024], *at;
    uint64_t field[25] = {0};
    uint64_t tick = 1000000 / (uint64_t)sysconf(_SC_CLK_TCK);

    (void)read_text(process, "stat", text, sizeof text);
    at = strrchr(text, ')');
    if (!at || !at[1])
        return;
    at += 3; /* past ") S" */
    for (size_t i = 4; i < ARRAY_LEN(field); i++)
        field[i] = strtoull(at, &at, 10);
    to->cpu_us += (field[14] + field[15]) * tick;
    to->pids += field[20];
    to->memory_bytes += field[24] * (uint64_t)sysconf(_SC_PAGESIZE);
}

void proc_stats(pid_t init, struct spawn_stats *to)
{
    struct walk w = {.found = {init}, .n = init > 0};

    for (size_t i = 0; i < w.n; i++) {
        char path[32];
        AUTO(fd_close) int process = -1;

        (void)snprintf(path, sizeof path, "/proc/%d", w.found[i]);
        process = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (process < 0)
            continue; /* it has ended */
        add_usage(process, to);
        add_threads_children(&w, process);
    }
}
