/* procs: the processes of this host from /proc: their parents and resource use.
 * The result is a snapshot: look again before acting on it.  Errors: -errno. */
#pragma once

#include "base/macro.h"

#include <sys/types.h>

struct proc {
    pid_t pid, parent;
    char state;     /* as in /proc/PID/stat: 'Z' has ended */
    uint64_t start; /* ticks since boot: unique together with the pid */
    int64_t cpu_us; /* its own and its waited-for children's */
    int64_t rss_bytes;
};

struct procs {
    struct proc *items;
    size_t count;
};

int procs_look(struct procs *ret) CHECKED;
void procs_done(struct procs *p);
static inline UNUSED void procs_done_p(struct procs *p)
{
    procs_done(p);
}
/* Keeps `root` (if it exists) and its descendants, root first. */
void procs_keep_tree(struct procs *p, pid_t root);
int proc_read(pid_t pid, struct proc *ret) CHECKED; /* -ESRCH: it has ended */
