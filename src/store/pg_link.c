/* pg_link: connections to PostgreSQL: connect, lock, reconnect. */
#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "proto/digest.h"
#include "store/pg.h"

#include <stdio.h>

#define VERSION_MIN 140000
#define START_NS 15000000000ULL /* how long start-up waits for a server that is not ready yet */
#define START_LOCK_NS 5000000000ULL
#define REVIVE_LOCK_NS 1000000000ULL
#define RETRY_NS 300000000ULL /* between attempts to reconnect */

/* --- the URL --- */

static const char *option(const PQconninfoOption *all, const char *name)
{
    for (; all && all->keyword; all++)
        if (strcmp(all->keyword, name) == 0 && all->val && all->val[0])
            return all->val;
    return NULL;
}

/* libpq's own message may quote the password. */
static char *name_of(const char *url, struct err *e)
{
    PQconninfoOption *all = PQconninfoParse(url, NULL);
    AUTO(buf_done) struct buf b = {0};
    const char *user = option(all, "user"), *host = option(all, "host");
    const char *port = option(all, "port"), *db = option(all, "dbname");

    if (!all) {
        err_set(e, ERR_INVALID, 0, "the URL of the database is malformed");
        err_hint(e, "wanted: postgres://USER:PASSWORD@HOST:PORT/DATABASE, with special characters "
                    "as %%XX");
        return NULL;
    }
    buf_printf(&b, "postgres://%s%s%s%s%s/%s", user ? user : "", user ? "@" : "",
               host ? host : "localhost", port ? ":" : "", port ? port : "", db ? db : "");
    PQconninfoFree(all);
    return buf_steal(&b);
}

static int name_schema(struct pg_db *db, const char *node, struct err *e)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";
    unsigned char sum[SHA256_SIZE];

    if (!node || !node[0])
        (void)snprintf(db->schema, sizeof db->schema, "holt");
    else if (strlen(node) > 40 || node[strspn(node, allowed)])
        return err_set(e, ERR_INVALID, 0,
                       "'%.60s' is not a valid name of a node: at most 40 of a-z, 0-9, '_' and '-'",
                       node);
    else
        (void)snprintf(db->schema, sizeof db->schema, "holt_%s", node);
    sha256(str_of(db->schema), sum);
    memcpy(&db->lock, sum, sizeof db->lock);
    return 0;
}

int pg_claim(const struct store_config *cfg, struct engine_db **ret, struct err *e)
{
    struct pg_db *db;

    if (pg_lib_load(e) < 0)
        return -1;
    db = xzalloc(sizeof *db);
    db->base.engine = &engine_postgres;
    db->url = xstrdup(cfg->url);
    db->server = name_of(cfg->url, e);
    if (!db->server || name_schema(db, cfg->node, e) < 0) {
        pg_release(&db->base);
        return -1;
    }
    *ret = &db->base;
    return 0;
}

void pg_release(struct engine_db *d)
{
    struct pg_db *db = CONTAINER_OF(d, struct pg_db, base);

    mem_wipe(db->url, strlen(db->url));
    free(db->url);
    free(db->server);
    free(db);
}

/* --- one connection --- */

static void ignore_notice(void *arg, const char *message)
{
    (void)arg;
    (void)message;
}

/* Parameters of the URL override the ones before it. */
#define PARAMETERS(url)                                                                            \
    (const char *const[]){"connect_timeout",  "keepalives_idle",  "keepalives_interval",           \
                          "keepalives_count", "tcp_user_timeout", "fallback_application_name",     \
                          "dbname",           "client_encoding",  NULL},                           \
        (const char *const[])                                                                      \
    {                                                                                              \
        "3", "30", "10", "3", "30000", "holtd", (url), "UTF8", NULL                                \
    }

static int refuse_server(struct pg_conn *c, const char *hint, struct err *e)
{
    const char *encoding = PQparameterStatus(c->h, "server_encoding");

    err_set(e, ERR_UNSUPPORTED, 0, "database '%s' has PostgreSQL %d with encoding %s",
            c->db->server, PQserverVersion(c->h) / 10000, encoding ? encoding : "unknown");
    return err_hint(e, "%s", hint);
}

static int dial(struct pg_conn *c, struct err *e)
{
    const char *encoding;

    PQfinish(c->h);
    pg_forget_stmts(c);
    c->h = PQconnectdbParams(PARAMETERS(c->db->url), 1);
    c->lost = false;
    if (PQstatus(c->h) != CONNECTION_OK || PQsetnonblocking(c->h, 1) != 0) {
        pg_lose(c, PQerrorMessage(c->h));
        *e = c->why;
        return -1;
    }
    (void)PQsetNoticeProcessor(c->h, ignore_notice, NULL);
    c->pid = PQbackendPID(c->h); /* libpq forgets it with the connection */
    if (PQserverVersion(c->h) < VERSION_MIN)
        return refuse_server(c, "holt needs PostgreSQL 14 or later", e);
    encoding = PQparameterStatus(c->h, "server_encoding");
    if (!encoding || strcmp(encoding, "UTF8") != 0)
        return refuse_server(c, "holt needs a database made with ENCODING 'UTF8'", e);
    return 0;
}

/* Idle timeouts of a role or a server are meant for people, not for a daemon. */
static int set_up_session(struct pg_conn *c, struct err *e)
{
    char sql[512];

    (void)snprintf(sql, sizeof sql,
                   "SET search_path TO \"%s\"; SET statement_timeout = 0;"
                   "SET idle_in_transaction_session_timeout = 0; SET idle_session_timeout = 0;"
                   "SET standard_conforming_strings = on; SET default_transaction_read_only = %s",
                   c->db->schema, c->writes ? "off" : "on");
    return pg_exec(c, sql, e);
}

/* --- the lock: one writer per schema --- */

/* The condition that a row of pg_locks is our lock, whoever holds it. */
static void holder_sql(const struct pg_db *db, char *to, size_t size)
{
    uint64_t key = (uint64_t)db->lock;

    (void)snprintf(to, size,
                   "locktype = 'advisory' AND granted AND objsubid = 1 AND database ="
                   " (SELECT oid FROM pg_database WHERE datname = current_database())"
                   " AND classid = %u AND objid = %u",
                   (unsigned)(key >> 32), (unsigned)key);
}

/* The server may not have noticed that our last connection is gone, and may still be committing. */
static int end_old(struct pg_conn *c, struct err *e)
{
    char sql[512], ours[256], ignored[16];

    if (c->old_pid == 0)
        return 0;
    holder_sql(c->db, ours, sizeof ours);
    (void)snprintf(sql, sizeof sql,
                   "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE %s AND pid = %d", ours,
                   c->old_pid);
    return pg_one(c, sql, ignored, sizeof ignored, e);
}

static int refuse_lock(struct pg_conn *c, struct err *e)
{
    char sql[640], theirs[256], who[96] = "unknown";

    holder_sql(c->db, theirs, sizeof theirs);
    (void)snprintf(sql, sizeof sql,
                   "SELECT coalesce(host(client_addr), 'the server''s machine') || ', session '"
                   " || pid FROM pg_stat_activity WHERE pid IN (SELECT pid FROM pg_locks WHERE %s)",
                   theirs);
    if (pg_one(c, sql, who, sizeof who, e) < 0)
        return -1;
    err_set(e, ERR_CONFLICT, 0, "schema '%s' of '%s' is in use by another holtd (from %s)",
            c->db->schema, c->db->server, who);
    return err_hint(e, "stop that one first, or give this one another `node`");
}

static int take_lock(struct pg_conn *c, uint64_t patience, struct err *e)
{
    uint64_t end = uv_hrtime() + patience;
    char sql[96], got[8] = "";

    (void)snprintf(sql, sizeof sql, "SELECT pg_try_advisory_lock(%lld)", (long long)c->db->lock);
    if (end_old(c, e) < 0)
        return -1;
    for (;;) {
        if (pg_one(c, sql, got, sizeof got, e) < 0)
            return -1;
        if (got[0] == 't')
            break;
        if (uv_hrtime() >= end)
            return refuse_lock(c, e);
        uv_sleep(50);
    }
    c->locked = true;
    c->old_pid = 0;
    return 0;
}

/* --- start-up --- */

/* Waits only for a server that is unreachable or still starting.  It may be ready a moment after it
 * has refused us: only one that refuses again is to blame on the settings. */
static int dial_patiently(struct pg_conn *c, struct err *e)
{
    uint64_t end = uv_hrtime() + START_NS;
    bool told = false, was_ready = false;

    while (dial(c, e) < 0) {
        PGPing p = e->code == ERR_UNAVAILABLE ? PQpingParams(PARAMETERS(c->db->url), 1) : PQPING_OK;

        if (e->code == ERR_UNAVAILABLE && p == PQPING_OK && !was_ready) {
            was_ready = true;
            continue;
        }
        if ((p != PQPING_NO_RESPONSE && p != PQPING_REJECT) || uv_hrtime() >= end) {
            if (e->code == ERR_UNAVAILABLE && p == PQPING_OK)
                err_hint(e, "check user, password and database in `db`, and the server's "
                            "pg_hba.conf");
            return -1;
        }
        if (!told)
            log_warn("waiting for the database server", LOG_E(e));
        told = true;
        uv_sleep(500);
    }
    return 0;
}

/* Check first: CREATE SCHEMA needs a privilege on the database even if the schema exists. */
static int make_schema(struct pg_conn *c, struct err *e)
{
    char sql[128], found[8];
    int r;

    (void)snprintf(sql, sizeof sql, "SELECT 1 FROM pg_namespace WHERE nspname = '%s'",
                   c->db->schema);
    r = pg_one(c, sql, found, sizeof found, e);
    if (r != 0)
        return r < 0 ? -1 : 0;
    (void)snprintf(sql, sizeof sql, "CREATE SCHEMA \"%s\"", c->db->schema);
    return pg_exec(c, sql, e);
}

static int open_conn(struct pg_conn *c, struct err *e)
{
    if (dial_patiently(c, e) < 0 || set_up_session(c, e) < 0)
        return -1;
    if (!c->writes)
        return 0;
    if (take_lock(c, START_LOCK_NS, e) < 0 || make_schema(c, e) < 0)
        return -1;
    return pg_redo_start(c, e);
}

int pg_connect(struct engine_db *d, enum engine_mode mode, struct engine_conn **ret, struct err *e)
{
    struct pg_conn *c = xzalloc(sizeof *c);

    c->base.db = d;
    c->db = CONTAINER_OF(d, struct pg_db, base);
    c->writes = mode == ENGINE_WRITE;
    pg_redo_init(&c->redo);
    if (open_conn(c, e) < 0) {
        pg_disconnect(&c->base);
        return -1;
    }
    *ret = &c->base;
    return 0;
}

void pg_disconnect(struct engine_conn *conn)
{
    struct pg_conn *c;

    if (!conn)
        return;
    c = pg_conn_of(conn);
    pg_forget_stmts(c);
    pg_redo_done(&c->redo);
    PQfinish(c->h);
    free(c);
}

/* --- reconnecting --- */

static int open_again(struct pg_conn *c, struct err *e)
{
    if (dial(c, e) < 0 || set_up_session(c, e) < 0)
        return -1;
    if (!c->writes)
        return 0;
    return take_lock(c, REVIVE_LOCK_NS, e) < 0 || pg_redo_resume(c, e) < 0 ? -1 : 0;
}

int pg_revive(struct pg_conn *c, struct err *e)
{
    uint64_t began = uv_hrtime();

    if (began < c->retry_ns) {
        *e = c->why;
        return -1;
    }
    if (open_again(c, e) == 0) {
        c->retry_ns = 0;
        return 0;
    }
    pg_lose(c, e->msg);
    c->why = *e;
    /* A remote server that does not reply must not take all of the thread's time. */
    c->retry_ns = uv_hrtime() + RETRY_NS + (uv_hrtime() - began);
    return -1;
}
