/* procs: the processes of this host as /proc shows them: who descends from whom, what they use.
 * A look is a moment's truth: who acts on it looks again.  Errors: -errno. */
#pragma once

#include "base/macro.h"

#include <sys/types.h>

struct proc {
    pid_t pid, parent;
    char state;     /* as in /proc/PID/stat: 'Z' is ended */
    uint64_t start; /* ticks since boot: with the pid it names one process for good */
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
/* Keeps `root` (if it is there) and those that descend from it, root first. */
void procs_keep_tree(struct procs *p, pid_t root);
int proc_read(pid_t pid, struct proc *ret) CHECKED; /* -ESRCH: gone */
