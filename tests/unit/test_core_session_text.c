#include "core/session/cast.h"
#include "core/session/keys.h"
#include "core/session/screen.h"
#include "core/session/transcript.h"

#include "unit.h"

static void keys_are_what_xterm_sends(void **state)
{
    static const struct {
        const char *name, *plain, *application;
    } want[] = {
        {"Enter", "\r", "\r"},
        {"Up", "\033[A", "\033OA"},
        {"up", "\033[A", "\033OA"},
        {"F12", "\033[24~", "\033[24~"},
        {"C-c", "\003", "\003"},
        {"C-[", "\033", "\033"},
        {"M-x", "\033x", "\033x"},
        {"M-C-a", "\033\001", "\033\001"},
        {"x", "x", "x"},
        {"é", "é", "é"},
        {"C-?", "\177", "\177"},
    };
    static const char *const bad[] = {"", "Hyper", "C-", "C-é", "M-", "xy", "F13"};
    struct err e = {0};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(want); i++)
        for (int application = 0; application < 2; application++) {
            AUTO(buf_done) struct buf to = {0};

            assert_int_equal(keys_put(str_of(want[i].name), application, &to, &e), 0);
            assert_string_equal(buf_cstr(&to), application ? want[i].application : want[i].plain);
        }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        AUTO(buf_done) struct buf to = {0};

        assert_int_equal(keys_put(str_of(bad[i]), false, &to, &e), -1);
        assert_int_equal(e.code, ERR_INVALID);
    }
}

static void a_cast_joins_characters_and_shortens_pauses(void **state)
{
    AUTO(buf_done) struct buf to = {0};
    struct cast c = {.idle_us = 500000};

    (void)state;
    cast_put_output(&c, 1000000, STR("a\xc3"), &to);
    cast_put_output(&c, 1250000, STR("\xa9\033[m\xff"), &to);
    cast_put_size(&c, 9000000, 30, 100, &to);
    cast_put_output(&c, 9000001, STR("\xe2\x82"), &to);
    cast_put_end(&c, &to);
    cast_done(&c);
    assert_string_equal(buf_cstr(&to), "[0.000000,\"o\",\"a\"]\n"
                                       "[0.250000,\"o\",\"é\\u001b[m\xef\xbf\xbd\"]\n"
                                       "[0.750000,\"r\",\"100x30\"]\n"
                                       "[0.750001,\"o\",\"\xef\xbf\xbd\"]\n");
}

static void take_line(void *arg, struct str text)
{
    buf_add_str(arg, text);
    buf_add_char(arg, '|');
}

static void a_transcript_has_the_text_alone(void **state)
{
    static const char in[] = "one\r\n\033[31mt\033[0mwo\033]0;title\007\tx\r\nabc\b\bz\033[5;1Hfar";
    AUTO(buf_done) struct buf to = {0};

    (void)state;
    for (size_t cut = 1; cut < sizeof in; cut++) { /* however it is cut */
        struct transcript t = {.line = take_line, .arg = &to};

        buf_clear(&to);
        for (size_t at = 0; at < sizeof in - 1; at += cut)
            transcript_feed(&t, str_make(in + at, size_min(cut, sizeof in - 1 - at)));
        transcript_end(&t);
        transcript_done(&t);
        assert_string_equal(buf_cstr(&to), "one|two x|az|far|");
    }
}

static void a_repaint_makes_the_same_screen(void **state)
{
    static const char in[] =
        "\033[?1h\033[?1049h\033[2;4r\033[2;3H\033[1;32mwide \xe4\xb8\xad\033[0m"
        "\033[4;1Hlast\033[3;5H\033[7mx\033[?25l";
    AUTO(screen_free) struct screen *a = screen_new((struct screen_size){5, 20}, 10);
    AUTO(screen_free) struct screen *b = screen_new((struct screen_size){5, 20}, 10);
    AUTO(buf_done) struct buf paint = {0}, of_a = {0}, of_b = {0};

    (void)state;
    screen_feed(a, str_of(in));
    screen_put_repaint(a, &paint);
    screen_feed(b, STR("rubbish before"));
    screen_feed(b, buf_str(&paint));
    for (int k = 0; k < 2; k++) {
        struct jw wa = {.to = &of_a}, wb = {.to = &of_b};

        buf_clear(&of_a);
        buf_clear(&of_b);
        jw_object(&wa), screen_put_view(a, &wa), screen_put_json(a, 0, &wa), jw_object_end(&wa);
        jw_object(&wb), screen_put_view(b, &wb), screen_put_json(b, 0, &wb), jw_object_end(&wb);
        assert_string_equal(buf_cstr(&of_a), buf_cstr(&of_b));
        assert_true(screen_look(b).application_keys);
        screen_feed(a, STR("\n\n\nmore\033[H!")); /* and it draws on in the same way */
        screen_feed(b, STR("\n\n\nmore\033[H!"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_what_xterm_sends),
        cmocka_unit_test(a_cast_joins_characters_and_shortens_pauses),
        cmocka_unit_test(a_transcript_has_the_text_alone),
        cmocka_unit_test(a_repaint_makes_the_same_screen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
