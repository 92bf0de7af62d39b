/* sqlite_wal: checkpoints beside the writer, and the bound on the log. */
#include "store/sqlite.h"

#include "base/mem.h"

#define WAL_PAGES 1000 /* 4 MiB: a checkpoint is worth its syncs */

/* The checkpointer copies most of the log beside the writer; under steady load it never reaches the
 * last frame, so the writer copies the few that are left and restarts the log.  Restarting it early
 * is also faster: overwriting a file syncs cheaper than growing it. */
struct sqlite_wal {
    sqlite3 *h;
    uv_thread_t thread;
    uv_mutex_t lock;
    uv_cond_t wake;
    int pages;         /* of the log, after the newest commit */
    bool wanted, stop; /* wanted: the checkpointer is running */
    bool copied;       /* it has run; the rest is the writer's */
    int retry_pages;   /* a reader held the log: not before it has grown to this */
};

static int on_commit(void *arg, sqlite3 *h, const char *name, int pages)
{
    struct sqlite_wal *w = arg;

    (void)h;
    (void)name;
    uv_mutex_lock(&w->lock);
    w->pages = pages;
    if (pages < WAL_PAGES)
        w->retry_pages = 0; /* the log was restarted */
    if (pages >= WAL_PAGES && !w->wanted && !w->copied) {
        w->wanted = true;
        uv_cond_signal(&w->wake);
    }
    uv_mutex_unlock(&w->lock);
    return SQLITE_OK;
}

static void wal_checkpointer(void *arg)
{
    struct sqlite_wal *w = arg;

    uv_mutex_lock(&w->lock);
    while (!w->stop) {
        if (!w->wanted) {
            uv_cond_wait(&w->wake, &w->lock);
            continue;
        }
        uv_mutex_unlock(&w->lock);
        /* A failure shows in the writer's own commits, which report it. */
        (void)sqlite3_wal_checkpoint_v2(w->h, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
        uv_mutex_lock(&w->lock);
        w->wanted = false;
        w->copied = true;
    }
    uv_mutex_unlock(&w->lock);
}

int sqlite_wal_start(struct sqlite_conn *writer, struct err *e)
{
    struct sqlite_db *db = writer->db;
    struct sqlite_wal *w;
    sqlite3 *h;

    if (sqlite_open_handle(db, SQLITE_OPEN_READWRITE, &h, e) < 0)
        return -1;
    (void)sqlite3_wal_autocheckpoint(h, 0);
    w = xzalloc(sizeof *w);
    w->h = h;
    if (uv_mutex_init(&w->lock) != 0 || uv_cond_init(&w->wake) != 0 ||
        uv_thread_create(&w->thread, wal_checkpointer, w) != 0)
        abort(); /* no memory for a thread at start-up */
    db->wal = w;
    (void)sqlite3_wal_hook(writer->h, on_commit, w);
    return 0;
}

void sqlite_wal_stop(struct sqlite_db *db)
{
    struct sqlite_wal *w = TAKE(db->wal);

    if (!w)
        return;
    uv_mutex_lock(&w->lock);
    w->stop = true;
    uv_cond_signal(&w->wake);
    uv_mutex_unlock(&w->lock);
    (void)uv_thread_join(&w->thread);
    (void)sqlite3_close_v2(w->h);
    uv_mutex_destroy(&w->lock);
    uv_cond_destroy(&w->wake);
    free(w);
}

void sqlite_wal_bound(struct sqlite_conn *writer)
{
    struct sqlite_wal *w = writer->db->wal;
    int pages;
    bool now;

    if (!w)
        return;
    uv_mutex_lock(&w->lock);
    pages = w->pages;
    now = w->copied && pages >= w->retry_pages;
    if (now)
        w->copied = false;
    uv_mutex_unlock(&w->lock);
    if (!now)
        return;
    (void)sqlite3_busy_timeout(writer->h, 0); /* a commit does not wait for readers */
    if (sqlite3_wal_checkpoint_v2(writer->h, NULL, SQLITE_CHECKPOINT_RESTART, NULL, NULL) !=
        SQLITE_OK)
        w->retry_pages = pages + WAL_PAGES;
    (void)sqlite3_busy_timeout(writer->h, SQLITE_BUSY_MS);
}
