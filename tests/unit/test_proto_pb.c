#include "proto/pb.h"

#include "pb_all.pb.h"
#include "unit.h"

#include <math.h>

/* Written by protobuf's own Python library for the values that `sample` checks. */
static const char wire[] = "\x09\x00\x00\x00\x00\x00\x00\xf8\x3f"         /* d 1.5 */
                           "\x15\x00\x00\x20\xc0"                         /* f -2.5 */
                           "\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" /* i64 -1 */
                           "\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" /* u64 max */
                           "\x28\xfb\xff\xff\xff\xff\xff\xff\xff\xff\x01" /* i32 -5 */
                           "\x31\x01\x00\x00\x00\x00\x00\x00\x00"         /* f64 1 */
                           "\x3d\x02\x00\x00\x00"                         /* f32 2 */
                           "\x40\x01"                                     /* b */
                           "\x4a\x02\xc3\xa4"                             /* s "ä" */
                           "\x62\x02\x00\xff"                             /* raw */
                           "\x68\xff\xff\xff\xff\x0f"                     /* u32 max */
                           "\x70\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01" /* colour BLUE */
                           "\x7d\xfd\xff\xff\xff"                         /* sf32 -3 */
                           "\x81\x01\xfc\xff\xff\xff\xff\xff\xff\xff"     /* sf64 -4 */
                           "\x88\x01\x03"                                 /* s32 -2 */
                           "\x90\x01\x04"                                 /* s64 2 */
                           "\x98\x01\x00"                                 /* maybe 0, present */
                           "\xaa\x01\x02\x28\x07"                         /* child.i32 7 */
                           "\xb2\x01\x03\x01\xac\x02"                     /* numbers 1, 300 */
                           "\xba\x01\x01"
                           "a"
                           "\xba\x01\x00"                     /* words "a", "" */
                           "\xc2\x01\x00\xc2\x01\x02\x40\x01" /* children {}, {b} */
                           "\xca\x01\x05\x0a\x01k\x10\x09"    /* counts k: 9 */
                           "\xe0\x01\x00"                     /* number_choice 0 */
                           "\xf0\x01\x01\xf0\x01\x00";        /* flags, not packed */

static const struct str sample = {wire, sizeof wire - 1};

static void decode(struct str in, struct arena *a, struct all_all *ret)
{
    struct err e = {0};

    if (pb_decode(&all_all_pb, in, a, ret, &e) < 0)
        fail_msg("%s", e.msg);
}

static void check_sample(const struct all_all *m)
{
    assert_true(m->d == 1.5 && m->f == -2.5F && m->i64 == -1 && m->u64 == UINT64_MAX);
    assert_true(m->i32 == -5 && m->f64 == 1 && m->f32 == 2 && m->b);
    assert_true(str_eq_c(m->s, "\xc3\xa4"));
    assert_true(m->raw.n == 2 && memcmp(m->raw.p, "\0\xff", 2) == 0);
    assert_true(m->u32 == UINT32_MAX && m->colour == ALL_COLOUR_BLUE && m->sf32 == -3);
    assert_true(m->sf64 == -4 && m->s32 == -2 && m->s64 == 2);
    assert_true(m->has_maybe && m->maybe == 0 && !m->has_maybe_text);
    assert_non_null(m->child);
    assert_int_equal(m->child->i32, 7);
    assert_int_equal(m->numbers_count, 2);
    assert_int_equal(m->numbers[1], 300);
    assert_int_equal(m->words_count, 2);
    assert_true(str_eq_c(m->words[0], "a") && m->words[1].n == 0);
    assert_int_equal(m->children_count, 2);
    assert_true(!m->children[0].b && m->children[1].b);
    assert_int_equal(m->counts_count, 1);
    assert_true(str_eq_c(m->counts[0].key, "k") && m->counts[0].value == 9);
    assert_int_equal(m->choice_case, 28);
    assert_int_equal(m->flags_count, 2);
    assert_true(m->flags[0] && !m->flags[1]);
}

static void every_type_is_read_and_written_alike(void **state)
{
    AUTO(arena_done) struct arena a = {0};
    AUTO(buf_done) struct buf b = {0};
    struct all_all m;

    (void)state;
    decode(sample, &a, &m);
    check_sample(&m);
    pb_encode(&all_all_pb, &m, &b);
    assert_int_equal(buf_len(&b), sample.n);
    assert_memory_equal(buf_data(&b), sample.p, sample.n);
}

static void json_goes_there_and_back(void **state)
{
    AUTO(arena_done) struct arena a = {0};
    AUTO(buf_done) struct buf text = {0}, b = {0};
    AUTO(json_decref) json_t *v = NULL;
    struct jw w = {.to = &text};
    struct all_all m, back;
    struct err e = {0};

    (void)state;
    decode(sample, &a, &m);
    pb_to_json(&all_all_pb, &m, &w);
    assert_non_null(strstr(buf_cstr(&text), "\"u64\":\"18446744073709551615\""));
    assert_non_null(strstr(buf_cstr(&text), "\"colour\":\"BLUE\""));
    assert_non_null(strstr(buf_cstr(&text), "\"raw\":\"AP8=\""));
    assert_non_null(strstr(buf_cstr(&text), "\"counts\":{\"k\":9}"));
    assert_non_null(strstr(buf_cstr(&text), "\"numberChoice\":\"0\""));
    assert_null(strstr(buf_cstr(&text), "maybeText"));
    assert_int_equal(json_read(buf_str(&text), &v, &e), 0);
    assert_int_equal(pb_from_json(&all_all_pb, v, &a, &back, &e), 0);
    check_sample(&back);
    pb_encode(&all_all_pb, &back, &b);
    assert_memory_equal(buf_data(&b), sample.p, sample.n);
}

static void json_is_lenient_where_the_format_is(void **state)
{
    static const char text[] =
        "{\"maybe_text\":\"x\",\"i64\":5,\"u32\":\"7\",\"d\":\"-Infinity\",\"s\":null,\"colour\":1,"
        "\"byId\":{\"3\":{\"b\":true}},\"i32\":1e3}";
    AUTO(arena_done) struct arena a = {0};
    AUTO(json_decref) json_t *v = NULL;
    struct all_all m;
    struct err e = {0};

    (void)state;
    assert_int_equal(json_read(str_of(text), &v, &e), 0);
    assert_int_equal(pb_from_json(&all_all_pb, v, &a, &m, &e), 0);
    assert_true(m.has_maybe_text && m.i64 == 5 && m.u32 == 7 && isinf(m.d) && m.d < 0);
    assert_true(m.colour == ALL_COLOUR_RED && m.i32 == 1000);
    assert_true(m.by_id_count == 1 && m.by_id[0].key == 3 && m.by_id[0].value->b);
}

static void bad_json_is_refused_with_the_field(void **state)
{
    static const char *const cases[] = {
        "[]",
        "{\"nope\":1}",
        "{\"i32\":2147483648}",
        "{\"u32\":-1}",
        "{\"i32\":1.5}",
        "{\"b\":1}",
        "{\"s\":1}",
        "{\"raw\":\"!\"}",
        "{\"numbers\":1}",
        "{\"colour\":\"GREEN\"}",
        "{\"counts\":[]}",
        "{\"child\":1}",
        "{\"u64\":\"18446744073709551616\"}",
        "{\"d\":\"x\"}",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO(arena_done) struct arena a = {0};
        AUTO(json_decref) json_t *v = NULL;
        struct all_all m;
        struct err e = {0};

        assert_int_equal(json_read(str_of(cases[i]), &v, &e), 0);
        assert_int_equal(pb_from_json(&all_all_pb, v, &a, &m, &e), -1);
        assert_int_equal(e.code, ERR_INVALID);
    }
}

static void unknown_fields_are_skipped(void **state)
{
    static const char in[] = "\xb8\x3e\x05" /* 999: varint */
                             "\xb9\x3e"
                             "12345678"                 /* 999: 64 bits */
                             "\xba\x3e\x02xx"           /* 999: bytes */
                             "\xbb\x3e\x08\x01\xbc\x3e" /* 999: a group */
                             "\xbd\x3e"
                             "1234"          /* 999: 32 bits */
                             "\x2a\x01x"     /* i32 with the wrong wire type */
                             "\x28\x07"      /* i32 7 */
                             "\xb0\x01\x05"; /* numbers, not packed */
    AUTO(arena_done) struct arena a = {0};
    struct all_all m;

    (void)state;
    decode(str_make(in, sizeof in - 1), &a, &m);
    assert_int_equal(m.i32, 7);
    assert_int_equal(m.numbers_count, 1);
    assert_int_equal(m.numbers[0], 5);
}

static void later_values_win_and_children_merge(void **state)
{
    static const char in[] = "\x28\x01\x28\x02\xaa\x01\x02\x28\x07\xaa\x01\x02\x40\x01"
                             "\xda\x01\x01x\xe0\x01\x05";
    AUTO(arena_done) struct arena a = {0};
    struct all_all m;

    (void)state;
    decode(str_make(in, sizeof in - 1), &a, &m);
    assert_int_equal(m.i32, 2);
    assert_true(m.child->i32 == 7 && m.child->b);
    assert_true(m.choice_case == 28 && m.number_choice == 5);
}

static bool is_refused(struct str in)
{
    AUTO(arena_done) struct arena a = {0};
    struct all_all m;
    struct err e = {0};

    return pb_decode(&all_all_pb, in, &a, &m, &e) < 0 && e.code == ERR_INVALID;
}

static void broken_input_is_refused(void **state)
{
    static const struct str cases[] = {
        STR("\x28"),                                         /* no value */
        STR("\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), /* over 64 bits */
        STR("\x28\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"),
        STR("\x4a\x05"
            "abc"),                      /* cut short */
        STR("\x4a\xff\xff\xff\xff\x0f"), /* 4 GiB */
        STR("\x4a\x01\xff"),             /* not UTF-8 */
        STR("\x02\x01x"),                /* field 0 */
        STR("\x2f"),                     /* wire type 7 */
        STR("\x2c"),                     /* the end of no group */
        STR("\xbb\x3e\x08\x01"),         /* a group without end */
        STR("\xbb\x3e\xc4\x3e"),         /* another group's end */
        STR("\x09\x01\x02"),             /* half a double */
        STR("\xb2\x01\x02\x01\x80"),     /* half a packed number */
        STR("\xaa\x01\x02\x4a\x05"),     /* inside the child */
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_true(is_refused(cases[i]));
    for (size_t n = 1; n < sample.n; n++) /* no cut may crash */
        (void)is_refused(str_make(sample.p, n));
}

static void depth_and_memory_are_bounded(void **state)
{
    AUTO(buf_done) struct buf deep = {0}, wide = {0}, groups = {0};

    (void)state;
    for (int i = 0; i < PB_DEPTH_MAX + 1; i++) {
        AUTO(buf_done) struct buf outer = {0};

        buf_add_c(&outer, "\xaa\x01");
        if (buf_len(&deep) > 127)
            buf_add_char(&outer, (char)(0x80 | (buf_len(&deep) & 0x7f)));
        buf_add_char(&outer, (char)(buf_len(&deep) > 127 ? buf_len(&deep) >> 7 : buf_len(&deep)));
        buf_add_str(&outer, buf_str(&deep));
        buf_clear(&deep);
        buf_add_str(&deep, buf_str(&outer));
    }
    assert_true(is_refused(buf_str(&deep)));
    for (int i = 0; i < 1000; i++)
        buf_add_c(&groups, "\xbb\x3e");
    assert_true(is_refused(buf_str(&groups)));
    for (int i = 0; i < 300000; i++)
        buf_add(&wide, "\xc2\x01\x00", 3);
    assert_true(is_refused(buf_str(&wide)));
}

static void methods_know_their_messages(void **state)
{
    (void)state;
    assert_int_equal(all_method_count, 2);
    assert_string_equal(all_methods[1].path, "/test.Things/Talk");
    assert_ptr_equal(all_methods[0].out, &all_empty_pb);
    assert_true(all_methods[1].client_streams && all_methods[1].server_streams);
    assert_false(all_methods[0].server_streams);
    assert_true(all_descriptor_set.n > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_is_read_and_written_alike),
        cmocka_unit_test(json_goes_there_and_back),
        cmocka_unit_test(json_is_lenient_where_the_format_is),
        cmocka_unit_test(bad_json_is_refused_with_the_field),
        cmocka_unit_test(unknown_fields_are_skipped),
        cmocka_unit_test(later_values_win_and_children_merge),
        cmocka_unit_test(broken_input_is_refused),
        cmocka_unit_test(depth_and_memory_are_bounded),
        cmocka_unit_test(methods_know_their_messages),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
