/* change_patch: a changed file as a patch that git applies.  Bytes as they are: for files, not for
 * terminals. */
#pragma once

#include "core/change/change.h"

void change_write_patch(struct buf *to, const struct change *c); /* nothing, if it is no file */
