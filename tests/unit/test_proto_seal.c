#include "proto/seal.h"

#include "unit.h"

#include <errno.h>

static const unsigned char key[SEAL_KEY] = "0123456789abcdef0123456789abcde";
static const unsigned char other[SEAL_KEY] = "another key, of the right length";

static void assert_refused(const unsigned char *with, struct str name, struct str sealed)
{
    AUTO(buf_done) struct buf plain = {0};

    assert_int_equal(seal_open(with, name, sealed, &plain), -EBADMSG);
    assert_int_equal(buf_len(&plain), 0);
}

static void what_is_sealed_opens(void **state)
{
    static const char *const texts[] = {"", "x", "a longer one: \xc3\xa4 \\ \" \t"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        AUTO(buf_done) struct buf sealed = {0}, plain = {0};

        seal(key, STR("name"), str_of(texts[i]), &sealed);
        assert_int_equal(buf_len(&sealed), strlen(texts[i]) + SEAL_EXTRA);
        assert_int_equal(seal_open(key, STR("name"), buf_str(&sealed), &plain), 0);
        assert_string_equal(buf_cstr(&plain), texts[i]);
        if (strlen(texts[i]) > 1)
            assert_null(memmem(buf_data(&sealed), buf_len(&sealed), texts[i], strlen(texts[i])));
    }
}

static void every_changed_bit_is_seen(void **state)
{
    AUTO(buf_done) struct buf sealed = {0};

    (void)state;
    seal(key, STR("name"), STR("value"), &sealed);
    for (size_t i = 0; i < 8 * buf_len(&sealed); i++) {
        buf_data(&sealed)[i / 8] ^= (char)(1U << i % 8);
        assert_refused(key, STR("name"), buf_str(&sealed));
        buf_data(&sealed)[i / 8] ^= (char)(1U << i % 8);
    }
    for (size_t n = 0; n < buf_len(&sealed); n++)
        assert_refused(key, STR("name"), str_make(buf_data(&sealed), n));
}

static void another_key_or_name_does_not_open(void **state)
{
    AUTO(buf_done) struct buf sealed = {0};

    (void)state;
    seal(key, STR("name"), STR("value"), &sealed);
    assert_refused(other, STR("name"), buf_str(&sealed));
    assert_refused(key, STR("nama"), buf_str(&sealed));
    assert_refused(key, STR(""), buf_str(&sealed));
}

/* A nonce that comes twice under one key would give the key stream away. */
static void the_same_text_is_never_sealed_alike(void **state)
{
    AUTO(buf_done) struct buf a = {0}, b = {0};

    (void)state;
    seal(key, STR("name"), STR("value"), &a);
    seal(key, STR("name"), STR("value"), &b);
    assert_memory_not_equal(buf_data(&a) + 1, buf_data(&b) + 1, 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_sealed_opens),
        cmocka_unit_test(every_changed_bit_is_seen),
        cmocka_unit_test(another_key_or_name_does_not_open),
        cmocka_unit_test(the_same_text_is_never_sealed_alike),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
