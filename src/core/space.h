/* space: keeps part of the state directory's filesystem free (the setting disk_reserve), so that
 * the store can keep writing: callers ask before they add files.  Files that commands write are not
 * counted here: disk limits are for those.  The filesystem is queried again after 20 ms, or after 1
 * MiB that was permitted: statvfs(3) of a local one does not block.
 * Thread: the loop's. */
#pragma once

#include "base/err.h"

struct space;
/* reserve 0: nothing is kept free.  At most a quarter of the filesystem is. */
struct space *space_new(const char *dir, int64_t reserve);
struct space *space_free(struct space *s); /* takes NULL; returns NULL */
/* Whether this many bytes may be added.  ERR_FULL: no, with a hint.  s NULL: always. */
CHECKED int space_ask(struct space *s, size_t bytes, struct err *e);
int64_t space_room(struct space *s); /* bytes that may be added now; s NULL: no limit */
