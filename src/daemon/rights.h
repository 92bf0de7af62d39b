/* rights: what holtd gives up before it opens anything: its user (if it was started as root),
 * capabilities, system calls, files outside its directories (docs/hardening.md).
 * Thread: before any other exists.  Errors: -1 with *e set. */
#pragma once

#include "conf/conf.h"

/* Also takes the state directory, which is handed to the new user: *ret_lock as from
 * state_open.  Features missing in the kernel are logged and left out.  A runtime without isolation
 * runs commands as holtd's own children, without any of this. */
CHECKED int rights_give_up(const struct config *c, int *ret_lock, struct err *e);
