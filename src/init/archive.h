/* archive: trees of the sandbox as tar streams, both ways.  Jobs: they block, in a child of
 * init. */
#pragma once

#include "init/job.h"

/* A directory's content as "./…", a file by its name.  Symlinks are stored, never followed;
 * sockets, devices and the kernel's filesystems (/proc, /sys) are left out; hard links are
 * preserved up to a limit. */
int archive_out(const struct guest_file_call *c, int in, int out, struct stat *ret, struct err *e);
/* Extracts into a directory.  No name, link or race leads out of it: a name with ".." is refused, a
 * leading "/" dropped, an existing entry replaced, not written through.  Devices are refused. */
int archive_in(const struct guest_file_call *c, int in, int out, struct stat *ret, struct err *e);
