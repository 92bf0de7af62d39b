/* launch: finds a program, and starts one that outlives us: its own session, standard error in a
 * log file.  Errors: -errno. */
#pragma once

#include "base/macro.h"

#include <sys/types.h>

#define LAUNCH_LOG_MAX (1 << 20) /* bytes; a longer log begins anew */

/* Whoever lives when it ends reaps it: waitpid(*ret, …). */
CHECKED int launch_detached(const char *program, char *const *argv, const char *log, pid_t *ret);
/* In PATH and the sbin folders. */
bool find_program(const char *name, char *ret_path, size_t size);
