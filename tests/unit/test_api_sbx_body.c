#include "api/dialects/sbx/body.h"

#include "unit.h"

struct thing {
    struct str text;
    struct sbx_strings list;
    struct sbx_map map;
    struct sbx_bool flag;
    struct sbx_int number;
};

static const struct sbx_field fields[] = {
    {"text", SBX_STRING, offsetof(struct thing, text)},
    {"list", SBX_STRINGS, offsetof(struct thing, list)},
    {"map", SBX_MAP, offsetof(struct thing, map)},
    {"flag", SBX_BOOL, offsetof(struct thing, flag)},
    {"number", SBX_INT, offsetof(struct thing, number)},
};
static const struct sbx_form form = {"Thing", fields, ARRAY_LEN(fields)};

struct fixture {
    struct arena a;
    json_t *hold;
    struct thing t;
    struct err e;
};

static int parse(struct fixture *f, struct str body)
{
    *f = (struct fixture){0};
    return sbx_read_body(body, &form, &f->a, &f->hold, &f->t, &f->e);
}

static void done(struct fixture *f)
{
    json_decref(f->hold);
    arena_done(&f->a);
}

static void all_kinds(void **state)
{
    struct fixture f;

    (void)state;
    assert_int_equal(
        parse(&f,
              STR(" {\"text\": \"a\\u00e9\\n\", \"list\": [\"x\", null, \"\"], \"map\": {\"k\": "
                  "\"v\", \"n\": "
                  "null}, \"flag\": false, \"number\": -7, \"unknown\": [{}]} and what follows")),
        0);
    assert_true(str_eq_c(f.t.text, "a\xc3\xa9\n"));
    assert_int_equal(f.t.list.n, 3);
    assert_true(str_eq_c(f.t.list.v[0], "x"));
    assert_int_equal(f.t.list.v[1].n + f.t.list.v[2].n, 0);
    assert_int_equal(f.t.map.n, 2);
    assert_true(f.t.flag.set && !f.t.flag.v);
    assert_true(f.t.number.set && f.t.number.v == -7);
    done(&f);
    assert_int_equal(parse(&f, STR("null")), 0);
    done(&f);
    assert_int_equal(
        parse(&f, STR("{\"text\":null,\"list\":null,\"map\":null,\"flag\":null,\"number\":null}")),
        0);
    assert_true(!f.t.flag.set && !f.t.number.set && f.t.list.n == 0);
    done(&f);
}

/* Go's texts. */
static void what_is_wrong(void **state)
{
    static const struct {
        const char *body, *text;
    } rows[] = {
        {"", "EOF"},
        {" \n", "EOF"},
        {"{", "unexpected EOF"},
        {"{\"text\"", "unexpected EOF"},
        {"{\"text\": \"a", "unexpected EOF"},
        {"x", "invalid character 'x' looking for beginning of value"},
        {"{b}", "invalid character 'b' looking for beginning of object key string"},
        {"{\"a\" 1}", "invalid character '1' after object key"},
        {"{\"a\": 1 2}", "invalid character '2' after object key:value pair"},
        {"[1 2]", "invalid character '2' after array element"},
        {"{\"a\": tru}", "invalid character '}' in literal true (expecting 'e')"},
        {"{\"a\": -x}", "invalid character 'x' in numeric literal"},
        {"{\"a\": 1.x}", "invalid character 'x' after decimal point in numeric literal"},
        {"{\"a\": 1ex}", "invalid character 'x' in exponent of numeric literal"},
        {"{\"a\": \"\\q\"}", "invalid character 'q' in string escape code"},
        {"{\"a\": \"\\u12x4\"}", "invalid character 'x' in \\u hexadecimal character escape"},
        {"{\"a\": \"\n\"}", "invalid character '\\n' in string literal"},
        {"{'a'}", "invalid character '\\'' looking for beginning of object key string"},
        {"[]", "json: cannot unmarshal array into Go value of type api.Thing"},
        {"\"s\"", "json: cannot unmarshal string into Go value of type api.Thing"},
        {"{\"text\": 1}",
         "json: cannot unmarshal number into Go struct field Thing.text of type string"},
        {"{\"list\": \"x\"}",
         "json: cannot unmarshal string into Go struct field Thing.list of type []string"},
        {"{\"list\": [1]}",
         "json: cannot unmarshal number into Go struct field Thing.list of type string"},
        {"{\"map\": []}",
         "json: cannot unmarshal array into Go struct field Thing.map of type map[string]string"},
        {"{\"flag\": \"true\"}",
         "json: cannot unmarshal string into Go struct field Thing.flag of type bool"},
        {"{\"number\": 1.5}",
         "json: cannot unmarshal number 1.5 into Go struct field Thing.number of type int"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct fixture f;

        assert_int_equal(parse(&f, str_of(rows[i].body)), -1);
        assert_string_equal(f.e.msg, rows[i].text);
        done(&f);
    }
}

static void depth_is_bounded(void **state)
{
    AUTO(buf_done) struct buf deep = {0};
    struct fixture f;

    (void)state;
    for (int i = 0; i < 100000; i++)
        buf_add_char(&deep, '[');
    assert_int_equal(parse(&f, buf_str(&deep)), -1);
    assert_string_equal(f.e.msg, "exceeded max depth");
    done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_kinds),
        cmocka_unit_test(what_is_wrong),
        cmocka_unit_test(depth_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
