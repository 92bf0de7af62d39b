#include "proto/match.h"

#include "unit.h"

static struct match made(const char *methods, const char *path)
{
    AUTO(json_decref) json_t *m = NULL, *p = path ? json_string(path) : NULL;
    struct match ret = {0};
    struct err e;

    if (methods) {
        assert_int_equal(json_read(str_of(methods), &m, &e), 0);
        assert_int_equal(match_methods(&ret, m, &e), 0);
    }
    if (p)
        assert_int_equal(match_path(&ret, p, &e), 0);
    return ret;
}

static void requests(void **state)
{
    struct match any = {0}, some = made("[\"GET\",\"HEAD\"]", "/v1/*");

    (void)state;
    assert_true(match_fits(&any, STR("X"), STR("/../%2f"), false));
    assert_false(match_is_narrow(&any));
    assert_true(match_is_narrow(&some));
    assert_true(match_fits(&some, STR("GET"), STR("/v1/"), false));
    assert_true(match_fits(&some, STR("HEAD"), STR("/v1/a/b%20c"), false));
    assert_false(match_fits(&some, STR("POST"), STR("/v1/a"), false));
    assert_false(match_fits(&some, STR("GET"), STR("/v1"), false));
    /* what is unclear does not fit when that grants, and does when that forbids */
    assert_false(match_fits(&some, STR("get"), STR("/v1/a"), false));
    assert_true(match_fits(&some, STR("get"), STR("/v1/a"), true));
    assert_false(match_fits(&some, STR("GET"), STR("/x/..%2Fv1/a"), false));
    assert_true(match_fits(&some, STR("GET"), STR("/x/..%2Fv1/a"), true));
    match_done(&some);
}

static void paths_of_one_form_only(void **state)
{
    static const char *const bad[] = {"v1",   "/a/../b", "/a//b",    "/%61",  "/a%2fb",
                                      "/a;b", "/a*b",    "/%c3%a9*", "/a\\b", "/%",
                                      "/%4",  "/%25",    "/./"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        AUTO(json_decref) json_t *v = json_string(bad[i]);
        struct match m = {0};
        struct err e;

        if (match_path(&m, v, &e) == 0)
            fail_msg("taken: %s", bad[i]);
        match_done(&m);
    }
}

static void names(void **state)
{
    char name[HOST_NAME_MAX_LEN + 1];
    struct host h;
    struct err e;
    bool wild;

    (void)state;
    assert_int_equal(match_name_parse(STR("*.Example.COM."), name, &wild, &e), 0);
    assert_string_equal(name, "example.com");
    assert_true(wild);
    assert_int_equal(host_parse(STR("a.example.com"), &h, &e), 0);
    assert_true(match_name(name, wild, &h));
    assert_false(match_name(name, false, &h));
    assert_int_equal(host_parse(STR("notexample.com"), &h, &e), 0);
    assert_false(match_name(name, wild, &h));
    assert_int_equal(host_parse(STR("example.com"), &h, &e), 0);
    assert_true(match_name(name, wild, &h));
    assert_int_equal(match_name_parse(STR("*.com"), name, &wild, &e), -1);
    assert_int_equal(match_name_parse(STR("10.0.0.1"), name, &wild, &e), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests),
        cmocka_unit_test(paths_of_one_form_only),
        cmocka_unit_test(names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
