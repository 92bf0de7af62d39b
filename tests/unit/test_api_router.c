#include "api/router.h"

#include "base/mem.h"
#include "unit.h"

#include <stdio.h>

static bool guard_answer;

static bool guard(const struct xchg *x)
{
    (void)x;
    return guard_answer;
}

static const struct route routes[] = {
    {.method = "GET", .path = "/", .name = "root"},
    {.method = "GET", .path = "/tokens", .name = "list"},
    {.method = "POST", .path = "/tokens", .name = "create"},
    {.method = "GET", .path = "/tokens/self", .name = "self"},
    {.method = "GET", .path = "/tokens/{id}", .name = "get"},
    {.method = "DELETE", .path = "/tokens/{id}", .name = "revoke"},
    {.method = "GET", .path = "/tokens/{id}/log/{n}", .name = "log"},
    {.method = "HEAD", .path = "/own-head", .name = "own head"},
    {.method = "GET", .path = "/own-head", .name = "own get"},
    {.method = "*", .path = "/proxy/{port}/{rest...}", .name = "proxy"},
    {.method = "GET", .path = "/guarded", .name = "guarded", .guard = guard},
    {.method = "GET", .path = "/guarded", .name = "plain"},
    {.method = "GET", .path = "/only-guarded", .name = "only", .guard = guard},
};

struct fixture {
    struct router *r;
    struct arena a;
    struct router_match m;
};

static int setup(void **state)
{
    struct fixture *f = xzalloc(sizeof *f);
    struct err e = {0};

    f->r = router_new();
    for (size_t i = 0; i < ARRAY_LEN(routes); i++)
        assert_int_equal(router_add(f->r, &routes[i], &e), 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    router_free(f->r);
    arena_done(&f->a);
    mem_free(f);
    return 0;
}

static enum router_result find(struct fixture *f, const char *method, const char *path)
{
    return router_find(f->r, str_of(method), str_of(path), NULL, &f->a, &f->m);
}

static void each_path_finds_its_route(void **state)
{
    static const struct {
        const char *method, *path, *name, *param;
    } rows[] = {
        {"GET", "/", "root", NULL},
        {"GET", "/tokens", "list", NULL},
        {"POST", "/tokens", "create", NULL},
        {"GET", "/tokens/self", "self", NULL},
        {"GET", "/tokens/tk_1", "get", "tk_1"},
        {"HEAD", "/tokens/tk_1", "get", "tk_1"},
        {"HEAD", "/own-head", "own head", NULL},
        {"DELETE", "/tokens/a%20b", "revoke", "a b"},
        {"GET", "/tokens/self/log/7", "log", "self"}, /* a literal's dead end falls back */
        {"PATCH", "/proxy/80/x/y%2Fz", "proxy", "80"},
        {"GET", "/%74okens", "list", NULL}, /* an escaped literal is the same literal */
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(find(f, rows[i].method, rows[i].path), ROUTER_FOUND);
        assert_string_equal(f->m.route->name, rows[i].name);
        if (rows[i].param)
            assert_string_equal(f->m.params.v[0].p, rows[i].param);
        else
            assert_int_equal(f->m.params.n, 0);
    }
}

static void parameters_come_in_order(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(find(f, "GET", "/tokens/a/log/b"), ROUTER_FOUND);
    assert_int_equal(f->m.params.n, 2);
    assert_string_equal(f->m.params.v[0].p, "a");
    assert_string_equal(f->m.params.v[1].p, "b");
}

static void the_rest_is_as_sent(void **state)
{
    static const struct {
        const char *path, *rest;
    } rows[] = {
        {"/proxy/80/x/y%2Fz", "x/y%2Fz"},
        {"/proxy/80/x/", "x/"},
        {"/proxy/80", ""},
        {"/proxy/80/", ""},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(find(f, "GET", rows[i].path), ROUTER_FOUND);
        assert_int_equal(f->m.params.n, 2);
        assert_string_equal(f->m.params.v[1].p, rows[i].rest);
    }
}

static void what_is_not_there_is_not_found(void **state)
{
    static const char *const paths[] = {
        "/token", "/tokens/", "/tokens/a/b", "/tokens/a/log", "/tokens/a/log/b/c", "/x/tokens",
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        assert_int_equal(find(f, "GET", paths[i]), ROUTER_NO_PATH);
}

static void a_path_too_deep_is_not_found(void **state)
{
    struct fixture *f = *state;
    char path[4096] = "";
    size_t n = 0;

    while (n < sizeof path - 3)
        n += (size_t)snprintf(path + n, sizeof path - n, "/a");
    assert_int_equal(find(f, "GET", path), ROUTER_NO_PATH);
    memcpy(path, "/proxy/a", 8);
    assert_int_equal(find(f, "GET", path), ROUTER_FOUND);
    assert_int_equal(f->m.params.v[1].n, n - 9);
    assert_int_equal(find(f, "GET", "/tokens/a/b"), ROUTER_NO_PATH);
    assert_int_equal(find(f, "GET", "/tokens/a%2Fb"), ROUTER_FOUND); /* one name */
}

static void other_forms_of_a_path_are_bad(void **state)
{
    static const char *const paths[] = {"/tokens/..", "//tokens", "/./tokens",
                                        "tokens",     "",         "/%2e%2e/tokens"};
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        assert_int_equal(find(f, "GET", paths[i]), ROUTER_BAD_PATH);
}

static void a_wrong_method_is_told_the_right_ones(void **state)
{
    static const struct {
        const char *method, *path, *allow;
    } rows[] = {
        {"DELETE", "/tokens", "GET, HEAD, POST, OPTIONS"},
        {"DELETE", "/tokens/self", "GET, HEAD, OPTIONS"}, /* the literal, not {id} */
        {"OPTIONS", "/tokens/x", "GET, HEAD, DELETE, OPTIONS"},
        {"POST", "/own-head", "HEAD, GET, OPTIONS"},
        {"get", "/tokens", "GET, HEAD, POST, OPTIONS"}, /* methods are case-sensitive */
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(find(f, rows[i].method, rows[i].path), ROUTER_NO_METHOD);
        assert_string_equal(f->m.allow.p, rows[i].allow);
    }
}

static void a_guard_decides(void **state)
{
    struct fixture *f = *state;

    guard_answer = true;
    assert_int_equal(find(f, "GET", "/guarded"), ROUTER_FOUND);
    assert_string_equal(f->m.route->name, "guarded");
    assert_int_equal(find(f, "GET", "/only-guarded"), ROUTER_FOUND);
    guard_answer = false;
    assert_int_equal(find(f, "GET", "/guarded"), ROUTER_FOUND);
    assert_string_equal(f->m.route->name, "plain");
    assert_int_equal(find(f, "POST", "/guarded"), ROUTER_NO_METHOD);
    assert_string_equal(f->m.allow.p, "GET, HEAD, OPTIONS");
    assert_int_equal(find(f, "GET", "/only-guarded"), ROUTER_NO_PATH);
}

static void wrong_routes_are_refused(void **state)
{
    static const struct route wrong[] = {
        {.method = "GET", .path = "tokens", .name = ""},
        {.method = "GET", .path = "/a//b", .name = ""},
        {.method = "GET", .path = "/{a", .name = ""},
        {.method = "GET", .path = "/{}", .name = ""},
        {.method = "GET", .path = "/{a...}/b", .name = ""},
        {.method = "GET", .path = "/tokens", .name = "twice"},
        {.method = "GET", .path = "/{1}/{2}/{3}/{4}/{5}/{6}/{7}/{8}/{9}", .name = ""},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct err e = {0};

        assert_true(router_add(f->r, &wrong[i], &e) < 0);
        assert_true(e.msg[0]);
    }
}

/* Not a benchmark: a scan of all routes would be seen by orders of magnitude. */
static void many_routes_are_found_each(void **state)
{
    enum { MANY = 5000 };
    struct fixture *f = *state;
    char(*paths)[32] = xzalloc(MANY * sizeof *paths);
    struct err e = {0};

    for (size_t i = 0; i < MANY; i++) {
        (void)snprintf(paths[i], sizeof paths[i], "/many/r%zu/{id}", i);
        assert_int_equal(
            router_add(f->r, &(struct route){.method = "GET", .path = paths[i], .name = "m"}, &e),
            0);
    }
    for (size_t i = 0; i < MANY; i++) {
        char path[32];

        (void)snprintf(path, sizeof path, "/many/r%zu/x", i);
        assert_int_equal(find(f, "GET", path), ROUTER_FOUND);
        assert_int_equal(f->m.route->index, ARRAY_LEN(routes) + i);
    }
    mem_free(paths);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_path_finds_its_route, setup, teardown),
        cmocka_unit_test_setup_teardown(parameters_come_in_order, setup, teardown),
        cmocka_unit_test_setup_teardown(the_rest_is_as_sent, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_not_there_is_not_found, setup, teardown),
        cmocka_unit_test_setup_teardown(a_path_too_deep_is_not_found, setup, teardown),
        cmocka_unit_test_setup_teardown(other_forms_of_a_path_are_bad, setup, teardown),
        cmocka_unit_test_setup_teardown(a_wrong_method_is_told_the_right_ones, setup, teardown),
        cmocka_unit_test_setup_teardown(a_guard_decides, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_routes_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(many_routes_are_found_each, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
