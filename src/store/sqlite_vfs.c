/* sqlite_vfs: a layer below SQLite that writes the frames of a commit in one call. */
#include "store/sqlite.h"

#include "base/buf.h"
#include "base/mem.h"

/* SQLite writes each page of a commit to its write-ahead log in two pieces, a head of 24 bytes and
 * the page (https://www.sqlite.org/fileformat2.html#the_wal_file_format).  Pieces that follow each
 * other are collected here and passed on with the last page of the commit: SQLite checks the result
 * of that write, and only then publishes the frames to readers.  Every other access of the log
 * first passes on what was collected.  A head that replaces another (a page that left the cache and
 * changed again in the same transaction) is read first, and is not collected.  Other files are not
 * touched. */

#define FRAME_HEAD 24
#define KEEP_MAX (64 * 1024)     /* memory between commits */
#define COLLECT_MAX (120 * 1024) /* SQLite writes less than 128 KiB in one call */

struct wal_file {
    sqlite3_file base;     /* first: SQLite's view of it */
    struct buf frames;     /* not yet passed on */
    sqlite3_int64 at;      /* where they go */
    bool commits;          /* the page that comes next ends a commit */
    sqlite3_int64 read_at; /* of the last read, or -1 */
    sqlite3_file *below;
};

static struct wal_file *file_of(sqlite3_file *f)
{
    return CONTAINER_OF(f, struct wal_file, base);
}

static sqlite3_vfs *vfs_below(sqlite3_vfs *v)
{
    return v->pAppData;
}

/* --- the log --- */

static int pass_on(struct wal_file *w)
{
    int rc = SQLITE_OK;

    if (buf_len(&w->frames) > 0)
        rc = w->below->pMethods->xWrite(w->below, buf_data(&w->frames), (int)buf_len(&w->frames),
                                        w->at);
    buf_clear(&w->frames);
    buf_shrink(&w->frames, KEEP_MAX);
    return rc;
}

static bool ends_commit(const unsigned char *head)
{
    return head[4] | head[5] | head[6] | head[7]; /* the size of the database after it, else 0 */
}

static int wal_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
    struct wal_file *w = file_of(f);
    size_t had = buf_len(&w->frames);
    bool follows = had > 0 && had + (size_t)n <= COLLECT_MAX && at == w->at + (sqlite3_int64)had;
    bool is_head = n == FRAME_HEAD && at != w->read_at;
    int rc = follows ? SQLITE_OK : pass_on(w);

    if (rc != SQLITE_OK)
        return rc;
    if (!follows && !is_head)
        return w->below->pMethods->xWrite(w->below, p, n, at);
    if (!follows)
        w->at = at;
    buf_add(&w->frames, p, (size_t)n);
    if (is_head)
        w->commits = ends_commit(p);
    else if (w->commits)
        return pass_on(w);
    return SQLITE_OK;
}

static int wal_read(sqlite3_file *f, void *to, int n, sqlite3_int64 at)
{
    struct wal_file *w = file_of(f);
    int rc = pass_on(w);

    w->read_at = at;
    return rc == SQLITE_OK ? w->below->pMethods->xRead(w->below, to, n, at) : rc;
}

static int wal_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    struct wal_file *w = file_of(f);
    int rc = pass_on(w);

    return rc == SQLITE_OK ? w->below->pMethods->xTruncate(w->below, size) : rc;
}

static int wal_sync(sqlite3_file *f, int flags)
{
    struct wal_file *w = file_of(f);
    int rc = pass_on(w);

    return rc == SQLITE_OK ? w->below->pMethods->xSync(w->below, flags) : rc;
}

static int wal_size(sqlite3_file *f, sqlite3_int64 *ret)
{
    struct wal_file *w = file_of(f);
    int rc = pass_on(w);

    return rc == SQLITE_OK ? w->below->pMethods->xFileSize(w->below, ret) : rc;
}

/* What is left belongs to no commit. */
static int wal_close(sqlite3_file *f)
{
    struct wal_file *w = file_of(f);
    int rc = w->below->pMethods->xClose(w->below);

    buf_done(&w->frames);
    return rc;
}

/* --- without a use of their own --- */

static int wal_lock(sqlite3_file *f, int level)
{
    return file_of(f)->below->pMethods->xLock(file_of(f)->below, level);
}

static int wal_unlock(sqlite3_file *f, int level)
{
    return file_of(f)->below->pMethods->xUnlock(file_of(f)->below, level);
}

static int wal_is_locked(sqlite3_file *f, int *ret)
{
    return file_of(f)->below->pMethods->xCheckReservedLock(file_of(f)->below, ret);
}

static int wal_control(sqlite3_file *f, int op, void *arg)
{
    return file_of(f)->below->pMethods->xFileControl(file_of(f)->below, op, arg);
}

static int wal_sector(sqlite3_file *f)
{
    return file_of(f)->below->pMethods->xSectorSize(file_of(f)->below);
}

static int wal_device(sqlite3_file *f)
{
    return file_of(f)->below->pMethods->xDeviceCharacteristics(file_of(f)->below);
}

/* --- opening --- */

static const sqlite3_io_methods wal_methods = {
    .iVersion = 1, /* a log is not mapped into memory */
    .xClose = wal_close,
    .xRead = wal_read,
    .xWrite = wal_write,
    .xTruncate = wal_truncate,
    .xSync = wal_sync,
    .xFileSize = wal_size,
    .xLock = wal_lock,
    .xUnlock = wal_unlock,
    .xCheckReservedLock = wal_is_locked,
    .xFileControl = wal_control,
    .xSectorSize = wal_sector,
    .xDeviceCharacteristics = wal_device,
};

static int open_file(sqlite3_vfs *v, const char *name, sqlite3_file *f, int flags, int *ret_flags)
{
    struct wal_file *w = file_of(f);
    int rc;

    if (!(flags & SQLITE_OPEN_WAL))
        return vfs_below(v)->xOpen(vfs_below(v), name, f, flags, ret_flags);
    *w = (struct wal_file){.below = (sqlite3_file *)(w + 1), .read_at = -1};
    rc = vfs_below(v)->xOpen(vfs_below(v), name, w->below, flags, ret_flags);
    if (w->below->pMethods)
        f->pMethods = &wal_methods;
    return rc;
}

const char *sqlite_vfs_over(const char *name)
{
    static sqlite3_vfs made[2]; /* over SQLite's own, and over that of a test */
    static const char *const names[ARRAY_LEN(made)] = {"holt", "holt over a test's"};
    sqlite3_vfs *below = sqlite3_vfs_find(name);

    for (size_t i = 0; below && i < ARRAY_LEN(made); i++) {
        if (made[i].pAppData == below)
            return made[i].zName;
        if (made[i].zName)
            continue;
        made[i] = *below;
        made[i].zName = names[i];
        made[i].pNext = NULL;
        made[i].pAppData = below;
        made[i].szOsFile = (int)sizeof(struct wal_file) + below->szOsFile;
        made[i].xOpen = open_file;
        return sqlite3_vfs_register(&made[i], 0) == SQLITE_OK ? names[i] : name;
    }
    return name; /* it works without */
}

int sqlite_vfs_settle(sqlite3 *h)
{
    sqlite3_file *f = NULL;

    if (sqlite3_file_control(h, "main", SQLITE_FCNTL_JOURNAL_POINTER, &f) != SQLITE_OK || !f ||
        f->pMethods != &wal_methods)
        return SQLITE_OK;
    return pass_on(file_of(f));
}
