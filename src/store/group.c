/* group: the writer thread: groups of works in one transaction. */
#include "store/store_internal.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/point.h"

#define GROUP_MAX 512                /* works in one transaction */
#define GROUP_NS 5000000ULL          /* and the time they may take before the commit */
#define SYNC_AFTER_NS 40000000ULL    /* class 2 is synced within 100 ms: leaves time for the sync */
#define CHECK_EVERY_NS 1000000000ULL /* how often to check an idle database */

struct metric store_commits = {
    .name = "holt_store_commits_total", .help = "Groups committed.", .kind = METRIC_COUNTER};
struct metric store_commit_seconds = {.name = "holt_store_commit_seconds",
                                      .help = "From a group's begin to the end of its commit.",
                                      .kind = METRIC_HISTOGRAM};
struct metric store_group_size = {
    .name = "holt_store_group_size", .help = "Works in the newest group.", .kind = METRIC_GAUGE};
struct metric store_queue_length = {
    .name = "holt_store_queue_length", .help = "Writes that wait.", .kind = METRIC_GAUGE};
struct metric store_errors = {.name = "holt_store_errors_total",
                              .help = "Groups that could not be committed.",
                              .kind = METRIC_COUNTER};

static void set_health(struct store *s, const struct err *e)
{
    bool was_ok, is_ok = e->code == ERR_NONE;

    uv_mutex_lock(&s->lock);
    was_ok = s->health.code == ERR_NONE;
    s->health = *e;
    uv_mutex_unlock(&s->lock);
    if (was_ok && !is_ok)
        log_error("the database cannot be written", LOG_E(e), LOG_C("hint", e->hint));
    else if (!was_ok && is_ok)
        log_info("the database can be written again");
}

/* Runs works in order until all are done or the time is up; the rest stays in *todo.  -1: the
 * transaction itself is lost, *e has the reason. */
static int run_works(struct store *s, struct batch *b, struct list *todo, struct err *e)
{
    struct store_tx tx = {.conn = s->conn, .arena = &b->arena, .writes = true};
    uint64_t end = uv_hrtime() + GROUP_NS;
    struct list *l;

    list_init(&tx.rows);
    while ((l = list_pop(todo)) != NULL) {
        struct job *j = LIST_ENTRY(l, struct job, link);
        int r;

        list_push(&b->jobs, &j->link);
        r = job_run(&tx, j);
        if (!s->engine->in_tx(s->conn)) {
            if (r == 0)
                return err_set(e, ERR_INTERNAL, 0, "a work has ended the group's transaction");
            *e = j->err;
            return -1;
        }
        if (tx.saved && (r == 0 ? s->engine->keep : s->engine->undo)(s->conn, e) < 0)
            return -1;
        if (uv_hrtime() >= end)
            break;
    }
    return 0;
}

/* 0, -1 or ENGINE_DOUBT. */
static int run_tx(struct store *s, struct batch *b, struct list *todo, bool durable, struct err *e)
{
    int r;

    if (s->engine->check(s->conn, e) < 0 || s->engine->begin(s->conn, durable, e) < 0)
        return -1;
    if (run_works(s, b, todo, e) < 0 || chain_append(s->conn, b, e) < 0) {
        s->engine->rollback(s->conn);
        return -1;
    }
    point_reached("before commit");
    r = s->engine->commit(s->conn, e);
    if (r == 0)
        point_reached("after commit");
    return r;
}

/* None of the group's changes were committed: fails each work that had not failed itself. */
static void fail_all(struct batch *b, struct list *todo, const struct err *e)
{
    struct list *l;

    while (list_is_empty(&b->jobs) && (l = list_pop(todo)) != NULL)
        list_push(&b->jobs, l); /* it was not started; the others are tried in the next group */
    LIST_EACH (&b->jobs, node) {
        struct job *j = LIST_ENTRY(node, struct job, link);

        if (j->err.code == ERR_NONE)
            j->err = *e;
    }
    b->event_count = 0;
}

static void note_commit(struct store *s, bool durable, uint64_t began)
{
    if (durable)
        s->unsynced_ns = 0;
    else if (s->unsynced_ns == 0)
        s->unsynced_ns = uv_hrtime();
    metric_inc(&store_commits, 1);
    metric_observe(&store_commit_seconds, (int64_t)(uv_hrtime() - began));
}

/* --- commits in doubt --- */

/* The result of a commit that was sent without a reply is unknown: its works are completed when it
 * is known, in order.  Until then nothing else is begun: -1. */
static int settle_doubt(struct store *s, struct err *e)
{
    struct batch *b = s->doubt;
    struct list none;
    bool committed;

    if (!b)
        return 0;
    if (s->engine->settle(s->conn, &committed, e) < 0)
        return -1;
    s->doubt = NULL;
    if (committed) {
        note_commit(s, s->doubt_durable, uv_hrtime());
    } else {
        struct err lost;

        list_init(&none);
        err_set(&lost, ERR_UNAVAILABLE, 0, "the database went away before it had committed");
        err_hint(&lost, "nothing was changed; try again");
        fail_all(b, &none, &lost);
    }
    store_finish(s, b);
    return 0;
}

void writer_give_up_doubt(struct store *s)
{
    struct list none;
    struct err e = {0};

    if (settle_doubt(s, &e) == 0)
        return;
    list_init(&none);
    err_set(&e, ERR_UNAVAILABLE, 0, "the database went away while it committed");
    err_hint(&e, "check whether the change was made when the database is back");
    fail_all(s->doubt, &none, &e);
    store_finish(s, TAKE(s->doubt));
}

static bool sync_is_due(const struct store *s)
{
    return s->unsynced_ns != 0 && uv_hrtime() >= s->unsynced_ns + SYNC_AFTER_NS;
}

static size_t count_jobs(const struct batch *b)
{
    size_t n = 0;

    LIST_EACH (&b->jobs, l)
        n++;
    return n;
}

static void run_group(struct store *s, struct list *todo, bool durable)
{
    struct batch *b = batch_new();
    struct err e = {0};
    uint64_t began = uv_hrtime();
    int r;

    durable |= sync_is_due(s);
    r = settle_doubt(s, &e) < 0 ? -1 : run_tx(s, b, todo, durable, &e);
    if (r == 0) {
        note_commit(s, durable, began);
    } else {
        s->doubtful |= !s->engine->settle;
        metric_inc(&store_errors, 1);
    }
    if (r < 0) {
        (void)err_private(&e); /* the engine's, or that of another client's work */
        fail_all(b, todo, &e);
    }
    set_health(s, &e);
    metric_set(&store_group_size, (int64_t)count_jobs(b));
    if (r == ENGINE_DOUBT) {
        s->doubt = b;
        s->doubt_durable = durable;
    } else {
        store_finish(s, b);
    }
}

/* Takes the next group's works, at most GROUP_MAX.  Called with the lock held. */
static bool take_group(struct store *s, struct list *to)
{
    bool durable = false;

    for (size_t n = 0; n < GROUP_MAX && !list_is_empty(&s->writes); n++) {
        struct list *l = list_pop(&s->writes);

        list_push(to, l);
        durable |= LIST_ENTRY(l, struct job, link)->class == STORE_DURABLE;
        s->write_count--;
    }
    metric_set(&store_queue_length, (int64_t)s->write_count);
    return durable;
}

/* Puts back works that a group had no time for, before newer ones. */
static void give_back(struct store *s, struct list *rest)
{
    uv_mutex_lock(&s->lock);
    while (!list_is_empty(rest)) {
        struct list *l = rest->prev;

        list_unlink(l);
        /* inserting before the first is appending to the ring that starts there */
        list_push(s->writes.next, l);
        s->write_count++;
    }
    uv_mutex_unlock(&s->lock);
}

/* Nothing is queued: sync if due; once a second check that the database works, and whether one that
 * failed works again. */
static void tend(struct store *s)
{
    struct err e = {0};
    uint64_t now = uv_hrtime();
    bool look = now - s->checked_ns >= CHECK_EVERY_NS, sick;

    uv_mutex_lock(&s->lock);
    sick = s->health.code != ERR_NONE;
    uv_mutex_unlock(&s->lock);
    if (!sync_is_due(s) && !look && !s->doubt)
        return;
    s->checked_ns = now;
    if (settle_doubt(s, &e) == 0 && s->engine->check(s->conn, &e) == 0 &&
        (sync_is_due(s) || sick) && chain_touch(s->conn, &e) == 0)
        note_commit(s, true, now);
    else if (e.code != ERR_NONE && s->unsynced_ns != 0)
        s->unsynced_ns = now; /* retry after the usual time, not at once */
    s->doubtful |= e.code != ERR_NONE && !s->engine->settle;
    set_health(s, &e);
}

static uint64_t wait_ns(const struct store *s)
{
    uint64_t now = uv_hrtime(), due;

    if (s->unsynced_ns == 0)
        return s->doubt ? SYNC_AFTER_NS : CHECK_EVERY_NS;
    due = s->unsynced_ns + SYNC_AFTER_NS;
    return due > now ? due - now : 1;
}

void writer_main(void *arg)
{
    struct store *s = arg;
    struct list todo;

    list_init(&todo);
    for (;;) {
        bool durable, stop;

        uv_mutex_lock(&s->lock);
        if (list_is_empty(&s->writes) && !s->closing)
            (void)uv_cond_timedwait(&s->write_wake, &s->lock, wait_ns(s));
        durable = take_group(s, &todo);
        stop = s->closing && list_is_empty(&todo);
        uv_mutex_unlock(&s->lock);
        if (stop)
            return;
        if (list_is_empty(&todo)) {
            tend(s);
            continue;
        }
        run_group(s, &todo, durable);
        give_back(s, &todo);
    }
}
