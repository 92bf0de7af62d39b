#include "cli/print.h"

#include "proto/json.h"
#include "unit.h"

#include <locale.h>

static json_t *from(const char *text)
{
    json_t *v = json_loads(text, JSON_DECODE_ANY, NULL);

    assert_non_null(v);
    return v;
}

static void a_table_is_aligned(void **state)
{
    static const struct op_field fields[] = {{.name = "size", .type = OP_SIZE},
                                             {.name = "ttl_ms", .type = OP_DURATION},
                                             {.name = "at", .type = OP_TIME}};
    struct print_spec spec = {.columns = "id,size,ttl_ms,at,tags,on,deep.er",
                              .fields = fields,
                              .field_count = ARRAY_LEN(fields),
                              .items = "rows"};
    AUTO(json_decref)
    json_t *v = from(
        "{\"rows\":[{\"id\":\"a\",\"size\":1536,\"ttl_ms\":5400000,\"at\":"
        "\"2026-01-02T03:04:05.678Z\",\"tags\":[\"x\",\"y\"],\"on\":true,\"deep\":{\"er\":1}},"
        "{\"id\":\"größer\",\"size\":20,\"ttl_ms\":250,\"at\":null,\"tags\":[],\"on\":false}]}");
    AUTO(buf_done) struct buf out = {0};

    (void)state;
    print_table(&out, v, &spec);
    assert_string_equal(buf_cstr(&out),
                        "ID      SIZE     TTL    AT                    TAGS  ON   DEEP.ER\n"
                        "a       1.5 KiB  1h30m  2026-01-02 03:04:05Z  x, y  yes  1\n"
                        "größer  20 B     250ms  -                     -     no   -\n");
}

static void an_empty_list_still_has_its_heading(void **state)
{
    struct print_spec spec = {.columns = "id,name", .items = "rows"};
    AUTO(json_decref) json_t *v = from("{\"rows\":[]}");
    AUTO(buf_done) struct buf out = {0};

    (void)state;
    print_table(&out, v, &spec);
    assert_string_equal(buf_cstr(&out), "ID  NAME\n");
}

static void an_object_is_a_listing(void **state)
{
    static const struct op_field fields[] = {
        {.name = "version", .type = OP_STR},    {.name = "uptime_ms", .type = OP_INT},
        {.name = "none", .type = OP_STR},       {.name = "limits", .type = OP_JSON},
        {.name = "volumes", .type = OP_JSON},   {.name = "labels", .type = OP_MAP},
        {.name = "note", .type = OP_STR},       {.name = "cpu_us", .type = OP_INT},
        {.name = "note_bytes", .type = OP_INT},
    };
    struct print_spec spec = {.fields = fields, .field_count = ARRAY_LEN(fields)};
    AUTO(json_decref)
    json_t *v =
        from("{\"version\":\"1\",\"uptime_ms\":2,\"none\":null,\"volumes\":[],\"note\":\"\","
             "\"cpu_us\":2000,\"note_bytes\":1,"
             "\"labels\":{\"none\":null},\"limits\":{\"memory_bytes\":1536,\"pids\":null,\"deep\":{"
             "\"a\":1}}}");
    AUTO(buf_done) struct buf out = {0};

    (void)state;
    print_table(&out, v, &spec);
    assert_string_equal(buf_cstr(&out), "version     1\nuptime      2ms\n"
                                        "limits      memory=1.5 KiB, deep={\"a\":1}\n"
                                        "cpu         2ms\nnote_bytes  1 B\n");
}

static void times_are_as_long_as_a_person_reads(void **state)
{
    static const struct {
        int64_t ms;
        const char *shown;
    } all[] = {{0, "0"},        {999, "999ms"},    {1000, "1s"},  {1540, "1.5s"},
               {9999, "9.9s"},  {40082, "40s"},    {60000, "1m"}, {90500, "1m30s"},
               {3600000, "1h"}, {90061000, "1d1h"}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        static const struct op_field fields[] = {{.name = "t_ms", .type = OP_INT}};
        AUTO(json_decref) json_t *v = json_pack("{s:I}", "t_ms", (json_int_t)all[i].ms);
        AUTO(buf_done) struct buf out = {0};
        struct str rest;

        print_table(&out, v, &(struct print_spec){.fields = fields, .field_count = 1});
        assert_true(str_starts(buf_str(&out), STR("t  ")));
        assert_true(str_eq_c(str_cut(str_skip(buf_str(&out), 3), '\n', &rest), all[i].shown));
    }
}

static void a_list_is_cut_to_the_terminal(void **state)
{
    struct print_spec spec = {.columns = "id,command,at", .items = "rows", .width = 60};
    AUTO(json_decref)
    json_t *v =
        from("{\"rows\":[{\"id\":\"ex_01m7htcd5w18ga483ax0\",\"command\":\"größer größer größer "
             "größer größer\",\"at\":\"x\"},{\"id\":\"b\",\"command\":\"c\",\"at\":\"y\"}]}");
    AUTO(buf_done) struct buf out = {0};

    (void)state;
    print_table(&out, v, &spec);
    assert_string_equal(buf_cstr(&out),
                        "ID                       COMMAND                          AT\n"
                        "ex_01m7htcd5w18ga483ax0  größer größer größer größer gr…  x\n"
                        "b                        c                                y\n");
    buf_clear(&out);
    spec.width = 20; /* too narrow: what tells rows apart stays whole */
    print_table(&out, v, &spec);
    assert_non_null(
        strstr(buf_cstr(&out), "ex_01m7htcd5w18ga483ax0  größer größer größer gr…  x\n"));
}

static void json_acts_on_no_terminal(void **state)
{
    AUTO(json_decref)
    json_t *v = from("{\"na\\u202eme\":[\"\\u009b2J\","
                     "\"\\u061c\\u200e\\u2028\\u2069\\u007f\\u0085\",\"größer\"]}");
    void (*const forms[])(struct buf *, const json_t *) = {print_json, print_json_line};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        AUTO(buf_done) struct buf out = {0};
        AUTO(json_decref) json_t *back = NULL;

        forms[i](&out, v);
        assert_non_null(strstr(buf_cstr(&out), "na\\u202eme"));
        assert_non_null(strstr(buf_cstr(&out), "\\u009b2J"));
        assert_non_null(strstr(buf_cstr(&out), "\\u061c\\u200e\\u2028\\u2069\\u007f\\u0085"));
        assert_non_null(strstr(buf_cstr(&out), "größer"));
        back = from(buf_cstr(&out));
        assert_true(json_equal(v, back));
    }
}

static void no_member_is_left_out(void **state)
{
    AUTO(json_decref) json_t *v = json_object();
    AUTO(buf_done) struct buf out = {0};

    (void)state;
    for (int i = 0; i < 100; i++) {
        char key[16];

        (void)snprintf(key, sizeof key, "k%d", i);
        json_object_set_new(v, key, json_integer(i));
    }
    print_table(&out, v, &(struct print_spec){0});
    assert_non_null(strstr(buf_cstr(&out), "k99  99\n"));
}

static void text_of_strangers_cannot_steer_the_terminal(void **state)
{
    AUTO(json_decref)
    json_t *v = json_pack("{s:s}", "name",
                          "a\x1b[2Jb\nc\xc2\x9b"
                          "31m\xe2\x80\xae!");
    AUTO(buf_done) struct buf out = {0};

    (void)state;
    print_table(&out, v, &(struct print_spec){0});
    assert_string_equal(buf_cstr(&out), "name  a\\x1b[2Jb\\x0ac\\x9b31m\\u{202e}!\n");
    buf_clear(&out);
    print_safe(&out, str_make("\xff\xc3", 2));
    assert_string_equal(buf_cstr(&out), "\\xff\\xc3");
}

static void json_is_indented(void **state)
{
    AUTO(json_decref) json_t *v = from("{\"a\":[1]}");
    AUTO(buf_done) struct buf out = {0};

    (void)state;
    print_json(&out, v);
    assert_string_equal(buf_cstr(&out), "{\n  \"a\": [\n    1\n  ]\n}\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_is_aligned),
        cmocka_unit_test(an_empty_list_still_has_its_heading),
        cmocka_unit_test(an_object_is_a_listing),
        cmocka_unit_test(times_are_as_long_as_a_person_reads),
        cmocka_unit_test(a_list_is_cut_to_the_terminal),
        cmocka_unit_test(json_acts_on_no_terminal),
        cmocka_unit_test(no_member_is_left_out),
        cmocka_unit_test(text_of_strangers_cannot_steer_the_terminal),
        cmocka_unit_test(json_is_indented),
    };

    (void)setlocale(LC_CTYPE, "C.UTF-8");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
