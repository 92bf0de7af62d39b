#include "proto/socks.h"

#include "unit.h"

static void greetings(void **state)
{
    bool ok = false;

    (void)state;
    assert_int_equal(socks_greeting(STR("\5"), &ok), 0);
    assert_int_equal(socks_greeting(STR("\5\2\2"), &ok), 0);
    assert_int_equal(socks_greeting(STR("\5\2\2\0more"), &ok), 4);
    assert_true(ok);
    assert_int_equal(socks_greeting(STR("\5\1\2"), &ok), 3);
    assert_false(ok);
    assert_int_equal(socks_greeting(STR("\4\1"), &ok), -1);
    assert_int_equal(socks_greeting(STR("\5\0"), &ok), -1);
}

static void requests(void **state)
{
    static const struct {
        struct str in;
        int code;
        const char *host;
        unsigned port;
    } t[] = {
        {STR("\5\1\0\1\1\2\3\4\0\x50"), SOCKS_OK, "1.2.3.4", 80},
        {STR("\5\1\0\3\6A.test\1\xbb"), SOCKS_OK, "a.test", 443},
        {STR("\5\1\0\3\7"
             "1.2.3.4\1\xbb"),
         SOCKS_OK, "1.2.3.4", 443},
        {STR("\5\1\0\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\x50"), SOCKS_OK, "::1", 80},
        {STR("\5\1\0\4\0\0\0\0\0\0\0\0\0\0\xff\xff\1\2\3\4\0\x50"), SOCKS_OK, "1.2.3.4", 80},
        {STR("\5\2\0\1\1\2\3\4\0\x50"), SOCKS_NO_COMMAND, NULL, 80},
        {STR("\5\3\0\1\1\2\3\4\0\x50"), SOCKS_NO_COMMAND, NULL, 80},
        {STR("\5\1\0\3\0\0\x50"), SOCKS_NO_ADDRESS, NULL, 80},
        {STR("\5\1\0\3\3a\0b\0\x50"), SOCKS_NO_ADDRESS, NULL, 80},
        {STR("\5\1\0\3\5"
             "127.1\0\x50"),
         SOCKS_NO_ADDRESS, NULL, 80},
        {STR("\5\1\0\1\1\2\3\4\0\0"), SOCKS_NO_ADDRESS, NULL, 0},
        {STR("\5\1\0\2"), SOCKS_NO_ADDRESS, NULL, 0},
    };
    uint8_t reply[SOCKS_REPLY];
    enum socks_code code;
    struct host h;
    unsigned port;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(t); i++) {
        port = 0;
        assert_int_equal(socks_request(t[i].in, &h, &port, &code), (int)t[i].in.n);
        assert_int_equal(code, t[i].code);
        assert_int_equal(port, t[i].port);
        if (t[i].host)
            assert_string_equal(h.name, t[i].host);
        for (size_t cut = 0; t[i].host && cut < t[i].in.n; cut++)
            assert_int_equal(socks_request(str_make(t[i].in.p, cut), &h, &port, &code), 0);
    }
    assert_int_equal(socks_request(STR("\4\1\0\1"), &h, &port, &code), -1);
    assert_int_equal(socks_request(STR("\5\1\7\1"), &h, &port, &code), -1);
    socks_reply(SOCKS_DENIED, reply);
    assert_memory_equal(reply, "\5\2\0\1\0\0\0\0\0\0", SOCKS_REPLY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(greetings),
        cmocka_unit_test(requests),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
