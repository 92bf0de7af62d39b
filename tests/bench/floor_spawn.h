/* floor_spawn: the same steps as holt-spawn, then exec of a program as PID 1: no daemon, no
 * protocol, no init.  What holt costs on top of this is what its design costs. */
#pragma once

#include "base/err.h"

CHECKED int floor_init(const char *state, const char *program, struct err *e);
/* Makes a sandbox, runs the program in it, waits, removes everything. */
CHECKED int floor_run(uint32_t flags, struct err *e);
