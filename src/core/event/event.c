/* event: the head of the event log, and matching of filters. */
#include "core/event/event.h"

#include "base/mem.h"
#include "base/thread.h"
#include "core/event/event_internal.h"

struct metric events_total = {
    .name = "holt_events_total", .help = "Events appended.", .kind = METRIC_COUNTER};
struct metric events_head_seq = {
    .name = "holt_events_head_seq", .help = "seq of the newest event.", .kind = METRIC_GAUGE};
struct metric events_subscribers = {
    .name = "holt_events_subscribers", .help = "Live views of the log.", .kind = METRIC_GAUGE};
struct metric events_audit_lost = {.name = "holt_events_audit_lost_total",
                                   .help = "Audit rows that could not be stored.",
                                   .kind = METRIC_COUNTER};

/* "token.*" and "token/" are prefixes, anything else must match completely; empty matches all. */
static bool matches_type(struct str want, struct str have)
{
    if (want.n > 1 && str_ends(want, STR(".*")))
        return str_starts(have, str_make(want.p, want.n - 1));
    return want.n == 0 || str_eq(want, have);
}

static bool matches_object(struct str want, struct str have)
{
    if (str_ends(want, STR("/")))
        return str_starts(have, want);
    return want.n == 0 || str_eq(want, have);
}

static bool matches_audit(const struct event_filter *f, const struct event *ev)
{
    return ev->audit ? f->audit_too || f->audit_only : !f->audit_only;
}

bool event_matches(const struct event_filter *f, const struct event *ev)
{
    return ev->seq > f->since_seq && ev->time_ms >= f->since_ms && matches_audit(f, ev) &&
           matches_type(f->type, ev->type) && matches_object(f->object, ev->object) &&
           (f->actor.n == 0 || str_eq(f->actor, ev->actor));
}

struct events *events_ref(struct events *l)
{
    assert(l->refs > 0 && thread_is_loop());
    l->refs++;
    return l;
}

struct events *events_unref(struct events *l)
{
    if (l && --l->refs == 0) {
        map_done(&l->folds);
        free(l);
    }
    return NULL;
}

static int read_head(struct store_tx *tx, void *arg, struct err *e)
{
    struct events *l = arg;
    struct store_rows *r;
    struct str hash;

    if (tx_query(tx, "SELECT head_seq, head_hash FROM chain WHERE id = 1", NO_PARAMS, &r, e) < 0 ||
        rows_step(r, e) < 0)
        return -1;
    hash = rows_blob(r, 1);
    if (hash.n != sizeof l->head_hash)
        return err_set(e, ERR_UNAVAILABLE, 0, "the head of the event log is damaged");
    l->head_seq = rows_int(r, 0);
    memcpy(l->head_hash, hash.p, hash.n);
    return 0;
}

/* Events of a commit; skips those that events_open already counted in the head. */
static void on_events(void *arg, const struct event *ev, size_t n)
{
    struct events *l = events_ref(arg);

    while (n > 0 && ev->seq <= l->head_seq) {
        ev++;
        n--;
    }
    if (n > 0) {
        l->head_seq = ev[n - 1].seq;
        memcpy(l->head_hash, ev[n - 1].hash, sizeof l->head_hash);
        metric_inc(&events_total, (int64_t)n);
        metric_set(&events_head_seq, l->head_seq);
        subs_tell(l, ev, n);
    }
    events_unref(l);
}

int events_open(struct store *s, struct events **ret, struct err *e)
{
    struct events *l = xzalloc(sizeof *l);

    l->refs = 1;
    l->store = s;
    list_init(&l->subs);
    if (store_now(s, read_head, l, e) < 0) {
        events_unref(l);
        return err_wrap(e, "open the event log");
    }
    metric_add(&events_total);
    metric_add(&events_head_seq);
    metric_add(&events_subscribers);
    metric_add(&events_audit_lost);
    metric_set(&events_head_seq, l->head_seq);
    folds_init(l);
    store_on_events(s, on_events, l);
    *ret = l;
    return 0;
}

struct events *events_close(struct events *l)
{
    if (!l)
        return NULL;
    store_on_events(l->store, NULL, NULL);
    subs_end_all(l);
    folds_close(l);
    l->closed = true;
    return events_unref(l);
}

int64_t events_head(const struct events *l, unsigned char ret_hash[32])
{
    if (ret_hash)
        memcpy(ret_hash, l->head_hash, sizeof l->head_hash);
    return l->head_seq;
}
