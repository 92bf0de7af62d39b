/* engine: one kind of database behind core/store.h: SQLite, PostgreSQL.
 * An engine has connections, transactions and statements; the store has groups, the chain of events
 * and threads.  To add one: a table like engine_sqlite, its row in store.c's list, and a run of
 * tests/conformance/store_suite.
 * Thread: a connection belongs to one thread; claim, connect and release to the opening one. */
#pragma once

#include "base/list.h"
#include "core/store.h"

struct engine_db { /* first member of the engine's own struct */
    const struct store_engine *engine;
};

struct engine_conn { /* likewise */
    struct engine_db *db;
};

struct store_rows { /* likewise: a running query */
    struct engine_conn *conn;
    struct list link; /* in the tx; unlinked by end */
};

enum engine_mode { ENGINE_WRITE, ENGINE_READ };
#define ENGINE_DOUBT 1 /* a commit's result: unknown */

struct store_engine {
    const char *name;
    const char *schemes[3]; /* URL schemes; NULL-terminated */
    /* Reads the chain's row with a lock held until the transaction's end. */
    const char *lock_chain;
    /* Takes the database for this process; fails while another holtd has it. */
    int (*claim)(const struct store_config *c, struct engine_db **ret, struct err *e);
    void (*release)(struct engine_db *db);
    int (*connect)(struct engine_db *db, enum engine_mode mode, struct engine_conn **ret,
                   struct err *e);
    void (*disconnect)(struct engine_conn *c);
    int (*check)(struct engine_conn *c, struct err *e);   /* cheap: whether it still works */
    int (*examine)(struct engine_conn *c, struct err *e); /* after a crash; at most a second */

    int (*script)(struct engine_conn *c, const char *sql, struct err *e); /* many statements */
    int (*begin)(struct engine_conn *c, bool durable, struct err *e); /* durable: commit syncs */
    /* On failure everything is undone.  ENGINE_DOUBT: the connection was lost meanwhile; settle
     * finds out the result later, and until then nothing else is begun. */
    int (*commit)(struct engine_conn *c, struct err *e);
    /* -1: not known yet */
    int (*settle)(struct engine_conn *c, bool *ret_committed, struct err *e);
    void (*rollback)(struct engine_conn *c);
    bool (*in_tx)(struct engine_conn *c); /* false: an error has ended the transaction */
    int (*savepoint)(struct engine_conn *c, struct err *e);
    int (*keep)(struct engine_conn *c, struct err *e); /* ends the savepoint */
    int (*undo)(struct engine_conn *c, struct err *e);

    int64_t (*run)(struct engine_conn *c, const char *sql, const struct store_param *p, size_t n,
                   struct err *e);
    /* Like run, but may be delayed: its failure may be reported by a later call, at the latest by
     * commit. */
    int (*later)(struct engine_conn *c, const char *sql, const struct store_param *p, size_t n,
                 struct err *e);
    int (*query)(struct engine_conn *c, const char *sql, const struct store_param *p, size_t n,
                 struct store_rows **ret, struct err *e);
    int (*step)(struct store_rows *r, struct err *e);
    void (*end)(struct store_rows *r);
    int64_t (*get_int)(const struct store_rows *r, int column);
    struct str (*get_bytes)(const struct store_rows *r, int column); /* text or blob */
    bool (*is_null)(const struct store_rows *r, int column);
};

extern const struct store_engine engine_sqlite, engine_postgres;
