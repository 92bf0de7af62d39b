/* init_start: a holt-init as an ordinary process on a socket in a directory of its own. */
#pragma once

#include "../check.h"
#include "../scratch.h"

#include <sys/resource.h>
#include <sys/types.h>

struct init_start {
    pid_t pid;
    char dir[SCRATCH_SIZE], sock[96], relay[96];
};

/* files: its limit of open files; 0: as ours. */
void init_start(struct init_start *i, const char *program, rlim_t files);
void init_stop(struct init_start *i); /* it must still be alive; the directory goes */
