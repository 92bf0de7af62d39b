/* store: durable state, the same for SQLite and PostgreSQL.
 *
 * Work is a function that runs on the store's thread inside a transaction, on data copied for it;
 * its completion is a callback on the loop's thread.  Many writes share one commit; each has a
 * savepoint of its own, so one that fails undoes only itself.  Reads run on other threads and see
 * committed data.  SQL: one text for both engines (docs/store.md): BIGINT, TEXT, BYTEA, ON
 * CONFLICT, RETURNING, named parameters ":name"; ids, seq and times are made by holtd.  Queues are
 * bounded: past the bound ERR_LIMIT.
 * Thread: the loop's, except for the functions under "inside work".  A callback never comes from
 * within the call that requested it. */
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <uv.h>

struct store;
struct store_tx;
struct event_spec;

enum store_class {
    STORE_DURABLE = 1, /* class 1: synced before its callback */
    STORE_RELAXED = 2, /* class 2: written before its callback, synced within 100 ms */
};

/* On the store's thread.  Non-zero undoes the work's changes, and the callback gets *e.  After a
 * failed statement the work cannot succeed: PostgreSQL refuses all that follow. */
typedef int (*store_work)(struct store_tx *tx, void *arg, struct err *e);
/* On the loop's thread, after the commit; e->code is ERR_NONE on success. */
typedef void (*store_done)(void *arg, const struct err *e);

struct store_config {
    uv_loop_t *loop;
    const char *url;  /* "sqlite:/path/holt.db", "postgres://…" */
    const char *node; /* names this daemon among those sharing a PostgreSQL database, or NULL */
    const char *vfs;  /* SQLite VFS for tests, or NULL */
    size_t write_queue, read_queue; /* queue bounds; 0: 10,000 and 1,000 */
};

/* Opens, checks, migrates.  Blocking: at start-up only. */
CHECKED int store_open(const struct store_config *c, struct store **ret, struct err *e);
/* Finishes queued work, syncs, marks the shutdown as clean, closes; blocking, at the end
 * only.  Pending callbacks are called before it returns.  The loop must turn once more afterwards
 * (its handle is freed there).  Takes NULL. */
void store_close(struct store *s);
void store_write(struct store *s, enum store_class class, store_work work, store_done done,
                 void *arg);
/* Class 2, for a change that no client waits for yet: it shares the commit of the next write, or
 * has its own after STORE_LATER_MS.  Writes keep their order. */
#define STORE_LATER_MS 10
void store_write_later(struct store *s, store_work work, store_done done, void *arg);
void store_read(struct store *s, store_work work, store_done done, void *arg);
/* At start-up, before the loop runs: the work is committed (class 1) when it returns. */
CHECKED int store_now(struct store *s, store_work work, void *arg, struct err *e);
bool store_is_healthy(struct store *s, struct err *e); /* the last write's outcome, for /readyz */
uv_loop_t *store_loop(const struct store *s);
const char *store_kind(const struct store *s); /* "sqlite", "postgres" */

/* Called on the loop's thread after each commit with events, before the callbacks of its
 * works.  One listener: core/event/event.c.  fn NULL: none. */
struct event;
typedef void (*store_events)(void *arg, const struct event *ev, size_t n);
void store_on_events(struct store *s, store_events fn, void *arg);

/* --- inside work --- */

struct store_param {  /* made by the P_* macros */
    const char *name; /* with or without the ':'; NULL: the Nth that the statement names */
    enum { STORE_INT, STORE_TEXT, STORE_BLOB, STORE_DOUBLE, STORE_NULL } type;
    int64_t i;
    double d;
    struct str s;
};
#define P_INT(n, v) {.name = n, .type = STORE_INT, .i = (v)}
#define P_TEXT(n, v) {.name = n, .type = STORE_TEXT, .s = (v)} /* a str with p NULL is NULL */
#define P_C(n, v) {.name = n, .type = STORE_TEXT, .s = str_of(v)}
#define P_BLOB(n, v) {.name = n, .type = STORE_BLOB, .s = (v)}
#define PARAMS(...)                                                                                \
    (const struct store_param[]){__VA_ARGS__},                                                     \
        ARRAY_LEN(((const struct store_param[]){__VA_ARGS__}))
#define NO_PARAMS NULL, 0

/* Runs a statement that returns no rows; returns the number of changed rows. */
CHECKED int64_t tx_run(struct store_tx *tx, const char *sql, const struct store_param *p, size_t n,
                       struct err *e);
/* Rows: tx_step returns 1 with a row, 0 at the end.  tx_query's statement ends with the work at the
 * latest. */
struct store_rows;
CHECKED int tx_query(struct store_tx *tx, const char *sql, const struct store_param *p, size_t n,
                     struct store_rows **ret, struct err *e);
CHECKED int rows_step(struct store_rows *r, struct err *e);
void rows_end(struct store_rows *r);
int64_t rows_int(const struct store_rows *r, int column);
struct str rows_text(const struct store_rows *r,
                     int column); /* valid until the next step; p NULL for NULL */
struct str rows_blob(const struct store_rows *r, int column);
bool rows_is_null(const struct store_rows *r, int column);

/* Appends one event to the log as part of this work (core/event/event.h).  seq and hash are
 * assigned at the end of the group; *ret_seq (may be NULL; memory valid until the callback) is set
 * before the callback. */
void tx_event(struct store_tx *tx, const struct event_spec *ev, int64_t *ret_seq);

/* Written in one transaction with a new object's row: an idempotency key.  The call that gets one
 * with its argument frees the argument, also if nothing is made. */
struct tx_hook {
    /* on the loop's thread, before: the object as it will be; it knows its type */
    void (*ready)(void *arg, const void *object);
    int (*write)(struct store_tx *tx, void *arg, struct err *e);
    void (*free)(void *arg);
};
