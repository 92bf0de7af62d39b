#include "proto/h2.h"

#include "unit.h"

#include <errno.h>

/* Fields as "name", "value", …, NULL. */
static int make(const char *const *fields, bool ended, struct arena *a, struct http_req *ret)
{
    struct h2_head h = {0};
    int r;

    for (; *fields; fields += 2)
        assert_int_equal(h2_head_add(&h, str_of(fields[0]), str_of(fields[1]), 10000, 100), 0);
    r = h2_head_request(&h, a, ended, ret);
    h2_head_done(&h);
    return r;
}

#define BASE ":method", "GET", ":scheme", "http", ":path", "/a?b=1", ":authority", "x:1"
#define HEAD(...) ((const char *const[]){__VA_ARGS__, NULL})

static void a_request_is_taken_apart(void **state)
{
    AUTO(arena_done) struct arena a = {0};
    struct http_req r;

    (void)state;
    assert_int_equal(
        make(HEAD(BASE, "cookie", "a=1", "accept", "*/*", "cookie", "b=2", "host", "X:1"), false,
             &a, &r),
        0);
    assert_int_equal(r.version, HTTP_2);
    assert_true(str_eq_c(r.method, "GET"));
    assert_true(str_eq_c(r.target, "/a?b=1"));
    assert_true(str_eq_c(r.path, "/a"));
    assert_true(str_eq_c(r.query, "b=1"));
    assert_true(str_eq_c(r.authority, "x:1"));
    assert_int_equal(r.content_length, HTTP_LENGTH_UNKNOWN);
    assert_int_equal(r.header_count, 3);
    assert_true(str_eq_c(http_req_header(&r, "cookie"), "a=1; b=2"));
    assert_int_equal(
        make(HEAD(":method", "GET", ":scheme", "http", ":path", "/", "host", "h"), true, &a, &r),
        0);
    assert_true(str_eq_c(r.authority, "h"));
    assert_null(r.query.p);
    assert_int_equal(r.content_length, 0);
}

static void what_is_no_request_is_refused(void **state)
{
    static const struct {
        const char *fields[16];
        bool ended;
        int result;
    } cases[] = {
        {{BASE, "host", "other"}, true, -EPROTO},
        {{":method", "GET", ":scheme", "http", ":path", "/", "host", "a", "host", "a"},
         true,
         -EPROTO},
        {{":method", "GET", ":scheme", "http", ":path", "/"}, true, -EPROTO},
        {{":method", "G T", ":scheme", "http", ":path", "/", ":authority", "x"}, true, -EPROTO},
        {{BASE, "content-length", "5"}, true, -EPROTO},
        {{BASE, "content-length", "-5"}, false, -EPROTO},
        {{BASE, ":protocol", "websocket"}, false, -EPROTO},
        {{":method", "CONNECT", ":authority", "x:1"}, false, -EOPNOTSUPP},
        {{":method", "GET", ":scheme", "ftp", ":path", "/", ":authority", "x"}, true, -EINVAL},
        {{":method", "GET", ":scheme", "http", ":path", "", ":authority", "x"}, true, -EINVAL},
        {{":method", "GET", ":scheme", "http", ":path", "a", ":authority", "x"}, true, -EINVAL},
        {{":method", "GET", ":scheme", "http", ":path", "/ b", ":authority", "x"}, true, -EINVAL},
        {{":method", "GET", ":scheme", "http", ":path", "/#b", ":authority", "x"}, true, -EINVAL},
        {{":method", "GET", ":scheme", "http", ":path", "/\xc3\xa4", ":authority", "x"},
         true,
         -EINVAL},
        {{":method", "GET", ":scheme", "http", ":path", "*", ":authority", "x"}, true, -EINVAL},
        {{":method", "OPTIONS", ":scheme", "http", ":path", "*", ":authority", "x"}, true, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO(arena_done) struct arena a = {0};
        struct http_req r;

        assert_int_equal(make(cases[i].fields, cases[i].ended, &a, &r), cases[i].result);
    }
}

static void an_extended_connect_is_shown_as_get(void **state)
{
    AUTO(arena_done) struct arena a = {0};
    struct http_req r;

    (void)state;
    assert_int_equal(make(HEAD(":method", "CONNECT", ":protocol", "websocket", ":scheme", "http",
                               ":path", "/ws", ":authority", "x"),
                          false, &a, &r),
                     0);
    assert_true(str_eq_c(r.method, "GET"));
    assert_true(str_eq_c(http_req_header(&r, ":protocol"), "websocket"));
}

static void limits_count_bytes_and_fields(void **state)
{
    struct h2_head h = {0};

    (void)state;
    assert_int_equal(h2_head_add(&h, STR("a"), STR("b"), 100, 3), 0);
    assert_int_equal(h2_head_add(&h, STR("a"), STR("b"), 100, 1), -ENOSPC);
    assert_int_equal(h2_head_add(&h, STR("a"), STR("b"), 100, 3), -ENOSPC); /* 3 × 34 */
    assert_int_equal(h.count, 1);
    h2_head_clear(&h);
    assert_int_equal(h2_head_add(&h, STR("a"), STR("b"), 34, 1), 0);
    h2_head_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_taken_apart),
        cmocka_unit_test(what_is_no_request_is_refused),
        cmocka_unit_test(an_extended_connect_is_shown_as_get),
        cmocka_unit_test(limits_count_bytes_and_fields),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
