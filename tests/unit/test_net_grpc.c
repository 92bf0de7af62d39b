#include "net/grpc.h"

#include "fake_xchg.h"
#include "unit.h"

#include <errno.h>

static struct grpc_call *call;
static struct buf got; /* "message;" each */
static int half_closed, cancelled, closed, drained;
static bool keep; /* messages are not consumed at once */

static void on_message(struct grpc_call *c, struct str message)
{
    buf_printf(&got, STR_FMT ";", STR_ARG(message));
    if (!keep)
        grpc_consume(c);
}

static void on_half_closed(struct grpc_call *c)
{
    (void)c;
    half_closed++;
}

static void on_drained(struct grpc_call *c)
{
    (void)c;
    drained++;
}

static void on_cancelled(struct grpc_call *c)
{
    struct err e = {.code = ERR_INTERNAL};

    grpc_fail(c, &e); /* must have no effect */
    cancelled++;
}

static void on_closed(struct grpc_call *c)
{
    (void)c;
    closed++;
}

static void start(struct grpc_call *c, void *arg)
{
    static const struct grpc_ops ops = {on_message, on_half_closed, on_drained, on_cancelled,
                                        on_closed};

    call = c;
    grpc_handle(c, &ops, arg);
    grpc_limit_message(c, SIZE_MAX);
}

static const struct grpc_method methods[] = {{"/a.B/C", start}};

#define FIELDS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define PLAIN "content-type", "application/grpc"

static void serve(enum http_version version, const char *path, const char *const *fields)
{
    grpc_start(fake_request(version, "POST", path, fields), grpc_find(methods, 1, str_of(path)),
               &got);
}

static int setup(void **state)
{
    half_closed = cancelled = closed = drained = 0;
    keep = false;
    call = NULL;
    return fake_setup(state);
}

static int teardown(void **state)
{
    buf_done(&got);
    return fake_teardown(state);
}

static void a_call_runs_to_its_end(void **state)
{
    (void)state;
    serve(HTTP_2, "/a.B/C", FIELDS("content-type", "application/grpc+proto; x=y"));
    assert_ptr_equal(grpc_arg(call), &got);
    xchg_body(fake_x, str_make("\0\0\0\0\2hi\0\0", 9));
    xchg_body(fake_x, str_make("\0\0\0", 3));
    xchg_body_end(fake_x);
    assert_string_equal(buf_cstr(&got), "hi;;");
    assert_int_equal(half_closed, 1);
    assert_int_equal(note.consumed, 12);
    grpc_metadata(call, "x-m", STR("1"));
    assert_int_equal(grpc_send(call, STR("yes")), 0);
    grpc_trailer(call, "x-t-bin", str_make("\0\xff", 2));
    grpc_finish(call);
    assert_string_equal(buf_cstr(&note.head), "200\nx-m: 1\ncontent-type: application/grpc\n"
                                              "grpc-accept-encoding: identity, deflate, gzip\n");
    assert_memory_equal(buf_data(&note.out), "\0\0\0\0\3yes", 8);
    assert_string_equal(buf_cstr(&note.trailer), "x-t-bin: AP8\ngrpc-status: 0\n");
    fake_gone(true);
    assert_int_equal(closed, 1);
    assert_int_equal(cancelled, 0);
}

static void messages_wait_for_each_other(void **state)
{
    (void)state;
    serve(HTTP_2, "/a.B/C", FIELDS(PLAIN));
    keep = true;
    xchg_body(fake_x, str_make("\0\0\0\0\1a\0\0\0\0\1b", 12));
    xchg_body_end(fake_x);
    assert_string_equal(buf_cstr(&got), "a;");
    assert_int_equal(note.consumed, 6);
    assert_int_equal(half_closed, 0);
    grpc_consume(call);
    assert_string_equal(buf_cstr(&got), "a;b;");
    assert_int_equal(note.consumed, 12);
    assert_int_equal(half_closed, 0);
    grpc_consume(call);
    assert_int_equal(half_closed, 1);
}

static void failing_tells_status_and_message(void **state)
{
    struct err e;

    (void)state;
    serve(HTTP_2, "/a.B/C", FIELDS(PLAIN));
    (void)err_set(&e, ERR_NOT_FOUND, 0, "no 100%% ä");
    grpc_fail(call, &e);
    assert_non_null(
        strstr(buf_cstr(&note.head), "grpc-status: 5\ngrpc-message: no 100%25 %C3%A4\n"));
    assert_string_equal(buf_cstr(&note.trailer), "");
    assert_true(note.ended);
}

static void broken_frames_end_the_call(void **state)
{
    static const struct {
        struct str body;
        const char *status;
    } cases[] = {
        {{"\1\0\0\0\1x", 6}, "grpc-status: 13\n"}, /* compressed, and no grpc-encoding */
        {{"\5\0\0\0\1x", 6}, "grpc-status: 13\n"},
        {{"\0\0\1\0\1x", 6}, "grpc-status: 8\n"},  /* 65537 bytes of 4096 */
        {{"\0\0\0\0\2x", 6}, "grpc-status: 13\n"}, /* cut off */
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        serve(HTTP_2, "/a.B/C", FIELDS(PLAIN));
        xchg_body(fake_x, cases[i].body);
        xchg_body_end(fake_x);
        assert_non_null(strstr(buf_cstr(&note.head), cases[i].status));
        assert_int_equal(cancelled, (int)i + 1);
        fake_gone(true);
        assert_int_equal(closed, (int)i + 1);
        buf_clear(&note.head);
    }
    assert_int_equal(half_closed, 0);
}

static void what_cannot_begin_is_refused(void **state)
{
    static const struct {
        enum http_version version;
        const char *path;
        const char *fields[6];
        const char *answer;
    } cases[] = {
        {HTTP_2, "/a.B/X", {PLAIN}, "grpc-status: 12\n"},
        {HTTP_2, "/a.B/C", {PLAIN, "grpc-encoding", "snappy"}, "grpc-status: 12\n"},
        {HTTP_2, "/a.B/C", {PLAIN, "grpc-timeout", "soon"}, "grpc-status: 3\n"},
        {HTTP_2, "/a.B/C", {"content-type", "application/grpc+json"}, "415\n"},
        {HTTP_1_1, "/a.B/C", {PLAIN}, "501\n"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        serve(cases[i].version, cases[i].path, cases[i].fields);
        assert_non_null(strstr(buf_cstr(&note.head), cases[i].answer));
        assert_true(note.ended);
        fake_gone(true);
        buf_clear(&note.head);
    }
    assert_null(call);
}

static void a_deadline_cancels(void **state)
{
    (void)state;
    serve(HTTP_2, "/a.B/C", FIELDS(PLAIN, "grpc-timeout", "5m"));
    while (!note.ended)
        (void)uv_run(&fake_server.loop, UV_RUN_ONCE);
    assert_int_equal(cancelled, 1);
    assert_non_null(strstr(buf_cstr(&note.head), "grpc-status: 4\n"));
    grpc_finish(call);
    assert_int_equal(grpc_send(call, STR("late")), 0);
    assert_int_equal(buf_len(&note.out), 0);
}

static void a_lost_peer_cancels(void **state)
{
    (void)state;
    serve(HTTP_2, "/a.B/C", FIELDS(PLAIN));
    fake_gone(false);
    assert_int_equal(cancelled, 1);
    assert_int_equal(closed, 1);
}

static void web_replies_carry_trailers_in_the_body(void **state)
{
    (void)state;
    serve(HTTP_1_1, "/a.B/C", FIELDS("content-type", "application/grpc-web+proto"));
    assert_int_equal(grpc_send(call, STR("x")), 0);
    grpc_finish(call);
    assert_int_equal(buf_len(&note.out), 6 + 5 + 16);
    assert_memory_equal(buf_data(&note.out), "\0\0\0\0\1x\x80\0\0\0\x10grpc-status: 0\r\n", 27);
    assert_string_equal(buf_cstr(&note.trailer), "");
}

static void web_text_is_base64_both_ways(void **state)
{
    (void)state;
    serve(HTTP_1_1, "/a.B/C", FIELDS("content-type", "application/grpc-web-text"));
    xchg_body(fake_x, STR("AAAAAAJo"));
    xchg_body(fake_x, STR("aQ=="));
    assert_string_equal(buf_cstr(&got), "hi;");
    assert_int_equal(grpc_send(call, STR("x")), 0);
    assert_string_equal(buf_cstr(&note.out), "AAAAAAF4");
    xchg_body(fake_x, STR("!!!!"));
    assert_int_equal(cancelled, 1);
}

static void binary_metadata_is_decoded(void **state)
{
    AUTO(buf_done) struct buf b = {0};

    (void)state;
    serve(HTTP_2, "/a.B/C", FIELDS(PLAIN, "k-bin", "AP8", "bad-bin", "*"));
    assert_int_equal(grpc_get_bin(call, "k-bin", &b), 1);
    assert_memory_equal(buf_data(&b), "\0\xff", 2);
    assert_int_equal(grpc_get_bin(call, "bad-bin", &b), -EINVAL);
    assert_int_equal(grpc_get_bin(call, "none-bin", &b), 0);
}

static void writers_are_told_to_wait(void **state)
{
    (void)state;
    serve(HTTP_2, "/a.B/C", FIELDS(PLAIN));
    note.write_result = 1;
    assert_int_equal(grpc_send(call, STR("x")), 1);
    xchg_drained(fake_x);
    assert_int_equal(drained, 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_call_runs_to_its_end),
        TEST(messages_wait_for_each_other),
        TEST(failing_tells_status_and_message),
        TEST(broken_frames_end_the_call),
        TEST(what_cannot_begin_is_refused),
        TEST(a_deadline_cancels),
        TEST(a_lost_peer_cancels),
        TEST(web_replies_carry_trailers_in_the_body),
        TEST(web_text_is_base64_both_ways),
        TEST(binary_metadata_is_decoded),
        TEST(writers_are_told_to_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
