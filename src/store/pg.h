/* pg: shared by the files of the PostgreSQL engine.  A node of holt has a schema of its own, so
 * that several holtd may share one database; the writer holds an advisory lock on it.
 * Thread: see engine.h. */
#pragma once

#include "base/arena.h"
#include "base/map.h"
#include "store/engine.h"

/* Their bodies are ours (pg_lib.c) and must not take the place of libpq's own inside libpq. */
#pragma GCC visibility push(hidden)
#include <libpq-fe.h>
#pragma GCC visibility pop

#define PG_SCHEMA_SIZE 64 /* a name has at most 63 bytes */
#define PG_PARAMS_MAX 64  /* in one statement */

struct pg_db {
    struct engine_db base;
    char *url;
    char *server; /* for people: the URL without secrets */
    char schema[PG_SCHEMA_SIZE];
    int64_t lock; /* key of the advisory lock, derived from the schema's name */
};

struct pg_redo { /* what a crashing server may forget: relaxed groups since the last synced one */
    struct arena arena;
    struct list groups;      /* committed, in order */
    struct pg_group *open;   /* of the running transaction, or NULL: it is synced */
    struct list *mark;       /* last statement at the savepoint */
    int64_t base;            /* token of the last synced group */
    int64_t doubt;           /* token of a group whose commit got no reply; 0: none */
    bool settled, committed; /* its result */
    bool foreign;            /* the database is not in the state we left it */
};

struct pg_conn {
    struct engine_conn base;
    struct pg_db *db;
    PGconn *h;
    struct map stmts; /* SQL text → struct pg_stmt */
    unsigned stmt_count;
    bool writes;
    bool durable;      /* the running transaction's commit waits for the disk */
    int queued;        /* statements sent in libpq's pipeline mode without a reply yet */
    bool release;      /* an ended savepoint has to be released */
    bool lost;         /* the connection is unusable */
    uint64_t retry_ns; /* do not reconnect before this time */
    struct err why;    /* why it is lost, or the last attempt's error */
    bool locked;       /* of the writer: holds the lock on the schema */
    int pid;           /* pid of the server's process for this connection */
    int old_pid;       /* pid of the one that last held the lock for us */
    struct pg_redo redo;
};

static inline struct pg_conn *pg_conn_of(struct engine_conn *c)
{
    return CONTAINER_OF(c, struct pg_conn, base);
}

/* --- pg_lib.c --- */
CHECKED int pg_lib_load(struct err *e); /* before any call of libpq; may be called again */

/* --- pg_err.c --- */
int pg_fail(struct pg_conn *c, const PGresult *r, const char *doing, struct err *e);
int pg_fail_lost(struct pg_conn *c, const char *why, struct err *e);
bool pg_is_end(const PGresult *r); /* the server announces the end of this connection */

/* --- pg_wait.c: every wait on a connection has a deadline --- */
/* Sends nothing; waits for the reply to what was sent.  Returns the last result, or the one that
 * failed; NULL: the connection is lost. */
PGresult *pg_answer(struct pg_conn *c);
/* The same for queued statements: pg_queue before each is sent, pg_drain for the replies.  pg_drain
 * without queued statements returns 0. */
void pg_queue(struct pg_conn *c);
PGresult *pg_queue_answer(struct pg_conn *c);
CHECKED int pg_drain(struct pg_conn *c, struct err *e);
/* Statements without parameters, in one round trip.  -1 with *e set. */
CHECKED int pg_exec(struct pg_conn *c, const char *sql, struct err *e);
CHECKED int pg_one(struct pg_conn *c, const char *sql, char *to, size_t size, struct err *e);
void pg_lose(struct pg_conn *c, const char *why);

/* --- pg_link.c: connections --- */
CHECKED int pg_claim(const struct store_config *cfg, struct engine_db **ret, struct err *e);
void pg_release(struct engine_db *d);
CHECKED int pg_connect(struct engine_db *d, enum engine_mode mode, struct engine_conn **ret,
                       struct err *e);
void pg_disconnect(struct engine_conn *conn);
/* Reconnects and recovers: takes the lock again, finds out the result of a commit in doubt, repeats
 * what the server has forgotten. */
CHECKED int pg_revive(struct pg_conn *c, struct err *e);

/* --- pg_redo.c --- */
void pg_redo_init(struct pg_redo *r);
void pg_redo_done(struct pg_redo *r);
void pg_redo_begin(struct pg_conn *c);
void pg_redo_note(struct pg_conn *c, const char *sql, const struct store_param *p, size_t n);
void pg_redo_mark(struct pg_conn *c);
void pg_redo_undo(struct pg_conn *c);                  /* back to the mark */
void pg_redo_drop(struct pg_conn *c);                  /* the transaction was rolled back */
void pg_redo_commit(struct pg_conn *c, int64_t token); /* it was committed */
void pg_redo_doubt(struct pg_conn *c, int64_t token);  /* its result is unknown */
CHECKED int pg_redo_start(struct pg_conn *c, struct err *e);
CHECKED int pg_redo_resume(struct pg_conn *c, struct err *e);
bool pg_redo_settled(struct pg_conn *c, bool *ret_committed);

/* --- pg.c --- */
/* 0; -1: everything is undone; ENGINE_DOUBT.  The token is written in the same transaction, to be
 * looked up afterwards. */
CHECKED int pg_commit(struct pg_conn *c, int64_t token, struct err *e);

/* --- pg_sql.c --- */
struct pg_sql {
    char *text; /* heap; with $1, $2, … */
    size_t n;
    char names[PG_PARAMS_MAX][32];
};
CHECKED int pg_sql_make(const char *sql, struct pg_sql *ret, struct err *e);
/* Creates tables whose texts sort by bytes, as in SQLite, whatever the database's locale. */
char *pg_sql_schema(const char *sql);

/* --- pg_stmt.c --- */
int pg_later(struct engine_conn *conn, const char *sql, const struct store_param *p, size_t n,
             struct err *e);
int64_t pg_run(struct engine_conn *conn, const char *sql, const struct store_param *p, size_t n,
               struct err *e);
int pg_query(struct engine_conn *conn, const char *sql, const struct store_param *p, size_t n,
             struct store_rows **ret, struct err *e);
int pg_step(struct store_rows *r, struct err *e);
void pg_end(struct store_rows *r);
int64_t pg_get_int(const struct store_rows *r, int column);
struct str pg_get_bytes(const struct store_rows *r, int column);
bool pg_is_null(const struct store_rows *r, int column);
void pg_forget_stmts(struct pg_conn *c);
