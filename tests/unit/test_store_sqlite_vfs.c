#include "store/sqlite.h"

#include "unit.h"

#include "base/fd.h"
#include "base/mem.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char dir[64];

static int set_up(void **state)
{
    (void)state;
    (void)snprintf(dir, sizeof dir, "/tmp/holt-vfs-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
    static const char *const names[] = {"a", "a-wal", "a-shm", "b", "b-wal", "b-shm"};
    char path[128];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        (void)unlink(path);
    }
    return rmdir(dir);
}

static void run(sqlite3 *h, const char *sql)
{
    char *why = NULL;

    if (sqlite3_exec(h, sql, NULL, NULL, &why) != SQLITE_OK)
        fail_msg("%s: %s", sql, why);
}

static sqlite3 *open_db(const char *name, const char *vfs)
{
    char path[128];
    sqlite3 *h = NULL;

    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    assert_int_equal(sqlite3_open_v2(path, &h, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, vfs),
                     SQLITE_OK);
    return h;
}

static long number(sqlite3 *h, const char *sql)
{
    sqlite3_stmt *s = NULL;
    long n;

    assert_int_equal(sqlite3_prepare_v2(h, sql, -1, &s, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    n = (long)sqlite3_column_int64(s, 0);
    (void)sqlite3_finalize(s);
    return n;
}

static void copy(const char *from, const char *to)
{
    AUTO(buf_done) struct buf bytes = {0};
    char path[128];
    int fd;

    (void)snprintf(path, sizeof path, "%s/%s", dir, from);
    assert_int_equal(file_read(path, 64 << 20, &bytes), 0);
    (void)snprintf(path, sizeof path, "%s/%s", dir, to);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(fd_write_all(fd, buf_data(&bytes), buf_len(&bytes)), 0);
    fd_close(fd);
}

/* What another process finds if this one is killed now: SQLite's own VFS recovers the log. */
static long sum_after_death(void)
{
    sqlite3 *h;
    long sum;

    copy("a", "b");
    copy("a-wal", "b-wal");
    h = open_db("b", NULL);
    assert_int_equal(number(h, "SELECT count(*) FROM pragma_integrity_check WHERE 1"), 1);
    sum = number(h, "SELECT coalesce(sum(v), 0) FROM t");
    (void)sqlite3_close(h);
    return sum;
}

static sqlite3 *new_db(void)
{
    const char *vfs = sqlite_vfs_over(NULL);
    sqlite3 *h;

    assert_string_equal(vfs, "holt");
    assert_string_equal(sqlite_vfs_over(NULL), vfs);
    h = open_db("a", vfs);
    run(h, "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=0;"
           "CREATE TABLE t (k INTEGER PRIMARY KEY, v INTEGER, pad TEXT)");
    return h;
}

/* Not synced, yet the kernel has it: the process may die. */
static void a_commit_is_whole_when_it_returns(void **state)
{
    sqlite3 *h = new_db(), *reader = open_db("a", sqlite_vfs_over(NULL));
    char sql[160];

    (void)state;
    for (int i = 1; i <= 50; i++) {
        (void)snprintf(sql, sizeof sql, "INSERT INTO t (v, pad) VALUES (1, hex(randomblob(%d)))",
                       i * 400);
        run(h, sql);
        assert_int_equal(number(reader, "SELECT sum(v) FROM t"), i);
        if (i % 10 == 0)
            assert_int_equal(sum_after_death(), i);
    }
    run(h, "BEGIN; INSERT INTO t (v) VALUES (1000); ROLLBACK; INSERT INTO t (v) VALUES (1)");
    assert_int_equal(sum_after_death(), 51);
    (void)sqlite3_close(reader);
    (void)sqlite3_close(h);
}

/* With a tiny cache pages go to the log before the commit, and change there again: SQLite then
 * writes the heads of earlier frames anew. */
static void pages_that_change_twice_are_recovered(void **state)
{
    sqlite3 *h = new_db();

    (void)state;
    run(h, "PRAGMA cache_size=4; BEGIN");
    for (int i = 0; i < 200; i++)
        run(h, "INSERT INTO t (v, pad) VALUES (1, hex(randomblob(900)))");
    for (int i = 0; i < 3; i++)
        run(h, "UPDATE t SET v = v + 1 WHERE k % 3 = 0");
    assert_int_equal(number(h, "SELECT sum(v) FROM t"), 200 + 3 * 66); /* reads its own frames */
    run(h, "COMMIT");
    assert_int_equal(sum_after_death(), 200 + 3 * 66);
    assert_int_equal(sqlite_vfs_settle(h), SQLITE_OK);
    run(h, "PRAGMA wal_checkpoint(TRUNCATE)");
    run(h, "UPDATE t SET v = v + 1");
    assert_int_equal(sum_after_death(), 400 + 3 * 66);
    (void)sqlite3_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_commit_is_whole_when_it_returns, set_up, tear_down),
        cmocka_unit_test_setup_teardown(pages_that_change_twice_are_recovered, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
