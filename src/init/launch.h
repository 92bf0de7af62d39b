/* launch: from a checked exec_start to a running process.  As much as possible is done before the
 * clone; the child makes system calls only.  Errors: -1 with *e set: it never ran. */
#pragma once

#include "wire/guest.h"

#include <sys/types.h>

struct launch_io {
    int in, out, err; /* the child's ends; the same fd for all three is a terminal */
    bool terminal;
    int group;     /* the directory of its cgroup, or -1 */
    uint64_t mark; /* its RLIMIT_LOCKS: init/kin.h; 0: unchanged */
};

/* Installs the filter in that file for init and everything it starts. */
CHECKED int launch_guard(int fd);
void launch_setup(int filter);   /* the filter for commands, from an open file; -1: none */
void launch_files(uint64_t max); /* files a command may have open; 0: init's own limit */
/* For the calling process: it is OOM-killed before init. */
void launch_oom_first(void);
CHECKED int launch(const struct guest_exec_start *s, const struct launch_io *io, pid_t *ret,
                   struct err *e);
