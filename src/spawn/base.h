/* base: the lowest layer of every root.  Errors: -errno. */
#pragma once

#include "base/macro.h"

CHECKED int base_make(int root, bool host_image); /* in an open, empty directory */
/* Of the host, and no secret: programs do not run without.  Ends with NULL, as the next. */
extern const char *const base_shared[];
extern const char *const base_tops[]; /* of the host's root, beside /usr */
