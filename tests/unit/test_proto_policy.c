#include "proto/policy.h"

#include "unit.h"

static struct policy *made(const char *json)
{
    struct policy *p = NULL;
    struct err e = {0};

    if (policy_parse(str_of(json), false, &p, &e) < 0)
        fail_msg("%s: %s", json, e.msg);
    return p;
}

static struct policy_verdict judged(const struct policy *p, const char *host, unsigned port)
{
    struct policy_verdict v;
    struct host h;
    struct err e;

    assert_int_equal(host_parse(str_of(host), &h, &e), 0);
    policy_judge(p, &(struct policy_query){.host = &h, .port = port}, &v);
    return v;
}

static bool allows(const struct policy *p, const char *host, unsigned port)
{
    return judged(p, host, port).answer == POLICY_ALLOW;
}

static bool dials(const struct policy *p, const char *address, unsigned port)
{
    struct policy_verdict v;
    struct ip a;

    assert_true(ip_parse(str_of(address), &a));
    policy_judge_address(p, &(struct host){.name = "some.test"}, &a, port, &v);
    return v.answer == POLICY_ALLOW;
}

static void names_and_ports(void **state)
{
    AUTO(policy_free)
    struct policy *p =
        made("{\"mode\":\"allowlist\",\"allow\":[\"Example.com.\",\"*.wild.org\","
             "\"db.example.net:5432\",{\"host\":\"x.test\",\"ports\":[\"8000-8001\"],"
             "\"scheme\":\"https\"},{\"host\":\"p.test\",\"scheme\":\"http\"}]}");

    (void)state;
    assert_true(allows(p, "example.com", 443));
    assert_true(allows(p, "EXAMPLE.com.", 80));
    assert_false(allows(p, "example.com", 22));
    assert_false(allows(p, "www.example.com", 443));
    assert_false(allows(p, "notexample.com", 443));
    assert_false(allows(p, "example.com.evil.org", 443));
    assert_true(allows(p, "wild.org", 443));
    assert_true(allows(p, "a.b.wild.org", 443));
    assert_false(allows(p, "notwild.org", 443));
    assert_true(allows(p, "db.example.net", 5432));
    assert_false(allows(p, "db.example.net", 443));
    assert_true(judged(p, "x.test", 8001).tls);
    assert_false(allows(p, "x.test", 8002));
    assert_true(allows(p, "p.test", 80));
    assert_false(allows(p, "p.test", 443));
    assert_true(judged(p, "example.com", 443).tls);
    assert_false(judged(p, "example.com", 80).tls);
    assert_false(judged(p, "db.example.net", 5432).tls);
    assert_string_equal(judged(p, "a.wild.org", 443).rule, "allow *.wild.org");
    assert_string_equal(judged(p, "b.test", 443).rule, "no rule allows this host and port");
}

static void addresses_need_networks(void **state)
{
    AUTO(policy_free)
    struct policy *p = made("{\"allow\":[\"name.test\",\"10.1.0.0/16:5432\","
                            "{\"cidr\":\"2001:db8::/32\",\"ports\":[443]}],"
                            "\"deny\":[\"9.9.9.0/24\"]}");

    (void)state;
    assert_false(allows(p, "1.1.1.1", 443));
    assert_true(allows(p, "10.1.2.3", 5432));
    assert_true(allows(p, "::ffff:10.1.2.3", 5432));
    assert_false(allows(p, "10.1.2.3", 443));
    assert_true(allows(p, "[2001:db8::5]", 443));
    assert_false(judged(p, "2001:db8::5", 443).tls);
    assert_true(dials(p, "1.1.1.1", 443));
    assert_false(dials(p, "127.0.0.1", 443));
    assert_false(dials(p, "169.254.169.254", 80));
    assert_false(dials(p, "10.1.2.3", 443));
    assert_true(dials(p, "10.1.2.3", 5432));
    assert_false(dials(p, "9.9.9.9", 443));
}

static void deny_beats_allow(void **state)
{
    AUTO(policy_free)
    struct policy *p = made("{\"allow\":[\"*.example.com\",\"a.test:9000\"],"
                            "\"deny\":[\"bad.example.com\",\"*.a.test\"]}");
    AUTO(policy_free)
    struct policy *open = made("{\"mode\":\"open\",\"deny\":[\"*.evil.org\",\"b.test:25\"]}");

    (void)state;
    assert_true(allows(p, "good.example.com", 443));
    assert_false(allows(p, "bad.example.com", 443));
    assert_string_equal(judged(p, "bad.example.com", 443).rule, "deny bad.example.com");
    assert_false(allows(p, "a.test", 9000)); /* a deny rule without a port is about all */
    assert_true(allows(open, "any.org", 12345));
    assert_true(judged(open, "any.org", 443).tls);
    assert_false(allows(open, "x.evil.org", 443));
    assert_false(allows(open, "b.test", 25));
    assert_true(allows(open, "b.test", 26));
    assert_true(allows(open, "1.1.1.1", 53));
    assert_false(allows(open, "127.0.0.1", 53));
    assert_false(allows(open, "::1", 53));
}

static void modes(void **state)
{
    AUTO(policy_free) struct policy *none = made("none");
    AUTO(policy_free) struct policy *raw = made("\"raw\"");
    AUTO(policy_free) struct policy *ask = made("{\"mode\":\"allowlist\",\"unknown\":\"ask\"}");
    struct err e;
    struct host h;

    (void)state;
    assert_false(allows(none, "example.com", 443));
    assert_false(allows(raw, "example.com", 443));
    assert_int_equal(policy_mode(raw), POLICY_RAW);
    assert_int_equal(judged(ask, "new.test", 443).answer, POLICY_ASK);
    assert_int_equal(judged(ask, "1.2.3.4", 443).answer, POLICY_DENY);
    assert_int_equal(host_parse(STR("new.test"), &h, &e), 0);
    policy_learn(ask, &h, 443, true);
    assert_true(allows(ask, "new.test", 443));
    assert_true(judged(ask, "new.test", 443).tls);
    assert_int_equal(judged(ask, "new.test", 80).answer, POLICY_ASK);
    policy_learn(ask, &h, 443, false);
    assert_false(allows(ask, "new.test", 443));
}

static void what_people_answered(void **state)
{
    static const struct {
        const char *policy;
        enum policy_answer yes, no;
    } cases[] = {
        {"{\"unknown\":\"ask\"}", POLICY_ALLOW, POLICY_DENY},
        {"{\"unknown\":\"deny\"}", POLICY_DENY, POLICY_DENY},
        {"{\"unknown\":\"ask\",\"allow\":[\"yes.test\",\"no.test\"]}", POLICY_ALLOW, POLICY_ALLOW},
        {"{\"unknown\":\"ask\",\"deny\":[\"yes.test\"]}", POLICY_DENY, POLICY_DENY},
        {"open", POLICY_ALLOW, POLICY_ALLOW},
        {"none", POLICY_DENY, POLICY_DENY},
    };
    struct host yes, no;
    struct err e;

    (void)state;
    assert_int_equal(host_parse(STR("yes.test"), &yes, &e), 0);
    assert_int_equal(host_parse(STR("no.test"), &no, &e), 0);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO(policy_free) struct policy *p = made(cases[i].policy);

        policy_learn(p, &yes, 443, true);
        policy_learn(p, &no, 443, false);
        assert_int_equal(judged(p, "yes.test", 443).answer, cases[i].yes);
        assert_int_equal(judged(p, "no.test", 443).answer, cases[i].no);
    }
}

static void texts(void **state)
{
    static const struct {
        const char *json, *why;
    } bad[] = {
        {"", "read a network policy"},
        {"[]", "'mode' is not"},
        {"\"all\"", "'mode' is not"},
        {"{\"mode\":\"none\",\"allow\":[\"a.b\"]}", "mode 'none' has no rules"},
        {"{\"allowed\":[]}", "'allowed' is unknown"},
        {"{\"allow\":\"a.b\"}", "'allow' is not a list"},
        {"{\"allow\":[\"a.b\",\"a b\"]}", "rule 2 of 'allow'"},
        {"{\"allow\":[\"*\"]}", "'*' is allowed only in 'deny'"},
        {"{\"allow\":[\"*.com\"]}", "top-level domain"},
        {"{\"allow\":[\"a.*.com\"]}", "byte 0x2a"},
        {"{\"allow\":[\"a.b:0\"]}", "neither a port"},
        {"{\"allow\":[\"a.b:65536\"]}", "neither a port"},
        {"{\"allow\":[\"a.b:9-8\"]}", "neither a port"},
        {"{\"allow\":[\"10.0.0.1/8\"]}", "bits set after"},
        {"{\"allow\":[\"0177.0.0.1\"]}", "neither a host name nor an address"},
        {"{\"allow\":[\"a\\u0000b.c\"]}", ""},
        {"{\"allow\":[{}]}", "needs 'host' or 'cidr'"},
        {"{\"allow\":[{\"host\":\"10.0.0.0/8\"}]}", "does not fit 'host'"},
        {"{\"allow\":[{\"cidr\":\"a.b\"}]}", "does not fit 'cidr'"},
        {"{\"allow\":[{\"host\":\"a.b\",\"cidr\":\"10.0.0.0/8\"}]}", "appears twice"},
        {"{\"allow\":[{\"host\":\"a.b\",\"ports\":[]}]}", "'ports'"},
        {"{\"allow\":[{\"host\":\"a.b\",\"scheme\":\"ftp\"}]}", "'scheme'"},
        {"{\"allow\":[{\"host\":\"a.b\",\"scheme\":\"tcp\"}]}", "needs 'ports'"},
        {"{\"allow\":[{\"host\":\"a.b\",\"methods\":[\"GET\"]}]}", "interception"},
        {"{\"allow\":[{\"host\":\"a.b\",\"path\":\"/x\"}]}", "interception"},
        {"{\"mode\":\"open\",\"unknown\":\"ask\"}", "'unknown' works only with"},
        {"{\"allow\":[],\"bytes\":-1}", "'bytes'"},
    };
    struct policy *p;
    struct err e;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        e = (struct err){0};
        if (policy_parse(str_of(bad[i].json), false, &p, &e) == 0 || !strstr(e.msg, bad[i].why))
            fail_msg("%s: '%s'", bad[i].json, e.msg);
    }
}

static void methods_and_paths(void **state)
{
    AUTO(policy_free) struct policy *p = NULL;
    struct policy_verdict v;
    struct host h;
    struct err e;

    (void)state;
    assert_int_equal(policy_parse(STR("{\"allow\":[{\"host\":\"a.b\",\"methods\":[\"GET\"],"
                                      "\"path\":\"/v1/*\"}]}"),
                                  true, &p, &e),
                     0);
    assert_int_equal(host_parse(STR("a.b"), &h, &e), 0);
    policy_judge(p, &(struct policy_query){&h, 443, STR("GET"), STR("/v1/x")}, &v);
    assert_int_equal(v.answer, POLICY_ALLOW);
    policy_judge(p, &(struct policy_query){&h, 443, STR("POST"), STR("/v1/x")}, &v);
    assert_int_equal(v.answer, POLICY_DENY);
    policy_judge(p, &(struct policy_query){&h, 443, STR("GET"), STR("/v2")}, &v);
    assert_int_equal(v.answer, POLICY_DENY);
    policy_judge(p, &(struct policy_query){.host = &h, .port = 443}, &v);
    assert_int_equal(v.answer, POLICY_ALLOW); /* the connection, so that its requests can be seen */
    assert_true(v.intercept && v.tls);
    policy_judge(p, &(struct policy_query){.host = &h, .port = 80}, &v);
    assert_true(v.intercept && v.http && !v.tls);
    policy_judge(p, &(struct policy_query){.host = &h, .port = 22}, &v);
    assert_int_equal(v.answer, POLICY_DENY);
}

/* What a path could also mean: no rule by path grants it, every one forbids it. */
static void paths_of_two_readings(void **state)
{
    static const char *const bad[] = {
        "/v1/../admin", "/v1/%2e%2e/admin", "/v1/..%2Fadmin", "/v1//x",  "/v1/%61",     "/v1/%5Cx",
        "/v1/x;y",      "/v1/./x",          "/v1/%252e",      "/v1/%c3", "/v1/\\..\\x", "/v1/%2"};
    AUTO(policy_free) struct policy *p = NULL, *d = NULL;
    struct policy_verdict v;
    struct host h;
    struct err e;

    (void)state;
    assert_int_equal(
        policy_parse(STR("{\"allow\":[{\"host\":\"a.b\",\"path\":\"/v1/*\"}]}"), true, &p, &e), 0);
    assert_int_equal(policy_parse(STR("{\"allow\":[\"a.b\"],\"deny\":[{\"host\":\"a.b\",\"path\":"
                                      "\"/secret\"},{\"host\":\"*\",\"methods\":[\"DELETE\"]}]}"),
                                  true, &d, &e),
                     0);
    assert_int_equal(host_parse(STR("a.b"), &h, &e), 0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        policy_judge(p, &(struct policy_query){&h, 443, STR("GET"), str_of(bad[i])}, &v);
        if (v.answer != POLICY_DENY)
            fail_msg("granted: %s", bad[i]);
        policy_judge(d, &(struct policy_query){&h, 443, STR("GET"), str_of(bad[i])}, &v);
        if (v.answer != POLICY_DENY)
            fail_msg("not forbidden: %s", bad[i]);
    }
    policy_judge(d, &(struct policy_query){&h, 443, STR("GET"), STR("/v1/caf%C3%A9")}, &v);
    assert_int_equal(v.answer, POLICY_ALLOW);
    policy_judge(d, &(struct policy_query){&h, 443, STR("delete"), STR("/v1")}, &v);
    assert_int_equal(v.answer, POLICY_DENY);
    assert_string_equal(v.rule, "deny * DELETE");
    policy_judge(d, &(struct policy_query){.host = &h, .port = 22}, &v);
    assert_false(v.intercept); /* without ports it is about the web's */
}

static void printed_and_read_again(void **state)
{
    static const char *const json[] = {
        "{\"mode\":\"none\"}",
        "{\"mode\":\"open\",\"allow\":[],\"deny\":[{\"host\":\"a.b\"}]}",
        "{\"mode\":\"allowlist\",\"allow\":[{\"host\":\"*.a.b\",\"ports\":[1,\"2-3\"],"
        "\"scheme\":\"tcp\"}],\"deny\":[{\"cidr\":\"10.0.0.0/8\"},{\"host\":\"*\"}],"
        "\"unknown\":\"ask\",\"connections\":5,\"bytes\":7}",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(json); i++) {
        AUTO(policy_free) struct policy *p = made(json[i]);
        AUTO(buf_done) struct buf b = {0};

        policy_print(p, &b);
        assert_string_equal(buf_cstr(&b), json[i]);
    }
}

static void which_texts_are_rules(void **state)
{
    (void)state;
    for (const char *const *t =
             (const char *[]){"a.b", "*.a.b:8443", "10.0.0.0/8", "[::1]:1-9", NULL};
         *t; t++)
        assert_true(policy_is_rule(str_of(*t), true) && policy_is_rule(str_of(*t), false));
    for (const char *const *t =
             (const char *[]){"", "a b", "http://a.b", "a.b:x", "10.0.0.0/99", NULL};
         *t; t++)
        assert_false(policy_is_rule(str_of(*t), true) || policy_is_rule(str_of(*t), false));
    assert_true(policy_is_rule(STR("*"), false) && !policy_is_rule(STR("*"), true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_ports),        cmocka_unit_test(addresses_need_networks),
        cmocka_unit_test(deny_beats_allow),       cmocka_unit_test(modes),
        cmocka_unit_test(what_people_answered),   cmocka_unit_test(texts),
        cmocka_unit_test(methods_and_paths),      cmocka_unit_test(paths_of_two_readings),
        cmocka_unit_test(printed_and_read_again), cmocka_unit_test(which_texts_are_rules),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
