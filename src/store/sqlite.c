/* sqlite: the SQLite engine: connections and transactions. */
#include "store/sqlite.h"

#include "base/mem.h"

#include <sys/stat.h>

#define EXAMINE_MAX (32 << 20) /* bytes that quick_check reads well within a second */

static struct sqlite_conn *conn_of(struct engine_conn *c)
{
    return CONTAINER_OF(c, struct sqlite_conn, base);
}

static int sqlite_script(struct engine_conn *conn, const char *sql, struct err *e)
{
    struct sqlite_conn *c = conn_of(conn);
    int rc = sqlite3_exec(c->h, sql, NULL, NULL, NULL);

    return rc == SQLITE_OK ? 0 : sqlite_fail(c->db, c->h, rc, sql, e);
}

/* The first column of a statement's only row, as text, for example of a PRAGMA. */
static int one_text(struct sqlite_conn *c, const char *sql, char *to, size_t size, struct err *e)
{
    sqlite3_stmt *s = NULL;
    int rc = sqlite3_prepare_v2(c->h, sql, -1, &s, NULL);

    if (rc == SQLITE_OK)
        rc = sqlite3_step(s);
    if (rc == SQLITE_ROW)
        (void)snprintf(to, size, "%s", (const char *)sqlite3_column_text(s, 0));
    else
        sqlite_fail(c->db, c->h, rc, sql, e);
    (void)sqlite3_finalize(s);
    return rc == SQLITE_ROW ? 0 : -1;
}

int sqlite_open_handle(struct sqlite_db *db, int flags, sqlite3 **ret, struct err *e)
{
    sqlite3 *h = NULL;
    int rc =
        sqlite3_open_v2(db->path, &h, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, db->vfs);

    if (rc != SQLITE_OK) {
        sqlite_fail(db, h, rc, "open", e);
        (void)sqlite3_close(h);
        return -1;
    }
    (void)sqlite3_busy_timeout(h, SQLITE_BUSY_MS);
    (void)sqlite3_db_config(h, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void)sqlite3_db_config(h, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    (void)sqlite3_db_config(h, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
    (void)sqlite3_db_config(h, SQLITE_DBCONFIG_DQS_DDL, 0, NULL);
    (void)sqlite3_db_config(h, SQLITE_DBCONFIG_ENABLE_FKEY, 1, NULL);
    *ret = h;
    return 0;
}

static int set_up_writer(struct sqlite_conn *c, struct err *e)
{
    char mode[16];

    if (one_text(c, "PRAGMA journal_mode=WAL", mode, sizeof mode, e) < 0)
        return -1;
    if (strcmp(mode, "wal") != 0) {
        err_set(e, ERR_UNSUPPORTED, 0, "database '%s' cannot use a write-ahead log", c->db->path);
        return err_hint(e, "put it on a local file system");
    }
    (void)sqlite3_wal_autocheckpoint(c->h, 0);
    if (sqlite_script(&c->base, "PRAGMA synchronous=FULL; PRAGMA cache_size=-8192", e) < 0 ||
        sqlite_note_file(c->db, e) < 0)
        return -1;
    c->durable = true;
    return sqlite_wal_start(c, e);
}

static void sqlite_disconnect(struct engine_conn *conn)
{
    struct sqlite_conn *c;

    if (!conn)
        return;
    c = conn_of(conn);
    if (c->writes)
        sqlite_wal_stop(c->db);
    sqlite_forget_stmts(c);
    (void)sqlite3_close_v2(c->h);
    free(c);
}

static int sqlite_connect(struct engine_db *d, enum engine_mode mode, struct engine_conn **ret,
                          struct err *e)
{
    struct sqlite_db *db = CONTAINER_OF(d, struct sqlite_db, base);
    struct sqlite_conn *c;
    sqlite3 *h;
    int flags = mode == ENGINE_WRITE ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY;

    if (sqlite_open_handle(db, flags, &h, e) < 0)
        return -1;
    c = xzalloc(sizeof *c);
    c->base.db = d;
    c->db = db;
    c->h = h;
    c->writes = mode == ENGINE_WRITE;
    if (c->writes && set_up_writer(c, e) < 0) {
        sqlite_disconnect(&c->base);
        return -1;
    }
    *ret = &c->base;
    return 0;
}

static int sqlite_examine(struct engine_conn *conn, struct err *e)
{
    struct sqlite_conn *c = conn_of(conn);
    struct stat st;
    char answer[128];

    if (stat(c->db->path, &st) < 0 || st.st_size > EXAMINE_MAX)
        return 0;
    if (one_text(c, "PRAGMA quick_check(1)", answer, sizeof answer, e) < 0)
        return -1;
    if (strcmp(answer, "ok") == 0)
        return 0;
    err_set(e, ERR_UNAVAILABLE, 0, "database '%s' is damaged: %s", c->db->path, answer);
    return err_hint(e,
                    "restore a backup; `holt audit verify` then shows whether the log is intact");
}

static int step_once(struct sqlite_conn *c, const char *sql, struct err *e)
{
    return sqlite_run(&c->base, sql, NO_PARAMS, e) < 0 ? -1 : 0;
}

/* PRAGMA synchronous takes effect only between transactions, and when prepared: no cached
 * statement.  In WAL mode NORMAL does not sync at a commit; FULL does, and syncs everything before
 * it. */
static int sqlite_begin(struct engine_conn *conn, bool durable, struct err *e)
{
    struct sqlite_conn *c = conn_of(conn);

    if (!c->writes)
        return step_once(c, "BEGIN", e);
    sqlite_wal_bound(c);
    if (durable != c->durable &&
        sqlite_script(conn, durable ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL", e) <
            0)
        return -1;
    c->durable = durable;
    return step_once(c, "BEGIN IMMEDIATE", e);
}

static bool in_tx(struct engine_conn *conn)
{
    return !sqlite3_get_autocommit(conn_of(conn)->h);
}

static void sqlite_rollback(struct engine_conn *conn)
{
    struct err ignored;

    if (in_tx(conn))
        (void)step_once(conn_of(conn), "ROLLBACK", &ignored); /* otherwise already undone */
}

static int sqlite_commit(struct engine_conn *conn, struct err *e)
{
    struct sqlite_conn *c = conn_of(conn);
    int rc;

    if (step_once(c, "COMMIT", e) < 0) {
        sqlite_rollback(conn);
        return -1;
    }
    rc = sqlite_vfs_settle(c->h);
    return rc == SQLITE_OK ? 0 : sqlite_fail(c->db, c->h, rc, "COMMIT", e);
}

static int sqlite_savepoint(struct engine_conn *conn, struct err *e)
{
    return step_once(conn_of(conn), "SAVEPOINT work", e);
}

static int sqlite_keep(struct engine_conn *conn, struct err *e)
{
    return step_once(conn_of(conn), "RELEASE work", e);
}

static int sqlite_undo(struct engine_conn *conn, struct err *e)
{
    if (step_once(conn_of(conn), "ROLLBACK TO work", e) < 0)
        return -1;
    return sqlite_keep(conn, e);
}

static int sqlite_later(struct engine_conn *conn, const char *sql, const struct store_param *p,
                        size_t n, struct err *e)
{
    return sqlite_run(conn, sql, p, n, e) < 0 ? -1 : 0;
}

const struct store_engine engine_sqlite = {
    .name = "sqlite",
    .schemes = {"sqlite"},
    /* BEGIN IMMEDIATE has already locked the whole database. */
    .lock_chain = "SELECT head_seq, head_hash FROM chain WHERE id = 1",
    .claim = sqlite_claim,
    .release = sqlite_release,
    .connect = sqlite_connect,
    .disconnect = sqlite_disconnect,
    .check = sqlite_check,
    .examine = sqlite_examine,
    .script = sqlite_script,
    .begin = sqlite_begin,
    .commit = sqlite_commit,
    .settle = NULL, /* a commit's result is always known */
    .rollback = sqlite_rollback,
    .in_tx = in_tx,
    .savepoint = sqlite_savepoint,
    .keep = sqlite_keep,
    .undo = sqlite_undo,
    .run = sqlite_run,
    .later = sqlite_later,
    .query = sqlite_query,
    .step = sqlite_step,
    .end = sqlite_end,
    .get_int = sqlite_get_int,
    .get_bytes = sqlite_get_bytes,
    .is_null = sqlite_is_null,
};
