/* notify: changes in a directory or file, as records (guest_watch_event).  A job: it blocks, in a
 * child of init, until it is killed or the watched object is removed.  The first record says that
 * the watch is set: later changes are reported.  A new directory is watched first and then listed,
 * so that no change in it is missed (some may be reported twice). */
#pragma once

#include "init/job.h"

int notify_run(const struct guest_file_call *c, int in, int out, struct stat *ret, struct err *e);
