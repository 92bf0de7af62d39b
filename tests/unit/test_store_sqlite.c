/* Everything that can be wrong with the file: each error says what, where and what to do. */
#include "base/buf.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/event/event.h"
#include "unit.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[] = "/tmp/holt-sqlite-XXXXXX";
static char path[64], url[80];
static uv_loop_t loop;
static struct store *store;

static int wipe(void **state)
{
    static const char *const ends[] = {"", "-wal", "-shm", ".lock", ".away"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        AUTO(mem_free) char *name = xasprintf("%s%s", path, ends[i]);

        (void)unlink(name);
    }
    return 0;
}

static int try_open(struct store **ret, struct err *e)
{
    struct store_config c = {.loop = &loop, .url = url};

    *e = (struct err){0};
    return store_open(&c, ret, e);
}

static void open_store(void)
{
    struct err e;

    if (try_open(&store, &e) < 0)
        fail_msg("%s", e.msg);
}

static void close_store(void)
{
    store_close(store);
    store = NULL;
    (void)uv_run(&loop, UV_RUN_NOWAIT);
}

static void done(void *arg, const struct err *e)
{
    *(struct err *)arg = *e;
}

static struct err write_now(store_work work, void *arg)
{
    struct err e = {0};

    if (store_now(store, work, arg, &e) == 0)
        assert_int_equal(e.code, ERR_NONE);
    return e;
}

static int put(struct store_tx *tx, void *arg, struct err *e)
{
    (void)arg;
    return tx_run(tx,
                  "INSERT INTO meta (name, value) VALUES ('a', 'b')"
                  " ON CONFLICT (name) DO UPDATE SET value = 'c'",
                  NO_PARAMS, e) < 0
               ? -1
               : 0;
}

static void a_second_daemon_is_refused_and_told_the_pid(void **state)
{
    AUTO(mem_free) char *pid = xasprintf("pid %d", (int)getpid());
    struct store *second = NULL;
    struct err e;

    (void)state;
    open_store();
    assert_true(try_open(&second, &e) < 0);
    assert_int_equal(e.code, ERR_CONFLICT);
    assert_non_null(strstr(e.msg, path));
    assert_non_null(strstr(e.msg, pid));
    assert_true(e.hint[0] != '\0');
    close_store();
    open_store();
    close_store();
}

static void the_file_is_nobody_elses(void **state)
{
    struct stat st;

    (void)state;
    open_store();
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    close_store();
}

static void a_locked_database(void **state)
{
    sqlite3 *other;
    struct err e;

    (void)state;
    open_store();
    assert_int_equal(sqlite3_open(path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    e = write_now(put, NULL);
    assert_int_equal(e.code, ERR_UNAVAILABLE);
    assert_non_null(strstr(e.msg, "locked"));
    assert_non_null(strstr(e.msg, path));
    assert_false(store_is_healthy(store, &e));
    (void)sqlite3_close(other);
    assert_int_equal(write_now(put, NULL).code, ERR_NONE);
    assert_true(store_is_healthy(store, &e));
    close_store();
}

static int fill(struct store_tx *tx, void *arg, struct err *e)
{
    (void)arg;
    if (tx_run(tx, "PRAGMA max_page_count = 1", NO_PARAMS, e) < 0)
        return -1;
    for (int i = 0; i < 10000; i++)
        if (tx_run(tx,
                   "INSERT INTO meta (name, value) VALUES (:i, '0123456789012345678901234567890')",
                   PARAMS(P_INT("i", i)), e) < 0)
            return -1;
    return 0;
}

static int empty(struct store_tx *tx, void *arg, struct err *e)
{
    (void)arg;
    return tx_run(tx, "PRAGMA max_page_count = 1000000", NO_PARAMS, e) < 0 ? -1 : 0;
}

static void a_full_disk(void **state)
{
    struct err e;

    (void)state;
    open_store();
    e = write_now(fill, NULL);
    assert_int_equal(e.code, ERR_FULL);
    assert_non_null(strstr(e.msg, path));
    assert_true(e.hint[0] != '\0');
    assert_int_equal(write_now(empty, NULL).code, ERR_NONE);
    assert_int_equal(write_now(put, NULL).code, ERR_NONE);
    assert_true(store_is_healthy(store, &e));
    close_store();
}

static void a_file_that_may_not_be_written(void **state)
{
    struct err e;
    uid_t me = geteuid();

    (void)state;
    open_store();
    close_store();
    assert_int_equal(chmod(path, 0444), 0);
    if (me == 0)
        assert_int_equal(seteuid(65534), 0); /* root may write anything */
    assert_true(try_open(&store, &e) < 0);
    if (me == 0)
        assert_int_equal(seteuid(0), 0);
    assert_int_equal(e.code, ERR_UNAVAILABLE);
    assert_true(strstr(e.msg, "ermission") != NULL);
    (void)uv_run(&loop, UV_RUN_NOWAIT);
}

static void a_folder_that_is_not_there(void **state)
{
    struct store_config c = {.loop = &loop, .url = "sqlite:/nonexistent/x/holt.db"};
    struct err e = {0};

    (void)state;
    assert_true(store_open(&c, &store, &e) < 0);
    assert_int_equal(e.code, ERR_UNAVAILABLE);
    assert_non_null(strstr(e.msg, "/nonexistent/x/holt.db"));
    c.url = "mysql://x";
    assert_true(store_open(&c, &store, &e) < 0);
    assert_int_equal(e.code, ERR_INVALID);
}

static void scribble(off_t at, size_t n)
{
    AUTO(fd_close) int fd = open(path, O_WRONLY | O_CLOEXEC);
    AUTO(mem_free) char *junk = xmalloc(n);

    memset(junk, 0x5a, n);
    assert_int_equal(pwrite(fd, junk, n, at), (ssize_t)n);
}

static void a_file_that_is_no_database(void **state)
{
    struct err e;

    (void)state;
    open_store();
    close_store();
    scribble(0, 4096);
    assert_true(try_open(&store, &e) < 0);
    assert_non_null(strstr(e.msg, "damaged"));
    assert_non_null(strstr(e.msg, path));
    assert_non_null(strstr(e.hint, "holt audit verify"));
}

static void run_sql(const char *sql)
{
    sqlite3 *h;

    assert_int_equal(sqlite3_open(path, &h), SQLITE_OK);
    assert_int_equal(sqlite3_exec(h, sql, NULL, NULL, NULL), SQLITE_OK);
    (void)sqlite3_close(h);
}

static void damage_is_seen_after_an_unclean_end(void **state)
{
    struct stat st;
    struct err e;

    (void)state;
    open_store();
    close_store();
    run_sql("INSERT INTO meta WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c"
            " WHERE x < 5000) SELECT 'name' || x, 'value' FROM c; UPDATE chain SET clean = 0");
    assert_int_equal(stat(path, &st), 0);
    scribble(st.st_size / 4096 / 2 * 4096, 4096 * 8);
    assert_true(try_open(&store, &e) < 0);
    assert_non_null(strstr(e.msg, "damaged"));
}

static void wait_until_sick(void)
{
    struct err e = {0};

    for (int i = 0; i < 6000 && store_is_healthy(store, &e); i++)
        uv_sleep(10);
    assert_false(store_is_healthy(store, &e));
    assert_non_null(strstr(e.msg, "was removed or replaced"));
}

static void a_database_that_goes_away_and_comes_back(void **state)
{
    AUTO(mem_free) char *away = xasprintf("%s.away", path);
    struct err e;

    (void)state;
    open_store();
    assert_int_equal(rename(path, away), 0);
    wait_until_sick(); /* without a write */
    e = write_now(put, NULL);
    assert_int_equal(e.code, ERR_UNAVAILABLE);
    assert_non_null(strstr(e.msg, "was removed or replaced"));
    assert_int_equal(rename(away, path), 0);
    assert_int_equal(write_now(put, NULL).code, ERR_NONE);
    assert_true(store_is_healthy(store, NULL));
    assert_int_equal(unlink(path), 0);
    e = write_now(put, NULL);
    assert_non_null(strstr(e.msg, "was removed or replaced"));
    close_store();
}

static int violate(struct store_tx *tx, void *arg, struct err *e)
{
    (void)arg;
    if (tx_run(tx, "CREATE TABLE up (id TEXT PRIMARY KEY)", NO_PARAMS, e) < 0 ||
        tx_run(tx, "CREATE TABLE down (up TEXT REFERENCES up (id) DEFERRABLE INITIALLY DEFERRED)",
               NO_PARAMS, e) < 0)
        return -1;
    return tx_run(tx, "INSERT INTO down VALUES ('absent')", NO_PARAMS, e) < 0 ? -1 : 0;
}

static int is_put(struct store_tx *tx, void *arg, struct err *e)
{
    struct store_rows *r;
    int more;

    if (tx_query(tx, "SELECT 1 FROM meta WHERE name = 'a'", NO_PARAMS, &r, e) < 0)
        return -1;
    more = rows_step(r, e);
    *(bool *)arg = more == 1;
    return more < 0 ? -1 : 0;
}

/* A deferred constraint is looked at by the commit only. */
static void a_failing_commit_fails_all_of_its_group(void **state)
{
    struct err first = {.code = ERR_CODE_COUNT}, second = {.code = ERR_CODE_COUNT};
    bool there = true;

    (void)state;
    open_store();
    store_write(store, STORE_DURABLE, put, done, &first);
    store_write(store, STORE_DURABLE, violate, done, &second);
    while (first.code == ERR_CODE_COUNT || second.code == ERR_CODE_COUNT)
        (void)uv_run(&loop, UV_RUN_ONCE);
    assert_int_equal(first.code, ERR_CONFLICT);
    assert_int_equal(second.code, ERR_CONFLICT);
    assert_int_equal(write_now(is_put, &there).code, ERR_NONE);
    assert_false(there);
    assert_int_equal(write_now(put, NULL).code, ERR_NONE);
    close_store();
}

static int nothing(struct store_tx *tx, void *arg, struct err *e)
{
    (void)tx;
    (void)arg;
    (void)e;
    return 0;
}

static void asked_again(void *arg, const struct err *e)
{
    (void)e;
    store_write(store, STORE_RELAXED, nothing, done, arg);
}

static void a_callback_may_ask_while_the_store_closes(void **state)
{
    struct err second = {0};

    (void)state;
    open_store();
    store_write(store, STORE_RELAXED, nothing, asked_again, &second);
    close_store();
    assert_int_equal(second.code, ERR_UNAVAILABLE);
    assert_string_equal(second.msg, "the store is closing");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_second_daemon_is_refused_and_told_the_pid, wipe),
        cmocka_unit_test_teardown(the_file_is_nobody_elses, wipe),
        cmocka_unit_test_teardown(a_locked_database, wipe),
        cmocka_unit_test_teardown(a_full_disk, wipe),
        cmocka_unit_test_teardown(a_file_that_may_not_be_written, wipe),
        cmocka_unit_test_teardown(a_folder_that_is_not_there, wipe),
        cmocka_unit_test_teardown(a_file_that_is_no_database, wipe),
        cmocka_unit_test_teardown(damage_is_seen_after_an_unclean_end, wipe),
        cmocka_unit_test_teardown(a_database_that_goes_away_and_comes_back, wipe),
        cmocka_unit_test_teardown(a_failing_commit_fails_all_of_its_group, wipe),
        cmocka_unit_test_teardown(a_callback_may_ask_while_the_store_closes, wipe),
    };
    int failed;

    if (!mkdtemp(directory))
        return 1;
    (void)chmod(directory, 0777); /* for the test that gives root up */
    (void)snprintf(path, sizeof path, "%s/holt.db", directory);
    (void)snprintf(url, sizeof url, "sqlite:%s", path);
    log_setup(LOG_ERROR, LOG_LOGFMT);
    (void)uv_loop_init(&loop);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&loop);
    (void)rmdir(directory);
    return failed;
}
