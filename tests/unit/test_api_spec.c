#include "api/share/sandbox.h"

#include "core/sandbox/volume.h"

#include "unit.h"

#include <signal.h>

static struct arena arena;

static json_t *json(const char *text)
{
    json_t *v = json_loads(text, JSON_DECODE_ANY, NULL);

    assert_non_null(v);
    return v;
}

/* --- mounts --- */

static int read_mounts(const char *text, struct sandbox_spec *ret, struct err *e)
{
    static char shared[] = "/srv/shared", data[] = "/data:ro";
    char *allowed[] = {shared, data};
    const struct config conf = {.host_mounts = {allowed, ARRAY_LEN(allowed)}};
    struct api api = {.c.conf = &conf};
    const struct request r = {.api = &api};
    AUTO(json_decref) json_t *mounts = json(text);
    struct sandbox_fields f = {.traits.limits.memory_bytes = OP_ABSENT, .mounts = mounts};

    *e = (struct err){0};
    return spec_read_sandbox(&r, &f, &arena, ret, e);
}

static void host_mounts_stay_below_what_is_allowed(void **state)
{
    static const struct {
        const char *source;
        bool readonly, fine;
    } cases[] = {
        {"/srv/shared", false, true},      {"/srv/shared/a", false, true},
        {"/srv/sharedx", false, false},    {"/srv", true, false},
        {"/data/x", true, true},           {"/data/x", false, false},
        {"/srv/shared/../x", true, false}, {"/srv/shared//x", true, false},
        {"srv/shared", true, false},       {"/", true, false},
    };
    struct sandbox_spec spec;
    struct err e;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[200];
        int r;

        (void)snprintf(
            text, sizeof text,
            "[{\"kind\": \"host\", \"source\": \"%s\", \"target\": \"/m\", \"readonly\": %s}]",
            cases[i].source, cases[i].readonly ? "true" : "false");
        r = read_mounts(text, &spec, &e);
        if ((r == 0) != cases[i].fine)
            fail_msg("%s %d: %s", cases[i].source, cases[i].readonly, e.msg);
    }
}

static void mounts_are_checked_one_by_one(void **state)
{
    static const char *const wrong[] = {
        "{}",
        "[1]",
        "[{\"kind\": \"tmpfs\", \"target\": \"/\"}]",
        "[{\"kind\": \"tmpfs\", \"target\": \"/a/./b\"}]",
        "[{\"kind\": \"tmpfs\", \"target\": \"/a\", \"source\": \"x\"}]",
        "[{\"kind\": \"volume\", \"source\": \"v\", \"target\": \"/a\"}]",
        "[{\"kind\": \"tmpfs\", \"target\": \"/a\", \"size_bytes\": 0}]",
        "[{\"kind\": \"tmpfs\", \"target\": \"/a\", \"readonly\": 1}]",
        "[{\"kind\": \"tmpfs\", \"target\": 7}]",
        "[{\"kind\": \"tmpfs\", \"target\": \"/a\", \"more\": 1}]",
    };
    struct sandbox_spec spec;
    struct err e;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        if (read_mounts(wrong[i], &spec, &e) == 0)
            fail_msg("%s passed", wrong[i]);
        assert_non_null(strstr(e.msg, "mounts"));
    }
    assert_int_equal(
        read_mounts("[{\"kind\": \"tmpfs\", \"target\": \"/a\", \"size_bytes\": 4096}]", &spec, &e),
        0);
    assert_int_equal(spec.mount_count, 1);
    assert_int_equal(spec.mounts[0].size_bytes, 4096);
    assert_int_equal(spec.traits.limits.memory_bytes, 0);
}

static int read_volumes(const char *text, struct sandbox_spec *ret, struct err *e)
{
    struct config conf = {0};
    struct api api = {.c.conf = &conf};
    const struct request r = {.api = &api};
    AUTO(json_decref) json_t *volumes = json(text);
    struct sandbox_fields f = {.traits.limits.memory_bytes = OP_ABSENT, .volumes = volumes};

    *e = (struct err){0};
    return spec_read_sandbox(&r, &f, &arena, ret, e);
}

static void volumes_are_checked_one_by_one(void **state)
{
    static const char *const wrong[] = {
        "{}",
        "[1]",
        "[{\"name\": \"v\"}]",
        "[{\"path\": \"/a\"}]",
        "[{\"name\": \"v\", \"path\": \"a\"}]",
        "[{\"name\": \"v\", \"path\": \"/\"}]",
        "[{\"name\": \"v\", \"path\": \"/a/../b\"}]",
        "[{\"name\": 1, \"path\": \"/a\"}]",
        "[{\"name\": \"v\", \"path\": \"/a\", \"read_only\": 1}]",
        "[{\"name\": \"v\", \"path\": \"/a\", \"more\": 1}]",
    };
    struct sandbox_spec spec;
    struct err e;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        if (read_volumes(wrong[i], &spec, &e) == 0)
            fail_msg("%s passed", wrong[i]);
        assert_non_null(strstr(e.msg, "volumes"));
    }
    assert_int_equal(
        read_volumes("[{\"name\": \"v\", \"path\": \"/a\", \"read_only\": true}]", &spec, &e), 0);
    assert_int_equal(spec.volume_count, 1);
    assert_true(spec.volumes[0].readonly);
}

/* --- commands --- */

static int read_exec(const char *command, const char *pty, struct exec_spec *ret, struct err *e)
{
    AUTO(json_decref) json_t *c = json(command);
    AUTO(json_decref) json_t *p = json(pty);
    struct exec_fields f = {
        .command = c, .pty = p, .timeout_ms = OP_ABSENT, .output_bytes = OP_ABSENT, .on_full = -1};
    struct exec_input input;

    *e = (struct err){0};
    return spec_read_exec(&f, &arena, ret, &input, e);
}

static void a_command_is_a_list_or_a_shell_line(void **state)
{
    static const char *const wrong[] = {"[]", "[1]", "[\"\"]", "\"\"", "{}", "true", "null"};
    struct exec_spec spec;
    struct err e;

    (void)state;
    assert_int_equal(read_exec("[\"a\", \"\"]", "false", &spec, &e), 0);
    assert_int_equal(spec.argc, 2);
    assert_false(spec.pty || spec.shell.p || spec.want_stdin || spec.timeout_ms);
    assert_int_equal(read_exec("\"a | b\"", "true", &spec, &e), 0);
    assert_true(spec.shell.n == 5 && spec.argc == 0);
    assert_true(spec.pty && spec.rows == 24 && spec.cols == 80);
    assert_int_equal(read_exec("\"a\"", "{\"rows\": 1, \"cols\": 4096}", &spec, &e), 0);
    assert_true(spec.rows == 1 && spec.cols == 4096);
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        if (read_exec(wrong[i], "false", &spec, &e) == 0)
            fail_msg("%s passed", wrong[i]);
        assert_non_null(strstr(e.msg, "'command'"));
    }
    assert_int_equal(read_exec("\"a\"", "{\"rows\": 0}", &spec, &e), -1);
    assert_int_equal(read_exec("\"a\"", "{\"cols\": 4097}", &spec, &e), -1);
    assert_int_equal(read_exec("\"a\"", "1", &spec, &e), -1);
}

static void input_comes_in_one_form(void **state)
{
    AUTO(json_decref) json_t *c = json("\"a\"");
    struct exec_fields f = {.command = c, .stdin_base64 = STR("YQBi")};
    struct exec_input input;
    struct exec_spec spec;
    struct err e = {0};

    (void)state;
    assert_int_equal(spec_read_exec(&f, &arena, &spec, &input, &e), 0);
    assert_true(input.eof && spec.want_stdin && str_eq(input.bytes, STR("a\0b")));
    f.stdin_open = true;
    assert_int_equal(spec_read_exec(&f, &arena, &spec, &input, &e), 0);
    assert_false(input.eof);
    f.stdin_text = STR("");
    assert_int_equal(spec_read_exec(&f, &arena, &spec, &input, &e), -1);
    f.stdin_base64 = (struct str){0};
    f.stdin_open = false;
    assert_int_equal(spec_read_exec(&f, &arena, &spec, &input, &e), 0);
    assert_true(input.eof && input.bytes.n == 0);
}

/* --- signals, labels --- */

static void signals_have_names_and_numbers(void **state)
{
    static const struct {
        const char *text;
        int want;
    } cases[] = {{"TERM", SIGTERM}, {"SIGINT", SIGINT}, {"kill", SIGKILL}, {"1", 1},
                 {"0", 0},          {"-1", 0},          {"65", 0},         {"SIG", 0},
                 {"", 0},           {"TERMX", 0},       {"9999999999", 0}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e = {0};
        int got = 0;
        int r = signal_parse(str_of(cases[i].text), &got, &e);

        if ((r == 0) != (cases[i].want != 0) || got != cases[i].want)
            fail_msg("'%s' became %d", cases[i].text, got);
    }
}

static void labels_are_texts(void **state)
{
    AUTO(json_decref) json_t *fine = json("{\"a\": \"1\", \"b\": \"\"}");
    AUTO(json_decref) json_t *wrong = json("{\"a\": 1}");
    struct sandbox_change c = {0};
    struct err e = {0};

    (void)state;
    assert_int_equal(spec_read_labels(NULL, &arena, &c, &e), 0);
    assert_false(c.set_labels);
    assert_int_equal(spec_read_labels(fine, &arena, &c, &e), 0);
    assert_true(c.set_labels && c.label_count == 2);
    assert_int_equal(spec_read_labels(wrong, &arena, &c, &e), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_mounts_stay_below_what_is_allowed),
        cmocka_unit_test(mounts_are_checked_one_by_one),
        cmocka_unit_test(volumes_are_checked_one_by_one),
        cmocka_unit_test(a_command_is_a_list_or_a_shell_line),
        cmocka_unit_test(input_comes_in_one_form),
        cmocka_unit_test(signals_have_names_and_numbers),
        cmocka_unit_test(labels_are_texts),
    };
    int r = cmocka_run_group_tests(tests, NULL, NULL);

    arena_done(&arena);
    return r;
}
