/* event_retain: deletes old events and moves the anchor. */
#include "core/event/event_internal.h"

#include "base/clock.h"
#include "base/mem.h"

#define RETAIN_ROWS 500 /* per write, so that others get a turn */

struct retain {
    struct events *log;
    int64_t before_ms; /* delete older ones; 0: by count only */
    int64_t keep;      /* number of newest rows to keep; 0: any */
    int64_t cut_seq;   /* delete rows up to this one by count */
    int64_t anchor_seq, deleted;
    bool ended;
    store_done done;
    void *arg;
};

/* The seq with exactly `keep` rows after it. */
static int find_cut(struct store_tx *tx, void *arg, struct err *e)
{
    struct retain *t = arg;
    struct store_rows *r;
    int more;

    if (t->keep <= 0)
        return 0;
    if (tx_query(tx, "SELECT seq FROM events ORDER BY seq DESC LIMIT 1 OFFSET :keep",
                 PARAMS(P_INT("keep", t->keep)), &r, e) < 0)
        return -1;
    more = rows_step(r, e);
    if (more > 0)
        t->cut_seq = rows_int(r, 0);
    return more < 0 ? -1 : 0;
}

/* Finds the last of the oldest rows to delete; its seq and hash become the anchor. */
static int find_last(struct store_tx *tx, struct retain *t, int64_t *ret_seq,
                     unsigned char hash[EVENT_HASH_SIZE], struct err *e)
{
    struct store_rows *r;
    int more, n = 0;

    *ret_seq = 0;
    if (tx_query(tx, "SELECT seq, time_ms, hash FROM events ORDER BY seq LIMIT :limit",
                 PARAMS(P_INT("limit", RETAIN_ROWS)), &r, e) < 0)
        return -1;
    while ((more = rows_step(r, e)) > 0) {
        int64_t seq = rows_int(r, 0);
        struct str h = rows_blob(r, 2);

        if (seq > t->cut_seq && rows_int(r, 1) >= t->before_ms)
            break;
        if (h.n != EVENT_HASH_SIZE)
            return err_set(e, ERR_UNAVAILABLE, 0, "event %lld is damaged", (long long)seq);
        memcpy(hash, h.p, h.n);
        *ret_seq = seq;
        n++;
    }
    t->ended = n < RETAIN_ROWS;
    rows_end(r);
    return more < 0 ? -1 : 0;
}

static void tell_end(struct store_tx *tx, const struct retain *t)
{
    char data[128];

    (void)snprintf(data, sizeof data, "{\"anchor_seq\":%lld,\"deleted\":%lld}",
                   (long long)t->anchor_seq, (long long)t->deleted);
    tx_event(tx,
             &(struct event_spec){.type = "system.retention",
                                  .object = "system/events",
                                  .actor = "system",
                                  .data = str_of(data)},
             NULL);
}

static int delete_some(struct store_tx *tx, void *arg, struct err *e)
{
    struct retain *t = arg;
    unsigned char hash[EVENT_HASH_SIZE];
    int64_t seq, n;

    if (find_last(tx, t, &seq, hash, e) < 0)
        return -1;
    if (seq > 0) {
        n = tx_run(tx, "DELETE FROM events WHERE seq <= :seq", PARAMS(P_INT("seq", seq)), e);
        if (n < 0 ||
            tx_run(tx, "UPDATE chain SET anchor_seq = :seq, anchor_hash = :hash WHERE id = 1",
                   PARAMS(P_INT("seq", seq), P_BLOB("hash", str_make(hash, sizeof hash))), e) < 0)
            return -1;
        t->anchor_seq = seq;
        t->deleted += n;
    }
    if (t->ended && t->deleted > 0)
        tell_end(tx, t);
    return 0;
}

static void retain_end(struct retain *t, const struct err *e)
{
    t->done(t->arg, e);
    events_unref(t->log);
    free(t);
}

static void events_deleted(void *arg, const struct err *e)
{
    struct retain *t = arg;

    if (e->code != ERR_NONE || t->ended)
        retain_end(t, e);
    else
        store_write(t->log->store, STORE_DURABLE, delete_some, events_deleted, t);
}

static void cut_found(void *arg, const struct err *e)
{
    struct retain *t = arg;

    if (e->code != ERR_NONE)
        retain_end(t, e);
    else
        store_write(t->log->store, STORE_DURABLE, delete_some, events_deleted, t);
}

void events_retain(struct events *l, int64_t keep_ms, int64_t keep_count, store_done done,
                   void *arg)
{
    struct retain *t = xzalloc(sizeof *t);

    t->log = events_ref(l);
    t->before_ms = keep_ms > 0 ? clock_wall_ms() - keep_ms : 0;
    t->keep = keep_count;
    t->done = done;
    t->arg = arg;
    store_read(l->store, find_cut, cut_found, t);
}
