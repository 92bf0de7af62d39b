/* file: what holtd asks of the sandbox's files.  Every path is resolved inside the root with
 * openat2 (RESOLVE_IN_ROOT, no magic links), and only regular files are read and written. */
#pragma once

#include "wire/guest.h"

void file_call(const struct guest_msg *m);
