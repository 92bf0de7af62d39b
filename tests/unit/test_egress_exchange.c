#include "egress/exchange.h"

#include "unit.h"

#define VALUE "the-real-value-of-it"
#define PLACE "holt_placeholder"

struct world {
    struct host host;
    struct bindings *bindings;
    unsigned refused;
    size_t came_back, most, guessed;
    struct exchange *x;
};

static bool judge(void *arg, struct str method, struct str path, char why_not[static EXCHANGE_RULE])
{
    (void)arg;
    (void)path;
    (void)snprintf(why_not, EXCHANGE_RULE, "not this");
    return !str_eq_c(method, "DELETE");
}

static void refused(void *arg, const char *why)
{
    struct world *w = arg;

    (void)why;
    w->refused++;
}

static const struct bindings *bindings(void *arg)
{
    const struct world *w = arg;

    return w->bindings;
}

static bool came_back(void *arg)
{
    struct world *w = arg;

    w->came_back++;
    return w->most == 0 || w->came_back <= w->most;
}

static void guessed(void *arg)
{
    struct world *w = arg;

    w->guessed++;
}

static void open_world(struct world *w, bool secrets)
{
    static const struct exchange_ops ops = {judge, refused, bindings, came_back, guessed};
    struct err e = {0};

    *w = (struct world){0};
    assert_int_equal(host_parse(STR("a.test"), &w->host, &e), 0);
    if (secrets)
        assert_int_equal(bindings_parse(STR("[{\"placeholder\":\"" PLACE "\",\"value\":\"" VALUE
                                            "\",\"hosts\":[\"a.test\"]}]"),
                                        &w->bindings, &e),
                         0);
    w->x = exchange_new(&(struct exchange_config){
        .host = &w->host, .port = 443, .tls = true, .ops = &ops, .arg = w});
}

static void close_world(struct world *w)
{
    w->x = exchange_free(w->x);
    w->bindings = bindings_free(w->bindings);
}

static void client(struct world *w, struct str s, size_t step)
{
    for (size_t at = 0; at < s.n; at += step)
        exchange_from_client(w->x, str_make(s.p + at, size_min(step, s.n - at)));
}

static void server(struct world *w, struct str s, size_t step)
{
    for (size_t at = 0; at < s.n; at += step)
        exchange_from_server(w->x, str_make(s.p + at, size_min(step, s.n - at)));
}

#define REQUEST                                                                                    \
    "POST /a?k=" PLACE " HTTP/1.1\r\nHost: A.test\r\nX: " PLACE                                    \
    "\r\nTransfer-Encoding: chunked\r\nConnection: y\r\nY: 1\r\n\r\n3;x\r\nabc\r\n0\r\nT: "        \
    "1\r\n\r\n"
#define REPLY "HTTP/1.1 200 OK\r\nContent-Length: 22\r\nL: " VALUE "\r\n\r\n<" VALUE ">"

/* Cut anywhere, what goes on is the same. */
static void requests_and_replies(void **state)
{
    (void)state;
    for (size_t step = 1; step < 200; step++) {
        struct world w;

        open_world(&w, true);
        client(&w, STR(REQUEST), step);
        if (step > 150)
            assert_string_equal(
                buf_cstr(exchange_to_server(w.x)),
                "POST /a?k=" VALUE " HTTP/1.1\r\nhost: a.test\r\nx: " VALUE
                "\r\naccept-encoding: identity\r\ntransfer-encoding: chunked\r\n\r\n"
                "3\r\nabc\r\n0\r\n\r\n");
        assert_non_null(strstr(buf_cstr(exchange_to_server(w.x)), "x: " VALUE "\r\n"));
        buf_clear(exchange_to_server(w.x));
        server(&w, STR(REPLY), step);
        assert_null(strstr(buf_cstr(exchange_to_client(w.x)), VALUE));
        if (step > 150)
            assert_string_equal(buf_cstr(exchange_to_client(w.x)),
                                "HTTP/1.1 200 OK\r\nl: " PLACE
                                "\r\ntransfer-encoding: chunked\r\n\r\n12\r\n<" PLACE
                                ">\r\n0\r\n\r\n");
        assert_int_equal(exchange_end(w.x), EXCHANGE_GOES_ON);
        buf_clear(exchange_to_client(w.x));
        client(&w, STR("DELETE / HTTP/1.1\r\nHost: a.test\r\n\r\n"), step);
        assert_int_equal(exchange_end(w.x), EXCHANGE_ENDS);
        assert_int_equal(w.refused, 1);
        assert_int_equal(buf_len(exchange_to_server(w.x)), 0);
        assert_non_null(strstr(buf_cstr(exchange_to_client(w.x)), "403 Forbidden\r\n"));
        close_world(&w);
    }
}

static void without_secrets_lengths_stay(void **state)
{
    struct world w;

    (void)state;
    open_world(&w, false);
    client(
        &w,
        STR("GET / HTTP/1.1\r\nHost: a.test:443\r\nAccept-Encoding: br\r\nRange: bytes=1-\r\n\r\n"),
        1);
    assert_string_equal(
        buf_cstr(exchange_to_server(w.x)),
        "GET / HTTP/1.1\r\nhost: a.test\r\naccept-encoding: br\r\nrange: bytes=1-\r\n\r\n");
    server(&w,
           STR("HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-encoding: br\r\n"
               "Content-Length: 3\r\nAlt-Svc: h3\r\n\r\nabc"),
           1);
    assert_string_equal(buf_cstr(exchange_to_client(w.x)),
                        "HTTP/1.1 103 Early\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\n"
                        "content-encoding: br\r\ncontent-length: 3\r\n\r\nabc");
    exchange_client_ended(w.x);
    assert_int_equal(exchange_end(w.x), EXCHANGE_ENDS);
    close_world(&w);
}

static void how_it_ends(void **state)
{
    static const struct {
        const char *from_client, *from_server;
        bool clean;
        enum exchange_end end;
        const char *says;
    } rows[] = {
        {"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", "", true, EXCHANGE_ENDS, "502"},
        {"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", "HTTP/1.1 2", true, EXCHANGE_ENDS, "502"},
        {"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", "HTTP/1.0 200 OK\r\n\r\nabc", true,
         EXCHANGE_ENDS, "3\r\nabc\r\n0\r\n\r\n"},
        {"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", "HTTP/1.0 200 OK\r\n\r\nabc", false,
         EXCHANGE_BROKE, "3\r\nabc\r\n"},
        {"GET / HTTP/1.0\r\n\r\n", "HTTP/1.0 200 OK\r\n\r\nabc", true, EXCHANGE_ENDS,
         "connection: close\r\n\r\nabc"},
        {"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n",
         "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nabc", true, EXCHANGE_BROKE, "abc"},
        {"", "HTTP/1.1 200 OK\r\n\r\n", true, EXCHANGE_ENDS, ""},
        {"", "", false, EXCHANGE_ENDS, ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct world w;

        open_world(&w, false);
        client(&w, str_of(rows[i].from_client), 1000);
        server(&w, str_of(rows[i].from_server), 1000);
        exchange_server_ended(w.x, rows[i].clean);
        if (exchange_end(w.x) != rows[i].end ||
            !strstr(buf_cstr(exchange_to_client(w.x)), rows[i].says))
            fail_msg("row %zu: %d, '%s'", i, exchange_end(w.x), buf_cstr(exchange_to_client(w.x)));
        close_world(&w);
    }
}

static void a_server_that_cannot_be_spoken_to(void **state)
{
    struct world w;

    (void)state;
    open_world(&w, true);
    exchange_server_failed(w.x, "no good certificate");
    assert_int_equal(exchange_end(w.x), EXCHANGE_GOES_ON);
    client(&w, STR("GET / HTTP/1.1\r\nHost: a.test\r\nX: " PLACE "\r\n\r\n"), 7);
    assert_int_equal(buf_len(exchange_to_server(w.x)), 0);
    assert_non_null(strstr(buf_cstr(exchange_to_client(w.x)), "502 Bad Gateway"));
    assert_non_null(strstr(buf_cstr(exchange_to_client(w.x)), "holt: no good certificate\n"));
    close_world(&w);
}

#define ASK "GET /a HTTP/1.1\r\nHost: a.test\r\nX: " PLACE "\r\n\r\n"

static bool holds(const struct buf *b, const char *text)
{
    return buf_len(b) > 0 && memmem(buf_data(b), buf_len(b), text, strlen(text)) != NULL;
}

/* Names of fields come in small letters: in that form too, and in those of encodings. */
static void a_value_as_a_field_s_name(void **state)
{
    static const char *const names[] = {"X-" VALUE, "The-Real-Value-Of-It", "THE-REAL-VALUE-OF-IT",
                                        "a.dGhlLXJlYWwtdmFsdWUtb2YtaXQ"};
    struct world w;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        AUTO(buf_done) struct buf reply = {0};
        struct buf *got;

        open_world(&w, true);
        client(&w, STR(ASK), 1000);
        buf_printf(&reply, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n%s: 1\r\nKept: 1\r\n\r\nok",
                   names[i]);
        server(&w, buf_str(&reply), 1000);
        got = exchange_to_client(w.x);
        assert_true(holds(got, "kept: 1\r\n"));
        assert_false(holds(got, "real-value"));
        assert_false(holds(got, "dghll"));
        close_world(&w);
    }
}

/* Guesses that a server says back: each reply with one that was right is counted. */
static void what_comes_back_is_counted(void **state)
{
    static const char reply[] =
        "HTTP/1.1 200 OK\r\nContent-Length: 50\r\nL: " VALUE "\r\n\r\n" VALUE VALUE "0123456789";
    struct world w;

    (void)state;
    open_world(&w, true);
    client(&w, STR(ASK), 1000);
    server(&w, str_of(reply), 1000);
    assert_int_equal(w.came_back, 1);
    assert_int_equal(exchange_end(w.x), EXCHANGE_GOES_ON);
    w.most = 1;
    client(&w, STR(ASK), 1000);
    server(&w, str_of(reply), 1000);
    assert_int_equal(exchange_end(w.x), EXCHANGE_BROKE);
    close_world(&w);
}

/* One large request full of guesses, of which an echo would show the right one: nothing of it is
 * echoed, however it is cut, and in whatever form. */
static void a_request_with_a_value_is_refused(void **state)
{
    static const char *const requests[] = {
        "GET /a HTTP/1.1\r\nHost: a.test\r\nX: wrong-one,wrong-two," VALUE ",wrong-four\r\n\r\n",
        "GET /a?k=x" VALUE "y HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: a.test\r\nX: dGhlLXJlYWwtdmFsdWUtb2YtaXQ=\r\n\r\n",
        "POST /a HTTP/1.1\r\nHost: a.test\r\nContent-Length: 51\r\n\r\nwrong-one wrong-two " VALUE
        " wrong-four",
        "POST /a HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nguess\r\n"
        "14\r\n" VALUE "\r\n0\r\n\r\n",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(requests); i++)
        for (size_t step = 1; step < 200; step += 7) {
            struct world w;

            open_world(&w, true);
            client(&w, str_of(requests[i]), step);
            assert_int_equal(w.guessed, 1);
            assert_int_equal(w.refused, 1);
            assert_null(strstr(buf_cstr(exchange_to_server(w.x)), VALUE));
            assert_true(str_starts(buf_str(exchange_to_client(w.x)), STR("HTTP/1.1 403 ")));
            assert_int_not_equal(exchange_end(w.x), EXCHANGE_GOES_ON);
            close_world(&w);
        }
}

#define UPGRADE                                                                                    \
    "GET /ws HTTP/1.1\r\nHost: a.test\r\nX: " PLACE                                                \
    "\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"               \
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
#define UPGRADED                                                                                   \
    "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"            \
    "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"

/* Joins the data frames that a client would get; control: of the last other one. */
static void read_frames(struct str in, struct buf *data, struct buf *control)
{
    while (in.n > 0) {
        const unsigned char *p = (const unsigned char *)in.p;
        size_t n, head = 2;

        assert_true(in.n >= 2);
        n = p[1];
        if (n == 126) {
            n = (size_t)p[2] << 8 | p[3];
            head = 4;
        }
        assert_true(p[1] < 127 && in.n >= head + n);
        if (p[0] & 8) {
            assert_true(n <= 125 && (p[0] & 0x80));
            buf_clear(control);
        }
        buf_add(p[0] & 8 ? control : data, in.p + head, n);
        in = str_skip(in, head + n);
    }
}

/* Nothing of the frames' lengths hangs on the value's. */
static void a_websocket_tells_no_length(void **state)
{
    static const char text[] = "\x81\x18<<" VALUE ">>\x89\x14" VALUE "\x01\x02"
                               "ab"
                               "\x80\x15"
                               "c" VALUE;

    (void)state;
    for (size_t step = 1; step < 40; step += 3) {
        AUTO(buf_done) struct buf data = {0}, control = {0};
        struct buf *got;
        struct world w;

        open_world(&w, true);
        client(&w, STR(UPGRADE), 1000);
        server(&w, STR(UPGRADED), 1000);
        got = exchange_to_client(w.x);
        assert_true(holds(got, "101 Switching"));
        buf_clear(got);
        server(&w, str_make(text, sizeof text - 1), step);
        read_frames(buf_str(got), &data, &control);
        assert_true(str_eq_c(buf_str(&data), "<<" PLACE ">>abc" PLACE));
        assert_true(str_eq_c(buf_str(&control), PLACE));
        close_world(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_and_replies),
        cmocka_unit_test(without_secrets_lengths_stay),
        cmocka_unit_test(how_it_ends),
        cmocka_unit_test(a_server_that_cannot_be_spoken_to),
        cmocka_unit_test(a_value_as_a_field_s_name),
        cmocka_unit_test(what_comes_back_is_counted),
        cmocka_unit_test(a_request_with_a_value_is_refused),
        cmocka_unit_test(a_websocket_tells_no_length),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
