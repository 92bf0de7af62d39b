/* board_metrics: counts of cards, and how long they take. */
#include "core/team/board_internal.h"

#include <stdlib.h>

static struct board_agent *agent_entry(struct team *t, struct board_metrics *m, struct str name)
{
    for (size_t i = 0; i < m->agent_count; i++)
        if (str_eq(m->agents[i].name, name))
            return &m->agents[i];
    m->agents = team_grow(t->arena, m->agents, m->agent_count, sizeof *m->agents);
    m->agents[m->agent_count] = (struct board_agent){.name = arena_str(t->arena, name)};
    return &m->agents[m->agent_count++];
}

static int count_cards(struct team *t, struct str project, struct board_metrics *m, struct err *e)
{
    struct store_rows *rows;
    int r;

    if (tx_query(t->tx,
                 "SELECT status, assigned_to, COUNT(*) FROM cards WHERE project = :project "
                 "GROUP BY status, assigned_to ORDER BY assigned_to, status",
                 PARAMS(P_TEXT("project", project)), &rows, e) < 0)
        return -1;
    while ((r = rows_step(rows, e)) > 0) {
        int64_t status = rows_int(rows, 0), n = rows_int(rows, 2);
        struct str name = rows_text(rows, 1);
        struct board_agent *a = name.n > 0 ? agent_entry(t, m, name) : NULL;

        m->total += n;
        if (status < 0 || status >= CARD_STATUSES)
            continue;
        m->by_status[status] += n;
        if (a && status == CARD_DONE)
            a->done += n;
        if (a && status == CARD_IN_PROGRESS)
            a->in_progress += n;
        if (a && status == CARD_IN_REVIEW)
            a->in_review += n;
    }
    rows_end(rows);
    return r;
}

static int64_t percentile(const int64_t *sorted, int64_t n, int64_t percent)
{
    return n > 0 ? sorted[i64_min(n - 1, (n * percent + 99) / 100 - 1)] : 0;
}

#define MINUTES(ms) ((double)(ms) / 60000)

static int cycle_times(struct team *t, struct str project, struct board_metrics *m, struct err *e)
{
    struct store_rows *rows;
    int64_t *v = NULL, sum = 0, n = 0;
    int r;

    if (tx_query(t->tx,
                 "SELECT completed_ms - started_ms FROM cards WHERE project = :project AND "
                 "started_ms > 0 AND completed_ms > 0 ORDER BY completed_ms - started_ms",
                 PARAMS(P_TEXT("project", project)), &rows, e) < 0)
        return -1;
    while ((r = rows_step(rows, e)) > 0) {
        v = team_grow(t->arena, v, (size_t)n, sizeof *v);
        v[n] = i64_max(rows_int(rows, 0), 0);
        sum += v[n++];
    }
    rows_end(rows);
    m->completed = n;
    m->cycle_avg_min = n > 0 ? MINUTES(sum) / (double)n : 0;
    m->cycle_p50_min = MINUTES(percentile(v, n, 50));
    m->cycle_p90_min = MINUTES(percentile(v, n, 90));
    m->cycle_p99_min = MINUTES(percentile(v, n, 99));
    return r;
}

int board_metrics(struct team *t, struct str project, struct board_metrics *ret, struct err *e)
{
    struct project p;

    *ret = (struct board_metrics){0};
    if (project_need(t, project, &p, e) < 0 || count_cards(t, project, ret, e) < 0)
        return -1;
    return cycle_times(t, project, ret, e);
}
