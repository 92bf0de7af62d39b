/* pg: the PostgreSQL engine: transactions, commits, savepoints. */
#include "store/pg.h"

#include "base/mem.h"
#include "base/rnd.h"

#include <stdio.h>

static int pg_script(struct engine_conn *conn, const char *sql, struct err *e)
{
    AUTO(mem_free) char *text = pg_sql_schema(sql);

    return pg_exec(pg_conn_of(conn), text, e);
}

/* PostgreSQL has recovered before it accepts connections. */
static int pg_examine(struct engine_conn *conn, struct err *e)
{
    (void)conn;
    (void)e;
    return 0;
}

/* Notices that the server has closed an unused connection. */
static int pg_check(struct engine_conn *conn, struct err *e)
{
    struct pg_conn *c = pg_conn_of(conn);

    if (!c->lost && (!PQconsumeInput(c->h) || PQstatus(c->h) == CONNECTION_BAD))
        pg_lose(c, PQerrorMessage(c->h));
    return c->lost ? pg_revive(c, e) : 0;
}

static const char *begin_text(const struct pg_conn *c)
{
    if (!c->writes)
        return "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
    return c->durable ? "BEGIN; SET LOCAL synchronous_commit = on"
                      : "BEGIN; SET LOCAL synchronous_commit = off";
}

/* Nothing is lost if the connection ends here: a new one will do. */
static int pg_begin(struct engine_conn *conn, bool durable, struct err *e)
{
    struct pg_conn *c = pg_conn_of(conn);

    if (pg_check(conn, e) < 0)
        return -1;
    c->durable = durable;
    c->release = false;
    if (pg_exec(c, begin_text(c), e) < 0 &&
        (!c->lost || pg_revive(c, e) < 0 || pg_exec(c, begin_text(c), e) < 0))
        return -1;
    if (c->writes)
        pg_redo_begin(c);
    return 0;
}

static bool in_tx(struct engine_conn *conn)
{
    struct pg_conn *c = pg_conn_of(conn);
    PGTransactionStatusType s = PQtransactionStatus(c->h);

    return !c->lost && (s == PQTRANS_INTRANS || s == PQTRANS_INERROR || c->queued > 0);
}

static void pg_rollback(struct engine_conn *conn)
{
    struct pg_conn *c = pg_conn_of(conn);
    struct err e;

    (void)!pg_drain(c, &e); /* its failure is the reason for this call */
    if (in_tx(conn) && pg_exec(c, "ROLLBACK", &e) < 0)
        pg_lose(c, e.msg); /* a new connection has no transaction */
    if (c->writes)
        pg_redo_drop(c);
}

int pg_commit(struct pg_conn *c, int64_t token, struct err *e)
{
    char sql[128];

    (void)snprintf(sql, sizeof sql, "UPDATE holt_commit SET token = %lld WHERE id = 1; COMMIT",
                   (long long)token);
    if (pg_exec(c, sql, e) < 0)
        return c->lost ? ENGINE_DOUBT : -1;
    if (!c->lost && PQtransactionStatus(c->h) == PQTRANS_IDLE)
        return 0;
    return err_set(e, ERR_INTERNAL, 0, "the transaction did not end with its commit");
}

static int pg_commit_work(struct engine_conn *conn, struct err *e)
{
    struct pg_conn *c = pg_conn_of(conn);
    int64_t token = (int64_t)(rnd_u64() >> 1) | 1;
    int r;

    if (pg_drain(c, e) < 0) {
        pg_rollback(conn);
        return -1;
    }
    /* otherwise COMMIT would reply "ROLLBACK" */
    if (PQtransactionStatus(c->h) != PQTRANS_INTRANS) {
        pg_rollback(conn);
        return err_set(e, ERR_INTERNAL, 0, "a failed transaction cannot be committed");
    }
    r = pg_commit(c, token, e);
    if (r == 0)
        pg_redo_commit(c, token);
    else if (r == ENGINE_DOUBT)
        pg_redo_doubt(c, token);
    else
        pg_rollback(conn);
    return r;
}

static int pg_settle(struct engine_conn *conn, bool *ret_committed, struct err *e)
{
    struct pg_conn *c = pg_conn_of(conn);

    if (c->lost && pg_revive(c, e) < 0)
        return -1;
    if (pg_redo_settled(c, ret_committed))
        return 0;
    return err_set(e, ERR_INTERNAL, 0, "no commit is in doubt");
}

static void queue_text(struct pg_conn *c, const char *sql)
{
    pg_queue(c);
    if (!c->lost && !PQsendQueryParams(c->h, sql, 0, NULL, NULL, NULL, NULL, 0))
        pg_lose(c, PQerrorMessage(c->h));
}

/* In one round trip with the release of the previous one and the work's first statement. */
static int pg_savepoint(struct engine_conn *conn, struct err *e)
{
    struct pg_conn *c = pg_conn_of(conn);

    pg_redo_mark(c);
    if (c->release)
        queue_text(c, "RELEASE work");
    c->release = false;
    queue_text(c, "SAVEPOINT work");
    if (!c->lost)
        return 0;
    *e = c->why;
    return -1;
}

static int pg_keep(struct engine_conn *conn, struct err *e)
{
    (void)e;
    pg_conn_of(conn)->release = true;
    return 0;
}

static int pg_undo(struct engine_conn *conn, struct err *e)
{
    pg_redo_undo(pg_conn_of(conn));
    return pg_exec(pg_conn_of(conn), "ROLLBACK TO work; RELEASE work", e);
}

const struct store_engine engine_postgres = {
    .name = "postgres",
    .schemes = {"postgres", "postgresql"},
    .lock_chain = "SELECT head_seq, head_hash FROM chain WHERE id = 1 FOR UPDATE",
    .claim = pg_claim,
    .release = pg_release,
    .connect = pg_connect,
    .disconnect = pg_disconnect,
    .check = pg_check,
    .examine = pg_examine,
    .script = pg_script,
    .begin = pg_begin,
    .commit = pg_commit_work,
    .settle = pg_settle,
    .rollback = pg_rollback,
    .in_tx = in_tx,
    .savepoint = pg_savepoint,
    .keep = pg_keep,
    .undo = pg_undo,
    .run = pg_run,
    .later = pg_later,
    .query = pg_query,
    .step = pg_step,
    .end = pg_end,
    .get_int = pg_get_int,
    .get_bytes = pg_get_bytes,
    .is_null = pg_is_null,
};
