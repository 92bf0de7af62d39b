/* rights: what holtd gives up before it opens anything: its user (where it was started as root),
 * capabilities, system calls, files outside its directories (docs/hardening.md).
 * Thread: before any other exists.  Errors: -1 with *e set. */
#pragma once

#include "conf/conf.h"

/* Takes the state directory as well, for it is handed to the new user: *ret_lock as of state_open.
 * What the kernel lacks is logged and left out.  A runtime without isolation runs what it is
 * told as holtd's own children, without any of this. */
CHECKED int rights_give_up(const struct config *c, int *ret_lock, struct err *e);
