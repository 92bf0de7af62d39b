/* keyfile: keys in files of the state directory that nobody but holtd's user may read.
 * Blocking: for starts and the store's thread.  Errors: -1 with *e set. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/* 1: read; 0: there is none.  Refused: links, another owner, a mode that lets others in. */
CHECKED int keyfile_read(const char *path, size_t limit, struct buf *to, struct err *e);
CHECKED int keyfile_write(const char *path, struct str content, struct err *e); /* 0600 */
