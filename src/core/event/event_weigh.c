/* event_weigh: how many events retention would delete, and their size. */
#include "core/event/event_internal.h"

#include "base/clock.h"
#include "base/mem.h"

struct weigh {
    struct events *log;
    int64_t before_ms;
    struct events_weight result;
    events_weighed done;
    void *arg;
};

static int weigh_work(struct store_tx *tx, void *arg, struct err *e)
{
    struct weigh *w = arg;
    struct store_rows *r;
    int more;

    if (tx_query(
            tx,
            "SELECT COUNT(*), COALESCE(SUM(LENGTH(data) + LENGTH(object) + LENGTH(actor) + 96), "
            "0) FROM events WHERE time_ms < :before",
            PARAMS(P_INT("before", w->before_ms)), &r, e) < 0)
        return -1;
    more = rows_step(r, e);
    if (more > 0)
        w->result = (struct events_weight){rows_int(r, 0), rows_int(r, 1)};
    rows_end(r);
    return more < 0 ? -1 : 0;
}

static void weigh_end(void *arg, const struct err *e)
{
    struct weigh *w = arg;

    w->done(w->arg, &w->result, e);
    events_unref(w->log);
    mem_free(w);
}

void events_weigh(struct events *l, int64_t keep_ms, events_weighed done, void *arg)
{
    struct weigh *w = xzalloc(sizeof *w);

    *w = (struct weigh){.log = events_ref(l), .done = done, .arg = arg};
    w->before_ms = clock_wall_ms() - keep_ms;
    store_read(l->store, weigh_work, weigh_end, w);
}
