/* store: queues work for the store's threads and delivers results on the loop. */
#include "base/log.h"
#include "base/mem.h"
#include "store/migrate.h"
#include "store/store_internal.h"

#define WRITES_MAX 10000
#define READS_MAX 1000

static const struct store_engine *const engines[] = {&engine_sqlite, &engine_postgres};

static bool has_scheme(const char *url, const struct store_engine *en)
{
    for (const char *const *s = en->schemes; *s; s++)
        if (strncmp(url, *s, strlen(*s)) == 0 && url[strlen(*s)] == ':')
            return true;
    return false;
}

static const struct store_engine *find_engine(const char *url)
{
    for (size_t i = 0; i < ARRAY_LEN(engines); i++)
        if (has_scheme(url, engines[i]))
            return engines[i];
    return NULL;
}

struct batch *batch_new(void)
{
    struct batch *b = xzalloc(sizeof *b);

    list_init(&b->link);
    list_init(&b->jobs);
    return b;
}

static struct job *job_new(store_work work, store_done done, void *arg)
{
    struct job *j = xzalloc(sizeof *j);

    j->work = work;
    j->done = done;
    j->arg = arg;
    list_init(&j->events);
    list_init(&j->link);
    return j;
}

#define TELL_EVERY_MS 1000

/* --- results, on the loop's thread --- */

/* For clients, instead of the engine's message. */
static const char *public_message(enum err_code code)
{
    if (code == ERR_FULL)
        return "the database has no space left";
    if (code == ERR_TOO_LARGE)
        return "a value is too large for the database";
    if (code == ERR_CONFLICT)
        return "the change conflicts with what the database has";
    return code == ERR_INTERNAL ? "the database refused a statement"
                                : "the database cannot be used now";
}

/* A private message goes to the log: a client learns only that the store is unavailable. */
static void keep_private(struct store *s, struct err *e)
{
    int64_t now = (int64_t)uv_now(s->loop);
    struct err why;

    if (!e->is_private)
        return;
    if (now - s->told_ms >= TELL_EVERY_MS || s->told_ms == 0) {
        s->told_ms = now;
        log_warn("the database failed", LOG_E(e));
    }
    why = *e;
    (void)err_set(e, why.code, 0, "%s", public_message(why.code));
    (void)err_hint(e, "%s", why.hint[0] ? why.hint : "try again; holtd's log says why");
}

static void deliver(struct store *s, struct batch *b)
{
    struct list *l;

    if (b->event_count > 0 && s->on_events)
        s->on_events(s->on_events_arg, b->events, b->event_count);
    while ((l = list_pop(&b->jobs)) != NULL) {
        AUTO(mem_free) struct job *j = LIST_ENTRY(l, struct job, link);

        s->pending--;
        keep_private(s, &j->err);
        if (j->done)
            j->done(j->arg, &j->err);
    }
    arena_done(&b->arena);
    free(b);
}

static void deliver_all(struct store *s)
{
    struct list *l;

    do {
        uv_mutex_lock(&s->lock);
        l = list_pop(&s->finished);
        uv_mutex_unlock(&s->lock);
        if (l)
            deliver(s, LIST_ENTRY(l, struct batch, link));
    } while (l);
    if (s->pending == 0)
        uv_unref((uv_handle_t *)&s->handles->finished);
}

static void on_finished(uv_async_t *a)
{
    deliver_all(CONTAINER_OF(a, struct handles, finished)->store);
}

/* A writer woken by the first of many writes would commit that one alone; woken when the loop is
 * about to sleep, it takes all writes of this turn. */
static void on_wake(uv_prepare_t *p)
{
    struct store *s = CONTAINER_OF(p, struct handles, wake)->store;

    (void)uv_prepare_stop(p);
    uv_mutex_lock(&s->lock);
    uv_cond_signal(&s->write_wake);
    uv_mutex_unlock(&s->lock);
}

void store_finish(struct store *s, struct batch *b)
{
    uv_mutex_lock(&s->lock);
    LIST_EACH (&b->jobs, l) {
        struct job *j = LIST_ENTRY(l, struct job, link);

        if (!j->wait)
            continue;
        list_unlink(&j->link); /* the waiting thread frees it */
        j->finished = true;
        uv_cond_broadcast(&s->now_wake);
    }
    list_push(&s->finished, &b->link);
    uv_mutex_unlock(&s->lock);
    (void)uv_async_send(&s->handles->finished);
}

/* --- queueing --- */

static void refuse(struct store *s, struct job *j)
{
    struct batch *b = batch_new();

    list_push(&b->jobs, &j->link);
    store_finish(s, b);
}

/* Queues j; returns false, with its error set, if there is no room. */
static bool enqueue(struct store *s, struct job *j, bool write)
{
    size_t *count = write ? &s->write_count : &s->read_count;
    size_t max = write ? s->write_max : s->read_max;
    bool ok = false;

    uv_mutex_lock(&s->lock);
    if (s->closing) {
        err_set(&j->err, ERR_UNAVAILABLE, 0, "the store is closing");
    } else if (*count >= max) {
        err_set(&j->err, ERR_LIMIT, 0, "%zu %s wait for the store already", max,
                write ? "writes" : "reads");
        err_limit(&j->err, write ? "store_writes" : "store_reads", (int64_t)max,
                  "try again in a moment");
    } else {
        list_push(write ? &s->writes : &s->reads, &j->link);
        ++*count;
        if (!write)
            uv_cond_signal(&s->read_wake);
        ok = true;
    }
    uv_mutex_unlock(&s->lock);
    return ok;
}

static void expect_callback(struct store *s)
{
    if (s->pending++ == 0)
        uv_ref((uv_handle_t *)&s->handles->finished);
}

/* Queues the works that wait for another write, before that one. */
static void queue_later(struct store *s)
{
    struct list *l;

    if (list_is_empty(&s->later))
        return;
    (void)uv_timer_stop(&s->handles->later);
    while ((l = list_pop(&s->later)) != NULL) {
        struct job *j = LIST_ENTRY(l, struct job, link);

        if (!enqueue(s, j, true))
            refuse(s, j);
    }
    (void)uv_prepare_start(&s->handles->wake, on_wake);
}

static void on_later(uv_timer_t *t)
{
    queue_later(CONTAINER_OF(t, struct handles, later)->store);
}

static void ask(struct store *s, struct job *j, bool write)
{
    expect_callback(s);
    if (write)
        queue_later(s);
    if (!enqueue(s, j, write))
        refuse(s, j);
    else if (write)
        (void)uv_prepare_start(&s->handles->wake, on_wake);
}

void store_write(struct store *s, enum store_class class, store_work work, store_done done,
                 void *arg)
{
    struct job *j = job_new(work, done, arg);

    j->class = class;
    ask(s, j, true);
}

void store_write_later(struct store *s, store_work work, store_done done, void *arg)
{
    struct job *j = job_new(work, done, arg);

    j->class = STORE_RELAXED;
    expect_callback(s);
    if (list_is_empty(&s->later))
        (void)uv_timer_start(&s->handles->later, on_later, STORE_LATER_MS, 0);
    list_push(&s->later, &j->link);
}

void store_read(struct store *s, store_work work, store_done done, void *arg)
{
    ask(s, job_new(work, done, arg), false);
}

int store_now(struct store *s, store_work work, void *arg, struct err *e)
{
    AUTO(mem_free) struct job *j = job_new(work, NULL, arg);

    j->class = STORE_DURABLE;
    j->wait = true;
    queue_later(s);
    if (enqueue(s, j, true)) {
        uv_mutex_lock(&s->lock);
        uv_cond_signal(&s->write_wake);
        while (!j->finished)
            uv_cond_wait(&s->now_wake, &s->lock);
        uv_mutex_unlock(&s->lock);
    }
    if (j->err.code == ERR_NONE)
        return 0;
    *e = j->err;
    return -1;
}

bool store_is_healthy(struct store *s, struct err *e)
{
    struct err health;

    uv_mutex_lock(&s->lock);
    health = s->health;
    uv_mutex_unlock(&s->lock);
    if (health.code != ERR_NONE && e)
        *e = health;
    return health.code == ERR_NONE;
}

uv_loop_t *store_loop(const struct store *s)
{
    return s->loop;
}

const char *store_kind(const struct store *s)
{
    return s->engine->name;
}

void store_on_events(struct store *s, store_events fn, void *arg)
{
    s->on_events = fn;
    s->on_events_arg = arg;
}

/* --- opening and closing --- */

static void start_threads(struct store *s)
{
    if (uv_thread_create(&s->writer, writer_main, s) != 0)
        abort(); /* no memory for a thread at start-up */
    for (size_t i = 0; i < READERS; i++) {
        struct reader *r = xzalloc(sizeof *r);

        r->store = s;
        r->conn = s->read_conns[i];
        if (uv_thread_create(&s->readers[i], reader_main, r) != 0)
            abort();
    }
    s->running = true;
}

static void stop_threads(struct store *s)
{
    uv_mutex_lock(&s->lock);
    s->closing = true;
    uv_cond_broadcast(&s->write_wake);
    uv_cond_broadcast(&s->read_wake);
    uv_mutex_unlock(&s->lock);
    if (!s->running)
        return;
    (void)uv_thread_join(&s->writer);
    for (size_t i = 0; i < READERS; i++)
        (void)uv_thread_join(&s->readers[i]);
}

static void handle_closed(uv_handle_t *h)
{
    struct handles *hs = h->data;

    if (--hs->open == 0)
        free(hs);
}

static void close_handles(struct handles *hs)
{
    hs->store = NULL;
    uv_close((uv_handle_t *)&hs->finished, handle_closed);
    uv_close((uv_handle_t *)&hs->wake, handle_closed);
    uv_close((uv_handle_t *)&hs->later, handle_closed);
}

static struct handles *open_handles(struct store *s)
{
    struct handles *hs = xzalloc(sizeof *hs);

    hs->store = s;
    hs->open = 3;
    hs->finished.data = hs->wake.data = hs->later.data = hs;
    if (uv_async_init(s->loop, &hs->finished, on_finished) != 0 ||
        uv_prepare_init(s->loop, &hs->wake) != 0 || uv_timer_init(s->loop, &hs->later) != 0)
        abort(); /* no descriptor or memory at start-up */
    uv_unref((uv_handle_t *)&hs->finished);
    uv_unref((uv_handle_t *)&hs->wake);
    uv_unref((uv_handle_t *)&hs->later);
    return hs;
}

static struct store *store_free(struct store *s)
{
    if (!s)
        return NULL;
    for (size_t i = 0; i < READERS; i++)
        s->engine->disconnect(s->read_conns[i]);
    if (s->conn)
        s->engine->disconnect(s->conn);
    if (s->db)
        s->engine->release(s->db);
    if (s->handles)
        close_handles(s->handles);
    uv_mutex_destroy(&s->lock);
    uv_cond_destroy(&s->write_wake);
    uv_cond_destroy(&s->read_wake);
    uv_cond_destroy(&s->now_wake);
    free(s);
    return NULL;
}
DEFINE_AUTO(struct store *, store_free)

void store_close(struct store *s)
{
    struct err e;

    if (!s)
        return;
    queue_later(s);
    stop_threads(s);
    if (s->doubt)
        writer_give_up_doubt(s);
    /* After a failed sync the content of the disk is unknown: the next start skips numbers, to be
     * safe. */
    if (!s->doubtful && (s->engine->check(s->conn, &e) < 0 || chain_stop(s->conn, &e) < 0))
        log_error("the store could not be closed cleanly", LOG_E(&e));
    deliver_all(s);
    (void)store_free(s);
}

static struct store *store_new(const struct store_config *c, const struct store_engine *en)
{
    struct store *s = xzalloc(sizeof *s);

    s->loop = c->loop;
    s->engine = en;
    s->write_max = c->write_queue > 0 ? c->write_queue : WRITES_MAX;
    s->read_max = c->read_queue > 0 ? c->read_queue : READS_MAX;
    list_init(&s->later);
    list_init(&s->writes);
    list_init(&s->reads);
    list_init(&s->finished);
    if (uv_mutex_init(&s->lock) != 0 || uv_cond_init(&s->write_wake) != 0 ||
        uv_cond_init(&s->read_wake) != 0 || uv_cond_init(&s->now_wake) != 0)
        abort(); /* no memory at start-up */
    return s;
}

static int open_connections(struct store *s, const struct store_config *c, struct err *e)
{
    const struct store_engine *en = s->engine;

    if (en->claim(c, &s->db, e) < 0 || en->connect(s->db, ENGINE_WRITE, &s->conn, e) < 0 ||
        migrate(s->conn, e) < 0 || chain_start(s->conn, e) < 0)
        return -1;
    for (size_t i = 0; i < READERS; i++)
        if (en->connect(s->db, ENGINE_READ, &s->read_conns[i], e) < 0)
            return -1;
    return 0;
}

int store_open(const struct store_config *c, struct store **ret, struct err *e)
{
    static struct metric *const metrics[] = {&store_commits, &store_commit_seconds,
                                             &store_group_size, &store_queue_length, &store_errors};
    const struct store_engine *en = find_engine(c->url);
    AUTO(store_free) struct store *s = NULL;

    if (!en) {
        err_set(e, ERR_INVALID, 0, "'%.*s' is not a database that this holt supports",
                (int)strcspn(c->url, ":"), c->url); /* the rest may be secret */
        return err_hint(e, "use sqlite:/path/holt.db or postgres://USER@HOST/DATABASE");
    }
    s = store_new(c, en);
    if (open_connections(s, c, e) < 0)
        return err_wrap(e, "open the store");
    s->handles = open_handles(s);
    for (size_t i = 0; i < ARRAY_LEN(metrics); i++)
        metric_add(metrics[i]);
    start_threads(s);
    *ret = TAKE(s);
    return 0;
}
