/* file: file operations requested by holtd.  Every path is resolved inside the root with openat2
 * (RESOLVE_IN_ROOT, no magic links), and only regular files are read and written. */
#pragma once

#include "wire/guest.h"

#include <sys/stat.h>

void file_call(const struct guest_msg *m);
void file_send_done(uint32_t channel, const struct stat *st, const char *link); /* st may be NULL */
