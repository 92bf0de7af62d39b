#include "store_suite.h"

#include <assert.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>

static const char *url;

static void run(const char *sql)
{
    PGconn *h = PQconnectdb(url);
    PGresult *r = PQexec(h, sql);
    ExecStatusType s = PQresultStatus(r);

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
