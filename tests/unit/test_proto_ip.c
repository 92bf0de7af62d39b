#include "proto/ip.h"

#include "unit.h"

static void addresses_have_one_form(void **state)
{
    static const struct {
        const char *text, *form;
    } good[] = {
        {"1.2.3.4", "1.2.3.4"},
        {"0.0.0.0", "0.0.0.0"},
        {"::ffff:1.2.3.4", "1.2.3.4"},
        {"::FFFF:102:304", "1.2.3.4"},
        {"2001:DB8:0:0::1", "2001:db8::1"},
        {"::1", "::1"},
    };
    static const char *const bad[] = {
        "",           "1.2.3",    "1",        "0x7f.0.0.1", "0177.0.0.1", "01.2.3.4",
        "1.2.3.04",   "1.2.3.4 ", " 1.2.3.4", "1.2.3.256",  "2130706433", "1.2.3.4.",
        "fe80::1%lo", "[::1]",    ":::",      "1.2.3.4/8",  "127.1",
    };
    char text[IP_TEXT];
    struct ip a;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        assert_true(ip_parse(str_of(good[i].text), &a));
        assert_string_equal(ip_text(&a, text), good[i].form);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_false(ip_parse(str_of(bad[i]), &a));
    assert_false(ip_parse(str_make("1.2.3.4\0", 8), &a));
    a = ip_v4(0x01020304);
    assert_int_equal(ip_to_v4(&a), 0x01020304);
}

static bool has(const char *net, const char *address)
{
    struct ip_net n;
    struct ip a;
    struct err e;

    assert_int_equal(ip_net_parse(str_of(net), &n, &e), 0);
    assert_true(ip_parse(str_of(address), &a));
    return ip_net_has(&n, &a);
}

static void networks(void **state)
{
    static const char *const bad[] = {"10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/",
                                      "10/8",       "::1/64",      "a/8",
                                      "",           "1.2.3.4/-1",  "10.0.0.0/8/8"};
    struct ip_net n;
    struct err e;

    (void)state;
    assert_true(has("10.0.0.0/8", "10.255.0.1"));
    assert_false(has("10.0.0.0/8", "11.0.0.0"));
    assert_true(has("10.0.0.0/8", "::ffff:10.0.0.1"));
    assert_true(has("0.0.0.0/0", "255.255.255.255"));
    assert_false(has("0.0.0.0/0", "2001:db8::1"));
    assert_true(has("::/0", "2001:db8::1"));
    assert_false(has("::/0", "127.0.0.1")); /* IPv4 is not IPv6, whatever its form here */
    assert_false(has("::/64", "::ffff:127.0.0.1"));
    assert_true(has("::ffff:0:0/96", "127.0.0.1"));
    assert_true(has("1.2.3.4", "1.2.3.4"));
    assert_false(has("1.2.3.4", "1.2.3.5"));
    assert_true(has("192.168.1.128/25", "192.168.1.200"));
    assert_false(has("192.168.1.128/25", "192.168.1.100"));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(ip_net_parse(str_of(bad[i]), &n, &e), -1);
    (void)!ip_net_parse(STR("10.0.0.1/8"), &n, &e);
    assert_string_equal(e.hint, "the network is 10.0.0.0/8");
}

static void special_addresses(void **state)
{
    static const char *const special[] = {
        "0.0.0.0",
        "127.0.0.1",
        "127.255.255.254",
        "10.1.2.3",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.0.1",
        "169.254.169.254",
        "168.63.129.16",
        "100.64.0.1",
        "100.127.255.255",
        "198.18.0.1",
        "198.19.255.255",
        "224.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "fe80::1",
        "fd00::1",
        "fc00::1",
        "ff02::1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "2001:0:1::",
        "::127.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:0:7f00:1",
        "2001:db8::1",
        "fec0::1",
        "4000::1",
    };
    static const char *const plain[] = {
        "1.1.1.1",     "8.8.8.8",         "172.15.255.255", "172.32.0.1", "100.63.0.1",
        "100.128.0.1", "2606:4700::1111", "192.0.1.1",      "198.17.0.1", "198.20.0.1"};
    /* The edges of each network, and who stands just outside. */
    static const struct {
        const char *first, *last, *before, *behind, *why;
    } nets[] = {
        {"0.0.0.0", "0.255.255.255", NULL, "1.0.0.0", "this host"},
        {"10.0.0.0", "10.255.255.255", "9.255.255.255", "11.0.0.0", "private"},
        {"100.64.0.0", "100.127.255.255", "100.63.255.255", "100.128.0.0", "carrier's"},
        {"127.0.0.0", "127.255.255.255", "126.255.255.255", "128.0.0.0", "loopback"},
        {"168.63.129.16", "168.63.129.16", "168.63.129.15", "168.63.129.17", "metadata"},
        {"169.254.0.0", "169.254.255.255", "169.253.255.255", "169.255.0.0", "link-local"},
        {"172.16.0.0", "172.31.255.255", "172.15.255.255", "172.32.0.0", "private"},
        {"192.0.0.0", "192.0.0.255", "191.255.255.255", "192.0.1.0", "reserved"},
        {"192.0.2.0", "192.0.2.255", "192.0.1.255", "192.0.3.0", "documentation"},
        {"192.88.99.0", "192.88.99.255", "192.88.98.255", "192.88.100.0", "reserved"},
        {"192.168.0.0", "192.168.255.255", "192.167.255.255", "192.169.0.0", "private"},
        {"198.18.0.0", "198.19.255.255", "198.17.255.255", "198.20.0.0", "benchmarking"},
        {"198.51.100.0", "198.51.100.255", "198.51.99.255", "198.51.101.0", "documentation"},
        {"203.0.113.0", "203.0.113.255", "203.0.112.255", "203.0.114.0", "documentation"},
        {"224.0.0.0", "239.255.255.255", "223.255.255.255", NULL, "multicast"},
        {"240.0.0.0", "255.255.255.255", NULL, NULL, "reserved"},
        {"::1", "::1", NULL, NULL, "loopback"},
        {"fc00::", "fdff:ffff::ffff", NULL, NULL, "private"},
        {"fe80::", "febf:ffff::ffff", NULL, NULL, "link-local"},
        {"fec0::", "feff:ffff::ffff", NULL, NULL, "private"},
        {"ff00::", "ffff:ffff::ffff", NULL, NULL, "multicast"},
        {"64:ff9b::", "64:ff9b::ffff:ffff", NULL, NULL, "translated"},
        {"64:ff9b:1::", "64:ff9b:1:ffff::ffff", NULL, NULL, "translated"},
        {"2001::", "2001:1ff:ffff::ffff", "2000:ffff::1", "2001:200::", "reserved"},
        {"2001:db8::", "2001:db8:ffff::ffff", "2001:db7:ffff::", "2001:db9::", "documentation"},
        {"2002::", "2002:ffff::ffff", "2001:ffff::", "2003::", "translated"},
        {"3fff::", "3fff:fff:ffff::ffff", "3ffe:ffff::ffff", "3fff:1000::", "documentation"},
        {"4000::", "fbff::1", "3fff:ffff::", NULL, "reserved"},
    };
    struct ip a;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(special); i++) {
        assert_true(ip_parse(str_of(special[i]), &a));
        if (!ip_special(&a))
            fail_msg("%s is taken for public", special[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(plain); i++) {
        assert_true(ip_parse(str_of(plain[i]), &a));
        assert_null(ip_special(&a));
    }
    for (size_t i = 0; i < ARRAY_LEN(nets); i++) {
        assert_true(ip_parse(str_of(nets[i].first), &a));
        assert_string_equal(ip_special(&a), nets[i].why);
        assert_true(ip_parse(str_of(nets[i].last), &a));
        assert_string_equal(ip_special(&a), nets[i].why);
        if (nets[i].before && ip_parse(str_of(nets[i].before), &a))
            assert_null(ip_special(&a));
        if (nets[i].behind && ip_parse(str_of(nets[i].behind), &a))
            assert_null(ip_special(&a));
    }
}

static void names_have_one_form(void **state)
{
    static const struct {
        const char *text, *form;
    } good[] = {
        {"Example.COM", "example.com"},
        {"example.com.", "example.com"},
        {"xn--BCHER-kva.example", "xn--bcher-kva.example"},
        {"_dmarc.example.org", "_dmarc.example.org"},
        {"localhost", "localhost"},
        {"3.example", "3.example"},
        {"1.2.3.4", "1.2.3.4"},
        {"[::1]", "::1"},
        {"::ffff:9.9.9.9", "9.9.9.9"},
    };
    static const char *const bad[] = {
        "",           ".",          "..",         "a..b",        ".a",          "a..",
        "-a.b",       "a-.b",       "a b",        "a\tb",        "a\r\nb",      "a/b",
        "a:b",        "a@b",        "a%2eb",      "b\xc3\xbc.x", "1.2.3",       "0x7f.1",
        "0x7f000001", "2130706433", "0177.0.0.1", "127.1",       "example.0x1", "1.2.3.4.",
        "[1.2.3.4]",  "[::1",       "a.1",        "a\\b",        "*.a.b",
    };
    char longest[300];
    struct host h;
    struct err e;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        assert_int_equal(host_parse(str_of(good[i].text), &h, &e), 0);
        assert_string_equal(h.name, good[i].form);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (host_parse(str_of(bad[i]), &h, &e) == 0)
            fail_msg("'%s' is taken for '%s'", bad[i], h.name);
    assert_int_equal(host_parse(str_make("a\0b", 3), &h, &e), -1);
    memset(longest, 'a', sizeof longest);
    assert_int_equal(host_parse(str_make(longest, 64), &h, &e), -1);
    for (size_t i = 1; i < sizeof longest; i += 2)
        longest[i] = '.';
    assert_int_equal(host_parse(str_make(longest, 253), &h, &e), 0);
    assert_int_equal(host_parse(str_make(longest, 255), &h, &e), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_have_one_form),
        cmocka_unit_test(networks),
        cmocka_unit_test(special_addresses),
        cmocka_unit_test(names_have_one_form),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
