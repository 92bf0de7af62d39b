/* keyfile: keys in files of the state directory that only holtd's user may read.
 * Blocking: for start-up and the store's thread.  Errors: -1 with *e set. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/* 1: read; 0: it does not exist.  Refuses links, another owner, and modes that give others
 * access. */
CHECKED int keyfile_read(const char *path, size_t limit, struct buf *to, struct err *e);
CHECKED int keyfile_write(const char *path, struct str content, struct err *e); /* 0600 */
