#include "floor_sqlite.h"

#include <assert.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* As in src/store/migrations, where they are explained. */
static const char tables[] =
    "CREATE TABLE chain (id BIGINT PRIMARY KEY, head_seq BIGINT NOT NULL, head_hash BYTEA);"
    "INSERT INTO chain VALUES (1, 0, NULL);"
    "CREATE TABLE events (seq BIGINT PRIMARY KEY, time_ms BIGINT NOT NULL, type TEXT NOT NULL,"
    " object TEXT NOT NULL, actor TEXT NOT NULL, audit BIGINT NOT NULL, times BIGINT NOT NULL,"
    " data TEXT NOT NULL, prev BYTEA NOT NULL, hash BYTEA NOT NULL);"
    "CREATE INDEX events_object ON events (object, seq);";

static double now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void exec(sqlite3 *h, const char *sql)
{
    if (sqlite3_exec(h, sql, NULL, NULL, NULL) != SQLITE_OK) {
        (void)fprintf(stderr, "%s: %s\n", sql, sqlite3_errmsg(h));
        abort();
    }
}

static void step(sqlite3_stmt *s)
{
    if (sqlite3_step(s) != SQLITE_DONE)
        abort();
    (void)sqlite3_reset(s);
}

static sqlite3_stmt *prepare(sqlite3 *h, const char *sql)
{
    sqlite3_stmt *s = NULL;

    if (sqlite3_prepare_v2(h, sql, -1, &s, NULL) != SQLITE_OK)
        abort();
    return s;
}

static void insert(sqlite3_stmt *s, long long seq)
{
    static const char hash[32];

    (void)sqlite3_bind_int64(s, 1, seq);
    (void)sqlite3_bind_int64(s, 2, 1700000000000 + seq);
    (void)sqlite3_bind_text(s, 3, "bench.put", -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(s, 4, "bench/1", -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(s, 5, "system", -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(s, 6, "{\"value\":\"0123456789abcdef0123456789abcdef\"}", -1,
                            SQLITE_STATIC);
    (void)sqlite3_bind_blob(s, 7, hash, sizeof hash, SQLITE_STATIC);
    step(s);
}

double floor_sqlite(const char *path, int group, double seconds)
{
    sqlite3 *h = NULL;
    sqlite3_stmt *put, *head;
    long long seq = 0;
    double begin, end;

    if (sqlite3_open(path, &h) != SQLITE_OK)
        abort();
    exec(h, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=1000");
    exec(h, tables);
    put = prepare(h, "INSERT INTO events VALUES (?1, ?2, ?3, ?4, ?5, 0, 1, ?6, ?7, ?7)");
    head = prepare(h, "UPDATE chain SET head_seq = ?1, head_hash = ?2 WHERE id = 1");
    begin = end = now();
    while (end - begin < seconds) {
        exec(h, "BEGIN IMMEDIATE");
        for (int i = 0; i < group; i++)
            insert(put, ++seq);
        (void)sqlite3_bind_int64(head, 1, seq);
        (void)sqlite3_bind_blob(head, 2, "01234567890123456789012345678901", 32, SQLITE_STATIC);
        step(head);
        exec(h, "COMMIT");
        end = now();
    }
    (void)sqlite3_finalize(put);
    (void)sqlite3_finalize(head);
    (void)sqlite3_close(h);
    return (double)seq / (end - begin);
}
