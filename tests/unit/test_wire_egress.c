#include "wire/egress.h"

#include "unit.h"

static struct egress_msg sample(enum egress_type type)
{
    struct egress_msg m = {.type = type, .tag = egress_types[type].untagged ? 0 : 7};

    if (type == EGRESS_HELLO)
        m.u.hello = (struct egress_hello){1, 1};
    else if (type == EGRESS_WELCOME)
        m.u.welcome = (struct egress_welcome){1, 2, 1};
    else if (type == EGRESS_SET)
        m.u.set = (struct egress_set){STR("sb_1"),        5, STR("{\"mode\":\"none\"}"), STR(""),
                                      STR("agentbox/s1"), 0};
    else if (type == EGRESS_VERDICT)
        m.u.verdict = (struct egress_verdict){STR("sb_1"),
                                              STR("a.test"),
                                              443,
                                              EGRESS_CLOSED,
                                              EGRESS_CONNECT,
                                              STR("rule"),
                                              1,
                                              2,
                                              3,
                                              4};
    else if (type == EGRESS_QUESTION)
        m.u.question = (struct egress_question){1, STR("sb_1"), STR("a.test"), 443};
    else if (type == EGRESS_ANSWER)
        m.u.answer = (struct egress_answer){1, 0, STR("no")};
    else if (type == EGRESS_LISTEN)
        m.u.listen = (struct egress_listen){STR("127.0.0.1"), 15004, STR("key")};
    else if (type == EGRESS_CA)
        m.u.ca = (struct egress_ca){STR("-----BEGIN CERTIFICATE-----"), STR("-----BEGIN KEY-----")};
    else if (type == EGRESS_SECRETS)
        m.u.secrets = (struct egress_secrets){STR("sb_1"), STR("[]")};
    else if (type == EGRESS_LEAD)
        m.u.lead = (struct egress_lead){STR("sb_1"), 0, STR("192.0.2.1"), 443};
    else if (type != EGRESS_DONE)
        m.u.name.id = STR("sb_1");
    return m;
}

static void every_type_survives_the_round_trip(void **state)
{
    static uint8_t one[4096], two[4096];

    (void)state;
    for (unsigned type = 1; type < EGRESS_TYPE_END; type++) {
        struct wire_out o = {.p = one, .size = sizeof one}, o2 = {.p = two, .size = sizeof two};
        enum egress_side from = egress_types[type].from;
        size_t fds = type == EGRESS_SET ? 2 : type == EGRESS_LEAD ? 1 : 0;
        struct egress_msg m = sample(type), back;
        struct err e = {0};

        if (egress_encode(&m, from, &o, &e) < 0)
            fail_msg("%s: %s", egress_types[type].name, e.msg);
        assert_int_equal(egress_decode(str_make(one, o.n), fds, from, &back, &e), 0);
        assert_int_equal(egress_encode(&back, from, &o2, &e), 0);
        assert_int_equal(o.n, o2.n);
        assert_memory_equal(one, two, o.n);
        assert_int_equal(egress_decode(str_make(one, o.n), fds, from ^ 3, &back, &e), -1);
        assert_int_equal(egress_decode(str_make(one, o.n), fds + 1, from, &back, &e), -1);
        for (size_t cut = 0; cut < o.n; cut++)
            assert_int_equal(egress_decode(str_make(one, cut), fds, from, &back, &e), -1);
        assert_int_equal(egress_decode(str_make(one, o.n + 1), fds, from, &back, &e), -1);
        m.tag = m.tag ? 0 : 1;
        assert_int_equal(egress_encode(&m, from, &o, &e), -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_survives_the_round_trip),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
