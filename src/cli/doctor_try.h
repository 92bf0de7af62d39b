/* doctor_try: runs a step that needs a namespace in a child process, and reads its report. */
#pragma once

#include "base/macro.h"

struct try_result {
    int sys;       /* errno of the step that failed; 0: success */
    char step[64]; /* name of the step */
};

/* Reports a failed step to the parent and ends the child. */
NORETURN void try_fail(int report_fd, const char *step, int sys);
/* Forks; the child calls body(report_fd), which returns on success.  A child that takes longer than
 * five seconds is killed (ETIMEDOUT). */
void try_run(void (*body)(int report_fd), struct try_result *ret);
/* In the child: makes new namespaces (CLONE_NEW…), with a user namespace unless it is root; mounts
 * are private. */
void try_unshare(int report_fd, int flags);
