#include "proto/grpc.h"

#include "unit.h"

#include <errno.h>

static void frames_are_read_in_parts_of_any_size(void **state)
{
    static const char wire[] = "\0\0\0\0\3abc\0\0\0\0\0\0\0\0\0\2de";

    (void)state;
    for (size_t step = 1; step < sizeof wire; step++) {
        struct grpc_reader r = {.limit = 3};
        struct str all = str_make(wire, sizeof wire - 1);
        AUTO(buf_done) struct buf got = {0};

        while (all.n > 0) {
            struct str part = str_make(all.p, size_min(step, all.n));
            struct grpc_frame f;

            all = str_skip(all, part.n);
            while (grpc_reader_next(&r, &part, &f) == 1) {
                buf_add_str(&got, f.data);
                buf_add_char(&got, '|');
                assert_true(grpc_reader_is_between(&r));
            }
        }
        assert_string_equal(buf_cstr(&got), "abc||de|");
        assert_true(grpc_reader_is_between(&r));
        grpc_reader_done(&r);
    }
}

static int first_error(struct str in, bool trailers)
{
    struct grpc_reader r = {.limit = 100, .trailers = trailers};
    struct grpc_frame f;
    int code = grpc_reader_next(&r, &in, &f);

    if (code == 0)
        assert_false(grpc_reader_is_between(&r));
    grpc_reader_done(&r);
    return code;
}

static void bad_frames_are_told_apart(void **state)
{
    (void)state;
    assert_int_equal(first_error(str_make("\0\0\0\0\x65", 5), false), -EMSGSIZE);
    assert_int_equal(first_error(str_make("\0\xff\xff\xff\xff", 5), false), -EMSGSIZE);
    assert_int_equal(first_error(str_make("\1\0\0\0\1x", 6), false), -EOPNOTSUPP);
    assert_int_equal(first_error(str_make("\2\0\0\0\1x", 6), false), -EPROTO);
    assert_int_equal(first_error(str_make("\x80\0\0\0\1x", 6), false), -EPROTO);
    assert_int_equal(first_error(str_make("\x80\0\0\0\1x", 6), true), 1);
    assert_int_equal(first_error(str_make("\0\0\0\0\2x", 6), false), 0);
    assert_int_equal(first_error(str_make("\0\0\0", 3), false), 0);
}

static void timeouts_have_units(void **state)
{
    static const struct {
        const char *text;
        int64_t ms; /* -1: refused */
    } cases[] = {
        {"1S", 1000},       {"250m", 250}, {"1H", 3600000},
        {"2M", 120000},     {"1u", 1},     {"1500u", 2},
        {"1n", 1},          {"0n", 0},     {"99999999H", 359999996400000},
        {"", -1},           {"S", -1},     {"1", -1},
        {"1s", -1},         {"-1S", -1},   {"+1S", -1},
        {"123456789S", -1}, {"1 S", -1},   {"1.5S", -1},
        {"1SS", -1},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int64_t ms = -1;

        assert_int_equal(grpc_timeout_parse(str_of(cases[i].text), &ms),
                         cases[i].ms < 0 ? -EINVAL : 0);
        assert_int_equal(ms, cases[i].ms);
    }
}

static void messages_are_percent_coded(void **state)
{
    AUTO(buf_done) struct buf b = {0};

    (void)state;
    grpc_text_encode(&b, STR("100% \xc3\xa4\n~"));
    assert_string_equal(buf_cstr(&b), "100%25 %C3%A4%0A~");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_are_read_in_parts_of_any_size),
        cmocka_unit_test(bad_frames_are_told_apart),
        cmocka_unit_test(timeouts_have_units),
        cmocka_unit_test(messages_are_percent_coded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
