/* pack: a file or directory of this machine as a tar stream, part by part.  Symlinks are stored as
 * symlinks; anything that is not a file, directory or symlink is left out.  Owners are root: the
 * reader of the archive decides.  A file that grows or shrinks meanwhile keeps the announced
 * length.  Blocking. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

struct pack;

/* top: its name in the archive; NULL: only the content of the directory. */
CHECKED int pack_new(const char *path, const char *top, struct pack **ret, struct err *e);
struct pack *pack_free(struct pack *p);
DEFINE_AUTO(struct pack *, pack_free)
/* Adds a part.  1: more follows; 0: that was the end. */
CHECKED int pack_next(struct pack *p, struct buf *to, struct err *e);
int64_t pack_bytes(const struct pack *p);    /* of files, so far */
int64_t pack_left_out(const struct pack *p); /* neither file, directory nor symlink */
