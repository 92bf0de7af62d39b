#include "base/str.h"

#include "base/mem.h"
#include "unit.h"

#include <errno.h>

static void numbers_are_parsed_strictly(void **state)
{
    uint64_t u;
    int64_t i;
    double d;

    (void)state;
    assert_int_equal(str_parse_u64(STR("18446744073709551615"), &u), 0);
    assert_true(u == UINT64_MAX);
    assert_int_equal(str_parse_u64(STR("18446744073709551616"), &u), -ERANGE);
    assert_int_equal(str_parse_u64(STR(""), &u), -EINVAL);
    assert_int_equal(str_parse_u64(STR("+1"), &u), -EINVAL);
    assert_int_equal(str_parse_u64(STR(" 1"), &u), -EINVAL);
    assert_int_equal(str_parse_u64(STR("1\0002"), &u), -EINVAL);
    assert_int_equal(str_parse_i64(STR("-9223372036854775808"), &i), 0);
    assert_true(i == INT64_MIN);
    assert_int_equal(str_parse_i64(STR("9223372036854775808"), &i), -ERANGE);
    assert_int_equal(str_parse_i64(STR("--1"), &i), -EINVAL);
    assert_int_equal(str_parse_double(STR("1.5e3"), &d), 0);
    assert_true(d == 1500.0);
    assert_int_equal(str_parse_double(STR("nan"), &d), -EINVAL);
    assert_int_equal(str_parse_double(STR("inf"), &d), -EINVAL);
    assert_int_equal(str_parse_double(STR("1x"), &d), -EINVAL);
}

static void durations_and_sizes_have_units(void **state)
{
    int64_t v;

    (void)state;
    assert_int_equal(str_parse_duration_ms(STR("15m"), &v), 0);
    assert_int_equal(v, 900000);
    assert_int_equal(str_parse_duration_ms(STR("250ms"), &v), 0);
    assert_int_equal(v, 250);
    assert_int_equal(str_parse_duration_ms(STR("7"), &v), 0);
    assert_int_equal(v, 7);
    assert_int_equal(str_parse_duration_ms(STR("1h30m"), &v), 0);
    assert_int_equal(v, 5400000);
    assert_int_equal(str_parse_duration_ms(STR("1.5h0m2.25s"), &v), 0);
    assert_int_equal(v, 5402250);
    assert_int_equal(str_parse_duration_ms(STR("m"), &v), -EINVAL);
    assert_int_equal(str_parse_duration_ms(STR(""), &v), -EINVAL);
    assert_int_equal(str_parse_duration_ms(STR("1h30"), &v), -EINVAL);
    assert_int_equal(str_parse_duration_ms(STR("1.h"), &v), -EINVAL);
    assert_int_equal(str_parse_duration_ms(STR(".5h"), &v), -EINVAL);
    assert_int_equal(str_parse_duration_ms(STR("1h-30m"), &v), -EINVAL);
    assert_int_equal(str_parse_duration_ms(STR("200000000d200000000000d"), &v), -ERANGE);
    assert_int_equal(str_parse_duration_ms(STR("1 m"), &v), -EINVAL);
    assert_int_equal(str_parse_duration_ms(STR("9223372036854775807d"), &v), -ERANGE);
    assert_int_equal(str_parse_size(STR("64k"), &v), 0);
    assert_int_equal(v, 65536);
    assert_int_equal(str_parse_size(STR("2GiB"), &v), 0);
    assert_true(v == 2LL << 30);
    assert_int_equal(str_parse_size(STR("2x"), &v), -EINVAL);
}

static void utf8_is_checked_to_the_letter(void **state)
{
    static const struct {
        struct str text;
        bool good;
    } rows[] = {
        {STR(""), true},
        {STR("plain"), true},
        {STR("\xc3\xa9\xe2\x82\xac\xf0\x9f\xa6\xa6"), true},
        {STR("\xf4\x8f\xbf\xbf"), true},
        {STR("\xc0\xaf"), false},         /* overlong */
        {STR("\xe0\x80\xaf"), false},     /* overlong */
        {STR("\xf0\x80\x80\xaf"), false}, /* overlong */
        {STR("\xed\xa0\x80"), false},     /* surrogate */
        {STR("\xf4\x90\x80\x80"), false}, /* past the end */
        {STR("\xe2\x82"), false},         /* cut */
        {STR("\x80"), false},
        {STR("\xff"), false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(str_is_utf8(rows[i].text), rows[i].good);
}

static void views_are_cut_and_compared(void **state)
{
    AUTO(mem_free) char *copy = str_dup(STR("abc"));
    struct str rest;
    bool b;

    (void)state;
    assert_string_equal(copy, "abc");
    assert_true(str_eq_c(str_cut(STR("a=b=c"), '=', &rest), "a"));
    assert_true(str_eq_c(rest, "b=c"));
    assert_true(str_eq_c(str_cut(STR("abc"), '=', &rest), "abc"));
    assert_true(rest.n == 0 && rest.p == NULL);
    assert_true(str_eq_c(str_trim(STR(" \t x y\t ")), "x y"));
    assert_true(str_case_eq_c(STR("Content-Type"), "content-TYPE"));
    assert_false(str_case_eq_c(STR("a"), "ab"));
    assert_true(str_starts(STR("abc"), STR("ab")) && !str_starts(STR("a"), STR("ab")));
    assert_true(str_ends(STR("abc"), STR("bc")) && !str_ends(STR("c"), STR("bc")));
    assert_true(str_eq_secret(STR("same"), STR("same")));
    assert_false(str_eq_secret(STR("same"), STR("samf")));
    assert_false(str_eq_secret(STR("same"), STR("sam")));
    assert_int_equal(str_parse_bool(STR("Yes"), &b), 0);
    assert_true(b);
    assert_int_equal(str_parse_bool(STR("off"), &b), 0);
    assert_false(b);
    assert_int_equal(str_parse_bool(STR("2"), &b), -EINVAL);
}

static void parts_are_found(void **state)
{
    const struct str s = STR("otter\0den");

    (void)state;
    assert_ptr_equal(str_find(s, STR("t\0d")), NULL);
    assert_ptr_equal(str_find(s, STR("r\0d")), s.p + 4);
    assert_ptr_equal(str_find(s, STR("")), s.p);
    assert_null(str_find(STR("de"), STR("den")));
    assert_null(str_find((struct str){0}, STR("den")));
    assert_null(str_find((struct str){0}, STR("")));
}

static void order_is_by_bytes(void **state)
{
    (void)state;
    assert_int_equal(str_cmp(STR(""), (struct str){0}), 0);
    assert_int_equal(str_cmp(STR("ab"), STR("ab")), 0);
    assert_true(str_cmp(STR("a"), STR("ab")) < 0);
    assert_true(str_cmp(STR("ab"), STR("a")) > 0);
    assert_true(str_cmp(STR("Z"), STR("a")) < 0);
    assert_true(str_cmp(STR("z"), STR("\xc3\xa4")) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_is_by_bytes),
        cmocka_unit_test(parts_are_found),
        cmocka_unit_test(numbers_are_parsed_strictly),
        cmocka_unit_test(durations_and_sizes_have_units),
        cmocka_unit_test(utf8_is_checked_to_the_letter),
        cmocka_unit_test(views_are_cut_and_compared),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
