#include "cli/modes.h"

#include "unit.h"

/* Whole, and byte by byte: the same. */
static void undone_is(const char *output, const char *want)
{
    struct modes whole = {0}, parts = {0};
    AUTO(buf_done) struct buf a = {0}, b = {0};

    modes_feed(&whole, str_of(output));
    for (const char *p = output; *p; p++)
        modes_feed(&parts, str_make(p, 1));
    modes_undo(&whole, &a);
    modes_undo(&parts, &b);
    assert_string_equal(buf_cstr(&a), want);
    assert_string_equal(buf_cstr(&b), want);
}

static void what_was_switched_on_is_switched_off(void **state)
{
    static const struct {
        const char *output, *undone;
    } all[] = {
        {"plain text\r\n", ""},
        {"\033[?1049h", "\033[?1049l"},
        {"\033[?25l", "\033[?25h"},
        {"\033[?1000;1006h\033[?2004h", "\033[?1000l\033[?1006l\033[?2004l"},
        {"\033[?1h\033=", "\033[?1l\033>"},
        {"\033[2;20r", "\0337\033[r\0338"},
        {"\033[1;31mred", "\033[m"},
        {"\033[4 q\033(0", "\033(B\033[0 q"},
        {"\033[>1u\033[>1u\033[>4;2m", "\033[<2u\033[>4m"},
        {"\033[?7l", "\033[?7h"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        undone_is(all[i].output, all[i].undone);
}

static void what_the_program_undid_is_left_alone(void **state)
{
    (void)state;
    undone_is("\033[?1049h\033[?25l\033[1mx\033[m\033[2;9r\033[r\033[?25h\033[?1049l", "");
    undone_is("\033[?2004h\033[?2004l\033=\033>\033(0\033(B\033[>1u\033[<u", "");
    undone_is("\033[?1049h\033[?1000h\033c", "");
    undone_is("\033[31m\033[0m", "");
    undone_is("\033]0;\033[?25l is a title\a", "\033[?25h"); /* an escape cuts the string short */
    undone_is("\033]0;a title with [?25l in it\033\\", "");
    undone_is("\033[?4711h\033[99999999999999999999h", "");
}

static void a_sequence_that_was_cut_is_ended(void **state)
{
    (void)state;
    undone_is("\033]0;half a title", "\033\\");
    undone_is("\033[?25", "\033\\");
    undone_is("\033[?25l\033P", "\033\\\033[?25h");
}

static void many_parameters_harm_nothing(void **state)
{
    struct modes m = {0};
    AUTO(buf_done) struct buf out = {0};

    (void)state;
    modes_feed(&m, STR("\033[?"));
    for (int i = 0; i < 1000; i++)
        modes_feed(&m, STR("25;"));
    modes_feed(&m, STR("25l"));
    modes_undo(&m, &out);
    assert_string_equal(buf_cstr(&out), "\033[?25h");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_switched_on_is_switched_off),
        cmocka_unit_test(what_the_program_undid_is_left_alone),
        cmocka_unit_test(a_sequence_that_was_cut_is_ended),
        cmocka_unit_test(many_parameters_harm_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
