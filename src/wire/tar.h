/* tar: archives without I/O: ustar, GNU long names and pax headers (POSIX.1-2017 pax, tar(5)).
 * The reader takes input in parts of any size and returns entries and data; every length is
 * bounded.  Sparse files, multi-volume archives and unknown types are refused.  Names are returned
 * unchanged: the caller that writes files decides which are safe.
 * Errors: -1 with *e set; a reader that failed stays failed. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#define TAR_BLOCK 512
#define TAR_NAME_MAX 4095         /* bytes of a name or link target */
#define TAR_PAX_MAX (1024 * 1024) /* bytes of one extended header */
#define TAR_XATTR_MAX 64          /* of one entry */

enum tar_kind { TAR_FILE, TAR_HARDLINK, TAR_SYMLINK, TAR_CHAR, TAR_BLOCKDEV, TAR_DIR, TAR_FIFO };

struct tar_xattr {
    struct str name, value;
};

struct tar_entry { /* views are valid until the next entry */
    enum tar_kind kind;
    struct str name, link;
    uint32_t mode; /* 07777 at most */
    uint64_t uid, gid, size;
    int64_t mtime_s;
    uint32_t mtime_ns;
    struct tar_xattr xattrs[TAR_XATTR_MAX];
    size_t xattr_count;
};

struct tar_reader {
    int state;
    struct tar_entry entry;
    struct buf block;      /* a header received in parts */
    struct buf extra;      /* the extended header being received */
    struct buf pax;        /* for the next entry, whose xattrs point in here */
    struct buf name, link; /* from long names, pax or the header */
    uint64_t left;         /* remaining bytes of data */
    uint32_t pad;          /* bytes of padding after them */
    uint32_t headers;      /* extended headers before this entry */
    char extra_kind;
    bool has_name, has_link;
};

enum tar_told {
    TAR_MORE,      /* needs more input */
    TAR_ENTRY,     /* r->entry is set */
    TAR_DATA,      /* *ret_data is part of the entry's content */
    TAR_ENTRY_END, /* the content is complete */
    TAR_END,       /* the end of the archive; ignore what follows */
};

void tar_reader_done(struct tar_reader *r); /* zero-initialised is ready to read */
static inline UNUSED void tar_reader_done_p(struct tar_reader *r)
{
    tar_reader_done(r);
}
/* Consumes bytes from the front of *in; call again until it returns TAR_MORE. */
CHECKED int tar_read(struct tar_reader *r, struct str *in, struct str *ret_data, struct err *e);
/* Whether an archive may end here (with or without its two empty blocks). */
bool tar_may_end(const struct tar_reader *r);

/* Writing: a header (preceded by a pax header where ustar is too narrow), then size bytes of
 * content, then tar_write_pad; at the end tar_write_end. */
CHECKED int tar_write_head(struct buf *to, const struct tar_entry *t, struct err *e);
void tar_write_pad(struct buf *to, uint64_t size);
void tar_write_end(struct buf *to);
