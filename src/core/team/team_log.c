/* team_log: reads the newest log entries about the team. */
#include "core/team/team.h"

int team_log(struct team *t, const char *dialect, int64_t limit, struct event_list *ret,
             struct err *e)
{
    const char *routes = arena_printf(t->arena, "operation/%s.%%", dialect);
    struct store_rows *rows;
    int r;

    *ret = (struct event_list){0};
    if (tx_query(
            t->tx,
            "SELECT seq, time_ms, type, object, actor, data, audit, times FROM events WHERE "
            "type LIKE 'agent.%' OR type LIKE 'task.%' OR type LIKE 'project.%' OR "
            "type LIKE 'message.%' OR type LIKE 'approval.%' OR "
            "(audit = 1 AND (object LIKE :routes OR "
            "object LIKE 'operation/agent.%' OR object LIKE 'operation/task.%' OR "
            "object LIKE 'operation/project.%' OR object LIKE 'operation/message.%' OR "
            "object LIKE 'operation/approval.%')) ORDER BY seq DESC LIMIT :limit",
            PARAMS(P_TEXT("routes", str_of(routes)), P_INT("limit", i64_min(limit, TEAM_PAGE_MAX))),
            &rows, e) < 0)
        return -1;
    while ((r = rows_step(rows, e)) > 0) {
        ret->v = team_grow(t->arena, ret->v, ret->n, sizeof *ret->v);
        ret->v[ret->n++] = (struct event){
            .seq = rows_int(rows, 0),
            .time_ms = rows_int(rows, 1),
            .type = team_column(t, rows, 2),
            .object = team_column(t, rows, 3),
            .actor = team_column(t, rows, 4),
            .data = team_column(t, rows, 5),
            .audit = rows_int(rows, 6) != 0,
            .count = rows_int(rows, 7),
        };
    }
    rows_end(rows);
    return r;
}
