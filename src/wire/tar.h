/* tar: archives without I/O: ustar (POSIX.1-1988) with pax headers (POSIX.1-2001) for what does not
 * fit; the reader also takes GNU's long names and base-256 numbers.
 * The reader is for hostile bytes: everything is bounded, checksums are checked, and names are
 * given as they stand: whoever unpacks judges them (tar_name_is_safe).
 * Thread: any; a reader belongs to one. */
#pragma once

#include "base/buf.h"

#define TAR_BLOCK 512
#define TAR_NAME_MAX 4096
#define TAR_PAX_MAX (64 * 1024) /* of one extended header */

enum tar_kind { TAR_FILE, TAR_DIR, TAR_SYMLINK, TAR_HARDLINK, TAR_OTHER };

struct tar_entry {
    enum tar_kind kind;
    struct str name; /* a directory's may end with '/' */
    struct str link; /* of a symlink or hard link */
    uint32_t mode;   /* permission bits */
    uint32_t uid, gid;
    int64_t size; /* of a file */
    int64_t mtime_s;
};

/* The header; e->size bytes and tar_write_pad follow for a file. */
void tar_write(struct buf *to, const struct tar_entry *e);
void tar_write_pad(struct buf *to, int64_t size);
void tar_write_end(struct buf *to);

enum tar_event { TAR_ENTRY = 1, TAR_DATA, TAR_ENTRY_END, TAR_END };

struct tar_reader {         /* zero-initialised */
    struct tar_entry entry; /* the one that is being read; valid until the next */
    struct str data;        /* of TAR_DATA */
    const char *fault;      /* of a failure: a static text */
    /* private */
    unsigned char block[TAR_BLOCK];
    size_t have;
    struct buf name, link; /* from an extended header, or joined */
    struct buf long_data;  /* an extended header so far */
    int64_t pax_size, pax_mtime;
    int64_t left, pad;
    int state;
    char long_kind;
    bool has_name, has_link, has_size, has_mtime;
};

void tar_reader_done(struct tar_reader *r);
/* Takes bytes from *in.  An event; 0: all was taken and more is needed; -1: r->fault. */
int tar_reader_next(struct tar_reader *r, struct str *in) CHECKED;
/* Relative, no component is "", "." or "..", no NUL (a '/' at the end is left out of that). */
bool tar_name_is_safe(struct str name);
