#include "ops/op.h"
#include "ops/sandbox.h"
#include "ops/token.h"

#include "proto/json.h"
#include "unit.h"

struct all_in {
    struct str id, name, hex;
    int64_t number, wait_ms, bytes, when;
    bool on, on_given;
    int colour;
    struct op_list tags;
    struct op_map env;
    json_t *any;
    struct op_since since;
    struct str code;
    struct str q;
};
static const char *const colours[] = {"red", "green", NULL};
static const struct op_field all_fields[] = {
    FIELD(struct all_in, id, OP_STR, .required = true, .max = 10, .text = "."),
    FIELD(struct all_in, name, OP_STR, .min = 2, .max = 5, .text = "."),
    FIELD(struct all_in, hex, OP_STR, .pattern = OP_PATTERN_SHA256, .text = "."),
    FIELD(struct all_in, number, OP_INT, .min = 1, .max = 1000, .preset = "7", .text = "."),
    FIELD(struct all_in, wait_ms, OP_DURATION, .min = 1000, .max = 3600000, .text = "."),
    FIELD(struct all_in, bytes, OP_SIZE, .min = 1, .max = 1 << 20, .text = "."),
    FIELD(struct all_in, when, OP_TIME, .text = "."),
    FIELD(struct all_in, on, OP_BOOL, .given = offsetof(struct all_in, on_given), .text = "."),
    FIELD(struct all_in, colour, OP_CHOICE, .choices = colours, .text = "."),
    FIELD(struct all_in, tags, OP_LIST, .min = 1, .max = 5, .text = "."),
    FIELD(struct all_in, env, OP_MAP, .max = 2, .text = "."),
    FIELD(struct all_in, any, OP_JSON, .text = "."),
    FIELD(struct all_in, since, OP_SINCE, .text = "."),
    FIELD(struct all_in, code, OP_STR, .max = 4, .secret = true, .pattern = OP_PATTERN_DIGITS,
          .text = "."),
    FIELD(struct all_in, q, OP_STR, .query = true, .text = "."),
};
#define ALL_IN .in = all_fields, .in_count = ARRAY_LEN(all_fields), .in_size = sizeof(struct all_in)
static const struct op get_all = {.name = "all.get", .method = "GET", .path = "/a/{id}/b", ALL_IN};
static const struct op set_all = {.name = "all.set", .method = "POST", .path = "/a/{id}", ALL_IN};
static const struct op_params path = {.v = {{"x", 1}}, .n = 1};

struct fixture {
    struct arena a;
    json_t *body;
    struct err e;
};

static int setup(void **state)
{
    static struct fixture f;

    f = (struct fixture){0};
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    arena_done(&f->a);
    json_decref(f->body);
    return 0;
}

static struct all_in *query_ok(struct fixture *f, const char *query)
{
    void *in = NULL;

    if (op_decode(&get_all, &path, str_of(query), NULL, &f->a, &in, &f->e) < 0)
        fail_msg("%s: %s", query, f->e.msg);
    return in;
}

static struct all_in *body_ok(struct fixture *f, const char *body)
{
    void *in = NULL;

    json_decref(f->body);
    f->body = NULL;
    assert_int_equal(json_read(str_of(body), &f->body, &f->e), 0);
    if (op_decode(&set_all, &path, str_of("q=z"), f->body, &f->a, &in, &f->e) < 0)
        fail_msg("%s: %s", body, f->e.msg);
    assert_true(str_eq_c(((struct all_in *)in)->q, "z"));
    return in;
}

static void query_bad(struct fixture *f, const char *query, const char *message)
{
    void *in = NULL;

    f->e = (struct err){0};
    assert_int_equal(op_decode(&get_all, &path, str_of(query), NULL, &f->a, &in, &f->e), -1);
    assert_int_equal(f->e.code, ERR_INVALID);
    assert_string_equal(f->e.msg, message);
    assert_null(in);
}

static void body_of_bad(struct fixture *f, const struct op *op, const char *body,
                        const char *message)
{
    void *in = NULL;

    json_decref(f->body);
    f->body = NULL;
    assert_int_equal(json_read(str_of(body), &f->body, &f->e), 0);
    f->e = (struct err){0};
    assert_int_equal(op_decode(op, strchr(op->path, '{') ? &path : NULL, str_of(NULL), f->body,
                               &f->a, &in, &f->e),
                     -1);
    assert_int_equal(f->e.code, ERR_INVALID);
    assert_string_equal(f->e.msg, message);
}

static void body_bad(struct fixture *f, const char *body, const char *message)
{
    body_of_bad(f, &set_all, body, message);
}

static void what_is_given_says_so(void **state)
{
    assert_false(body_ok(*state, "{}")->on_given);
    assert_false(body_ok(*state, "{\"on\":null}")->on_given);
    assert_true(body_ok(*state, "{\"on\":false}")->on_given);
    assert_true(query_ok(*state, "on=false")->on_given);
    assert_false(query_ok(*state, "on=false")->on);
}

static void what_is_absent_is_preset_or_said_to_be_absent(void **state)
{
    struct all_in *in = query_ok(*state, NULL);

    assert_true(str_eq_c(in->id, "x"));
    assert_null(in->name.p);
    assert_int_equal(in->number, 7);
    assert_int_equal(in->wait_ms, OP_ABSENT);
    assert_int_equal(in->bytes, OP_ABSENT);
    assert_int_equal(in->when, OP_ABSENT);
    assert_false(in->on);
    assert_int_equal(in->colour, -1);
    assert_int_equal(in->tags.n, 0);
    assert_int_equal(in->env.n, 0);
    assert_null(in->any);
    assert_int_equal(in->since.seq, OP_ABSENT);
    assert_int_equal(in->since.time_ms, OP_ABSENT);
}

static void each_type_is_read_from_a_query(void **state)
{
    struct all_in *in =
        query_ok(*state, "name=%C3%A9+b&number=1000&wait_ms=15m&bytes=64k&on&colour=green&"
                         "when=1970-01-01T00:00:01Z&tags=a,b&tags=c&tags=d&env=K=v%3D1,L=&&"
                         "since=12&code=1234");

    assert_string_equal(in->name.p, "\xc3\xa9 b");
    assert_int_equal(in->number, 1000);
    assert_int_equal(in->wait_ms, 900000);
    assert_int_equal(in->bytes, 65536);
    assert_int_equal(in->when, 1000);
    assert_true(in->on);
    assert_int_equal(in->colour, 1);
    assert_int_equal(in->tags.n, 4);
    for (size_t i = 0; i < in->tags.n; i++) {
        assert_int_equal(in->tags.v[i].n, 1);
        assert_int_equal(in->tags.v[i].p[0], 'a' + (int)i);
    }
    assert_int_equal(in->env.n, 2);
    assert_string_equal(in->env.v[0].key.p, "K");
    assert_string_equal(in->env.v[0].value.p, "v=1");
    assert_string_equal(in->env.v[1].value.p, "");
    assert_int_equal(in->since.seq, 12);
    in = query_ok(*state, "since=1970-01-01T01:00:03+01:00");
    assert_int_equal(in->since.time_ms, 3000);
    in = query_ok(*state, "since=1970-01-01T00:00:02%2B00:00&on=no");
    assert_int_equal(in->since.time_ms, 2000);
    assert_int_equal(in->since.seq, OP_ABSENT);
    assert_false(in->on);
}

static void each_type_is_read_from_a_body(void **state)
{
    struct all_in *in =
        body_ok(*state, "{\"name\": \"ab\", \"number\": 1, \"wait_ms\": 1000, \"bytes\": \"1m\","
                        "\"when\": \"1970-01-01T00:00:01Z\", \"on\": true, \"colour\": \"red\","
                        "\"tags\": [\"a,b\", \"\"], \"env\": {\"K\": \"v\"}, \"any\": [1, null],"
                        "\"since\": 5, \"hex\": null}");

    assert_true(str_eq_c(in->name, "ab"));
    assert_int_equal(in->number, 1);
    assert_int_equal(in->wait_ms, 1000);
    assert_int_equal(in->bytes, 1 << 20);
    assert_int_equal(in->when, 1000);
    assert_true(in->on);
    assert_int_equal(in->colour, 0);
    assert_int_equal(in->tags.n, 2);
    assert_string_equal(in->tags.v[0].p, "a,b");
    assert_int_equal(in->env.n, 1);
    assert_int_equal(json_array_size(in->any), 2);
    assert_int_equal(in->since.seq, 5);
    assert_null(in->hex.p);
    in = body_ok(*state, "{\"wait_ms\": \"2s\", \"since\": \"1970-01-01T00:00:02Z\"}");
    assert_int_equal(in->wait_ms, 2000);
    assert_int_equal(in->since.time_ms, 2000);
}

static void a_wrong_value_in_a_query_is_named_with_what_is_allowed(void **state)
{
    query_bad(*state, "number=5000", "field 'number' is 5000; it must be from 1 to 1000");
    query_bad(*state, "number=x",
              "field 'number' is \"x\"; it must be a whole number from 1 to 1000");
    query_bad(*state, "number=99999999999999999999",
              "field 'number' is \"99999999999999999999\"; it must be a whole number from 1 to "
              "1000");
    query_bad(*state, "name=a", "field 'name' has 1 characters; it must have from 2 to 5");
    query_bad(*state, "hex=%22", "field 'hex' is \"\\\"\"; it must be 64 hex digits, lower case");
    query_bad(*state, "hex=00", "field 'hex' is \"00\"; it must be 64 hex digits, lower case");
    query_bad(*state, "wait_ms=10ms",
              "field 'wait_ms' is \"10ms\"; it must be a duration like '30s', '15m' or a number of "
              "milliseconds, from 1s to 1h");
    query_bad(*state, "bytes=2m",
              "field 'bytes' is \"2m\"; it must be a size like '64k', '16m' or a number of bytes, "
              "from 1 to 1m");
    query_bad(*state, "when=now",
              "field 'when' is \"now\"; it must be a time like '2026-01-02T03:04:05Z'");
    query_bad(*state, "on=maybe", "field 'on' is \"maybe\"; it must be true or false");
    query_bad(*state, "colour=blue", "field 'colour' is \"blue\"; it must be one of red, green");
    query_bad(*state, "tags=", "field 'tags' has 0 entries; it must have from 1 to 5");
    query_bad(*state, "tags=1,2,3,4,5,6",
              "field 'tags' has 6 entries or more; it must have from 1 to 5");
    query_bad(*state, "env=a",
              "field 'env' is \"a\"; it must be an object whose values are strings of at most 2 "
              "entries");
    query_bad(*state, "env=a=1,b=2,c=3",
              "field 'env' has 3 entries or more; it must have at most 2");
    query_bad(*state, "any=1", "field 'any' is \"1\"; it must be a JSON value in the body");
    query_bad(*state, "since=-1",
              "field 'since' is \"-1\"; it must be a sequence number or a time like "
              "'2026-01-02T03:04:05Z'");
    query_bad(*state, "code=secret",
              "field 'code' is not in the right format; it must be digits only, at most 4 "
              "characters");
}

static void a_broken_query_is_refused(void **state)
{
    query_bad(*state, "number=1&number=2", "field 'number' is given twice in the query");
    query_bad(*state, "name=%zz", "the query has a bad %-escape in 'name=%zz'");
    query_bad(*state, "name=ab%00",
              "field 'name' is not UTF-8 text, or holds a NUL byte; it must be text of 2 to 5 "
              "characters");
    query_bad(*state, "name=%ff%fe",
              "field 'name' is not UTF-8 text, or holds a NUL byte; it must be text of 2 to 5 "
              "characters");
    query_bad(*state, "colour=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa%C3%A9bbbbb",
              "field 'colour' is \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…\"; it must be "
              "one of red, green");
}

static void a_wrong_value_in_a_body_is_named_with_what_is_allowed(void **state)
{
    body_bad(*state, "[1]", "the body is a list; it must be a JSON object");
    body_bad(*state, "1", "the body is a single value; it must be a JSON object");
    body_bad(*state, "{\"number\": \"5\"}",
             "field 'number' is \"5\"; it must be a whole number from 1 to 1000");
    body_bad(*state, "{\"number\": 5.5}",
             "field 'number' is 5.5; it must be a whole number from 1 to 1000");
    body_bad(*state, "{\"number\": 0}", "field 'number' is 0; it must be from 1 to 1000");
    body_bad(*state, "{\"wait_ms\": 5}",
             "field 'wait_ms' is 5; it must be a duration like '30s', '15m' or a number of "
             "milliseconds, from 1s to 1h");
    body_bad(*state, "{\"when\": 5}",
             "field 'when' is 5; it must be a time like '2026-01-02T03:04:05Z'");
    body_bad(*state, "{\"name\": true}",
             "field 'name' is true; it must be text of 2 to 5 characters");
    body_bad(*state, "{\"on\": \"true\"}", "field 'on' is \"true\"; it must be true or false");
    body_bad(*state, "{\"colour\": {}}",
             "field 'colour' is an object; it must be one of red, green");
    body_bad(*state, "{\"tags\": \"a\"}",
             "field 'tags' is \"a\"; it must be a list of strings of 1 to 5 entries");
    body_bad(
        *state, "{\"tags\": [1]}",
        "field 'tags' is a list with values other than strings; it must be a list of strings of 1 "
        "to 5 entries");
    body_bad(*state, "{\"tags\": []}", "field 'tags' has 0 entries; it must have from 1 to 5");
    body_bad(*state, "{\"env\": {\"a\": 1}}",
             "field 'env' is an object with values other than strings; it must be an object whose "
             "values are strings of at most 2 entries");
    body_bad(*state, "{\"since\": -1}",
             "field 'since' is -1; it must be a sequence number or a time like "
             "'2026-01-02T03:04:05Z'");
}

static void an_unknown_field_is_refused_by_name(void **state)
{
    struct fixture *f = *state;

    query_bad(f, "nmae=x", "all.get has no field 'nmae'");
    assert_string_equal(f->e.hint, "did you mean 'name'?");
    query_bad(f, "banana%0a=x", "all.get has no field 'banana\\n'");
    assert_int_equal(strncmp(f->e.hint, "it knows: name, hex, number", 27), 0);
    query_bad(f, "id=y", "field 'id' belongs in the path, not in the query");
    body_bad(f, "{\"q\": \"x\"}", "field 'q' belongs in the query, not in the body");
    body_bad(f, "{\"colours\": 1}", "all.set has no field 'colours'");
    assert_string_equal(f->e.hint, "did you mean 'colour'?");
}

static void the_hint_of_a_large_operation_is_whole(void **state)
{
    struct fixture *f = *state;

    body_of_bad(f, &op_sandbox_create, "{\"memory\": 1}", "sandbox.create has no field 'memory'");
    assert_string_equal(f->e.hint, "did you mean 'memory_bytes'?");
    body_of_bad(f, &op_sandbox_create, "{\"banana\": 1}", "sandbox.create has no field 'banana'");
    assert_int_equal(strncmp(f->e.hint, "it knows: name, template, ", 26), 0);
    assert_true(str_ends(str_of(f->e.hint), STR(", …")));
}

static void what_is_required_must_be_there(void **state)
{
    struct fixture *f = *state;
    void *in;

    assert_int_equal(op_decode(&op_token_create, NULL, str_of(NULL), NULL, &f->a, &in, &f->e), -1);
    assert_string_equal(f->e.msg,
                        "field 'name' is required in the body: text of 1 to 100 characters");
    f->body = json_pack("{s:s}", "name", "ci");
    assert_int_equal(op_decode(&op_token_create, NULL, str_of(NULL), f->body, &f->a, &in, &f->e),
                     0);
    assert_string_equal(op_roles[((struct token_create_in *)in)->role], "observer");
    assert_int_equal(op_decode(&op_token_self, NULL, STR("x=1"), NULL, &f->a, &in, &f->e), -1);
    assert_string_equal(f->e.hint, "token.self takes no fields in the query");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_given_says_so),
        TEST(what_is_absent_is_preset_or_said_to_be_absent),
        TEST(each_type_is_read_from_a_query),
        TEST(each_type_is_read_from_a_body),
        TEST(a_wrong_value_in_a_query_is_named_with_what_is_allowed),
        TEST(a_broken_query_is_refused),
        TEST(a_wrong_value_in_a_body_is_named_with_what_is_allowed),
        TEST(an_unknown_field_is_refused_by_name),
        TEST(the_hint_of_a_large_operation_is_whole),
        TEST(what_is_required_must_be_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
