/* notify: what changes in a directory or file, as records (guest_watch_event).  A job: it blocks,
 * in a child of init, until it is killed or what it watches is gone. The first record says that the
 * watch is set: what happens after it is told.  A new directory is watched first and listed then,
 * so that nothing in it is missed (and some may be told twice). */
#pragma once

#include "init/job.h"

int notify_run(const struct guest_file_call *c, int in, int out, struct stat *ret, struct err *e);
