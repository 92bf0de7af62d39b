#include "base/buf.h"

#include "unit.h"

#include <errno.h>

static void what_goes_in_comes_out_in_order(void **state)
{
    AUTO(buf_done) struct buf b = {0};
    size_t put = 0, got = 0;

    (void)state;
    for (int round = 0; round < 2000; round++) {
        for (int i = 0; i < round % 37; i++)
            buf_add_char(&b, (char)(put++ % 251));
        while (buf_len(&b) > (size_t)(round % 11)) {
            assert_int_equal((unsigned char)buf_data(&b)[0], got % 251);
            buf_take(&b, 1);
            got++;
        }
    }
    assert_int_equal(put - got, buf_len(&b));
}

static void a_full_buffer_refuses_and_stays_as_it_was(void **state)
{
    AUTO(buf_done) struct buf b = {.limit = 8};

    (void)state;
    assert_int_equal(buf_try_add(&b, "123456", 6), 0);
    assert_int_equal(buf_try_add(&b, "789", 3), -ENOSPC);
    assert_true(str_eq_c(buf_str(&b), "123456"));
    assert_int_equal(buf_try_add(&b, "78", 2), 0);
    buf_take(&b, 4);
    assert_int_equal(buf_try_add(&b, "abcd", 4), 0);
    assert_string_equal(buf_cstr(&b), "5678abcd");
}

static void text_is_formatted_and_stolen(void **state)
{
    AUTO(buf_done) struct buf b = {0};
    char *s;

    (void)state;
    buf_printf(&b, "%s-%d", "x", 7);
    buf_printf(&b, "%0100d", 1);
    assert_int_equal(buf_len(&b), 103);
    buf_take(&b, 2);
    s = buf_steal(&b);
    assert_int_equal(s[0], '7');
    assert_int_equal(strlen(s), 101);
    assert_int_equal(buf_len(&b), 0);
    free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_goes_in_comes_out_in_order),
        cmocka_unit_test(a_full_buffer_refuses_and_stays_as_it_was),
        cmocka_unit_test(text_is_formatted_and_stolen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
