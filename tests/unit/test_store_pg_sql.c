/* One SQL text for both engines: what becomes of it for PostgreSQL. */
#include "base/mem.h"
#include "store/pg.h"
#include "unit.h"

static void assert_sql(const char *sql, const char *want, size_t params)
{
    struct pg_sql s;
    struct err e = {0};

    assert_int_equal(pg_sql_make(sql, &s, &e), 0);
    assert_string_equal(s.text, want);
    assert_int_equal(s.n, params);
    free(s.text);
}

static void names_become_numbers(void **state)
{
    (void)state;
    assert_sql("SELECT 1", "SELECT 1", 0);
    assert_sql("SELECT :a, :b_2 WHERE x = :a", "SELECT $1, $2 WHERE x = $1", 2);
    assert_sql("(:a,:ab,:a)", "($1,$2,$1)", 2);
    assert_sql("CAST(:a AS TEXT) || b::text", "CAST($1 AS TEXT) || b::text", 1);
    assert_sql("a : b :", "a : b :", 0);
    assert_sql("", "", 0);
}

static void quotes_and_comments_are_left_alone(void **state)
{
    (void)state;
    assert_sql("x = ':a' AND y = :b", "x = ':a' AND y = $1", 1);
    assert_sql("x = 'it''s :a' || :b", "x = 'it''s :a' || $1", 1);
    assert_sql("\":a\" = :a -- and :b\n+ :c", "\":a\" = $1 -- and :b\n+ $2", 2);
    assert_sql("x = ':a", "x = ':a", 0);
    assert_sql("x -- :a", "x -- :a", 0);
}

static void too_much_is_refused(void **state)
{
    char sql[1024] = "", *p = sql;
    struct pg_sql s;
    struct err e = {0};

    (void)state;
    for (int i = 0; i <= PG_PARAMS_MAX; i++)
        p += snprintf(p, (size_t)(sql + sizeof sql - p), ":p%d,", i);
    assert_true(pg_sql_make(sql, &s, &e) < 0);
    assert_int_equal(e.code, ERR_INTERNAL);
    assert_true(pg_sql_make(":a_name_that_is_longer_than_any_of_ours", &s, &e) < 0);
}

static void assert_schema(const char *sql, const char *want)
{
    AUTO(mem_free) char *have = pg_sql_schema(sql);

    assert_string_equal(have, want);
}

static void texts_of_tables_get_their_order(void **state)
{
    (void)state;
    assert_schema("CREATE TABLE a (b TEXT NOT NULL, c TEXT, d BIGINT)",
                  "CREATE TABLE a (b TEXT COLLATE \"C\" NOT NULL, c TEXT COLLATE \"C\", d BIGINT)");
    assert_schema("CONTEXT TEXTS _TEXT TEXT_ 'TEXT' -- TEXT",
                  "CONTEXT TEXTS _TEXT TEXT_ 'TEXT' -- TEXT");
    assert_schema("", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_become_numbers),
        cmocka_unit_test(quotes_and_comments_are_left_alone),
        cmocka_unit_test(too_much_is_refused),
        cmocka_unit_test(texts_of_tables_get_their_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
