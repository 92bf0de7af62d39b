#include "store_suite.h"

#include "store/pg.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

static const char *url;

/* By those functions of libpq that the store has loaded. */
static PGconn *connect_to(const char *to)
{
    const char *const keys[] = {"dbname", NULL}, *const values[] = {to, NULL};
    struct err e = {0};

    if (pg_lib_load(&e) < 0)
        abort();
    return PQconnectdbParams(keys, values, 1);
}

static void run(const char *sql)
{
    PGconn *h = connect_to(url);
    PGresult *r = PQsendQuery(h, sql) ? PQgetResult(h) : NULL, *next;
    ExecStatusType s;

    while (r && (next = PQgetResult(h))) { /* the last of several statements */
        PQclear(r);
        r = next;
    }
    s = PQresultStatus(r);

    if (s != PGRES_COMMAND_OK && s != PGRES_TUPLES_OK)
        (void)fprintf(stderr, "%s: %s\n", sql, PQerrorMessage(h));
    assert(s == PGRES_COMMAND_OK || s == PGRES_TUPLES_OK);
    PQclear(r);
    PQfinish(h);
}

static void wipe(void)
{
    run("SET client_min_messages = error; DROP SCHEMA IF EXISTS holt CASCADE");
}

static void run_sql(const char *script)
{
    char sql[1024];

    (void)snprintf(sql, sizeof sql, "SET search_path TO holt; %s", script);
    run(sql);
}

int main(void)
{
    struct store_place p = {.wipe = wipe, .run_sql = run_sql};

    url = getenv("HOLT_TEST_POSTGRES"); /* set by tests/tools/postgres.py */
    if (!url)
        return 77;
    p.url = url;
    return store_suite(&p);
}
