/* pack: a file or directory of this machine as a tar stream, part by part.  Symlinks go as
 * symlinks; what is neither file, directory nor symlink is left out.  Owners are root: who reads
 * the archive decides.  A file that grows or shrinks meanwhile has the length that was announced.
 * Blocking. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

struct pack;

/* top: its name in the archive; NULL: only what is in the directory. */
CHECKED int pack_new(const char *path, const char *top, struct pack **ret, struct err *e);
struct pack *pack_free(struct pack *p);
DEFINE_AUTO(struct pack *, pack_free)
/* Adds a part.  1: there is more; 0: that was the end. */
CHECKED int pack_next(struct pack *p, struct buf *to, struct err *e);
int64_t pack_bytes(const struct pack *p);    /* of files, so far */
int64_t pack_left_out(const struct pack *p); /* neither file, directory nor symlink */
