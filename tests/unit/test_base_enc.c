#include "base/enc.h"

#include "unit.h"

#include <errno.h>

static void hex_goes_both_ways(void **state)
{
    unsigned char b[3];
    char text[7];

    (void)state;
    enc_hex("\x00\xab\xff", 3, text);
    assert_string_equal(text, "00abff");
    assert_int_equal(dec_hex(STR("00ABff"), b, 3), 0);
    assert_memory_equal(b, "\x00\xab\xff", 3);
    assert_int_equal(dec_hex(STR("00abf"), b, 3), -EINVAL);
    assert_int_equal(dec_hex(STR("00abfg"), b, 3), -EINVAL);
}

static void base64_follows_the_rfc(void **state)
{
    static const char *const plain[] = {"", "f", "fo", "foo", "foob", "fooba", "foobar"};
    static const char *const coded[] = {"",         "Zg==",     "Zm8=",    "Zm9v",
                                        "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"};
    static const char *const bad[] = {"Z", "Zg=", "Zh==", "Zm9v====", "Z g==", "Zm9v\n", "=="};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(plain); i++) {
        AUTO(buf_done) struct buf b = {0}, back = {0};

        enc_base64(&b, plain[i], strlen(plain[i]));
        assert_string_equal(buf_cstr(&b), coded[i]);
        assert_int_equal(dec_base64(&back, buf_str(&b)), 0);
        assert_string_equal(buf_cstr(&back), plain[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        AUTO(buf_done) struct buf b = {0};

        assert_int_equal(dec_base64(&b, str_of(bad[i])), -EINVAL);
    }
}

static void base64url_has_no_padding(void **state)
{
    AUTO(buf_done) struct buf b = {0}, back = {0};

    (void)state;
    enc_base64url(&b, "\xfb\xff\xfe\x01", 4);
    assert_string_equal(buf_cstr(&b), "-__-AQ");
    assert_int_equal(dec_base64(&back, buf_str(&b)), 0);
    assert_memory_equal(buf_data(&back), "\xfb\xff\xfe\x01", 4);
}

static void percent_goes_both_ways(void **state)
{
    AUTO(buf_done) struct buf b = {0}, back = {0}, form = {0}, bad = {0};

    (void)state;
    enc_percent(&b, STR("a b/\xc3\xa9~"));
    assert_string_equal(buf_cstr(&b), "a%20b%2F%C3%A9~");
    assert_int_equal(dec_percent(&back, buf_str(&b), false), 0);
    assert_string_equal(buf_cstr(&back), "a b/\xc3\xa9~");
    assert_int_equal(dec_percent(&form, STR("a+b"), true), 0);
    assert_string_equal(buf_cstr(&form), "a b");
    assert_int_equal(dec_percent(&bad, STR("%2"), false), -EINVAL);
    assert_int_equal(dec_percent(&bad, STR("%zz"), false), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hex_goes_both_ways),
        cmocka_unit_test(base64_follows_the_rfc),
        cmocka_unit_test(base64url_has_no_padding),
        cmocka_unit_test(percent_goes_both_ways),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
