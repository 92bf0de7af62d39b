#include "proto/http.h"

#include "unit.h"

#include <errno.h>

static const struct http_header fields[] = {
    {STR("accept"), STR("text/html;q=0.9, Application/JSON ;q=1,x")},
    {STR("cookie"), STR("a=1")},
    {STR("cookie"), STR("b=2")},
};

static void fields_are_found_in_order(void **state)
{
    size_t at = 0;

    (void)state;
    assert_ptr_equal(http_get(fields, 3, "cookie"), &fields[1]);
    assert_null(http_get(fields, 3, "cook"));
    assert_ptr_equal(http_find(fields, 3, "cookie", &at), &fields[1]);
    assert_ptr_equal(http_find(fields, 3, "cookie", &at), &fields[2]);
    assert_null(http_find(fields, 3, "cookie", &at));
}

static void tokens_are_found_in_lists(void **state)
{
    (void)state;
    assert_true(http_has_token(fields[0].value, "application/json"));
    assert_true(http_has_token(fields[0].value, "text/html"));
    assert_true(http_has_token(fields[0].value, "x"));
    assert_false(http_has_token(fields[0].value, "json"));
    assert_false(http_has_token(STR(""), "x"));
    assert_false(http_has_token(STR(",,"), "x"));
    assert_string_equal(http_status_text(404), "Not Found");
    assert_string_equal(http_status_text(299), "Unknown");
}

static void queries_are_decoded(void **state)
{
    AUTO(arena_done) struct arena a = {0};
    struct str v;

    (void)state;
    assert_int_equal(http_query_get(STR("x=1&y=a%20b+c&&z"), "y", &a, &v), 1);
    assert_true(str_eq_c(v, "a b c"));
    assert_int_equal(http_query_get(STR("x=1&y=a&&z"), "z", &a, &v), 1);
    assert_int_equal(v.n, 0);
    assert_int_equal(http_query_get(STR("%78=7"), "x", &a, &v), 1);
    assert_true(str_eq_c(v, "7"));
    assert_int_equal(http_query_get(STR("xx=1"), "x", &a, &v), 0);
    assert_int_equal(http_query_get((struct str){NULL, 0}, "x", &a, &v), 0);
    assert_int_equal(http_query_get(STR("x=%"), "x", &a, &v), -EINVAL);
    assert_int_equal(http_query_get(STR("x=%0g"), "x", &a, &v), -EINVAL);
    assert_int_equal(http_query_get(STR("x=%00"), "x", &a, &v), -EINVAL);
}

static void path_segments_are_decoded(void **state)
{
    AUTO(arena_done) struct arena a = {0};
    struct str v;

    (void)state;
    assert_int_equal(http_path_segment(STR("a%20b+c"), &a, &v), 0);
    assert_true(str_eq_c(v, "a b+c"));
    assert_int_equal(http_path_segment(STR("a%2fb"), &a, &v), 0); /* OWNER/NAME: one segment */
    assert_true(str_eq_c(v, "a/b"));
    assert_int_equal(http_path_segment(STR("a%00"), &a, &v), -EINVAL);
    assert_int_equal(http_path_segment(STR("a/b"), &a, &v), -EINVAL);
}

static void only_normal_paths_are_normal(void **state)
{
    static const char *const good[] = {"/", "/a", "/a/", "/a/b.c", "/...", "/.a", "/a..b"};
    static const char *const wrong[] = {"",        "a",       "//",      "/a//b",
                                        "/.",      "/..",     "/a/../b", "/%2e",
                                        "/%2E%2e", "/.%2e/x", "/a\n",    "/a/\x7f/b"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        if (!http_path_is_normal(str_of(good[i])))
            fail_msg("'%s'", good[i]);
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        if (http_path_is_normal(str_of(wrong[i])))
            fail_msg("'%s'", wrong[i]);
}

static void cookies_are_walked(void **state)
{
    struct http_header h[] = {{STR("cookie"), STR("a=1; b=x=y;; c ;")},
                              {STR("accept"), STR("z=1")},
                              {STR("cookie"), STR("")},
                              {STR("cookie"), STR("=d; e=")}};
    struct http_req req = {.headers = h, .header_count = ARRAY_LEN(h)};
    static const char *const want[][2] = {
        {"a", "1"}, {"b", "x=y"}, {"", "c"}, {"", "d"}, {"e", ""}};
    struct http_cookies left = {.req = &req};
    struct str name, value;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        assert_true(http_cookie_next(&left, &name, &value));
        assert_true(str_eq_c(name, want[i][0]));
        assert_true(str_eq_c(value, want[i][1]));
    }
    assert_false(http_cookie_next(&left, &name, &value));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_found_in_order),    cmocka_unit_test(tokens_are_found_in_lists),
        cmocka_unit_test(queries_are_decoded),          cmocka_unit_test(path_segments_are_decoded),
        cmocka_unit_test(only_normal_paths_are_normal), cmocka_unit_test(cookies_are_walked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
