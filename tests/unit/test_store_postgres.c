/* What can happen to a connection, and who may have the database: against a real server, whose URL
 * tests/tools/postgres.py gives. */
#include "base/log.h"
#include "base/mem.h"
#include "core/event/event.h"
#include "store/pg.h"
#include "unit.h"

#include <stdlib.h>

static const char *url;
static uv_loop_t loop;
static struct store *store;

/* --- tools --- */

/* By those functions of libpq that the store has loaded. */
static PGconn *connect_to(const char *to)
{
    const char *const keys[] = {"dbname", NULL}, *const values[] = {to, NULL};
    struct err e = {0};

    if (pg_lib_load(&e) < 0)
        abort();
    return PQconnectdbParams(keys, values, 1);
}

static void run_sql(const char *sql)
{
    PGconn *h = connect_to(url);
    PGresult *r = PQsendQuery(h, sql) ? PQgetResult(h) : NULL, *next;
    ExecStatusType s;

    while (r && (next = PQgetResult(h))) { /* the last of several statements */
        PQclear(r);
        r = next;
    }
    s = PQresultStatus(r);

    if (s != PGRES_COMMAND_OK && s != PGRES_TUPLES_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(h));
    PQclear(r);
    PQfinish(h);
}

static int try_open(const char *node, struct store **ret, struct err *e)
{
    struct store_config c = {.loop = &loop, .url = url, .node = node};

    *e = (struct err){0};
    return store_open(&c, ret, e);
}

static struct store *open_node(const char *node)
{
    struct store *s = NULL;
    struct err e;

    if (try_open(node, &s, &e) < 0)
        fail_msg("%s", e.msg);
    return s;
}

static void close_node(struct store *s)
{
    store_close(s);
    (void)uv_run(&loop, UV_RUN_NOWAIT);
}

static int set_up(void **state)
{
    (void)state;
    run_sql("SET client_min_messages = error; DROP SCHEMA IF EXISTS holt CASCADE;"
            "DROP SCHEMA IF EXISTS holt_other CASCADE");
    store = open_node(NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    close_node(store);
    store = NULL;
    return 0;
}

/* Every connection of this program's stores, but not the one that asks. */
static void cut_connections(void)
{
    run_sql("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE application_name = 'holtd' AND pid <> pg_backend_pid()");
}

struct put {
    const char *name;
    int calls;
    struct err err;
};

static int put(struct store_tx *tx, void *arg, struct err *e)
{
    const struct put *p = arg;
    struct event_spec ev = {.type = "thing.put", .object = p->name, .actor = "system"};

    if (tx_run(tx, "INSERT INTO meta (name, value) VALUES (:name, 'x')",
               PARAMS(P_C("name", p->name)), e) < 0)
        return -1;
    tx_event(tx, &ev, NULL);
    return 0;
}

static void put_done(void *arg, const struct err *e)
{
    struct put *p = arg;

    p->calls++;
    p->err = *e;
}

static void wait_for(const struct put *p)
{
    while (p->calls == 0)
        assert_true(uv_run(&loop, UV_RUN_ONCE) != 0 || p->calls > 0);
}

static struct err put_now(const char *name, enum store_class class)
{
    struct put p = {.name = name};

    store_write(store, class, put, put_done, &p);
    wait_for(&p);
    return p.err;
}

struct count {
    const char *name;
    int64_t metas, events;
};

static int one_int(struct store_tx *tx, const char *sql, const char *name, int64_t *ret,
                   struct err *e)
{
    struct store_rows *r;

    if (tx_query(tx, sql, PARAMS(P_C("name", name)), &r, e) < 0 || rows_step(r, e) < 0)
        return -1;
    *ret = rows_int(r, 0);
    rows_end(r);
    return 0;
}

static int count(struct store_tx *tx, void *arg, struct err *e)
{
    struct count *c = arg;

    if (one_int(tx, "SELECT count(*) FROM meta WHERE name = :name", c->name, &c->metas, e) < 0)
        return -1;
    return one_int(tx, "SELECT count(*) FROM events WHERE object = :name", c->name, &c->events, e);
}

static void assert_there(const char *name, int times)
{
    struct count c = {.name = name};
    struct err e = {0};

    if (store_now(store, count, &c, &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(c.metas, times);
    assert_int_equal(c.events, times);
}

/* --- connections --- */

static void a_connection_cut_between_writes_is_made_anew(void **state)
{
    (void)state;
    assert_int_equal(put_now("a", STORE_DURABLE).code, ERR_NONE);
    for (int i = 0; i < 3; i++) {
        char name[8];

        cut_connections();
        (void)snprintf(name, sizeof name, "b%d", i);
        assert_int_equal(put_now(name, i % 2 ? STORE_RELAXED : STORE_DURABLE).code, ERR_NONE);
        assert_there(name, 1);
    }
    assert_true(store_is_healthy(store, NULL));
}

static void read_done(void *arg, const struct err *e)
{
    put_done(arg, e);
}

static int read_nothing(struct store_tx *tx, void *arg, struct err *e)
{
    int64_t n;

    (void)arg;
    return one_int(tx, "SELECT count(*) FROM meta WHERE name = :name", "x", &n, e);
}

static void a_reader_cut_between_reads_goes_on(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct put p = {0};

        cut_connections();
        store_read(store, read_nothing, read_done, &p);
        wait_for(&p);
        assert_string_equal(p.err.msg, "");
    }
}

static int die_within(struct store_tx *tx, void *arg, struct err *e)
{
    if (put(tx, arg, e) < 0)
        return -1;
    return tx_run(tx, "SELECT pg_terminate_backend(pg_backend_pid())", NO_PARAMS, e) < 0 ? -1 : 0;
}

static void a_connection_cut_within_a_group_undoes_the_group(void **state)
{
    struct put p[3] = {{.name = "a"}, {.name = "b"}, {.name = "c"}};

    (void)state;
    store_write(store, STORE_DURABLE, put, put_done, &p[0]);
    store_write(store, STORE_DURABLE, die_within, put_done, &p[1]);
    store_write(store, STORE_DURABLE, put, put_done, &p[2]);
    for (int i = 0; i < 3; i++)
        wait_for(&p[i]);
    /* On a busy machine the first may have had a group of its own. */
    assert_true(p[0].err.code == ERR_UNAVAILABLE || p[0].err.code == ERR_NONE);
    assert_int_equal(p[1].err.code, ERR_UNAVAILABLE);
    assert_null(strstr(p[1].err.msg, "postgres://")); /* where it is goes to the log */
    assert_int_equal(p[2].err.code, ERR_NONE);
    assert_there("a", p[0].err.code == ERR_NONE);
    assert_there("b", 0);
    assert_there("c", 1);
}

/* --- what a server forgets when it crashes --- */

/* As after a crash: the newest commits are not there, and the token is an older one. */
static void forget(const char *names)
{
    char sql[512];

    (void)snprintf(
        sql, sizeof sql,
        "SET search_path TO holt; DELETE FROM meta WHERE name IN (%s);"
        "DELETE FROM events WHERE object IN (%s);"
        "UPDATE holt_commit SET token = (SELECT token FROM saved_commit);"
        "UPDATE chain SET (head_seq, head_hash) = (SELECT head_seq, head_hash FROM saved)",
        names, names);
    run_sql(sql);
}

static void remember(void)
{
    run_sql("SET search_path TO holt; CREATE TABLE saved AS SELECT * FROM chain;"
            "CREATE TABLE saved_commit AS SELECT * FROM holt_commit");
}

static int fail_after(struct store_tx *tx, void *arg, struct err *e)
{
    return put(tx, arg, e) < 0 ? -1 : err_set(e, ERR_CONFLICT, 0, "no");
}

/* Takes so long that its group ends with it. */
static int put_last(struct store_tx *tx, void *arg, struct err *e)
{
    int r = put(tx, arg, e);

    uv_sleep(8);
    return r;
}

static uv_sem_t held, go_on;

/* Keeps the writer from its next commit, which would sync those before. */
static int hold(struct store_tx *tx, void *arg, struct err *e)
{
    uv_sem_post(&held);
    uv_sem_wait(&go_on);
    return put(tx, arg, e);
}

static void forgotten_commits_are_done_again(void **state)
{
    struct put p[4] = {{.name = "a"}, {.name = "b"}, {.name = "c"}, {.name = "d"}};

    (void)state;
    (void)uv_sem_init(&held, 0);
    (void)uv_sem_init(&go_on, 0);
    assert_int_equal(put_now("before", STORE_DURABLE).code, ERR_NONE);
    remember();
    store_write(store, STORE_RELAXED, put, put_done, &p[0]);
    store_write(store, STORE_RELAXED, fail_after, put_done, &p[1]);
    store_write(store, STORE_RELAXED, put_last, put_done, &p[2]);
    store_write(store, STORE_RELAXED, hold, put_done, &p[3]);
    wait_for(&p[2]);
    uv_sem_wait(&held);
    forget("'a', 'c'");
    cut_connections();
    uv_sem_post(&go_on);
    wait_for(&p[3]);
    assert_int_equal(p[0].err.code, ERR_NONE);
    assert_int_equal(p[1].err.code, ERR_CONFLICT);
    assert_int_equal(p[2].err.code, ERR_NONE);
    assert_int_equal(p[3].err.code, ERR_UNAVAILABLE);
    assert_there("a", 1);
    assert_there("b", 0);
    assert_there("c", 1);
    assert_there("d", 0);
    assert_int_equal(put_now("after", STORE_DURABLE).code, ERR_NONE);
    uv_sem_destroy(&held);
    uv_sem_destroy(&go_on);
}

static void a_database_that_went_back_is_not_written(void **state)
{
    struct err e;

    (void)state;
    assert_int_equal(put_now("before", STORE_DURABLE).code, ERR_NONE);
    run_sql("UPDATE holt.holt_commit SET token = 12345");
    cut_connections();
    for (int i = 0; i < 2; i++) {
        e = put_now("after", STORE_DURABLE);
        assert_int_equal(e.code, ERR_UNAVAILABLE);
        assert_string_equal(e.msg, "the database cannot be used now"); /* why: for the log */
        assert_non_null(strstr(e.hint, "restart holtd"));
        uv_sleep(400);
    }
    assert_false(store_is_healthy(store, NULL));
    close_node(store);
    store = open_node(NULL);
    assert_int_equal(put_now("after", STORE_DURABLE).code, ERR_NONE);
}

/* --- nodes --- */

static void two_nodes_know_nothing_of_each_other(void **state)
{
    struct store *first = store;

    (void)state;
    assert_int_equal(put_now("a", STORE_DURABLE).code, ERR_NONE);
    store = open_node("other");
    assert_there("a", 0);
    assert_int_equal(put_now("a", STORE_DURABLE).code, ERR_NONE);
    assert_there("a", 1);
    close_node(store);
    store = first;
    assert_there("a", 1);
}

static void one_node_is_not_opened_twice(void **state)
{
    struct store *second = NULL;
    struct err e;

    (void)state;
    assert_true(try_open(NULL, &second, &e) < 0);
    assert_int_equal(e.code, ERR_CONFLICT);
    assert_non_null(strstr(e.msg, "'holt'"));
    assert_non_null(strstr(e.msg, "in use by another holtd"));
    assert_non_null(strstr(e.hint, "node"));
    assert_true(try_open("Not A Node", &second, &e) < 0);
    assert_int_equal(e.code, ERR_INVALID);
}

static void a_text_that_is_none_is_refused(void **state)
{
    struct err e;

    (void)state;
    e = put_now("\xff\xfe", STORE_DURABLE);
    assert_int_equal(e.code, ERR_INVALID);
    assert_true(store_is_healthy(store, NULL));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_connection_cut_between_writes_is_made_anew),
        TEST(a_reader_cut_between_reads_goes_on),
        TEST(a_connection_cut_within_a_group_undoes_the_group),
        TEST(forgotten_commits_are_done_again),
        TEST(a_database_that_went_back_is_not_written),
        TEST(two_nodes_know_nothing_of_each_other),
        TEST(one_node_is_not_opened_twice),
        TEST(a_text_that_is_none_is_refused),
    };
    int failed;

    url = getenv("HOLT_TEST_POSTGRES");
    if (!url)
        return 77;
    (void)uv_loop_init(&loop);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    return failed;
}
