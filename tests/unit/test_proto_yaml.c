#include "proto/yaml.h"

#include "unit.h"

static void reads_as(const char *text, const char *json)
{
    AUTO(yaml_done) struct yaml y = {0};
    AUTO(buf_done) struct buf b = {0};
    struct jw w = {.to = &b};
    struct err e = {0};

    if (yaml_read(str_of(text), &y, &e) < 0)
        fail_msg("'%s': %s", text, e.msg);
    jw_json(&w, y.root);
    assert_string_equal(buf_cstr(&b), json);
}

static void refused(const char *text, const char *message)
{
    AUTO(yaml_done) struct yaml y = {0};
    struct err e = {0};

    assert_int_equal(yaml_read(str_of(text), &y, &e), -1);
    assert_int_equal(e.code, ERR_INVALID);
    assert_string_equal(e.msg, message);
}

static void scalars_are_those_of_yaml_1_2(void **state)
{
    (void)state;
    reads_as("[no, yes, on, off, y, n, NO]", "[\"no\",\"yes\",\"on\",\"off\",\"y\",\"n\",\"NO\"]");
    reads_as("[true, True, TRUE, false, tRue]", "[true,true,true,false,\"tRue\"]");
    reads_as("[null, ~, Null, '', ]", "[null,null,null,\"\"]");
    reads_as("[0, -1, +2, 0x1F, 0o17, 12:30:45, 1_000]", "[0,-1,2,31,15,\"12:30:45\",\"1_000\"]");
    reads_as("[1.5, .5, 1., -1e3, 1e, ., -, 1.2.3]", "[1.5,0.5,1.0,-1000.0,\"1e\",\".\",\"-\","
                                                     "\"1.2.3\"]");
    reads_as("['1', \"true\", !!str 5, '0644', 2026-01-02]",
             "[\"1\",\"true\",\"5\",\"0644\",\"2026-01-02\"]");
    reads_as("[0xZ, 0x, 0o8]", "[\"0xZ\",\"0x\",\"0o8\"]");
    reads_as("[-9223372036854775808, 9223372036854775807]",
             "[-9223372036854775808,9223372036854775807]");
}

static void documents_become_trees(void **state)
{
    (void)state;
    reads_as("", "null");
    reads_as("# only a comment\n", "null");
    reads_as("---\na: 1\nb:\n  - x\n  - {y: z}\nno: |\n  text\n8080: p\n...\n",
             "{\"a\":1,\"b\":[\"x\",{\"y\":\"z\"}],\"no\":\"text\\n\",\"8080\":\"p\"}");
    reads_as("a:\nb: []\nc: {}\n", "{\"a\":null,\"b\":[],\"c\":{}}");
}

static void what_is_not_taken_is_named_with_its_place(void **state)
{
    (void)state;
    refused("a: 1\na: 2\n", "line 2, column 1: the key appears twice");
    refused("a: &x 1\n", "line 1, column 4: anchors are not supported: write the value out");
    refused("a: *x\n", "line 1, column 4: aliases are not supported: write the value out");
    refused("*x : 1\n", "line 1, column 1: aliases are not supported: write the value out");
    refused("a: !!binary aGk=\n", "line 1, column 4: only the tag !!str is supported");
    refused("a: !mine {}\n", "line 1, column 4: only the tag !!str is supported");
    refused("[a]: 1\n", "line 1, column 1: a key must be a string");
    refused("a: 0644\n",
            "line 1, column 4: a number with a leading zero: quote it, or write 0o for octal");
    refused("\n\n- 99999999999999999999", "line 3, column 3: the number is too large");
    refused("- 0xFFFFFFFFFFFFFFFFF", "line 1, column 3: the number is too large");
    refused("- 1e999", "line 1, column 3: the number is too large or too long");
    refused("- -.inf", "line 1, column 3: not a finite number");
    refused("- .nan", "line 1, column 3: not a finite number");
    refused("- \"a\\0b\"", "line 1, column 3: a string contains a NUL character");
    refused("\"a\\0b\": 1", "line 1, column 1: a key contains a NUL character");
    refused("--- 1\n--- 2\n", "line 2, column 1: a second document");
    refused("a: [1\nb: 2", "line 2, column 2: did not find expected ',' or ']'");
    refused("a: \x01", "line 1 or below: control characters are not allowed at byte 3");
    refused("a: \xff", "line 1 or below: invalid leading UTF-8 octet at byte 3");
}

static void size_and_depth_are_bounded(void **state)
{
    AUTO(buf_done) struct buf b = {0};
    AUTO(yaml_done) struct yaml y = {0};
    struct err e = {0};

    (void)state;
    for (int i = 0; i < JSON_DEPTH_MAX; i++)
        buf_add_char(&b, '[');
    for (int i = 0; i < JSON_DEPTH_MAX; i++)
        buf_add_char(&b, ']');
    assert_int_equal(yaml_read(buf_str(&b), &y, &e), 0);
    yaml_done(&y);
    buf_clear(&b);
    for (int i = 0; i < 100000; i++)
        buf_add_char(&b, '[');
    assert_int_equal(yaml_read(buf_str(&b), &y, &e), -1);
    assert_string_equal(e.msg, "line 1, column 65: nested too deeply");
    buf_clear(&b);
    for (int i = 0; i <= JSON_VALUES_MAX; i++)
        buf_add_c(&b, "- a\n");
    assert_int_equal(yaml_read(buf_str(&b), &y, &e), -1);
    assert_non_null(strstr(e.msg, "too many values"));
    for (size_t i = 0; buf_len(&b) <= YAML_BYTES_MAX; i++)
        buf_add_c(&b, "# a long comment line that only fills the text\n");
    assert_int_equal(yaml_read(buf_str(&b), &y, &e), -1);
    assert_int_equal(e.code, ERR_TOO_LARGE);
}

static void every_member_knows_its_place(void **state)
{
    static const char text[] = "a: true\nb:\n  c: true\n  d:\n    - 1\n    -   2\n";
    AUTO(yaml_done) struct yaml y = {0};
    struct yaml_place p;
    const json_t *b, *d;
    struct err e = {0};

    (void)state;
    assert_int_equal(yaml_read(str_of(text), &y, &e), 0);
    b = json_object_get(y.root, "b");
    d = json_object_get(b, "d");
    p = yaml_place_of_key(&y, y.root, "a");
    assert_int_equal(p.line, 1);
    p = yaml_place_of_key(&y, b, "c");
    assert_int_equal(p.line, 3);
    assert_int_equal(p.column, 3);
    p = yaml_place_of_item(&y, d, 1);
    assert_int_equal(p.line, 6);
    assert_int_equal(p.column, 9);
    p = yaml_place_of_key(&y, b, "nothing");
    assert_int_equal(p.line, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scalars_are_those_of_yaml_1_2),
        cmocka_unit_test(documents_become_trees),
        cmocka_unit_test(what_is_not_taken_is_named_with_its_place),
        cmocka_unit_test(size_and_depth_are_bounded),
        cmocka_unit_test(every_member_knows_its_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
