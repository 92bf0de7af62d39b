/* unpack: extracts a tar stream from a sandbox, which may lie, into a directory of this machine.
 * Nothing outside the directory is created, changed or followed into: names are checked, every open
 * is below the directory and through no symlink (openat2(2)), an existing entry is removed, never
 * written through.  Set-user-id and the like are dropped, devices left out.
 * Blocking. */
#pragma once

#include "base/err.h"
#include "wire/tar.h"

struct unpack {
    struct tar_reader in;
    int root;        /* the directory; borrowed */
    const char *top; /* new name of the archive's top entry; NULL: extract into root itself */
    /* private */
    int file;    /* being written; -1: none */
    bool dotted; /* names begin with "./", not with the name of the requested entry */
    int64_t bytes, entries, left_out;
};

void unpack_init(struct unpack *u, int root, const char *top);
CHECKED int unpack_feed(struct unpack *u, struct str bytes, struct err *e);
CHECKED int unpack_end(struct unpack *u, struct err *e); /* checks that the archive was complete */
void unpack_done(struct unpack *u);
static inline UNUSED void unpack_done_p(struct unpack *u)
{
    unpack_done(u);
}
