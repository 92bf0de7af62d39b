#include "cli/args.h"

#include "cli/verb_op.h"
#include "proto/json.h"
#include "unit.h"

static const char *const colours[] = {"red", "green", NULL};
static const struct op_field fields[] = {
    {.name = "ttl_ms", .type = OP_DURATION, .text = "."},
    {.name = "id", .type = OP_STR, .required = true, .text = "."},
    {.name = "colour", .type = OP_CHOICE, .choices = colours, .text = "."},
    {.name = "dry_run", .type = OP_BOOL, .text = "."},
    {.name = "memory", .type = OP_SIZE, .text = "."},
    {.name = "count", .type = OP_INT, .text = "."},
    {.name = "tags", .type = OP_LIST, .text = "."},
    {.name = "env", .type = OP_MAP, .text = "."},
    {.name = "spec", .type = OP_JSON, .text = "."},
    {.name = "since", .type = OP_SINCE, .query = true, .text = "."},
    {.name = "note", .type = OP_STR, .positional = true, .text = "."},
};
static const struct op op_make = {.name = "thing.make",
                                  .group = "thing",
                                  .text = "Make it.",
                                  .method = "POST",
                                  .path = "/things/{id}/x",
                                  .verb = "thing make",
                                  .in = fields,
                                  .in_count = ARRAY_LEN(fields)};
static const struct op op_get = {.name = "thing.get",
                                 .group = "thing",
                                 .text = "Get it.",
                                 .method = "GET",
                                 .path = "/things/{id}",
                                 .verb = "thing get",
                                 .in = fields,
                                 .in_count = ARRAY_LEN(fields)};
static const struct op *const ops[] = {&op_make, &op_get, NULL};

struct fixture {
    struct arena arena;
    struct cmd_set set;
    json_t *globals, *args;
    struct err e;
};

static int parse(struct fixture *f, const char *verb, const char *const *words)
{
    size_t n = 0;

    while (words[n])
        n++;
    json_decref(f->args);
    f->args = NULL;
    json_object_clear(f->globals);
    f->e = (struct err){0};
    return args_parse(cmd_set_find(&f->set, verb), (char *const *)(uintptr_t)words, n, f->globals,
                      &f->args, &f->e);
}
#define PARSE(f, ...) parse(f, "thing make", (const char *const[]){__VA_ARGS__, NULL})

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    cmd_set_build(ops, &f->arena, &f->set);
    f->globals = json_object();
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    json_decref(f->globals);
    json_decref(f->args);
    arena_done(&f->arena);
    free(f);
    return 0;
}

static void flags_become_typed_values(void **state)
{
    struct fixture *f = *state;
    AUTO(json_decref)
    json_t *want = json_pack("{s:s,s:i,s:s,s:b,s:i,s:i,s:[s,s,s],s:{s:s,s:s},s:[i],s:s,s:s}", "id",
                             "a b", "ttl_ms", 900000, "colour", "red", "dry_run", 1, "memory",
                             64 << 20, "count", -3, "tags", "x", "y", "z", "env", "A", "1=2", "B",
                             "", "spec", 1, "since", "7", "note", "n");

    assert_non_null(want);
    assert_int_equal(PARSE(f, "a b", "--ttl", "15m", "--colour=red", "--dry-run", "--memory", "64m",
                           "--count", "-3", "--tags", "x,y", "--tags", "z", "--env", "A=1=2",
                           "--env", "B=", "--spec", "[1]", "--since", "7", "n"),
                     0);
    assert_true(json_equal(f->args, want));
}

static void a_duration_has_two_names(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(PARSE(f, "x", "--ttl-ms", "1500"), 0);
    assert_int_equal(args_int(f->args, "ttl_ms", 0), 1500);
    assert_int_equal(PARSE(f, "x", "--ttl=2h"), 0);
    assert_int_equal(args_int(f->args, "ttl_ms", 0), 7200000);
    assert_int_equal(PARSE(f, "x", "--ttl", "soon"), -1);
    assert_non_null(strstr(f->e.msg, "--ttl: 'soon' is not a duration"));
}

static void bools_can_be_switched_off(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(PARSE(f, "x", "--no-dry-run"), 0);
    assert_true(json_is_false(json_object_get(f->args, "dry_run")));
    assert_int_equal(PARSE(f, "x", "--dry-run=false"), 0);
    assert_true(json_is_false(json_object_get(f->args, "dry_run")));
    assert_int_equal(PARSE(f, "x", "--dry-run=perhaps"), -1);
}

static void mistakes_are_named(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(PARSE(f, "x", "--colur", "red"), -1);
    assert_non_null(strstr(f->e.msg, "unknown flag '--colur'"));
    assert_string_equal(f->e.hint, "did you mean --colour?");
    assert_int_equal(PARSE(f, "x", "--ttl-seconds", "1"), -1);
    assert_string_equal(f->e.hint, "did you mean --ttl?");
    assert_int_equal(PARSE(f, "x", "--dryrun"), -1);
    assert_string_equal(f->e.hint, "did you mean --dry-run?");
    assert_int_equal(PARSE(f, "x", "--colour", "blue"), -1);
    assert_string_equal(f->e.msg, "--colour: 'blue' is not one of: red, green");
    assert_int_equal(PARSE(f, "x", "--count"), -1);
    assert_string_equal(f->e.msg, "--count needs a value");
    assert_int_equal(PARSE(f, "x", "n", "m"), -1);
    assert_non_null(strstr(f->e.msg, "'m' is one argument too many"));
    assert_int_equal(PARSE(f, "--dry-run"), -1);
    assert_string_equal(f->e.msg, "missing argument: ID");
    assert_int_equal(PARSE(f, "x", "--env", "A"), -1);
    assert_non_null(strstr(f->e.msg, "KEY=VALUE"));
    assert_int_equal(PARSE(f, "x", "--spec", "{"), -1);
    assert_int_equal(PARSE(f, "\xff"), -1);
    assert_int_equal(err_table[f->e.code].exit, 1);
}

static void globals_stand_anywhere_and_help_wants_nothing_more(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(PARSE(f, "-o", "json", "x", "--server=http://h"), 0);
    assert_string_equal(args_str(f->globals, "output"), "json");
    assert_string_equal(args_str(f->globals, "server"), "http://h");
    assert_null(json_object_get(f->args, "output"));
    assert_int_equal(PARSE(f, "--help"), 0);
    assert_true(args_bool(f->globals, "help"));
    assert_int_equal(PARSE(f, "x", "-o", "xml"), -1);
}

static void behind_two_hyphens_nothing_is_a_flag(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(PARSE(f, "--", "--colour", "-x"), 0);
    assert_string_equal(args_str(f->args, "id"), "--colour");
    assert_string_equal(args_str(f->args, "note"), "-x");
}

static void the_request_has_each_value_in_its_place(void **state)
{
    struct fixture *f = *state;
    AUTO(buf_done) struct buf target = {0};
    AUTO(buf_done) struct buf body = {0};

    assert_int_equal(PARSE(f, "a/b ?", "--since", "1+1", "--colour", "red", "--count", "4"), 0);
    op_target(&op_make, f->args, &target);
    op_body(&op_make, f->args, &body);
    assert_string_equal(buf_cstr(&target), "/things/a%2Fb%20%3F/x?since=1%2B1");
    assert_string_equal(buf_cstr(&body), "{\"colour\":\"red\",\"count\":4}");
    buf_clear(&target);
    buf_clear(&body);
    assert_int_equal(
        parse(f, "thing get", (const char *const[]){"i", "--tags", "x,y", "--dry-run", NULL}), 0);
    op_target(&op_get, f->args, &target);
    op_body(&op_get, f->args, &body);
    assert_string_equal(buf_cstr(&target), "/things/i?dry_run=true&tags=x&tags=y");
    assert_int_equal(buf_len(&body), 0);
}

static void verbs_are_found_by_their_longest_run_of_words(void **state)
{
    struct fixture *f = *state;
    static const char *const words[] = {"thing", "get", "make"};
    size_t used = 0;

    assert_string_equal(cmd_set_match(&f->set, (char *const *)(uintptr_t)words, 3, &used)->verb,
                        "thing get");
    assert_int_equal(used, 2);
    assert_null(cmd_set_match(&f->set, (char *const *)(uintptr_t)words, 1, &used));
    assert_true(cmd_set_has_prefix(&f->set, "thing"));
    assert_false(cmd_set_has_prefix(&f->set, "thin"));
    assert_string_equal(cmd_set_nearest(&f->set, "thing mak"), "thing make");
    assert_string_equal(cmd_set_nearest(&f->set, "docter"), "doctor");
    assert_null(cmd_set_nearest(&f->set, "frobnicate"));
}

static int parse_real(struct fixture *f, const char *verb, const char *const *words)
{
    cmd_set_build(op_table, &f->arena, &f->set);
    return parse(f, verb, words);
}
#define PARSE_REAL(f, verb, ...) parse_real(f, verb, (const char *const[]){__VA_ARGS__, NULL})

static void letters_share_a_word(void **state)
{
    struct fixture *f = *state;
    const char *const run[] = {"-im64m", "-tw", "/x", "--cpus=1.5", "-v",
                               "a,b:/c", "--",  "ls", NULL};
    const char *const wrong[] = {"-iz", "ls", NULL}, *const one[] = {"-name", "x", "ls", NULL};
    AUTO(arena_done) struct arena a = {0};
    struct cmd_set set = f->set;

    cmd_set_build(op_table, &a, &f->set);
    assert_int_equal(parse(f, "run", run), 0);
    assert_int_equal(args_int(f->args, "memory_bytes", 0), 64 << 20);
    assert_int_equal(args_int(f->args, "cpu_millis", 0), 1500);
    assert_true(args_bool(f->args, "interactive") && args_bool(f->args, "tty"));
    assert_string_equal(args_str(f->args, "cwd"), "/x");
    assert_int_equal(json_array_size(json_object_get(f->args, "volume")), 1);
    assert_true(parse(f, "run", wrong) < 0);
    assert_string_equal(f->e.msg, "unknown flag '-z' of holt run");
    assert_true(parse(f, "run", one) < 0);
    assert_string_equal(f->e.hint, "did you mean --name?");
    f->set = set;
}

static void a_command_is_taken_as_it_is(void **state)
{
    struct fixture *f = *state;
    AUTO(json_decref)
    json_t *want = json_pack("[s,s,s,s]", "sh", "-c", "a,b", "--");

    assert_int_equal(PARSE_REAL(f, "run", "-t", "sh", "-c", "a,b", "--"), 0);
    assert_true(json_equal(json_object_get(f->args, "command"), want));
    assert_true(args_bool(f->args, "tty"));
    assert_int_equal(PARSE_REAL(f, "exec", "box", "--", "sh", "-c", "a,b", "--"), 0);
    assert_true(json_equal(json_object_get(f->args, "command"), want));
    assert_string_equal(args_str(f->args, "id"), "box");
    assert_int_equal(PARSE_REAL(f, "run", "-t"), 0); /* the image may name one */
    assert_null(json_object_get(f->args, "command"));
    assert_int_equal(PARSE_REAL(f, "run", "x\xff"), -1);
    assert_int_equal(PARSE_REAL(f, "run", "--pty", "true", "x"), -1); /* -t fills that in */
}

static void units_may_be_left_out(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(PARSE_REAL(f, "run", "--memory", "64m", "--cpu", "0.25", "x"), 0);
    assert_int_equal(args_int(f->args, "memory_bytes", 0), 64 << 20);
    assert_int_equal(args_int(f->args, "cpu_millis", 0), 250);
    assert_int_equal(PARSE_REAL(f, "run", "--memory-bytes=1024", "--cpu-millis=250", "x"), 0);
    assert_int_equal(args_int(f->args, "memory_bytes", 0), 1024);
    assert_int_equal(args_int(f->args, "cpu_millis", 0), 250);
    assert_int_equal(PARSE_REAL(f, "run", "--cpu", "many", "x"), -1);
    assert_int_equal(PARSE_REAL(f, "run", "--output", "json", "x"), 0); /* not output_bytes */
    assert_string_equal(args_str(f->globals, "output"), "json");
}

static void every_verb_has_its_operation_and_words(void **state)
{
    struct fixture *f = *state;

    cmd_set_build(op_table, &f->arena, &f->set);
    for (size_t i = 0; i < f->set.n; i++) {
        const struct cmd *c = &f->set.v[i];

        assert_true(c->text[0] && c->group[0]);
        assert_true(!c->special || !c->special->op || c->op);
        for (size_t k = 0; k < c->arg_count; k++)
            assert_non_null(c->args[k].f->text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(flags_become_typed_values, setup, teardown),
        cmocka_unit_test_setup_teardown(a_duration_has_two_names, setup, teardown),
        cmocka_unit_test_setup_teardown(bools_can_be_switched_off, setup, teardown),
        cmocka_unit_test_setup_teardown(mistakes_are_named, setup, teardown),
        cmocka_unit_test_setup_teardown(globals_stand_anywhere_and_help_wants_nothing_more, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(behind_two_hyphens_nothing_is_a_flag, setup, teardown),
        cmocka_unit_test_setup_teardown(the_request_has_each_value_in_its_place, setup, teardown),
        cmocka_unit_test_setup_teardown(letters_share_a_word, setup, teardown),
        cmocka_unit_test_setup_teardown(a_command_is_taken_as_it_is, setup, teardown),
        cmocka_unit_test_setup_teardown(units_may_be_left_out, setup, teardown),
        cmocka_unit_test_setup_teardown(every_verb_has_its_operation_and_words, setup, teardown),
        cmocka_unit_test_setup_teardown(verbs_are_found_by_their_longest_run_of_words, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
