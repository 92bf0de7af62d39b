#include "../fuzz/fake_net.h"
#include "base/clock.h"

#include "unit.h"

#include <nghttp2/nghttp2.h>

/* The other end is nghttp2's own client; frames it would not send are written by hand. */
struct reply {
    int status;
    struct buf body, trailers;
    uint32_t reset; /* error code + 1 */
    bool ended;
};

static nghttp2_session *client;
static struct reply replies[64]; /* by stream id */
static uint32_t goaway;          /* error code + 1 */
static int goaways;
static struct xchg *held; /* of /hold: the test replies */
static int closed_done, closed_lost, drained;

static void on_closed(struct xchg *x, bool done)
{
    if (x == held)
        held = NULL;
    *(done ? &closed_done : &closed_lost) += 1;
}

static void on_drained(struct xchg *x)
{
    (void)x;
    drained++;
}

static void on_echo(struct xchg *x, struct str part)
{
    (void)!xchg_write(x, part.p, part.n);
    xchg_consume(x, part.n);
}

static void on_echo_end(struct xchg *x)
{
    const struct http_header trailer = {STR("x-end"), STR("yes")};

    xchg_end(x, &trailer, 1);
}

static void handle(struct xchg *x, void *arg)
{
    static const struct xchg_ops hold = {.closed = on_closed, .drained = on_drained};
    static const struct xchg_ops echo = {
        .body = on_echo, .body_end = on_echo_end, .closed = on_closed};
    struct str path = xchg_req(x)->path;

    (void)arg;
    if (str_eq_c(path, "/echo")) {
        xchg_handle(x, &echo, NULL);
        xchg_head(x, 200, NULL, 0);
        return;
    }
    xchg_handle(x, &hold, NULL);
    if (str_eq_c(path, "/hold"))
        held = x;
    else
        xchg_reply(x, 200, "text/plain", STR("hello"));
}

static int client_header(nghttp2_session *s, const nghttp2_frame *f, const uint8_t *name,
                         size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags,
                         void *arg)
{
    struct reply *r = &replies[f->hd.stream_id];
    uint64_t status;

    (void)s;
    (void)flags;
    (void)arg;
    if (str_eq_c(str_make(name, name_n), ":status")) {
        assert_int_equal(str_parse_u64(str_make(value, value_n), &status), 0);
        r->status = (int)status;
    } else if (r->status && f->headers.cat == NGHTTP2_HCAT_HEADERS) {
        buf_add(&r->trailers, name, name_n);
    }
    return 0;
}

static int client_data(nghttp2_session *s, uint8_t flags, int32_t id, const uint8_t *p, size_t n,
                       void *arg)
{
    (void)s;
    (void)flags;
    (void)arg;
    buf_add(&replies[id].body, p, n);
    return 0;
}

static int client_frame(nghttp2_session *s, const nghttp2_frame *f, void *arg)
{
    (void)s;
    (void)arg;
    if (f->hd.type == NGHTTP2_GOAWAY) {
        goaway = f->goaway.error_code + 1;
        goaways++;
    }
    if (f->hd.type == NGHTTP2_RST_STREAM)
        replies[f->hd.stream_id].reset = f->rst_stream.error_code + 1;
    if ((f->hd.type == NGHTTP2_DATA || f->hd.type == NGHTTP2_HEADERS) &&
        (f->hd.flags & NGHTTP2_FLAG_END_STREAM))
        replies[f->hd.stream_id].ended = true;
    return 0;
}

/* Bytes both ways until nobody has any. */
static void exchange(void)
{
    const uint8_t *p;
    ssize_t n;
    bool any = true;

    while (any) {
        any = false;
        while ((n = nghttp2_session_mem_send(client, &p)) > 0) {
            fake_feed(str_make(p, (size_t)n));
            any = true;
        }
        fake_turn();
        if (buf_len(&fake_stream.out) > 0) {
            struct buf sent = fake_stream.out;
            bool was_high = buf_len(&sent) > STREAM_HIGH;

            fake_stream.out = (struct buf){0};
            (void)nghttp2_session_mem_recv(client, (uint8_t *)buf_data(&sent), buf_len(&sent));
            buf_done(&sent);
            any = true;
            if (was_high && !fake_conn.closing)
                fake_conn.proto->writable(&fake_conn);
        }
    }
}

static int start(void **state)
{
    nghttp2_session_callbacks *cb;
    nghttp2_option *o;

    (void)state;
    memset(replies, 0, sizeof replies);
    goaway = 0;
    goaways = closed_done = closed_lost = drained = 0;
    held = NULL;
    assert_int_equal(nghttp2_session_callbacks_new(&cb), 0);
    nghttp2_session_callbacks_set_on_header_callback(cb, client_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, client_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cb, client_frame);
    assert_int_equal(nghttp2_option_new(&o), 0);
    nghttp2_option_set_no_http_messaging(o, 1); /* it may send what a client should not */
    assert_int_equal(nghttp2_session_client_new2(&client, cb, NULL, o), 0);
    nghttp2_option_del(o);
    nghttp2_session_callbacks_del(cb);
    assert_int_equal(nghttp2_submit_settings(client, 0, NULL, 0), 0);
    fake_start(&conn_h2, handle);
    exchange();
    return 0;
}

static int stop(void **state)
{
    (void)state;
    fake_end();
    nghttp2_session_del(client);
    for (size_t i = 0; i < ARRAY_LEN(replies); i++) {
        buf_done(&replies[i].body);
        buf_done(&replies[i].trailers);
    }
    return 0;
}

static nghttp2_nv nv(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
                        strlen(value), NGHTTP2_NV_FLAG_NONE};
}

static ssize_t body_read(nghttp2_session *s, int32_t id, uint8_t *to, size_t room, uint32_t *flags,
                         nghttp2_data_source *source, void *arg)
{
    struct str *left = source->ptr;
    size_t n = size_min(room, left->n);

    (void)s;
    (void)id;
    (void)arg;
    memcpy(to, left->p, n);
    *left = str_skip(*left, n);
    if (left->n == 0)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

static struct reply *request(const char *method, const char *path, nghttp2_nv extra,
                             struct str *body)
{
    nghttp2_nv h[] = {nv(":method", method), nv(":scheme", "http"), nv(":path", path),
                      nv(":authority", "x"), extra};
    nghttp2_data_provider source = {.source.ptr = body, .read_callback = body_read};
    int32_t id =
        nghttp2_submit_request(client, NULL, h, extra.name ? 5 : 4, body ? &source : NULL, NULL);

    assert_true(id > 0 && id < (int32_t)ARRAY_LEN(replies));
    exchange();
    return &replies[id];
}

static const nghttp2_nv none;

static void a_request_is_answered(void **state)
{
    struct reply *r = request("GET", "/", none, NULL);

    (void)state;
    assert_int_equal(r->status, 200);
    assert_string_equal(buf_cstr(&r->body), "hello");
    assert_true(r->ended);
    assert_int_equal(closed_done, 1);
    assert_int_equal(fake_conn.wait, CONN_WAIT_REQUEST);
    r = request("HEAD", "/", none, NULL);
    assert_true(r->status == 200 && r->ended && buf_len(&r->body) == 0);
}

static void a_body_is_echoed_past_every_window(void **state)
{
    static char big[1500000];
    struct str body = str_make(big, sizeof big);
    struct reply *r;

    (void)state;
    fake_server.limits.body_max = -1;
    for (size_t i = 0; i < sizeof big; i++)
        big[i] = (char)(i * 7);
    r = request("POST", "/echo", none, &body);
    fake_server.limits.body_max = 65536;
    assert_true(r->ended);
    assert_int_equal(buf_len(&r->body), sizeof big);
    assert_memory_equal(buf_data(&r->body), big, sizeof big);
    assert_string_equal(buf_cstr(&r->trailers), "x-end");
    assert_int_equal(closed_done, 1);
}

static void a_body_over_the_limit_is_refused(void **state)
{
    static char big[65537];
    struct str body = str_make(big, sizeof big);
    struct reply *r = request("POST", "/hold", nv("content-length", "65537"), &body);

    (void)state;
    assert_int_equal(r->status, 413);
    assert_null(held);
    body = str_make(big, sizeof big);
    r = request("POST", "/echo", nv("content-length", "65537"), &body);
    assert_true(r->status == 413 || r->reset); /* the head of an echo goes out before its body */
}

static void an_early_reply_is_reset_a_little_later(void **state)
{
    static char big[600000]; /* more than the window: the request stays unfinished */
    struct str body = str_make(big, sizeof big);
    struct reply *r = request("POST", "/hold", none, &body);

    (void)state;
    assert_true(r->status == 413 && r->ended);
    assert_int_equal(closed_done, 1);
    assert_int_equal(r->reset, 0);
    assert_true(body.n > 0);
    while (!r->reset) {
        (void)uv_run(&fake_server.loop, UV_RUN_ONCE);
        exchange();
    }
    assert_int_equal(r->reset, NGHTTP2_NO_ERROR + 1);
    assert_int_equal(request("GET", "/", none, NULL)->status, 200);
}

static void a_head_over_the_limit_gets_431(void **state)
{
    char value[4096];
    struct reply *r;

    (void)state;
    memset(value, 'v', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    r = request("GET", "/", nv("x-long", value), NULL);
    assert_int_equal(r->status, 431);
    assert_non_null(strstr(buf_cstr(&r->body), "headers_too_large"));
    assert_int_equal(request("GET", "/", none, NULL)->status, 200);
}

static void what_is_no_request_is_reset(void **state)
{
    static const char *const bad[][2] = {
        {"connection", "close"},
        {"te", "gzip"},
        {"host", "other"},
        {":status", "200"},
        {"x-nul", "a\nb"},
        {"content-length", "1"},
        {"transfer-encoding", "chunked"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct reply *r = request("GET", "/", nv(bad[i][0], bad[i][1]), NULL);

        assert_int_equal(r->reset, NGHTTP2_PROTOCOL_ERROR + 1);
        assert_int_equal(r->status, 0);
    }
    assert_int_equal(closed_done + closed_lost, 0); /* no handler saw one */
    assert_int_equal(request("GET", "/", none, NULL)->status, 200);
    assert_int_equal(request("GET", "nowhere", none, NULL)->reset, NGHTTP2_PROTOCOL_ERROR + 1);
    assert_int_equal(request("GET", "/a#b", none, NULL)->status, 400);
}

static void a_reset_is_seen_at_once(void **state)
{
    (void)state;
    (void)request("GET", "/hold", none, NULL);
    assert_non_null(held);
    assert_int_equal(fake_conn.wait, CONN_WAIT_NOTHING); /* we owe the reply */
    assert_int_equal(nghttp2_submit_rst_stream(client, 0, 1, NGHTTP2_CANCEL), 0);
    exchange();
    assert_null(held);
    assert_int_equal(closed_lost, 1);
}

static void an_abort_resets_only_its_stream(void **state)
{
    struct reply *r = request("GET", "/hold", none, NULL);

    (void)state;
    xchg_abort(held);
    assert_non_null(held); /* closed never comes from inside the handler's call */
    exchange();
    assert_null(held);
    assert_int_equal(r->reset, NGHTTP2_INTERNAL_ERROR + 1);
    assert_int_equal(request("GET", "/", none, NULL)->status, 200);
}

static void writers_wait_for_the_window(void **state)
{
    static char block[STREAM_HIGH + 1];
    const nghttp2_settings_entry zero = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0};
    const nghttp2_settings_entry wide = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 20};
    struct reply *r;

    (void)state;
    assert_int_equal(nghttp2_submit_settings(client, 0, &zero, 1), 0);
    r = request("GET", "/hold", none, NULL);
    xchg_head(held, 200, NULL, 0);
    assert_int_equal(xchg_write(held, block, 1), 0);
    assert_int_equal(xchg_write(held, block, sizeof block - 1), 1);
    exchange();
    assert_int_equal(drained, 0);
    assert_int_equal(fake_conn.wait, CONN_WAIT_BODY); /* the peer owes its window */
    assert_int_equal(nghttp2_submit_settings(client, 0, &wide, 1), 0);
    assert_int_equal(nghttp2_session_set_local_window_size(client, 0, 0, 1 << 20), 0);
    exchange();
    assert_int_equal(drained, 1);
    assert_int_equal(buf_len(&r->body), sizeof block);
    assert_int_equal(fake_conn.wait, CONN_WAIT_NOTHING);
}

static void shutdown_lets_replies_end(void **state)
{
    struct reply *r = request("GET", "/hold", none, NULL);

    (void)state;
    fake_conn.proto->shutdown(&fake_conn);
    exchange();
    assert_int_equal(goaways, 2); /* the notice, then the last stream id */
    assert_int_equal(goaway, NGHTTP2_NO_ERROR + 1);
    assert_false(fake_conn.closing);
    xchg_reply(held, 200, NULL, STR("late"));
    exchange();
    assert_string_equal(buf_cstr(&r->body), "late");
    assert_true(fake_conn.closing);
    assert_int_equal(closed_done, 1);
}

static void an_idle_connection_shuts_down_at_once(void **state)
{
    (void)state;
    fake_conn.proto->shutdown(&fake_conn);
    exchange();
    assert_true(fake_conn.closing);
    assert_int_equal(goaway, NGHTTP2_NO_ERROR + 1);
}

static void feed_times(struct str frame, int times)
{
    for (int i = 0; i < times && !fake_conn.closing; i++) {
        (void)fake_conn.proto->data(&fake_conn, frame);
        if (!fake_conn.closing)
            buf_clear(&fake_stream.out);
    }
    exchange();
}

static void floods_end_the_connection(void **state)
{
    static const struct str frames[] = {
        STR("\0\0\x08\x06\0\0\0\0\0"
            "12345678"),             /* PING */
        STR("\0\0\0\x04\0\0\0\0\0"), /* SETTINGS */
        STR("\0\0\x05\x02\0\0\0\0\x01"
            "\0\0\0\0\0"), /* PRIORITY */
    };

    for (size_t i = 0; i < ARRAY_LEN(frames); i++) {
        feed_times(frames[i], 400);
        assert_false(fake_conn.closing);
        feed_times(frames[i], 200);
        assert_true(fake_conn.closing);
        assert_int_equal(goaway, NGHTTP2_ENHANCE_YOUR_CALM + 1);
        (void)stop(state);
        (void)start(state);
    }
}

static void rapid_reset_ends_the_connection(void **state)
{
    (void)state;
    for (int32_t id = 1; id < 3000 && !fake_conn.closing; id += 2) {
        nghttp2_nv h[] = {nv(":method", "GET"), nv(":scheme", "http"), nv(":path", "/hold"),
                          nv(":authority", "x")};

        assert_true(nghttp2_submit_request(client, NULL, h, 4, NULL, NULL) > 0);
        exchange();
        (void)nghttp2_submit_rst_stream(client, 0, id, NGHTTP2_CANCEL);
        exchange();
    }
    assert_true(fake_conn.closing);
    assert_int_equal(goaway, NGHTTP2_ENHANCE_YOUR_CALM + 1);
    assert_true(closed_lost > 400 && closed_lost < 600);
}

static void a_slow_canceller_is_left_alone(void **state)
{
    struct clock_fake now = {.wall_ms = 1, .mono_ns = clock_mono_ns()};

    (void)state;
    for (int i = 0; i < 1000; i++) {
        clock_set_fake(&now);
        now.mono_ns += 50000000;
        feed_times(STR("\0\0\x08\x06\0\0\0\0\0"
                       "12345678"),
                   1);
    }
    clock_set_fake(NULL);
    assert_false(fake_conn.closing);
}

static void continuation_floods_end_the_connection(void **state)
{
    (void)state;
    fake_feed(STR("\0\0\x01\x01\0\0\0\0\x01\x82")); /* HEADERS without its end */
    assert_int_equal(fake_conn.wait, CONN_WAIT_HEAD);
    feed_times(STR("\0\0\0\x09\0\0\0\0\x01"), 7);
    assert_false(fake_conn.closing);
    feed_times(STR("\0\0\0\x09\0\0\0\0\x01"), 1);
    assert_true(fake_conn.closing);
    assert_int_equal(goaway, NGHTTP2_ENHANCE_YOUR_CALM + 1); /* our count, not nghttp2's */
}

static void a_lost_peer_ends_every_exchange(void **state)
{
    (void)state;
    (void)request("GET", "/hold", none, NULL);
    fake_conn.proto->eof(&fake_conn);
    assert_null(held);
    assert_int_equal(closed_lost, 1);
    assert_true(fake_conn.closing);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_request_is_answered),
        TEST(a_body_is_echoed_past_every_window),
        TEST(a_body_over_the_limit_is_refused),
        TEST(an_early_reply_is_reset_a_little_later),
        TEST(a_head_over_the_limit_gets_431),
        TEST(what_is_no_request_is_reset),
        TEST(a_reset_is_seen_at_once),
        TEST(an_abort_resets_only_its_stream),
        TEST(writers_wait_for_the_window),
        TEST(shutdown_lets_replies_end),
        TEST(an_idle_connection_shuts_down_at_once),
        TEST(floods_end_the_connection),
        TEST(rapid_reset_ends_the_connection),
        TEST(a_slow_canceller_is_left_alone),
        TEST(continuation_floods_end_the_connection),
        TEST(a_lost_peer_ends_every_exchange),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
