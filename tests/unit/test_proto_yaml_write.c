#include "proto/yaml.h"

#include "unit.h"

static json_t *from(const char *text)
{
    json_t *v = json_loads(text, JSON_DECODE_ANY, NULL);

    assert_non_null(v);
    return v;
}

static void yaml_keeps_types_apart(void **state)
{
    AUTO(json_decref)
    json_t *v = from(
        "{\"a\":\"true\",\"b\":true,\"c\":\"12\",\"d\":12,\"e\":null,\"f\":\"null\",\"g\":[],"
        "\"h\":{},\"i\":[{\"x\":\"y z\"}],\"j\":\"\",\"k\":\"no\",\"l\":\"a: b\",\"m\":\"1e3\","
        "\"n\":\"two\\nlines\",\"o\":\"0x1f\",\"p\":\"~\",\"q\":\"plain/text\"}");
    AUTO(buf_done) struct buf out = {0};

    (void)state;
    yaml_write(&out, v);
    assert_string_equal(buf_cstr(&out), "a: \"true\"\nb: true\nc: \"12\"\nd: 12\ne: null\n"
                                        "f: \"null\"\ng: []\nh: {}\ni:\n- x: y z\nj: \"\"\n"
                                        "k: \"no\"\nl: 'a: b'\nm: \"1e3\"\n\"n\": \"two\\nlines\"\n"
                                        "o: \"0x1f\"\np: \"~\"\nq: plain/text\n");
}

static void what_is_written_is_read_back_the_same(void **state)
{
    static const char *const texts[] = {
        "{\"x\":[\"\\u001b\",\"\u00e9\",{\"k: \":[[1],-2.5,[]]}],\"\":{}}",
        "[\"- a\",\"#\",\" lead\",\"trail \",\"'\",\"\\\"\",\"a#b\",\"a "
        "#b\",\"[x]\",\"{\",\"&a\",\"*a\",\"!t\"]",
        "[\"007\",\"1_000\",\"0o7\",\".inf\",\"-\",\"1.\",\"2026-01-02\",\"12:30\",\"Null\","
        "\"YES\",\"<<\",\"=\"]",
        "[0,1,true,false,null,9007199254740993,\"tab\\there\",\"\\u2028\",\"\\ufeffbom\","
        "\"end\\n\"]",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        AUTO(json_decref) json_t *v = from(texts[i]);
        AUTO(buf_done) struct buf out = {0};
        AUTO(yaml_done) struct yaml back = {0};
        struct err e = {0};

        yaml_write(&out, v);
        if (yaml_read(buf_str(&out), &back, &e) < 0)
            fail_msg("%s\n%s", e.msg, buf_cstr(&out));
        if (!json_equal(v, back.root))
            fail_msg("not the same:\n%s", buf_cstr(&out));
    }
}

/* Text that a terminal would act on: controls of C1, marks and overrides of direction. */
static void nothing_in_it_acts_on_a_terminal(void **state)
{
    AUTO(json_decref)
    json_t *v =
        from("{\"a\":\"x\\u009b2Jy\",\"b\\u202ec\":\"\\u2066\\u061c\\u200f\",\"d\":\"\\u007f\","
             "\"e: \\u2069\":[\"\\u0085\"]}");
    AUTO(buf_done) struct buf out = {0};
    AUTO(yaml_done) struct yaml back = {0};
    struct err e = {0};

    (void)state;
    yaml_write(&out, v);
    for (size_t i = 0; i < buf_len(&out); i++)
        if (buf_cstr(&out)[i] & 0x80)
            fail_msg("raw: %s", buf_cstr(&out));
    assert_int_equal(yaml_read(buf_str(&out), &back, &e), 0);
    assert_true(json_equal(v, back.root));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(yaml_keeps_types_apart),
        cmocka_unit_test(nothing_in_it_acts_on_a_terminal),
        cmocka_unit_test(what_is_written_is_read_back_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
