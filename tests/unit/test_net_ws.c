#include "net/ws.h"

#include "fake_xchg.h"
#include "proto/ws.h"
#include "unit.h"

static struct ws *w;
static struct buf got; /* "text:…;" of each message */
static int closed, closed_code, drained;
static bool pause_after_each;

static void on_message(struct ws *ws, enum ws_kind kind, struct str data)
{
    buf_printf(&got, "%s:" STR_FMT ";", kind == WS_TEXT ? "text" : "binary", STR_ARG(data));
    if (pause_after_each)
        ws_pause(ws, true);
}

static void on_drained(struct ws *ws)
{
    (void)ws;
    drained++;
}

static void on_closed(struct ws *ws, int code, struct str reason)
{
    (void)reason;
    assert_ptr_equal(ws, w);
    closed++;
    closed_code = code;
}

static const struct ws_ops ops = {on_message, on_drained, on_closed};

#define HANDSHAKE                                                                                  \
    "upgrade", "WebSocket", "connection", "keep-alive, Upgrade", "sec-websocket-version", "13",    \
        "sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="
#define FIELDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static struct ws *accept_with(enum http_version version, const char *const *fields)
{
    static const char *const protocols[] = {"b", "a", NULL};

    w = ws_accept(fake_request(version, "GET", "/", fields), protocols, &ops, NULL);
    return w;
}

static int setup(void **state)
{
    (void)fake_setup(state);
    closed = closed_code = drained = 0;
    pause_after_each = false;
    return 0;
}

static int teardown(void **state)
{
    buf_done(&got);
    return fake_teardown(state);
}

static void send_frame(enum ws_op op, const char *text)
{
    AUTO(buf_done) struct buf b = {0};

    ws_write(&b, op, str_of(text), (const unsigned char *)"mask");
    xchg_body(fake_x, buf_str(&b));
}

static void a_handshake_is_answered(void **state)
{
    (void)state;
    assert_non_null(accept_with(HTTP_1_1, FIELDS(HANDSHAKE, "sec-websocket-protocol", "x, a",
                                                 "sec-websocket-protocol", "b")));
    assert_string_equal(buf_cstr(&note.head), "101\nupgrade: websocket\nconnection: Upgrade\n"
                                              "sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\n"
                                              "sec-websocket-protocol: b\n");
}

static void bad_handshakes_are_refused(void **state)
{
    static const struct {
        const char *fields[10];
        const char *status;
    } cases[] = {
        {{"upgrade", "websocket", "connection", "upgrade", "sec-websocket-version", "13",
          "sec-websocket-key", "short"},
         "400"},
        {{"upgrade", "websocket", "connection", "upgrade", "sec-websocket-version", "8",
          "sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="},
         "426"},
        {{"upgrade", "websocket", "sec-websocket-version", "13", "sec-websocket-key",
          "dGhlIHNhbXBsZSBub25jZQ=="},
         "400"},
        {{"upgrade", "h2c", "connection", "upgrade"}, "400"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_null(accept_with(HTTP_1_1, cases[i].fields));
        assert_memory_equal(buf_cstr(&note.head), cases[i].status, 3);
        assert_true(note.ended);
        if (cases[i].status[1] == '2')
            assert_non_null(strstr(buf_cstr(&note.head), "sec-websocket-version: 13\n"));
        fake_gone(true);
        buf_clear(&note.head);
    }
    assert_int_equal(closed, 0);
}

static void http2_needs_no_key(void **state)
{
    (void)state;
    assert_non_null(
        accept_with(HTTP_2, FIELDS(":protocol", "websocket", "sec-websocket-version", "13")));
    assert_string_equal(buf_cstr(&note.head), "101\n");
}

static void messages_come_and_go(void **state)
{
    (void)state;
    assert_non_null(accept_with(HTTP_1_1, FIELDS(HANDSHAKE)));
    send_frame(WS_OP_TEXT, "one");
    send_frame(WS_OP_PING, "p");
    send_frame(WS_OP_BINARY, "two");
    assert_string_equal(buf_cstr(&got), "text:one;binary:two;");
    assert_int_equal(ws_send(w, WS_TEXT, STR("x")), 0);
    assert_memory_equal(buf_data(&note.out), "\x8a\x01p\x81\x01x", 6);
    assert_int_equal(note.consumed, 3 * 6 + 3 + 1 + 3);
}

static void a_pause_holds_the_peer_back(void **state)
{
    AUTO(buf_done) struct buf b = {0};

    (void)state;
    assert_non_null(accept_with(HTTP_1_1, FIELDS(HANDSHAKE)));
    pause_after_each = true;
    for (int i = 0; i < 3; i++)
        ws_write(&b, WS_OP_TEXT, STR("m"), (const unsigned char *)"mask");
    xchg_body(fake_x, buf_str(&b));
    assert_string_equal(buf_cstr(&got), "text:m;");
    assert_int_equal(note.consumed, 7);
    ws_pause(w, false);
    assert_string_equal(buf_cstr(&got), "text:m;text:m;");
    assert_int_equal(note.consumed, 14);
    ws_pause(w, false);
    assert_int_equal(note.consumed, 21);
    ws_pause(w, false);
}

static void only_the_newest_ping_is_owed(void **state)
{
    (void)state;
    assert_non_null(accept_with(HTTP_1_1, FIELDS(HANDSHAKE)));
    note.write_result = 1;
    assert_int_equal(ws_send(w, WS_BINARY, STR("")), 1);
    buf_clear(&note.out);
    send_frame(WS_OP_PING, "1");
    send_frame(WS_OP_PING, "2");
    assert_int_equal(buf_len(&note.out), 0);
    note.write_result = 0;
    xchg_drained(fake_x);
    assert_int_equal(drained, 1);
    assert_memory_equal(buf_data(&note.out),
                        "\x8a\x01"
                        "2",
                        3);
    assert_int_equal(buf_len(&note.out), 3);
}

static void the_peers_close_is_answered(void **state)
{
    (void)state;
    assert_non_null(accept_with(HTTP_1_1, FIELDS(HANDSHAKE)));
    send_frame(WS_OP_CLOSE, "\x0f\xa0why"); /* 4000 */
    assert_memory_equal(buf_data(&note.out), "\x88\x02\x0f\xa0", 4);
    assert_true(note.ended);
    fake_gone(true);
    assert_int_equal(closed, 1);
    assert_int_equal(closed_code, 4000);
}

static void our_close_waits_for_the_peers(void **state)
{
    (void)state;
    assert_non_null(accept_with(HTTP_1_1, FIELDS(HANDSHAKE)));
    ws_close(w, WS_GOING_AWAY, "bye");
    ws_close(w, WS_NORMAL, "again");
    assert_memory_equal(buf_data(&note.out),
                        "\x88\x05\x03\xe9"
                        "bye",
                        7);
    assert_int_equal(buf_len(&note.out), 7);
    assert_false(note.ended);
    send_frame(WS_OP_TEXT, "late");
    assert_int_equal(buf_len(&got), 0);
    send_frame(WS_OP_CLOSE, "\x03\xe9");
    assert_int_equal(buf_len(&note.out), 7); /* no second close frame */
    assert_true(note.ended);
}

static void a_bad_frame_closes_and_drains(void **state)
{
    (void)state;
    assert_non_null(accept_with(HTTP_1_1, FIELDS(HANDSHAKE)));
    send_frame(WS_OP_TEXT, "\xff");
    assert_memory_equal(buf_data(&note.out) + 2, "\x03\xef", 2); /* 1007 */
    assert_false(note.ended);
    note.consumed = 0;
    xchg_body(fake_x, STR("garbage"));
    assert_int_equal(note.consumed, 7);
    xchg_body_end(fake_x);
    assert_true(note.ended);
    fake_gone(true);
    assert_int_equal(closed_code, WS_BAD_TEXT);
}

static void a_vanished_peer_is_1006(void **state)
{
    (void)state;
    assert_non_null(accept_with(HTTP_1_1, FIELDS(HANDSHAKE)));
    fake_gone(false);
    assert_int_equal(closed, 1);
    assert_int_equal(closed_code, WS_VANISHED);
}

/* The keep-alive timer, faster than its ten seconds. */
static void hasten(uv_handle_t *h, void *arg)
{
    uv_timer_t *t = (uv_timer_t *)h;

    (void)arg;
    if (h->type == UV_TIMER)
        (void)uv_timer_start(t, t->timer_cb, 1, 1);
}

static void a_silent_peer_is_pinged_then_cut(void **state)
{
    size_t before;

    (void)state;
    assert_non_null(accept_with(HTTP_1_1, FIELDS(HANDSHAKE)));
    uv_walk(&fake_server.loop, hasten, NULL);
    while (buf_len(&note.out) < 2)
        (void)uv_run(&fake_server.loop, UV_RUN_ONCE);
    before = buf_len(&note.out); /* one turn of a late loop may ping twice */
    send_frame(WS_OP_PONG, "");  /* a sign of life: counting starts again */
    while (!note.aborted)
        (void)uv_run(&fake_server.loop, UV_RUN_ONCE);
    assert_int_equal(buf_len(&note.out), before + 12); /* six more without an answer */
    assert_memory_equal(buf_data(&note.out), "\x89\0\x89\0\x89\0", 6);
}

/* It cannot answer, but the reset that a dead one answers with comes all the same. */
static void a_paused_peer_is_pinged_but_not_cut(void **state)
{
    (void)state;
    assert_non_null(accept_with(HTTP_1_1, FIELDS(HANDSHAKE)));
    ws_pause(w, true);
    uv_walk(&fake_server.loop, hasten, NULL);
    while (buf_len(&note.out) < 40)
        (void)uv_run(&fake_server.loop, UV_RUN_ONCE);
    assert_false(note.aborted);
}

static void a_peer_that_ignores_our_close_is_left(void **state)
{
    (void)state;
    assert_non_null(accept_with(HTTP_1_1, FIELDS(HANDSHAKE)));
    ws_close(w, WS_NORMAL, NULL);
    uv_walk(&fake_server.loop, hasten, NULL);
    while (!note.ended)
        (void)uv_run(&fake_server.loop, UV_RUN_ONCE);
    fake_gone(true);
    assert_int_equal(closed_code, WS_VANISHED);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_handshake_is_answered),
        TEST(bad_handshakes_are_refused),
        TEST(http2_needs_no_key),
        TEST(messages_come_and_go),
        TEST(a_pause_holds_the_peer_back),
        TEST(only_the_newest_ping_is_owed),
        TEST(the_peers_close_is_answered),
        TEST(our_close_waits_for_the_peers),
        TEST(a_bad_frame_closes_and_drains),
        TEST(a_vanished_peer_is_1006),
        TEST(a_silent_peer_is_pinged_then_cut),
        TEST(a_paused_peer_is_pinged_but_not_cut),
        TEST(a_peer_that_ignores_our_close_is_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
