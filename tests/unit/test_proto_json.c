#include "proto/json.h"

#include "unit.h"

static void refused(const char *text, size_t n, const char *with)
{
    AUTO(json_decref) json_t *v = NULL;
    struct err e = {0};

    assert_int_equal(json_read(str_make(text, n), &v, &e), -1);
    assert_int_equal(e.code, ERR_INVALID);
    if (!strstr(e.msg, with))
        fail_msg("'%s' does not say '%s'", e.msg, with);
}

static void refused_c(const char *text, const char *with)
{
    refused(text, strlen(text), with);
}

static void what_is_wrong_is_named_with_line_and_column(void **state)
{
    (void)state;
    refused_c("", "line 1, column 0: ");
    refused_c("{\n\"a\": 1,\n}", "line 3, column 1: ");
    refused_c("{\"a\": 1, \"a\": 2}", "duplicate object key");
    refused_c("[1] x", "end of file expected");
    refused_c("\"a\\u0000b\"", "\\u0000");
    refused("\"a\0b\"", 5, "line 1");
    refused("[1]\0", 4, "line 1");
    refused("{\"a\": 6\0}", 9, "line 1");
    refused_c("\"\xc0\xaf\"", "unable to decode byte 0xc0");
    refused_c("\"\xed\xa0\x80\"", "unable to decode byte 0xed");
    refused_c("{\"a\": nul}", "line 1");
    refused_c("[99999999999999999999]", "too big");
    refused_c("[1e999]", "real number overflow");
    refused_c("\"open", "line 1");
    refused_c("\"open\\", "line 1");
    refused(NULL, 0, "line 1");
}

static void lax(const char *text, size_t n, const char *want, size_t want_n)
{
    AUTO(json_decref) json_t *v = NULL;
    struct err e = {0};

    assert_int_equal(json_read_lax(str_make(text, n), &v, &e), 0);
    assert_int_equal(json_string_length(json_object_get(v, "a")), want_n);
    assert_memory_equal(json_string_value(json_object_get(v, "a")), want, want_n);
}
#define LAX(text, want) lax(text, sizeof(text) - 1, want, sizeof(want) - 1)

static void what_most_decoders_take_may_be_taken(void **state)
{
    AUTO(json_decref) json_t *v = NULL;
    struct err e = {0};

    (void)state;
    LAX("{\"a\": \"1\", \"a\": \"2\"}", "2");
    LAX("{\"a\": \"x\\u0000y\"}", "x\0y");
    LAX("{\"a\": \"\xff\xc3\"}", "\xef\xbf\xbd\xef\xbf\xbd");
    LAX("{\"a\": \"\\ud800\\ud83d\\ude00\\udc00\\uDBFF\"}",
        "\xef\xbf\xbd\xf0\x9f\x98\x80\xef\xbf\xbd\xef\xbf\xbd");
    LAX("{\"a\": \"\\\\ud800\"}", "\\ud800");
    assert_int_equal(json_read_lax(STR("{\"a\": \"\\ud8"), &v, &e), -1);
    assert_int_equal(json_read_lax((struct str){0}, &v, &e), -1);
}

static void depth_and_values_are_bounded(void **state)
{
    AUTO(buf_done) struct buf b = {0};
    AUTO(json_decref) json_t *v = NULL;
    struct err e = {0};

    (void)state;
    for (int i = 0; i < JSON_DEPTH_MAX; i++)
        buf_add_char(&b, '[');
    buf_add_c(&b, "\"[[[[[{{{{{\\\"[[\"");
    for (int i = 0; i < JSON_DEPTH_MAX; i++)
        buf_add_char(&b, ']');
    assert_int_equal(json_read(buf_str(&b), &v, &e), 0);
    buf_clear(&b);
    for (int i = 0; i < JSON_DEPTH_MAX + 1; i++)
        buf_add_c(&b, "\n[");
    refused(buf_data(&b), buf_len(&b), "line 66, column 1: nested deeper than 64");
    buf_clear(&b);
    buf_add_c(&b, "[0");
    for (int i = 0; i < JSON_VALUES_MAX; i++)
        buf_add_c(&b, ",0");
    buf_add_c(&b, "]");
    refused(buf_data(&b), buf_len(&b), "more than 262144 values");
}

static void a_tree_is_written_as_it_was_read(void **state)
{
    static const char text[] = "{\"a\":[1,-2,3.5,1.0,1e+300,true,false,null,{}],\"b\":{\"c\":[]},"
                               "\"d\":\"x\\\"\\\\\\n\\u0001 \xc3\xa9\",\"e\":0.1}";
    AUTO(json_decref) json_t *v = NULL;
    AUTO(buf_done) struct buf b = {0};
    struct jw w = {.to = &b};
    struct err e = {0};

    (void)state;
    assert_int_equal(json_read(str_of(text), &v, &e), 0);
    jw_json(&w, v);
    assert_string_equal(buf_cstr(&b), text);
}

static void commas_stand_between_values_only(void **state)
{
    AUTO(buf_done) struct buf b = {0};
    struct jw w = {.to = &b};

    (void)state;
    jw_object(&w);
    jw_kint(&w, "i", INT64_MIN);
    jw_kstr(&w, "s", STR("x"));
    jw_key(&w, "l");
    jw_array(&w);
    jw_double(&w, 1.0 / 3);
    jw_double(&w, __builtin_inf());
    jw_object(&w);
    jw_object_end(&w);
    jw_c(&w, NULL);
    jw_raw(&w, STR("{\"r\":1}"));
    jw_array_end(&w);
    jw_kbool(&w, "b", true);
    jw_ktime(&w, "t", 1);
    jw_ktime(&w, "never", 0);
    jw_object_end(&w);
    assert_string_equal(
        buf_cstr(&b), "{\"i\":-9223372036854775808,\"s\":\"x\",\"l\":[0.33333333333333331,null,{},"
                      "null,{\"r\":1}],\"b\":true,\"t\":\"1970-01-01T00:00:00.001Z\","
                      "\"never\":null}");
}

static void broken_bytes_become_the_replacement_character(void **state)
{
    AUTO(buf_done) struct buf b = {0};
    struct jw w = {.to = &b};

    (void)state;
    jw_str(&w, str_make("a\0\x7f\x80\xe2\x82\xac\xe2\x82", 9));
    assert_string_equal(buf_cstr(&b),
                        "\"a\\u0000\\u007f\xef\xbf\xbd\xe2\x82\xac\xef\xbf\xbd\xef\xbf\xbd\"");
}

static void an_error_says_only_what_it_knows(void **state)
{
    AUTO(buf_done) struct buf b = {0};
    struct err e = {0};

    (void)state;
    (void)err_set(&e, ERR_NOT_FOUND, 0, "no token 'x\"'");
    json_error(&b, &e);
    assert_string_equal(buf_cstr(&b),
                        "{\"error\":{\"code\":\"not_found\",\"message\":\"no token 'x\\\"'\"}}");
    buf_clear(&b);
    (void)err_object(&e, "token", "x");
    (void)err_hint(&e, "see `holt token ls`");
    json_error(&b, &e);
    assert_non_null(
        strstr(buf_cstr(&b), ",\"object\":\"token/x\",\"hint\":\"see `holt token ls`\"}}"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_wrong_is_named_with_line_and_column),
        cmocka_unit_test(what_most_decoders_take_may_be_taken),
        cmocka_unit_test(depth_and_values_are_bounded),
        cmocka_unit_test(a_tree_is_written_as_it_was_read),
        cmocka_unit_test(commas_stand_between_values_only),
        cmocka_unit_test(broken_bytes_become_the_replacement_character),
        cmocka_unit_test(an_error_says_only_what_it_knows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
