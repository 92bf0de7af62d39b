/* launch: finds a program, starts one that outlives us (its own session, standard error in a log
 * file), and ties a child to us.  Errors: -errno. */
#pragma once

#include "base/macro.h"

#include <sys/types.h>

#define LAUNCH_LOG_MAX (1 << 20) /* bytes; a longer log begins anew */

/* Whoever lives when it ends reaps it: waitpid(*ret, …). */
CHECKED int launch_detached(const char *program, char *const *argv, const char *log, pid_t *ret);
/* In a new child of `parent`, by its pid: it ends when that ends, and at once if it has ended
 * already, which a death signal that is asked for afterwards does not tell. */
void launch_tie(pid_t parent);
/* In PATH and the sbin folders. */
bool find_program(const char *name, char *ret_path, size_t size);
