#include "cli/detach.h"

#include "unit.h"

static bool filter(struct detach *d, const char *typed, const char *want)
{
    AUTO(buf_done) struct buf to = {0};
    bool leaves = detach_filter(d, str_of(typed), &to);

    assert_string_equal(buf_cstr(&to), want);
    return leaves;
}

static void sequences(void **state)
{
    struct detach d;
    struct err e;

    (void)state;
    assert_int_equal(detach_parse("ctrl-p,ctrl-q", &d, &e), 0);
    assert_false(filter(&d, "abc", "abc"));
    assert_false(filter(&d, "a\x10", "a"));
    assert_false(filter(&d, "b",
                        "\x10"
                        "b"));
    assert_false(filter(&d, "\x10\x10", "\x10"));
    assert_true(filter(&d, "\x11rest", ""));
    assert_int_equal(detach_parse("a,a,b", &d, &e), 0); /* a beginning within the sequence */
    assert_false(filter(&d, "aaa", "a"));
    assert_true(filter(&d, "b", ""));
    assert_int_equal(detach_parse("a,b,a,c", &d, &e), 0);
    assert_false(filter(&d, "abab", "ab"));
    assert_true(filter(&d, "ac", ""));
    assert_int_equal(detach_parse("none", &d, &e), 0);
    assert_false(filter(&d, "\x10\x11", "\x10\x11"));
}

static void texts(void **state)
{
    static const char *const bad[] = {"ctrl-", "ctrl-pq", "alt-x",
                                      "a,,b",  "ctrl-1",  "a,b,c,d,e,f,g,h,i"};
    struct detach d;
    struct err e;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(detach_parse(bad[i], &d, &e), -1);
    assert_int_equal(detach_parse("CTRL-A,ctrl-],d", &d, &e), 0);
    assert_int_equal(d.count, 3);
    assert_memory_equal(d.keys,
                        "\x01\x1d"
                        "d",
                        3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sequences), cmocka_unit_test(texts)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
