#include "proto/binding.h"

#include "base/mem.h"
#include "proto/scrub.h"
#include "unit.h"

static const char json[] =
    "[{\"placeholder\":\"holt_one_one\",\"value\":\"value/1\",\"hosts\":[\"a.test\"]},"
    "{\"placeholder\":\"holt_two_two\",\"value\":\"value 2\",\"hosts\":[\"*.b.test\",\"a.test\"],"
    "\"methods\":[\"POST\"],\"path\":\"/v1/*\",\"in\":[\"query\"],\"plain\":true},"
    "{\"placeholder\":\"holt_two_two\",\"value\":\"other\",\"hosts\":[\"a.test\"],\"in\":["
    "\"header\"]}]";

static struct bindings *made(void)
{
    struct bindings *b;
    struct err e = {0};

    if (bindings_parse(str_of(json), &b, &e) < 0)
        fail_msg("%s", e.msg);
    return b;
}

static struct host named(const char *name)
{
    struct host h;
    struct err e;

    assert_int_equal(host_parse(str_of(name), &h, &e), 0);
    return h;
}

static char *filled(const struct bindings *b, const struct binding_query *q, const char *name,
                    const char *value)
{
    struct http_header h = {str_of(name), str_of(value)};
    struct buf to = {0};

    if (name)
        (void)bindings_fill_header(b, q, &h, &to);
    else
        (void)bindings_fill_query(b, q, str_of(value), &to);
    buf_add_char(&to, '\0');
    return buf_steal(&to);
}

static void check(const struct bindings *b, const struct binding_query *q, const char *name,
                  const char *value, const char *want)
{
    AUTO(mem_free) char *got = filled(b, q, name, value);

    assert_string_equal(got, want);
}

static void filled_in_where_it_is_bound(void **state)
{
    AUTO(bindings_free) struct bindings *b = made();
    struct host a = named("a.test"), c = named("c.test"), x = named("x.b.test");
    struct binding_query q = {.host = &a, .tls = true, .method = STR("POST"), .path = STR("/v1/x")};

    (void)state;
    check(b, &q, "x", "<holt_one_one holt_two_two>", "<value/1 other>");
    check(b, &q, NULL, "k=holt_one_one&l=holt_two_two", "k=value%2F1&l=value%202");
    check(b, &q, "authorization", "Basic OmhvbHRfb25lX29uZQ==", "Basic OnZhbHVlLzE=");
    check(b, &q, "authorization", "bearer holt_one_one", "bearer value/1");
    check(b, &q, "x", "Basic OmhvbHRfb25lX29uZQ==", "Basic OmhvbHRfb25lX29uZQ==");
    check(b, &q, "x", "holt_one_onholt_one_onE", "holt_one_onholt_one_onE");
    q.method = STR("GET");
    check(b, &q, NULL, "l=holt_two_two", "l=holt_two_two");
    q = (struct binding_query){
        .host = &c, .tls = true, .method = STR("POST"), .path = STR("/v1/x")};
    check(b, &q, "x", "holt_one_one", "holt_one_one");
    assert_false(bindings_know(b, &q));
    assert_false(bindings_know(NULL, &q));
    q = (struct binding_query){.host = &x, .method = STR("POST"), .path = STR("/v1/x")};
    check(b, &q, NULL, "holt_two_two", "value%202"); /* plain HTTP */
    q.host = &a;
    check(b, &q, "x", "holt_one_one", "holt_one_one"); /* not said for it */
    assert_true(bindings_know(b, &q)); /* but what went by TLS must not come back without */
}

static void what_a_host_may_not_return(void **state)
{
    AUTO(bindings_free) struct bindings *b = made();
    AUTO(scrub_done) struct scrub s = {0};
    AUTO(buf_done) struct buf to = {0};
    struct host x = named("x.b.test");

    (void)state;
    bindings_scrub(b, &(struct binding_query){.host = &x, .tls = true}, &s);
    scrub_all(&s, STR("value 2 value/1 other"), &to);
    assert_string_equal(buf_cstr(&to), "holt_two_two value/1 other"); /* the others it never had */
    scrub_done(&s);
    x = named("a.test");
    buf_clear(&to);
    bindings_scrub(b, &(struct binding_query){.host = &x}, &s);
    scrub_all(&s, STR("value 2 value/1 other"), &to);
    assert_string_equal(buf_cstr(&to), "holt_two_two holt_one_one holt_two_two");
}

static struct bindings *with_value(const char *value)
{
    char text[200];
    struct bindings *b;
    struct err e;

    (void)snprintf(text, sizeof text,
                   "[{\"placeholder\":\"holt_one_one\",\"value\":\"%s\",\"hosts\":[\"a.test\"]}]",
                   value);
    assert_int_equal(bindings_parse(str_of(text), &b, &e), 0);
    return b;
}

static void values_of_before_are_known(void **state)
{
    AUTO(bindings_free) struct bindings *b = with_value("first");
    AUTO(scrub_done) struct scrub s = {0};
    AUTO(buf_done) struct buf to = {0};
    struct host a = named("a.test"), other = named("other.test");
    struct binding_query q = {.host = &a, .tls = true, .method = STR("GET"), .path = STR("/")};
    char value[16] = "first";

    (void)state;
    bindings_retire(b, NULL);
    for (unsigned i = 0; i < BINDINGS_RETIRED_MAX + 2; i++) {
        struct bindings *fresh = NULL;

        (void)snprintf(value, sizeof value, "value-%u.", i);
        for (int again = 0; again < 2; again++) { /* told twice is told once */
            fresh = with_value(value);
            bindings_retire(fresh, b);
            bindings_free(b);
            b = fresh;
        }
    }
    check(b, &q, "x", "holt_one_one", value); /* the newest goes out */
    bindings_scrub(b, &q, &s);
    scrub_all(&s, STR("value-65. value-64. value-2. value-1. value-0. first"), &to);
    assert_string_equal(buf_cstr(&to), /* the oldest are forgotten */
                        "holt_one_one holt_one_one holt_one_one holt_one_one value-0. first");
    scrub_done(&s);
    q.host = &other;
    bindings_scrub(b, &q, &s);
    assert_int_equal(s.count, 0);
}

static void refused(void **state)
{
#define GOOD "\"placeholder\":\"holt_one_one\",\"value\":\"value\",\"hosts\":[\"a.test\"]"
    static const char *const bad[] = {
        "",
        "{}",
        "[1]",
        "[{}]",
        "[{\"placeholder\":\"holt_one_one\",\"value\":\"value\"}]",
        "[{\"placeholder\":\"short\",\"value\":\"value\",\"hosts\":[\"a.test\"]}]",
        "[{\"placeholder\":\"holt one one\",\"value\":\"value\",\"hosts\":[\"a.test\"]}]",
        "[{\"placeholder\":\"holt_one_one\",\"value\":\"abc\",\"hosts\":[\"a.test\"]}]",
        "[{\"placeholder\":\"holt_one_one\",\"value\":\"val\\r\\nue\",\"hosts\":[\"a.test\"]}]",
        "[{\"placeholder\":\"holt_one_one\",\"value\":\"value\\u007f\",\"hosts\":[\"a.test\"]}]",
        "[{\"placeholder\":\"holt_one_one\",\"value\":\"xholt_one_one\",\"hosts\":[\"a.test\"]}]",
        "[{\"placeholder\":\"holt_one_one\",\"value\":\"value\",\"hosts\":[\"::1\"]}]",
        "[{\"placeholder\":\"holt_one_one\",\"value\":\"value\",\"hosts\":[1]}]",
        "[{" GOOD ",\"in\":[]}]",
        "[{" GOOD ",\"in\":[\"body\"]}]",
        "[{" GOOD ",\"path\":\"x\"}]",
        "[{" GOOD ",\"methods\":[]}]",
        "[{" GOOD ",\"else\":1}]",
        "[{" GOOD
        "},{\"placeholder\":\"holt_one_one_more\",\"value\":\"value\",\"hosts\":[\"a.test\"]}]",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct bindings *b;
        struct err e = {0};

        if (bindings_parse(str_of(bad[i]), &b, &e) == 0)
            fail_msg("taken: %s", bad[i]);
        assert_true(e.msg[0] && !strstr(e.msg, "val\r"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(filled_in_where_it_is_bound),
        cmocka_unit_test(what_a_host_may_not_return),
        cmocka_unit_test(values_of_before_are_known),
        cmocka_unit_test(refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
