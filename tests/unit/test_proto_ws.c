#include "proto/ws.h"

#include "unit.h"

static struct ws_reader server_reader(size_t limit)
{
    return (struct ws_reader){.limit = limit, .masked = true};
}

/* Feeds all bytes in parts of `step`; returns the last result that is not 0, events counted. */
static int feed(struct ws_reader *r, struct str all, size_t step, int *events,
                struct ws_event *last)
{
    int result = 0;

    while (all.n > 0 && result >= 0) {
        struct str part = str_make(all.p, size_min(step, all.n));
        int n;

        all = str_skip(all, part.n);
        while ((n = ws_reader_next(r, &part, last)) != 0) {
            result = n;
            if (n < 0)
                break;
            (*events)++;
        }
    }
    return result;
}

static int close_code(struct str frames, size_t limit)
{
    struct ws_reader r = server_reader(limit);
    struct ws_event ev;
    int events = 0, result = feed(&r, frames, 1, &events, &ev);

    ws_reader_done(&r);
    return -result;
}

static void a_frame_is_read_in_parts_of_any_size(void **state)
{
    static const unsigned char mask[4] = {0x37, 0xfa, 0x21, 0x3d};
    AUTO(buf_done) struct buf b = {0};
    char big[70000];

    (void)state;
    memset(big, 'x', sizeof big);
    ws_write(&b, WS_OP_TEXT, STR("Hello"), mask);
    /* RFC 6455 §5.7 */
    assert_memory_equal(buf_data(&b), "\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", 11);
    ws_write(&b, WS_OP_BINARY, str_make(big, 300), mask);
    ws_write(&b, WS_OP_BINARY, str_make(big, sizeof big), mask);
    ws_write_close(&b, WS_GOING_AWAY, STR("bye"), mask);
    for (size_t step = 1; step < 100000; step = step * 3 + 1) {
        struct ws_reader r = server_reader(sizeof big);
        struct ws_event ev;
        int events = 0;

        assert_int_equal(feed(&r, buf_str(&b), step, &events, &ev), 1);
        assert_int_equal(events, 4);
        assert_int_equal(ev.op, WS_OP_CLOSE);
        assert_int_equal(ev.code, WS_GOING_AWAY);
        assert_true(str_eq_c(ev.data, "bye"));
        ws_reader_done(&r);
    }
}

static void fragments_are_joined_around_control_frames(void **state)
{
    const struct str frames = STR("\x01\x82\0\0\0\0\xc3\xa4" /* text, more follows */
                                  "\x89\x81\0\0\0\0p"        /* ping */
                                  "\x00\x81\0\0\0\0\xc3"     /* half a character */
                                  "\x00\x80\0\0\0\0"         /* nothing */
                                  "\x80\x81\0\0\0\0\xb6");   /* the other half, end */
    struct ws_reader r = server_reader(100);
    struct str in = frames;
    struct ws_event ev;

    (void)state;
    assert_int_equal(ws_reader_next(&r, &in, &ev), 1);
    assert_int_equal(ev.op, WS_OP_PING);
    assert_true(str_eq_c(ev.data, "p"));
    assert_int_equal(ws_reader_next(&r, &in, &ev), 1);
    assert_int_equal(ev.op, WS_OP_TEXT);
    assert_true(str_eq_c(ev.data, "\xc3\xa4\xc3\xb6"));
    assert_int_equal(ws_reader_next(&r, &in, &ev), 0);
    ws_reader_done(&r);
}

static void what_the_protocol_forbids_has_its_code(void **state)
{
    static const struct {
        struct str frames;
        int code;
    } cases[] = {
        {STR("\x81\x01"), WS_PROTOCOL},                 /* not masked */
        {STR("\xc1\x81"), WS_PROTOCOL},                 /* reserved bit */
        {STR("\x83\x81"), WS_PROTOCOL},                 /* reserved operation */
        {STR("\x8b\x80"), WS_PROTOCOL},                 /* reserved control operation */
        {STR("\x80\x81"), WS_PROTOCOL},                 /* continues nothing */
        {STR("\x01\x80\0\0\0\0\x81\x80"), WS_PROTOCOL}, /* a message inside a message */
        {STR("\x09\x80"), WS_PROTOCOL},                 /* control frame in fragments */
        {STR("\x89\xfe"), WS_PROTOCOL},                 /* control frame over 125 */
        {STR("\x82\xfe\0\x05\0\0\0\0"), WS_PROTOCOL},   /* not the shortest length */
        {STR("\x82\xff\0\0\0\0\0\0\xff\xff\0\0\0\0"), WS_PROTOCOL},
        {STR("\x82\xff\x80\0\0\0\0\0\0\0\0\0\0\0"), WS_PROTOCOL}, /* top bit */
        {STR("\x88\x81\0\0\0\0\x03"), WS_PROTOCOL},               /* half a code */
        {STR("\x88\x82\0\0\0\0\x03\xed"), WS_PROTOCOL},           /* 1005 */
        {STR("\x88\x82\0\0\0\0\x03\xe7"), WS_PROTOCOL},           /* 999 */
        {STR("\x88\x83\0\0\0\0\x03\xe8\xff"), WS_BAD_TEXT},
        {STR("\x81\x82\0\0\0\0\xc3\x28"), WS_BAD_TEXT},
        {STR("\x01\x81\0\0\0\0\xc3\x80\x81\0\0\0\0\x28"), WS_BAD_TEXT},
        {STR("\x82\xfe\x00\x80\0\0\0\0"), WS_TOO_BIG}, /* refused by its head */
        {STR("\x82\xff\0\0\x01\0\0\0\0\0\0\0\0\0"), WS_TOO_BIG},
        {STR("\x02\x82\0\0\0\0xx\x80\xe3\0\0\0\0"), WS_TOO_BIG}, /* 2 and 99 are over 100 */
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_int_equal(close_code(cases[i].frames, 100), cases[i].code);
}

/* Each frame's parts: 'h' and 'd' for every byte of a head and of data, '.' at its end. */
static int passed(struct str all, size_t step, bool masked, struct buf *notes)
{
    struct ws_reader r = {.limit = SIZE_MAX, .masked = masked};
    int n = 0;

    while (all.n > 0) {
        struct str part = str_make(all.p, size_min(step, all.n)), head, data;

        all = str_skip(all, part.n);
        while (part.n > 0) {
            n = ws_frame_next(&r, &part, &head, &data);
            if (n < 0)
                return -n;
            for (size_t i = 0; i < head.n + data.n; i++)
                buf_add_char(notes, i < head.n ? 'h' : 'd');
            if (n > 0)
                buf_add_char(notes, '.');
        }
    }
    return 0;
}

static void frames_that_pass_are_told_apart(void **state)
{
    static const char frames[] = "\x01\x03one\x89\x02hi\x80\x00\x82\x01x\x81\x7e\x00\x7e";
    AUTO(buf_done) struct buf notes = {0};

    (void)state;
    for (size_t step = 1; step < sizeof frames; step++) {
        buf_clear(&notes);
        assert_int_equal(passed(str_make(frames, sizeof frames - 1), step, false, &notes), 0);
        assert_string_equal(buf_cstr(&notes), "hhddd.hhdd.hh.hhd.hhhh");
    }
    assert_int_equal(passed(STR("\x81\x85\x01\x02\x03\x04hello"), 3, true, &notes), 0);
    assert_int_equal(passed(STR("\x81\x05hello"), 3, true, &notes), WS_PROTOCOL);
    assert_int_equal(passed(STR("GET / HTTP/1.1\r\n\r\n"), 50, true, &notes), WS_PROTOCOL);
    assert_int_equal(passed(STR("HTTP/1.1 200 OK\r\n\r\n"), 50, false, &notes), WS_PROTOCOL);
    assert_int_equal(passed(STR("\x81\x7e\x00\x05hello"), 50, false, &notes), WS_PROTOCOL);
    assert_int_equal(passed(STR("\x80\x01x"), 50, false, &notes), WS_PROTOCOL); /* of nothing */
}

static void a_close_frame_fits_whatever_the_reason(void **state)
{
    AUTO(buf_done) struct buf b = {0};
    char reason[200];

    (void)state;
    for (size_t i = 0; i < sizeof reason; i += 2)
        memcpy(reason + i, "\xc3\xa4", 2);
    ws_write_close(&b, WS_INTERNAL, str_make(reason, sizeof reason), NULL);
    assert_int_equal(buf_len(&b), 2 + 2 + 122); /* 123 would cut a character */
    buf_clear(&b);
    ws_write_close(&b, WS_NO_CODE, STR(""), NULL);
    assert_memory_equal(buf_data(&b), "\x88\x00", 2);
}

static void the_handshake_key_is_answered_as_the_rfc_says(void **state)
{
    char accept[WS_ACCEPT_SIZE];

    (void)state;
    ws_accept_key(STR("dGhlIHNhbXBsZSBub25jZQ=="), accept);
    assert_string_equal(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    assert_true(ws_key_is_valid(STR("dGhlIHNhbXBsZSBub25jZQ==")));
    assert_false(ws_key_is_valid(STR("dGhlIHNhbXBsZSBub25jZQ=")));
    assert_false(ws_key_is_valid(STR("dGhlIHNhbXBsZSBub25jZSB4")));
    assert_false(ws_key_is_valid(STR("!!!!IHNhbXBsZSBub25jZQ==")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_frame_is_read_in_parts_of_any_size),
        cmocka_unit_test(fragments_are_joined_around_control_frames),
        cmocka_unit_test(what_the_protocol_forbids_has_its_code),
        cmocka_unit_test(frames_that_pass_are_told_apart),
        cmocka_unit_test(a_close_frame_fits_whatever_the_reason),
        cmocka_unit_test(the_handshake_key_is_answered_as_the_rfc_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
