/* space: keeps part of the state directory's filesystem free (the setting disk_reserve), so that
 * the store can go on writing: whoever is about to add files asks first.  What commands write into
 * their own files does not pass here: that is a matter of disk limits. The filesystem is asked
 * again after 20 ms, or after 1 MiB that was let through: statvfs(3) of a local one does not block.
 * Thread: the loop's. */
#pragma once

#include "base/err.h"

struct space;
/* reserve 0: nothing is kept free.  At most a quarter of the filesystem is. */
struct space *space_new(const char *dir, int64_t reserve);
struct space *space_free(struct space *s); /* takes NULL; returns NULL */
/* May so many bytes be added?  ERR_FULL: no, with what to do.  s NULL: always. */
CHECKED int space_ask(struct space *s, size_t bytes, struct err *e);
