/* Unified diffs: the hunks make the second text of the first, for random texts too. */
#include "compare/text.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* Applies hunks strictly: every context line and every removed line must be there. */
static void apply(struct str a, struct str diff, struct buf *to)
{
    size_t line = 0, at = 0;

    while (diff.n > 0) {
        struct str head = str_cut(diff, '\n', &diff);
        size_t from;

        assert_true(str_starts(head, STR("@@ -")));
        from = (size_t)strtoul(head.p + 4, NULL, 10);
        if (str_find(str_make(head.p, (size_t)(strchr(head.p, '+') - head.p)), STR(",0 ")))
            from++;
        for (; line + 1 < from; line++) {
            const char *end = memchr(a.p + at, '\n', a.n - at);

            assert_non_null(end);
            buf_add(to, a.p + at, (size_t)(end + 1 - a.p) - at);
            at = (size_t)(end + 1 - a.p);
        }
        while (diff.n > 0 && diff.p[0] != '@') {
            struct str one = str_cut(diff, '\n', &diff);
            bool ends = !str_starts(diff, STR("\\ No newline"));
            AUTO(buf_done) struct buf text = {0};

            buf_add_str(&text, str_skip(one, 1));
            if (ends)
                buf_add_char(&text, '\n');
            else
                (void)str_cut(diff, '\n', &diff);
            if (one.p[0] != '+') {
                assert_true(str_starts(str_skip(a, at), buf_str(&text)));
                at += buf_len(&text);
                line++;
            }
            if (one.p[0] != '-')
                buf_add_str(to, buf_str(&text));
        }
    }
    buf_add_str(to, str_skip(a, at));
}

static void check(struct str a, struct str b)
{
    AUTO(buf_done) struct buf diff = {0}, made = {0};

    assert_int_equal(text_diff(a, b, 1 << 24, &diff), 0);
    (void)buf_cstr(&diff);
    apply(a, buf_str(&diff), &made);
    assert_true(str_eq(buf_str(&made), b));
}

static void known_hunks(void **state)
{
    AUTO(buf_done) struct buf diff = {0};

    (void)state;
    assert_int_equal(text_diff(STR("a\nb\nc\n"), STR("a\nx\nc"), 1000, &diff), 0);
    assert_string_equal(buf_cstr(&diff),
                        "@@ -1,3 +1,3 @@\n a\n-b\n-c\n+x\n+c\n\\ No newline at end of file\n");
    buf_clear(&diff);
    assert_int_equal(text_diff(STR(""), STR("n\n"), 1000, &diff), 0);
    assert_string_equal(buf_cstr(&diff), "@@ -0,0 +1 @@\n+n\n");
    buf_clear(&diff);
    assert_int_equal(text_diff(STR("n\n"), STR(""), 1000, &diff), 0);
    assert_string_equal(buf_cstr(&diff), "@@ -1 +0,0 @@\n-n\n");
    buf_clear(&diff);
    assert_int_equal(text_diff(STR("same\n"), STR("same\n"), 1000, &diff), 0);
    assert_int_equal(buf_len(&diff), 0);
}

static void random_text(struct buf *to, int lines, int words)
{
    for (int i = 0; i < lines; i++)
        buf_printf(to, "%d\n", rand() % words);
    if (rand() % 3 == 0 && buf_len(to) > 0)
        buf_truncate(to, buf_len(to) - 1);
}

static void hunks_make_the_second(void **state)
{
    (void)state;
    srand(42);
    for (int i = 0; i < 3000; i++) {
        AUTO(buf_done) struct buf a = {0}, b = {0};

        random_text(&a, rand() % 30, 1 + rand() % 12);
        random_text(&b, rand() % 30, 1 + rand() % 12);
        check(buf_str(&a), buf_str(&b));
    }
}

/* More edits than are searched for, and a bound on the size. */
static void large_ones(void **state)
{
    AUTO(buf_done) struct buf a = {0}, b = {0}, diff = {0};

    (void)state;
    random_text(&a, 20000, 1000000);
    random_text(&b, 20000, 1000000);
    check(buf_str(&a), buf_str(&b));
    buf_add_c(&diff, "before");
    assert_int_equal(text_diff(buf_str(&a), buf_str(&b), 1000, &diff), 1);
    assert_true(str_eq(buf_str(&diff), STR("before")));
    assert_true(text_is_binary(STR("a\0b")));
    assert_false(text_is_binary(STR("")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(known_hunks),
                                       cmocka_unit_test(hunks_make_the_second),
                                       cmocka_unit_test(large_ones)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
