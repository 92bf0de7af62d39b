/* doctor_try: runs a step that needs a namespace in a child process, and reads how far it came. */
#pragma once

#include "base/macro.h"

struct try_result {
    int sys;       /* errno of the step that failed; 0: all went well */
    char step[64]; /* its name */
};

/* Tells the parent that a step failed, and ends the child. */
NORETURN void try_fail(int report_fd, const char *step, int sys);
/* Forks; the child calls body(report_fd), which returns when all went well.  A child that takes
 * longer than five seconds is killed (ETIMEDOUT). */
void try_run(void (*body)(int report_fd), struct try_result *ret);
/* In the child: new namespaces (CLONE_NEW…), in a user namespace of its own unless it is root's;
 * mounts are private. */
void try_unshare(int report_fd, int flags);
