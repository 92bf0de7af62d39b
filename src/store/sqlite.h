/* sqlite: shared by the files of the SQLite engine.  Thread: see engine.h, except for the
 * checkpointer, which has a thread and a connection of its own. */
#pragma once

#include "base/map.h"
#include "store/engine.h"

#include <sqlite3.h>
#include <sys/types.h>

#define SQLITE_BUSY_MS 2000 /* for another program that has the database open */

struct sqlite_wal;

struct sqlite_db {
    struct engine_db base;
    char *path;
    const char *vfs; /* or NULL */
    int lock_fd;     /* of PATH.lock, locked */
    dev_t dev;       /* of the file, to check that it is still the one at path */
    ino_t ino;
    struct sqlite_wal *wal;
};

struct sqlite_conn {
    struct engine_conn base;
    struct sqlite_db *db;
    sqlite3 *h;
    struct map stmts;                /* SQL text → struct sqlite_stmt */
    struct sqlite_stmt *guesses[64]; /* among stmts, by the address of their text */
    bool writes;
    bool durable; /* PRAGMA synchronous is FULL */
};

/* --- sqlite_err.c --- */
int sqlite_fail(struct sqlite_db *db, sqlite3 *h, int rc, const char *doing, struct err *e);

/* --- sqlite_file.c --- */
CHECKED int sqlite_claim(const struct store_config *c, struct engine_db **ret, struct err *e);
void sqlite_release(struct engine_db *d);
CHECKED int sqlite_check(struct engine_conn *c, struct err *e);
CHECKED int sqlite_note_file(struct sqlite_db *db, struct err *e); /* once it is open */

/* --- sqlite_vfs.c --- */
/* The name of a VFS that writes a commit at once, over this one (NULL: SQLite's own).  Not for two
 * threads at once. */
const char *sqlite_vfs_over(const char *name);
/* After a commit: nothing of it is left to be written, or an error of SQLite. */
int sqlite_vfs_settle(sqlite3 *h);

/* --- sqlite.c --- */
CHECKED int sqlite_open_handle(struct sqlite_db *db, int flags, sqlite3 **ret, struct err *e);

/* --- sqlite_stmt.c --- */
int64_t sqlite_run(struct engine_conn *c, const char *sql, const struct store_param *p, size_t n,
                   struct err *e);
int sqlite_query(struct engine_conn *c, const char *sql, const struct store_param *p, size_t n,
                 struct store_rows **ret, struct err *e);
int sqlite_step(struct store_rows *r, struct err *e);
void sqlite_end(struct store_rows *r);
int64_t sqlite_get_int(const struct store_rows *r, int column);
struct str sqlite_get_bytes(const struct store_rows *r, int column);
bool sqlite_is_null(const struct store_rows *r, int column);
void sqlite_forget_stmts(struct sqlite_conn *c);

/* --- sqlite_wal.c: checkpoints beside the writer, so that no commit waits for one --- */
CHECKED int sqlite_wal_start(struct sqlite_conn *writer, struct err *e);
void sqlite_wal_stop(struct sqlite_db *db); /* accepts one that was never started */
/* Called by the writer between transactions: bounds the log's size. */
void sqlite_wal_bound(struct sqlite_conn *writer);
