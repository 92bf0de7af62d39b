/* pg_wait: waits for PostgreSQL with deadlines; pipelined statements. */
#include "store/pg.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>

#define ANSWER_NS 30000000000ULL /* after that the server is considered dead */

void pg_lose(struct pg_conn *c, const char *why)
{
    if (c->lost)
        return;
    (void)pg_fail_lost(c, why, &c->why);
    c->lost = true;
    c->release = false;
    c->queued = 0;
    if (c->locked)
        c->old_pid = c->pid;
    c->locked = false;
}

/* Waits until the server has sent something, or accepts what we send. */
static int wait_io(struct pg_conn *c, bool write, uint64_t end)
{
    struct pollfd p = {.fd = PQsocket(c->h), .events = (short)(POLLIN | (write ? POLLOUT : 0))};
    uint64_t now = uv_hrtime();
    int n;

    if (p.fd < 0 || now >= end)
        return -1;
    n = poll(&p, 1, (int)((end - now) / 1000000) + 1);
    if (n == 0 || (n < 0 && errno != EINTR))
        return -1;
    return p.revents & (POLLIN | POLLERR | POLLHUP) && !PQconsumeInput(c->h) ? -1 : 0;
}

/* The next result, NULL at the end of the reply; c->lost if none will come. */
static PGresult *next_result(struct pg_conn *c, uint64_t end)
{
    int left;

    while ((left = PQflush(c->h)) > 0 || (left == 0 && PQisBusy(c->h)))
        if (wait_io(c, left > 0, end) < 0) {
            pg_lose(c, uv_hrtime() >= end ? "it does not answer" : PQerrorMessage(c->h));
            return NULL;
        }
    if (left < 0) {
        pg_lose(c, PQerrorMessage(c->h));
        return NULL;
    }
    return PQgetResult(c->h);
}

static bool is_good(const PGresult *r)
{
    ExecStatusType s = PQresultStatus(r);

    return s == PGRES_COMMAND_OK || s == PGRES_TUPLES_OK;
}

/* r, or NULL if the connection is unusable. */
static PGresult *unless_lost(struct pg_conn *c, PGresult *r)
{
    if (!c->lost && (PQstatus(c->h) == CONNECTION_BAD || pg_is_end(r)))
        pg_lose(c, PQresultErrorMessage(r));
    if (!c->lost)
        return r;
    PQclear(r);
    return NULL;
}

PGresult *pg_answer(struct pg_conn *c)
{
    PGresult *kept = NULL, *r;
    uint64_t end = uv_hrtime() + ANSWER_NS;

    while ((r = next_result(c, end)) != NULL) {
        ExecStatusType s = PQresultStatus(r);

        if (s == PGRES_COPY_IN || s == PGRES_COPY_OUT || s == PGRES_COPY_BOTH)
            pg_lose(c, "it started a COPY that was not requested");
        if (kept && !is_good(kept)) {
            PQclear(r); /* the first failure explains the others */
        } else {
            PQclear(kept);
            kept = r;
        }
        if (c->lost)
            break;
    }
    return unless_lost(c, kept);
}

/* --- several statements in one round trip --- */

void pg_queue(struct pg_conn *c)
{
    if (c->queued++ == 0 && !PQenterPipelineMode(c->h))
        pg_lose(c, PQerrorMessage(c->h));
}

PGresult *pg_queue_answer(struct pg_conn *c)
{
    PGresult *kept = NULL, *r;
    uint64_t end = uv_hrtime() + ANSWER_NS;
    bool ended = false;

    c->queued = 0;
    if (c->lost || !PQpipelineSync(c->h))
        pg_lose(c, PQerrorMessage(c->h));
    while (!c->lost && !ended) {
        r = next_result(c, end);
        if (!r && uv_hrtime() >= end)
            pg_lose(c, "it does not answer");
        if (!r)
            continue; /* between two statements */
        ended = PQresultStatus(r) == PGRES_PIPELINE_SYNC;
        if (ended || (kept && !is_good(kept))) {
            PQclear(r);
        } else {
            PQclear(kept);
            kept = r;
        }
        if (PQstatus(c->h) == CONNECTION_BAD)
            break;
    }
    if (!c->lost && ended && !PQexitPipelineMode(c->h))
        pg_lose(c, PQerrorMessage(c->h));
    return unless_lost(c, kept);
}

int pg_drain(struct pg_conn *c, struct err *e)
{
    PGresult *r;
    int failed;

    if (c->queued == 0)
        return 0;
    r = pg_queue_answer(c);
    failed = r && is_good(r) ? 0 : pg_fail(c, r, "what was queued", e);
    PQclear(r);
    return failed;
}

/* --- plain statements --- */

static PGresult *ask(struct pg_conn *c, const char *sql)
{
    if (c->lost)
        return NULL;
    if (PQsendQuery(c->h, sql))
        return pg_answer(c);
    pg_lose(c, PQerrorMessage(c->h));
    return NULL;
}

int pg_exec(struct pg_conn *c, const char *sql, struct err *e)
{
    PGresult *r;
    int failed;

    if (pg_drain(c, e) < 0)
        return -1;
    r = ask(c, sql);
    failed = r && is_good(r) ? 0 : pg_fail(c, r, sql, e);
    PQclear(r);
    return failed;
}

int pg_one(struct pg_conn *c, const char *sql, char *to, size_t size, struct err *e)
{
    PGresult *r = ask(c, sql);
    int found = r && is_good(r) ? PQntuples(r) > 0 : pg_fail(c, r, sql, e);

    if (found > 0)
        (void)snprintf(to, size, "%s", PQgetvalue(r, 0, 0));
    PQclear(r);
    return found;
}
