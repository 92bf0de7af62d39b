#include "store/sqlite.h"

#include "base/log.h"
#include "base/mem.h"

#define WAL_PAGES 1000      /* 4 MiB: a checkpoint is worth its syncs */
#define WAL_PAGES_MAX 16384 /* 64 MiB: now the writer waits for one */
#define WAL_BUSY_RETRY_S 1  /* a long reader can hold the log; ask again after that */

/* Under steady load a passive checkpoint never catches up with the last frame, so the log is not
 * begun anew and grows; past WAL_PAGES_MAX the writer itself does the little that is left. */
struct sqlite_wal {
    sqlite3 *h;
    uv_thread_t thread;
    uv_mutex_t lock;
    uv_cond_t wake;
    int pages; /* of the log, after the newest commit */
    bool wanted, stop;
    uint64_t retry_ns; /* the writer does not try before */
};

static int on_commit(void *arg, sqlite3 *h, const char *name, int pages)
{
    struct sqlite_wal *w = arg;

    (void)h;
    (void)name;
    uv_mutex_lock(&w->lock);
    w->pages = pages;
    if (pages >= WAL_PAGES && !w->wanted) {
        w->wanted = true;
        uv_cond_signal(&w->wake);
    }
    uv_mutex_unlock(&w->lock);
    return SQLITE_OK;
}

static void checkpointer(void *arg)
{
    struct sqlite_wal *w = arg;

    uv_mutex_lock(&w->lock);
    while (!w->stop) {
        if (!w->wanted) {
            uv_cond_wait(&w->wake, &w->lock);
            continue;
        }
        uv_mutex_unlock(&w->lock);
        /* A failure shows in the writer's own commits, where it is reported. */
        (void)sqlite3_wal_checkpoint_v2(w->h, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
        uv_mutex_lock(&w->lock);
        w->wanted = false;
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
        uv_thread_create(&w->thread, checkpointer, w) != 0)
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
    int pages, rc;

    if (!w)
        return;
    uv_mutex_lock(&w->lock);
    pages = w->pages;
    uv_mutex_unlock(&w->lock);
    if (pages < WAL_PAGES_MAX || uv_hrtime() < w->retry_ns)
        return;
    rc = sqlite3_wal_checkpoint_v2(writer->h, NULL, SQLITE_CHECKPOINT_RESTART, NULL, NULL);
    if (rc != SQLITE_OK) {
        w->retry_ns = uv_hrtime() + WAL_BUSY_RETRY_S * 1000000000ULL;
        log_debug("write-ahead log cannot be begun anew yet", LOG_N("pages", pages));
    }
}
