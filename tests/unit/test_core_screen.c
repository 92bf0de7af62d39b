#include "core/session/screen.h"

#include "base/mem.h"
#include "unit.h"

static void feed(struct screen *s, const char *text)
{
    screen_feed(s, str_of(text));
}

static void shows(const struct screen *s, const char *want)
{
    AUTO(buf_done) struct buf b = {0};

    screen_put_text(s, false, &b);
    assert_string_equal(buf_cstr(&b), want);
}

static void shows_ansi(const struct screen *s, const char *want)
{
    AUTO(buf_done) struct buf b = {0};

    screen_put_ansi(s, false, &b);
    assert_string_equal(buf_cstr(&b), want);
}

static struct screen *sized(int rows, int cols)
{
    return screen_new((struct screen_size){rows, cols}, 5);
}

static void text_and_cursor(void **state)
{
    AUTO(screen_free) struct screen *s = sized(3, 10);
    struct screen_view v;

    (void)state;
    feed(s, "one\r\ntwo\033[1;6Hx");
    shows(s, "one  x\ntwo\n\n");
    v = screen_look(s);
    assert_int_equal(v.cursor_row, 0);
    assert_int_equal(v.cursor_col, 6);
    assert_true(v.cursor_visible);
    feed(s, "\033[?25l\033]2;a ti");
    feed(s, "tle\007");
    v = screen_look(s);
    assert_false(v.cursor_visible);
    assert_true(str_eq_c(v.title, "a title"));
    feed(s, "\033]0;caf\xc3\xa9\007");
    v = screen_look(s);
    assert_true(str_eq_c(v.title, "caf\xc3\xa9"));
    feed(s, "\007\007");
    assert_int_equal(screen_look(s).bells, 2);
}

static void pieces_make_no_difference(void **state)
{
    static const char bytes[] =
        "\033[2;2H\033[1;38;2;1;2;3mA\xe4\xbd\xa0\xcc\x81\033[0m b\033[K\033(0q\033(B";
    AUTO(screen_free) struct screen *whole = sized(4, 12), *cut = sized(4, 12);
    AUTO(buf_done) struct buf a = {0}, b = {0};

    (void)state;
    feed(whole, bytes);
    for (size_t k = 0; k < sizeof bytes - 1; k++)
        screen_feed(cut, str_make(bytes + k, 1));
    screen_put_ansi(whole, true, &a);
    screen_put_ansi(cut, true, &b);
    assert_string_equal(buf_cstr(&a), buf_cstr(&b));
}

static void attributes(void **state)
{
    AUTO(screen_free) struct screen *s = sized(1, 20);
    AUTO(buf_done) struct buf json = {0};
    struct jw w = {.to = &json};

    (void)state;
    feed(s, "a\033[1;31mb\033[0;4;48;5;200mc\033[0;7;38;2;1;2;255md\033[m e");
    shows_ansi(s, "a\033[0;1;31mb\033[0;4;48;5;200mc\033[0;7;38;2;1;2;255md\033[0m e\n");
    jw_object(&w);
    screen_put_json(s, 0, &w);
    jw_object_end(&w);
    assert_string_equal(
        buf_cstr(&json),
        "{\"lines\":[{\"row\":0,\"runs\":[{\"text\":\"a\",\"width\":1},{\"text\":\"b\",\"width\":1,"
        "\"fg\":1,\"bold\":true},{\"text\":\"c\",\"width\":1,\"bg\":200,\"underline\":1},"
        "{\"text\":\"d\",\"width\":1,\"fg\":\"#0102ff\",\"reverse\":true},{\"text\":\" "
        "e\",\"width\":2}]}]}");
}

/* Erased with a background colour: the blanks show it. */
static void a_background_reaches_the_end(void **state)
{
    AUTO(screen_free) struct screen *s = sized(1, 4);

    (void)state;
    feed(s, "\033[44m\033[2K");
    shows(s, "\n");
    shows_ansi(s, "\033[0;44m    \033[0m\n");
}

static void wide_and_combining(void **state)
{
    AUTO(screen_free) struct screen *s = sized(2, 6);

    (void)state;
    feed(s, "\xe4\xbd\xa0\xe5\xa5\xbd!\r\ne\xcc\x81\xcc\xa3x");
    shows(s, "\xe4\xbd\xa0\xe5\xa5\xbd!\ne\xcc\x81\xcc\xa3x\n");
    feed(s, "\033[1;2H-"); /* onto the right half of the first, then the left half of the second */
    shows(s, " -\xe5\xa5\xbd!\ne\xcc\x81\xcc\xa3x\n");
    feed(s, "\033[1;3H+");
    shows(s, " -+ !\ne\xcc\x81\xcc\xa3x\n");
    feed(s, "\033[1;1H\xe4\xbd\xa0\033[1;2H\033[K");
    shows(s, "\ne\xcc\x81\xcc\xa3x\n");
}

/* More combinations than fit at once over time: those on the screen stay right. */
static void combinations_are_collected(void **state)
{
    AUTO(screen_free) struct screen *s = sized(1, 8);

    (void)state;
    for (int k = 0; k < 20000; k++) {
        char text[32];
        unsigned base = 0x4e00 + (unsigned)k % 0x4000;

        (void)snprintf(text, sizeof text, "\033[Hz\xcc\x81\033[1;4H%c%c%c\xcc\xa3",
                       (int)(0xe0 | base >> 12), (int)(0x80 | (base >> 6 & 0x3f)),
                       (int)(0x80 | (base & 0x3f)));
        feed(s, text);
    }
    feed(s, "\033[1;4H\033[K");
    shows(s, "z\xcc\x81\n");
}

static void lines_scroll_into_the_history(void **state)
{
    AUTO(screen_free) struct screen *s = sized(2, 8);
    AUTO(buf_done) struct buf b = {0};

    (void)state;
    for (int k = 0; k < 9; k++) {
        char text[32];

        (void)snprintf(text, sizeof text, "%s\033[3%dmline %d\033[m", k ? "\r\n" : "", k % 8, k);
        feed(s, text);
    }
    assert_int_equal(screen_look(s).history, 5);
    assert_int_equal(screen_look(s).forgotten, 2);
    screen_put_text(s, true, &b);
    assert_string_equal(buf_cstr(&b), "line 2\nline 3\nline 4\nline 5\nline 6\nline 7\nline 8\n");
    assert_true(str_eq_c(screen_history_line(s, 0), "\033[0;32mline 2\033[0m"));
}

static void the_alternate_screen_comes_and_goes(void **state)
{
    AUTO(screen_free) struct screen *s = sized(2, 8);

    (void)state;
    feed(s, "shell\033[?1049h\033[Hvim\r\n\r\n\r\n");
    shows(s, "\n\n");
    feed(s, "\033[Hvim");
    shows(s, "vim\n\n");
    assert_true(screen_look(s).alternate);
    assert_int_equal(screen_look(s).history, 0);
    feed(s, "\033[?1049l");
    shows(s, "shell\n\n");
    assert_int_equal(screen_look(s).cursor_col, 5);
    assert_false(screen_look(s).alternate);
}

static void sizes(void **state)
{
    AUTO(screen_free) struct screen *s = sized(4, 8);
    AUTO(buf_done) struct buf b = {0};

    (void)state;
    feed(s, "a\r\nb\r\nc\r\nd 45678");
    screen_resize(s, (struct screen_size){2, 4});
    shows(s, "c\nd 45\n");
    assert_int_equal(screen_look(s).cursor_row, 1);
    screen_put_text(s, true, &b);
    assert_string_equal(buf_cstr(&b), "a\nb\nc\nd 45\n");
    screen_resize(s, (struct screen_size){3, 6});
    shows(s, "c\nd 45\n\n");
    feed(s, "\033[Hx\033[3;6Hz");
    shows(s, "x\nd 45\n     z\n");
    screen_resize(s, (struct screen_size){0, 1 << 20});
    assert_int_equal(screen_look(s).size.rows, 1);
    assert_int_equal(screen_look(s).size.cols, SCREEN_SIDE_MAX);
    feed(s, "\033[?1049hfull");
    screen_resize(s, (struct screen_size){5, 10});
    feed(s, "\033[?1049l");
    assert_int_equal(screen_look(s).size.rows, 5);
}

static void only_changed_rows_are_new(void **state)
{
    AUTO(screen_free) struct screen *s = sized(3, 8);
    AUTO(buf_done) struct buf json = {0};
    struct jw w = {.to = &json};
    uint64_t seen;

    (void)state;
    feed(s, "a\r\nb\r\nc");
    seen = screen_look(s).seq;
    feed(s, ""); /* nothing */
    assert_int_equal(screen_look(s).seq, seen);
    feed(s, "\033[2;1HB");
    assert_true(screen_row_seq(s, 1) > seen && screen_row_seq(s, 0) <= seen);
    jw_object(&w);
    screen_put_json(s, seen, &w);
    jw_object_end(&w);
    assert_string_equal(buf_cstr(&json),
                        "{\"lines\":[{\"row\":1,\"runs\":[{\"text\":\"B\",\"width\":1}]}]}");
}

/* A program that draws all of its screen again changes only what differs. */
static void what_is_drawn_again_is_not_new(void **state)
{
    AUTO(screen_free) struct screen *s = screen_new((struct screen_size){3, 10}, 0);
    uint64_t seen;

    (void)state;
    screen_feed(s, STR("\033[Hone\r\ntw\xe4\xb8\xad\r\nthree"));
    seen = screen_look(s).seq;
    screen_feed(s, STR("\033[Hone\r\nTw\xe4\xb8\xad\r\nthree\033[K"));
    assert_true(screen_row_seq(s, 0) <= seen && screen_row_seq(s, 2) <= seen);
    assert_true(screen_row_seq(s, 1) > seen);
    seen = screen_look(s).seq;
    screen_feed(s, STR("\033[1;1Hone\033[2;5H\033[3;6H"));
    assert_true(screen_look(s).seq == seen);
    screen_feed(s, STR("\033[2;4Hx")); /* over half of the wide one: its other half goes too */
    assert_true(screen_row_seq(s, 1) > seen);
    seen = screen_look(s).seq;
    screen_feed(s, STR("\033[3;1H\033[2@")); /* shifts what is there */
    assert_true(screen_row_seq(s, 2) > seen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_and_cursor),
        cmocka_unit_test(pieces_make_no_difference),
        cmocka_unit_test(attributes),
        cmocka_unit_test(a_background_reaches_the_end),
        cmocka_unit_test(wide_and_combining),
        cmocka_unit_test(combinations_are_collected),
        cmocka_unit_test(lines_scroll_into_the_history),
        cmocka_unit_test(the_alternate_screen_comes_and_goes),
        cmocka_unit_test(sizes),
        cmocka_unit_test(only_changed_rows_are_new),
        cmocka_unit_test(what_is_drawn_again_is_not_new),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
