#include "proto/vt.h"

#include "base/buf.h"
#include "unit.h"

static void on_print(void *arg, uint32_t point)
{
    buf_printf(arg, "<%x>", point);
}

static void on_control(void *arg, unsigned char c)
{
    buf_printf(arg, "^%c", c + '@');
}

static void put_sequence(struct buf *to, const char *kind, const struct vt_sequence *s)
{
    buf_printf(to, "%s", kind);
    if (s->leader)
        buf_add_char(to, s->leader);
    for (size_t k = 0; k < s->count; k++)
        buf_printf(to, "%s%d", k == 0 ? "" : s->sub[k] ? ":" : ";", s->params[k]);
    buf_printf(to, "%s%c ", s->intermediate, s->final);
}

static void on_escape(void *arg, const struct vt_sequence *s)
{
    put_sequence(arg, "ESC", s);
}

static void on_csi(void *arg, const struct vt_sequence *s)
{
    put_sequence(arg, "CSI", s);
}

static void on_osc(void *arg, struct str text)
{
    buf_printf(arg, "OSC[%.*s]", (int)text.n, text.p);
}

static const struct vt_events events = {on_print, on_control, on_escape, on_csi, on_osc};

static void reads(struct str bytes, const char *want)
{
    for (size_t step = 1; step <= bytes.n; step += bytes.n - 1 + (bytes.n == 1)) {
        AUTO(buf_done) struct buf got = {0};
        struct vt v = {0};

        for (size_t k = 0; k < bytes.n; k += step)
            vt_feed(&v, str_make(bytes.p + k, step < bytes.n - k ? step : bytes.n - k), &events,
                    &got);
        assert_string_equal(buf_cstr(&got), want);
    }
}

static void characters(void **state)
{
    (void)state;
    reads(STR("aZ"), "<61><5a>");
    reads(STR("\xc3\xa9\xe4\xbd\xa0\xf0\x9f\xa6\xa6"), "<e9><4f60><1f9a6>");
    reads(STR("\xc3z\xffy"), "<fffd><7a><fffd><79>");
    reads(STR("\xe4\xbd\033[m"), "<fffd>CSIm ");
    reads(STR("\xc0\x80\xed\xa0\x80\xf4\x90\x80\x80\xc2\x9b"), "<fffd><fffd><fffd><fffd><fffd>");
    reads(STR("\x7f\r\n\a"), "^M^J^G");
}

static void sequences(void **state)
{
    (void)state;
    reads(STR("\033[1;31m"), "CSI1;31m ");
    reads(STR("\033[;5H"), "CSI-1;5H ");
    reads(STR("\033[?25l\033[>4;2m\033[!p"), "CSI?25l CSI>4;2m CSI!p ");
    reads(STR("\033[38:2::1:2:3m"), "CSI38:2:-1:1:2:3m ");
    reads(STR("\033[99999999999d"), "CSI65535d ");
    reads(STR("\033(0\0337\033c"), "ESC(0 ESC7 ESCc ");
    reads(STR("\033[1\n2A"), "^JCSI12A "); /* a control inside acts at once */
    reads(STR("\033[1\x18x"), "<78>");     /* CAN ends it */
    reads(STR("\033[1?2hx"), "<78>");      /* malformed: passed over up to its end */
    reads(STR("\033[1;2;3;4;5;6;7;8;9;10;11;12;13;14;15;16;17;18m"),
          "CSI1;2;3;4;5;6;7;8;9;10;11;12;13;14;15;16m ");
}

static void strings(void **state)
{
    (void)state;
    reads(STR("\033]2;title\a!"), "OSC[2;title]<21>");
    reads(STR("\033]0;a\033\\b"), "OSC[0;a]<62>");
    reads(STR("\033]0;a\033[mb"), "OSC[0;a]CSIm <62>");
    reads(STR("\033Pq#0;1\033\\x\033_app\033\\\033^pm\a"), "<78>");
    reads(STR("\033kname\033\\."), "<2e>");
}

static void a_long_string_is_cut(void **state)
{
    AUTO(buf_done) struct buf got = {0};
    struct vt v = {0};

    (void)state;
    vt_feed(&v, STR("\033]"), &events, &got);
    for (int k = 0; k < 5000; k++)
        vt_feed(&v, STR("x"), &events, &got);
    vt_feed(&v, STR("\a."), &events, &got);
    assert_int_equal(buf_len(&got), VT_STRING_MAX + strlen("OSC[]<2e>"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters),
        cmocka_unit_test(sequences),
        cmocka_unit_test(strings),
        cmocka_unit_test(a_long_string_is_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
