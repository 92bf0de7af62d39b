#include "store/pg.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>

#define ANSWER_NS 30000000000ULL /* a server that takes longer is taken for dead */

void pg_lose(struct pg_conn *c, const char *why)
{
    if (c->lost)
        return;
    (void)pg_fail_lost(c, why, &c->why);
    c->lost = true;
    c->release = false;
    if (c->locked)
        c->old_pid = c->pid;
    c->locked = false;
}

/* Until the server has sent something, or has room for what we send. */
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

/* The next result, NULL at the end of the answer; c->lost when there is none to come. */
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

PGresult *pg_answer(struct pg_conn *c)
{
    PGresult *kept = NULL, *r;
    uint64_t end = uv_hrtime() + ANSWER_NS;

    while ((r = next_result(c, end)) != NULL) {
        ExecStatusType s = PQresultStatus(r);

        if (s == PGRES_COPY_IN || s == PGRES_COPY_OUT || s == PGRES_COPY_BOTH)
            pg_lose(c, "it speaks of a copy that nobody asked for");
        if (kept && !is_good(kept)) {
            PQclear(r); /* the first failure is the reason of the others */
        } else {
            PQclear(kept);
            kept = r;
        }
        if (c->lost)
            break;
    }
    if (!c->lost && (PQstatus(c->h) == CONNECTION_BAD || pg_is_end(kept)))
        pg_lose(c, PQresultErrorMessage(kept));
    if (!c->lost)
        return kept;
    PQclear(kept);
    return NULL;
}

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
    PGresult *r = ask(c, sql);
    int failed = r && is_good(r) ? 0 : pg_fail(c, r, sql, e);

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
