#include "net/sse.h"

#include "fake_xchg.h"
#include "unit.h"

static int closed, drained;

static void on_drained(struct sse *s)
{
    (void)s;
    drained++;
}

static void on_closed(struct sse *s)
{
    (void)s;
    closed++;
}

static const struct sse_ops ops = {on_drained, on_closed};

static struct sse *begin(int64_t keepalive_ms, const char *const *fields)
{
    closed = drained = 0;
    return sse_start(fake_request(HTTP_1_1, "GET", "/", fields), keepalive_ms, &ops, &closed);
}

static void events_are_written(void **state)
{
    struct sse *s = begin(60000, (const char *const[]){"last-event-id", "41", NULL});

    (void)state;
    assert_ptr_equal(sse_arg(s), &closed);
    assert_true(str_eq_c(sse_last_id(fake_x), "41"));
    assert_non_null(strstr(buf_cstr(&note.head), "200\ncontent-type: text/event-stream\n"));
    assert_int_equal(sse_send(s, STR("42"), STR("e"), STR("a\nb")), 0);
    assert_string_equal(buf_cstr(&note.out), "id: 42\nevent: e\ndata: a\ndata: b\n\n");
    sse_end(s);
    sse_end(s);
    assert_true(note.ended);
    assert_int_equal(sse_send(s, STR(""), STR(""), STR("late")), 0);
    assert_int_equal(closed, 0);
    fake_gone(true);
    assert_int_equal(closed, 1);
}

static void silence_is_filled_with_comments(void **state)
{
    struct sse *s = begin(5, (const char *const[]){NULL});

    (void)state;
    while (buf_len(&note.out) == 0)
        (void)uv_run(&fake_server.loop, UV_RUN_ONCE);
    assert_string_equal(buf_cstr(&note.out), ": keep-alive\n\n");
    sse_end(s);
}

static void a_slow_reader_is_waited_for(void **state)
{
    struct sse *s = begin(5, (const char *const[]){NULL});
    size_t n;

    (void)state;
    assert_null(sse_last_id(fake_x).p);
    note.write_result = 1;
    assert_int_equal(sse_send(s, STR(""), STR(""), STR("x")), 1);
    n = buf_len(&note.out);
    for (int i = 0; i < 3; i++)
        (void)uv_run(&fake_server.loop, UV_RUN_ONCE);
    assert_int_equal(buf_len(&note.out), n); /* no comment on top of what waits */
    xchg_drained(fake_x);
    assert_int_equal(drained, 1);
}

static void a_reader_that_stopped_is_told(void **state)
{
    struct sse *s = begin(60000, (const char *const[]){NULL});

    (void)state;
    assert_int_equal(sse_send(s, STR("7"), STR(""), STR("x")), 0);
    assert_true(xchg_stalled(fake_x));
    assert_string_equal(
        buf_cstr(&note.out),
        "id: 7\ndata: x\n\n"
        ": ended: the client read nothing for too long; Last-Event-ID continues\n\n");
    assert_true(note.ended && !note.aborted);
    assert_false(xchg_stalled(fake_x)); /* the second time it is cut */
    fake_gone(true);
    assert_int_equal(closed, 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(events_are_written),
        TEST(silence_is_filled_with_comments),
        TEST(a_slow_reader_is_waited_for),
        TEST(a_reader_that_stopped_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
