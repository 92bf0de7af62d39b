/* sqlite_err: turns SQLite errors into ours. */
#include "store/sqlite.h"

/* The last errno of the VFS; 0 if the failure was not the system's. */
static int sys_errno(sqlite3 *h)
{
    return h ? sqlite3_system_errno(h) : 0;
}

static int fail_file(struct sqlite_db *db, sqlite3 *h, int rc, struct err *e)
{
    switch (rc & 0xff) {
    case SQLITE_FULL:
        err_set(e, ERR_FULL, 0, "no space left for database '%s'", db->path);
        return err_hint(e,
                        "free space on its file system; a running holtd then continues by itself");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        err_set(e, ERR_UNAVAILABLE, 0, "database '%s' is locked by another process", db->path);
        return err_hint(e, "end the program that has it open (fuser shows it)");
    case SQLITE_READONLY:
        err_set(e, ERR_UNAVAILABLE, 0, "database '%s' is read-only", db->path);
        return err_hint(e, "make the file and its folder writable for the user of holtd");
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        err_set(e, ERR_UNAVAILABLE, 0, "database '%s' is damaged: %s", db->path,
                h ? sqlite3_errmsg(h) : sqlite3_errstr(rc));
        return err_hint(e, "stop holtd and restore a backup; `holt audit verify` then shows "
                           "whether the event log is intact");
    case SQLITE_CANTOPEN:
        err_set(e, ERR_UNAVAILABLE, sys_errno(h), "cannot open database '%s'", db->path);
        return err_hint(e, "check that its folder exists and that holtd may write there");
    default:
        err_set(e, ERR_UNAVAILABLE, sys_errno(h), "reading or writing database '%s' failed",
                db->path);
        return err_hint(e, "the disk or its file system fails: see the kernel's log");
    }
}

int sqlite_fail(struct sqlite_db *db, sqlite3 *h, int rc, const char *doing, struct err *e)
{
    const char *text = h ? sqlite3_errmsg(h) : sqlite3_errstr(rc);

    switch (rc & 0xff) {
    case SQLITE_FULL:
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_READONLY:
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_CANTOPEN:
    case SQLITE_IOERR:
    case SQLITE_PERM:
        return fail_file(db, h, rc, e);
    case SQLITE_CONSTRAINT:
        return err_set(e, ERR_CONFLICT, 0, "%s", text);
    case SQLITE_TOOBIG:
        return err_set(e, ERR_TOO_LARGE, 0, "a value is too large for the database");
    default:
        return err_set(e, ERR_INTERNAL, 0, "%s: %s", doing, text);
    }
}
