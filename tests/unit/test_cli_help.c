#include "cli/help.h"

#include "unit.h"

#include <locale.h>

static struct arena arena;
static struct cmd_set set;

static void lines_are_short(const struct buf *b)
{
    struct str rest = buf_str(b);

    while (rest.n > 0) {
        struct str line = str_cut(rest, '\n', &rest);

        if (!str_starts(line, STR("  holt "))) /* an example is one line, however long */
            assert_in_range(print_width(line), 0, 100);
    }
}

static void the_overview_names_every_verb_once(void **state)
{
    AUTO(buf_done) struct buf out = {0};

    (void)state;
    help_all(&set, &out, false);
    for (size_t i = 0; i < set.n; i++) {
        AUTO(buf_done) struct buf line = {0};
        const char *at;

        buf_printf(&line, "\n  %s  ", set.v[i].verb);
        at = strstr(buf_cstr(&out), buf_cstr(&line));
        assert_non_null(at);
        assert_null(strstr(at + 1, buf_cstr(&line)));
    }
    assert_null(strchr(buf_cstr(&out), '\033'));
    lines_are_short(&out);
}

static void each_command_has_usage_text_and_an_example(void **state)
{
    (void)state;
    for (size_t i = 0; i < set.n; i++) {
        AUTO(buf_done) struct buf out = {0};
        AUTO(buf_done) struct buf usage = {0};

        help_cmd(&set.v[i], &out, false);
        buf_printf(&usage, "usage: holt %s", set.v[i].verb);
        assert_true(str_starts(buf_str(&out), buf_str(&usage)));
        assert_true(set.v[i].text[0] != '\0');
        assert_non_null(strstr(buf_cstr(&out), "Examples\n  "));
        for (size_t a = 0; a < set.v[i].arg_count; a++)
            assert_non_null(set.v[i].args[a].f->text);
        lines_are_short(&out);
    }
}

static void flags_show_their_friendly_name_and_choices(void **state)
{
    AUTO(buf_done) struct buf out = {0};

    (void)state;
    help_cmd(cmd_set_find(&set, "token create"), &out, true);
    assert_non_null(strstr(buf_cstr(&out), "--ttl TIME"));
    assert_non_null(strstr(buf_cstr(&out), "--role observer|agent|operator|admin"));
    assert_non_null(strstr(buf_cstr(&out), "\033[1mFlags\033[0m"));
    assert_non_null(strstr(buf_cstr(&out), "holt token create ci --ttl 30d"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_overview_names_every_verb_once),
        cmocka_unit_test(each_command_has_usage_text_and_an_example),
        cmocka_unit_test(flags_show_their_friendly_name_and_choices),
    };
    int r;

    (void)setlocale(LC_CTYPE, "C.UTF-8");
    cmd_set_build(op_table, &arena, &set);
    r = cmocka_run_group_tests(tests, NULL, NULL);
    arena_done(&arena);
    return r;
}
