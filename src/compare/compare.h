/* compare: shared by the parts of holt-compare: the job, the walk, the records that it writes.
 * Records of files are written as they are found; the others are kept until the walk has ended. */
#pragma once

#include "base/map.h"
#include "compare/stack.h"
#include "wire/change.h"

#define TEXTS_MAX 1024
#define LATE_MAX (64U << 20) /* of records that are kept */
#define FILE_MAX (64U << 20) /* of a database of packages or users */
#define DEPTH_MAX 1000

enum packaged { /* a path of `packaged`: itself, or all below it too */
                PACKAGED_FILE = 1,
                PACKAGED_TREE = 2
};

struct job {
    const char *path[TEXTS_MAX], *skip[TEXTS_MAX]; /* without the leading "/" */
    size_t path_count, skip_count;
    uint64_t text_max, content_max;
    bool no_text;
    /* Of a merge: what decides a conflict ("": everything), and whether a tar is written. */
    bool merge, tar, whiteouts;
    const char *ours[TEXTS_MAX], *theirs[TEXTS_MAX];
    size_t ours_count, theirs_count;
    struct map in_tar; /* "DEV:INO" of files with several names in the tar: the first path */

    struct dir root;
    struct buf out;
    struct buf late[CHANGE_KIND_COUNT]; /* records that are kept */
    size_t late_bytes;
    struct buf path_now;     /* of the entry that is looked at */
    struct map packaged;     /* paths that packages have brought: enum packaged */
    struct map package_dirs; /* of Python and npm: those that were read */
    struct map links;        /* "DEV:INO" of files with several names: the first path */
    struct map units;        /* services by name: struct unit */
};

/* --- main.c --- */
CHECKED int job_put(struct job *j, const struct change *c, struct err *e);   /* a record, now */
CHECKED int job_later(struct job *j, const struct change *c, struct err *e); /* after the files */
CHECKED int job_flush(struct job *j, struct err *e);
void job_packaged(struct job *j, struct str path, enum packaged how);

/* --- walk.c --- */
CHECKED int job_walk(struct job *j, struct err *e);
bool path_fits(const char *pattern, struct str path); /* it, or something above it */

/* --- file.c --- */
struct str job_path(const struct job *j);
/* The content of a regular file, at most max bytes.  1: it is not there, or none, or longer. */
CHECKED int file_content(const struct node *n, const char *name, size_t max, struct buf *to,
                         struct err *e);
/* Whether two regular files have the same bytes. */
CHECKED int file_same(const struct node *a, const struct node *b, const char *name, bool *ret,
                      struct err *e);
/* Writes what differs.  packaged: a package has brought it. */
CHECKED int file_change(struct job *j, const char *name, const struct node n[SIDES], bool packaged,
                        uint8_t verdict, struct err *e);

/* Whether a name is the same in two stacks: type, attributes, content. */
CHECKED int file_equal(const char *name, const struct node *a, const struct node *b, bool *ret,
                       struct err *e);
void file_describe(const char *name, const struct node *n, struct change_side *ret); /* no xattrs */
CHECKED ssize_t file_read_block(int fd, char *to, size_t size);
bool file_keeps_xattr(struct str name);
int file_open(const struct node *n, const char *name); /* a regular file; or -1 */

/* --- merge.c --- */

enum below { /* what is known of the target for what is below a directory */
             BELOW_FREE,
             BELOW_BLOCKED, /* the target has no directory there */
             BELOW_KEPT     /* it stays as it is in the target */
};
/* What becomes of a change; *below is for the entries in it. */
CHECKED int merge_decide(struct job *j, const struct dir *d, const char *name,
                         const struct node n[SIDES], enum below in, uint8_t *ret,
                         enum below *ret_below, struct err *e);

/* --- tar.c --- */

CHECKED int tar_put(struct job *j, const char *name, const struct node *n, struct err *e);
CHECKED int tar_whiteout(struct job *j, const char *name, struct err *e); /* as in OCI layers */
CHECKED int tar_finish(struct job *j, struct err *e);

/* --- package.c --- */
CHECKED int packages_find(struct job *j, struct err *e); /* dpkg, apk: before the walk */
/* A directory of Python's or npm's packages is about to be walked. */
CHECKED int packages_below(struct job *j, const struct dir *d, struct err *e);

/* --- account.c --- */
CHECKED int accounts_find(struct job *j, struct err *e);

/* --- unit.c --- */
/* Keeps what a file says of services and timetables. */
CHECKED int units_see(struct job *j, const struct change *c, struct err *e);
CHECKED int units_end(struct job *j, struct err *e); /* after the walk */
