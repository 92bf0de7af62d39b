/* Tests of tasks without a daemon: manifests, progress, schedules. */
#include "core/task/cron.h"
#include "core/task/manifest.h"
#include "core/task/progress.h"

#include "base/clock.h"
#include "unit.h"

/* --- manifests --- */

static int read_text(const char *yaml, bool strict, struct arena *a, struct manifest *ret,
                     struct err *e)
{
    AUTO(json_decref) json_t *o = NULL;

    return manifest_parse(str_of(yaml), &o, e) < 0 ? -1 : manifest_read(o, strict, a, ret, e);
}

static const char least[] = "metadata: {name: x}\n"
                            "repository: {url: 'https://u@git.test:8443/a.git', branch: main}\n"
                            "claude: {prompt: do it}\n";

static void a_manifest_has_defaults(void **state)
{
    AUTO(arena_done) struct arena a = {0};
    struct manifest m;
    struct err e = {0};

    (void)state;
    assert_int_equal(read_text(least, true, &a, &m, &e), 0);
    assert_true(m.headless && m.skip_permissions && !m.preserve);
    assert_int_equal(m.timeout_ms, 24LL * 3600 * 1000);
    assert_string_equal(m.provider.p, "claude");
    assert_string_equal(manifest_clone_policy(&m, &a).p,
                        "{\"mode\":\"allowlist\",\"allow\":[\"git.test:8443\"]}");
    assert_string_equal(manifest_policy(&m, &a).p,
                        "{\"mode\":\"allowlist\",\"allow\":[\"api.anthropic.com:443\"]}");
}

static void refuse(const char *yaml, bool strict, const char *words)
{
    AUTO(arena_done) struct arena a = {0};
    struct manifest m;
    struct err e = {0};

    assert_true(read_text(yaml, strict, &a, &m, &e) < 0);
    if (!strstr(e.msg, words))
        fail_msg("'%s' lacks '%s'", e.msg, words);
}

static void wrong_fields_are_named(void **state)
{
    (void)state;
    refuse("[]", true, "must be an object");
    refuse("metadata: {name: x}\nclaude: {prompt: p}\n", true, "'repository.url'");
    refuse("metadata: {name: x}\n", false, "'claude.prompt'");
    refuse("metadata: {name: x}\nagent: {provider: command}\n", false, "'agent.command'");
    refuse("metadata: {name: x}\nagent: {provider: other, prompt: p}\n", false, "'agent.provider'");
    refuse("metadata: {name: x}\nrepository: {url: 'https://a/b', branch: '--upload-pack=x'}\n"
           "claude: {prompt: p}\n",
           true, "'repository.branch'");
    refuse("metadata: {name: x}\nrepository: {url: 'https://a/b', branch: m, subpath: ../x}\n"
           "claude: {prompt: p}\n",
           true, "'repository.subpath'");
    refuse("metadata: {name: x}\nclaude: {prompt: p}\nagent: {prompt: p}\n", false, "'agent'");
    refuse("metadata: {name: x, id: a/b}\nclaude: {prompt: p}\n", false, "'metadata.id'");
    refuse("metadata: {name: x}\nclaude: {prompt: p}\nvm: {cpus: 0}\n", false, "'vm.cpus'");
}

static void a_command_has_variables_and_a_sandbox(void **state)
{
    AUTO(arena_done) struct arena a = {0};
    struct manifest m;
    struct err e = {0};

    (void)state;
    assert_int_equal(read_text("metadata: {name: x}\nagent: {command: c, env: {A_1: b, C: ''}}\n"
                               "sandbox: {id: sb_1}\n",
                               false, &a, &m, &e),
                     0);
    assert_int_equal(m.env_count, 2);
    assert_string_equal(m.env[0].key.p, "A_1");
    assert_string_equal(m.env[0].value.p, "b");
    assert_string_equal(m.box.p, "sb_1");
    refuse("metadata: {name: x}\nagent: {command: c, env: {'1A': b}}\n", false, "'agent.env'");
    refuse("metadata: {name: x}\nagent: {command: c, env: {'A=': b}}\n", false, "'agent.env'");
    refuse("metadata: {name: x}\nagent: {command: c, env: {A: 1}}\n", false, "'agent.env'");
    refuse("metadata: {name: x}\nagent: {command: c, env: {A: \"\\0\"}}\n", false, "");
    refuse("metadata: {name: x}\nagent: {command: c}\nsandbox: {id: x, image: host}\n", false,
           "'sandbox.id'");
}

static void each_provider_has_its_command(void **state)
{
    static const struct {
        const char *provider, *first, *second;
    } rows[] = {
        {"codex", "codex", "exec"}, {"aider", "aider", "--model"}, {"opencode", "opencode", "run"}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(arena_done) struct arena a = {0};
        struct manifest m;
        struct err e = {0};
        struct str *argv;
        size_t n;
        char *text =
            arena_printf(&a, "metadata: {name: x}\nagent: {provider: %s, prompt: '-p', model: m}\n",
                         rows[i].provider);

        assert_int_equal(read_text(text, false, &a, &m, &e), 0);
        manifest_argv(&m, &a, &argv, &n);
        assert_true(str_eq_c(argv[0], rows[i].first));
        assert_true(str_eq_c(argv[1], rows[i].second));
        assert_true(str_eq_c(argv[n - 1], "-p"));
        assert_true(str_eq_c(argv[n - 2], "--") || str_eq_c(argv[n - 2], "--message"));
    }
}

/* --- progress --- */

static void progress_is_read_from_any_pieces(void **state)
{
    static const char text[] =
        "hello\r\n{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"tool_use\","
        "\"name\":\"Bash\\n\"}],"
        "\"usage\":{\"input_tokens\":3,\"output_tokens\":4}}}\r\n{broken\n"
        "{\"type\":\"result\",\"is_error\":true,\"num_turns\":7,\"total_cost_usd\":0.5,"
        "\"usage\":{\"input_tokens\":30,\"output_tokens\":40}}\n";

    (void)state;
    for (size_t step = 1; step < 40; step += 3) {
        struct progress p;
        struct str rest = str_of(text);

        progress_init(&p);
        while (rest.n > 0) {
            size_t n = rest.n < step ? rest.n : step;

            progress_feed(&p, str_make(rest.p, n), 1000);
            rest = str_skip(rest, n);
            if (p.tool_calls == 1 && p.turns == 0)
                assert_string_equal(p.tool, "Bash_");
        }
        assert_int_equal(p.tool_calls, 1);
        assert_int_equal(p.turns, 7);
        assert_int_equal(p.tokens_in, 30);
        assert_int_equal(p.tokens_out, 40);
        assert_true(p.failed && p.cost_usd > 0.49 && p.cost_usd < 0.51);
        assert_string_equal(p.tool, "");
        progress_done(&p);
    }
}

static void a_line_without_an_end_takes_bounded_memory(void **state)
{
    struct progress p;
    char piece[4096];

    (void)state;
    memset(piece, '{', sizeof piece);
    progress_init(&p);
    for (int i = 0; i < 1024; i++)
        progress_feed(&p, str_make(piece, sizeof piece), 1);
    assert_true(buf_len(&p.line) <= PROGRESS_LINE_MAX);
    assert_int_equal(p.output_bytes, 1024 * 4096);
    progress_done(&p);
}

/* --- schedules --- */

static void next_is(const char *cron, const char *after, const char *want)
{
    struct cron c;
    struct err e = {0};
    int64_t from;
    char text[CLOCK_TEXT];

    assert_int_equal(cron_parse(str_of(cron), &c, &e), 0);
    assert_int_equal(clock_parse(str_of(after), &from), 0);
    assert_string_equal(clock_text(cron_next(&c, from), text), want);
}

static void the_next_time_is_found(void **state)
{
    (void)state;
    next_is("* * * * *", "2026-01-02T03:04:05Z", "2026-01-02T03:05:00.000Z");
    next_is("*/15 * * * *", "2026-01-02T03:45:00Z", "2026-01-02T04:00:00.000Z");
    next_is("0 3 * * 1-5", "2026-01-02T03:00:00Z", "2026-01-05T03:00:00.000Z"); /* Friday */
    next_is("0 0 1 * *", "2026-12-31T23:59:59Z", "2027-01-01T00:00:00.000Z");
    next_is("0 0 29 feb *", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00.000Z");
    next_is("0 12 13 * fri", "2026-01-01T00:00:00Z", "2026-01-02T12:00:00.000Z"); /* either */
    next_is("0 0 * * 7", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00.000Z");     /* Sunday */
    next_is("@daily", "2026-01-02T03:04:05Z", "2026-01-03T00:00:00.000Z");
}

static void wrong_schedules_are_refused(void **state)
{
    static const char *const wrong[] = {
        "",          "* * * *",     "60 * * * *",  "* 24 * * *", "* * 0 * *",   "* * * 13 *",
        "* * * * 8", "5-1 * * * *", "*/0 * * * *", "a * * * *",  "* * * * * *", "1,,2 * * * *"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct cron c;
        struct err e = {0};

        if (cron_parse(str_of(wrong[i]), &c, &e) == 0)
            fail_msg("'%s' was taken", wrong[i]);
        assert_true(e.hint[0]);
    }
}

static void a_day_that_never_comes_has_no_time(void **state)
{
    struct cron c;
    struct err e = {0};

    (void)state;
    assert_int_equal(cron_parse(STR("0 0 31 feb *"), &c, &e), 0);
    assert_int_equal(cron_next(&c, 1767225600000), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_manifest_has_defaults),
        cmocka_unit_test(wrong_fields_are_named),
        cmocka_unit_test(a_command_has_variables_and_a_sandbox),
        cmocka_unit_test(each_provider_has_its_command),
        cmocka_unit_test(progress_is_read_from_any_pieces),
        cmocka_unit_test(a_line_without_an_end_takes_bounded_memory),
        cmocka_unit_test(the_next_time_is_found),
        cmocka_unit_test(wrong_schedules_are_refused),
        cmocka_unit_test(a_day_that_never_comes_has_no_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
