/* base: the lowest layer of every root.  Errors: -errno. */
#pragma once

#include "base/macro.h"

CHECKED int base_make(int root, bool host_image); /* in an open, empty directory */
/* Files of the host that programs need and that are not secret.  NULL-terminated, as the next. */
extern const char *const base_shared[];
extern const char *const base_tops[]; /* in the host's root, besides /usr */
