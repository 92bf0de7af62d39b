/* launch: finds a program; starts one that outlives us, in its own session with standard error in a
 * log file; ties a child to its parent's life.  Errors: -errno. */
#pragma once

#include "base/macro.h"

#include <sys/types.h>

#define LAUNCH_LOG_MAX (1 << 20) /* bytes; a longer log is truncated */

/* The caller reaps it with waitpid(*ret, …) if it is still alive at that time. */
CHECKED int launch_detached(const char *program, char *const *argv, const char *log, pid_t *ret);
/* Called in a new child of the process `parent`: the child dies with its parent, also if the parent
 * has ended already (a death signal set after that is never sent). */
void launch_tie(pid_t parent);
/* Searches PATH and the sbin folders. */
bool find_program(const char *name, char *ret_path, size_t size);
