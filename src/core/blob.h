/* blob: bytes that outlive their sender, named by their content: STATE/blobs/SHA-256 in hex, so
 * that no name of a client is ever a path and the same content is stored once.
 *
 * A new blob has a temporary name, is synced, gets its final name, and is held until the caller has
 * committed the row that names it: blob_release.  A blob without a row is removed; the ones left by
 * a killed daemon are found at the next start.  A blob is verified before it is read.
 * Ownership: a blob_in is freed by its end (ops->done) or by blob_in_abort.  Thread: the loop's;
 * file work is on libuv's.  Changes of the directory are made one by one, in order. */
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <uv.h>

struct blobs;
struct space;
struct store;

#define BLOB_DAMAGED "Checksum mismatch" /* blob_open's error for a damaged one */
#define BLOB_NAME_SIZE 65                /* hex digits and the NUL */

struct blobs_config {
    uv_loop_t *loop;
    struct store *store;
    const char *state;
    struct space *space;
    bool keep_strays; /* keep blobs without a row: they belong to another database */
};
/* Removes blobs without a row.  Blocking: at start-up only. */
CHECKED int blobs_open(const struct blobs_config *c, struct blobs **ret, struct err *e);
struct blobs *blobs_free(struct blobs *b); /* after the loop has run dry; takes NULL */

struct blob {
    char name[BLOB_NAME_SIZE];
    int64_t size;
};
struct blob_in;
struct blob_in_ops {
    void (*consumed)(void *arg, size_t n); /* n bytes were written */
    /* The last call: b is on disk and held for the caller; or *e is set, and nothing is left. */
    void (*done)(void *arg, const struct blob *b, const struct err *e);
};
CHECKED int blob_in_new(struct blobs *b, int64_t size_max, const struct blob_in_ops *ops, void *arg,
                        struct blob_in **ret, struct err *e);
void blob_in_write(struct blob_in *in, struct str part); /* may call done */
void blob_in_end(struct blob_in *in);
void blob_in_abort(struct blob_in *in); /* makes no further call and leaves nothing behind */

/* Ends a hold.  kept: a row names it now. */
void blob_release(struct blobs *b, const char *name, bool kept);
/* A commit has removed the last row that named it. */
void blob_unused(struct blobs *b, struct str name);
/* Opens a blob after verifying its content.  ERR_NOT_FOUND: it does not exist; ERR_INTERNAL:
 * damaged. */
void blob_open(struct blobs *b, struct str name,
               void (*done)(void *arg, int fd, const struct err *e), void *arg);
