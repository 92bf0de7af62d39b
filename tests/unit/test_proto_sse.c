#include "proto/sse.h"

#include "unit.h"

#include <errno.h>

/* "id,event,data;" of all events, fed in parts of `step`. */
static void read_all(const char *text, size_t step, struct buf *to)
{
    struct sse_reader r = {.limit = 64};
    struct str all = str_of(text);

    while (all.n > 0) {
        struct str part = str_make(all.p, size_min(step, all.n));
        struct sse_event ev;

        all = str_skip(all, part.n);
        while (sse_reader_next(&r, &part, &ev) == 1)
            buf_printf(to, STR_FMT "," STR_FMT "," STR_FMT ";", STR_ARG(ev.id), STR_ARG(ev.event),
                       STR_ARG(ev.data));
    }
    sse_reader_done(&r);
}

static void written_events_are_read_again(void **state)
{
    AUTO(buf_done) struct buf b = {0};

    (void)state;
    sse_write(&b, STR("7"), STR("tick"), STR("one\ntwo\r\nthree\rfour\n"));
    assert_string_equal(buf_cstr(&b), "id: 7\nevent: tick\ndata: one\ndata: two\ndata: three\n"
                                      "data: four\ndata: \n\n");
    sse_write_comment(&b, STR("still\nhere"));
    sse_write(&b, STR(""), STR(""), STR(""));
    for (size_t step = 1; step < 90; step++) {
        AUTO(buf_done) struct buf got = {0};

        read_all(buf_cstr(&b), step, &got);
        assert_string_equal(buf_cstr(&got), "7,tick,one\ntwo\nthree\nfour\n;7,message,;");
    }
}

static void no_field_can_forge_another(void **state)
{
    AUTO(buf_done) struct buf b = {0};

    (void)state;
    sse_write(&b, STR("1\ndata: x"), STR("e\r\rid: 9"), STR("d"));
    assert_string_equal(buf_cstr(&b), "id: 1data: x\nevent: eid: 9\ndata: d\n\n");
}

static void all_line_ends_and_odd_fields_are_read(void **state)
{
    static const struct {
        const char *text, *events;
    } cases[] = {
        {"data: a\r\rdata: b\r\n\r\ndata:c\n\n", ",message,a;,message,b;,message,c;"},
        {"\xef\xbb\xbf"
         "data: a\n\n",
         ",message,a;"},
        {": only a comment\n\nevent: x\n\ndata\n\n", ",message,;"},
        {"id: 4\ndata: a\n\nid\ndata: b\n\n", "4,message,a;,message,b;"},
        {"data:  two blanks\nunknown: x\n\n", ",message, two blanks;"},
        {"data: a\r\ndata: b\r\n\r\n", ",message,a\nb;"},
        {"data: cut off\n", ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        for (size_t step = 1; step < 40; step += 3) {
            AUTO(buf_done) struct buf got = {0};

            read_all(cases[i].text, step, &got);
            assert_string_equal(buf_cstr(&got), cases[i].events);
        }
    }
}

static void long_lines_and_events_are_refused(void **state)
{
    static const char line[] = "data: 0123456789\n";
    struct sse_reader r = {.limit = 32};
    struct sse_event ev;
    int result = 0;

    (void)state;
    for (int i = 0; i < 4 && result == 0; i++) {
        struct str in = STR("data: 0123456789\n");

        result = sse_reader_next(&r, &in, &ev);
        assert_true(i < 3 || result == -EMSGSIZE); /* three fill the 32 bytes */
    }
    assert_int_equal(result, -EMSGSIZE);
    sse_reader_done(&r);
    r = (struct sse_reader){.limit = 8};
    assert_int_equal(sse_reader_next(&r, &(struct str){line, sizeof line - 1}, &ev), -EMSGSIZE);
    sse_reader_done(&r);
}

static void retry_is_remembered(void **state)
{
    struct sse_reader r = {.limit = 64};
    struct str in = STR("retry: 1500\nretry: x\n");
    struct sse_event ev;

    (void)state;
    assert_int_equal(sse_reader_next(&r, &in, &ev), 0);
    assert_int_equal(r.retry_ms, 1500);
    sse_reader_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_events_are_read_again),
        cmocka_unit_test(no_field_can_forge_another),
        cmocka_unit_test(all_line_ends_and_odd_fields_are_read),
        cmocka_unit_test(long_lines_and_events_are_refused),
        cmocka_unit_test(retry_is_remembered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
