/* Real sockets on the loopback, server and client in one thread: the client never blocks, and
 * turn() runs the server's loop in between. */
#include "net/server.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "net/cors.h"
#include "net/static.h"
#include "unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PATIENCE_MS 60000

struct world {
    uv_loop_t loop;
    struct server *server;
    struct server_limits limits;
    struct xchg *waiting; /* the last exchange of /wait and /upload */
    bool hold;            /* /upload does not consume */
    size_t uploaded, closed, closed_done, held;
    int64_t to_send; /* by /download */
    size_t writes_refused;
    bool stopping, stopped;
};
static struct world w;

static void count_closed(struct xchg *x, bool done)
{
    w.closed++;
    w.closed_done += done;
    if (w.waiting == x)
        w.waiting = NULL;
}

static void echo(struct xchg *x, struct str body)
{
    size_t n;
    const struct http_header *t = xchg_trailers(x, &n);

    if (n > 0)
        xchg_add_header(x, "x-trailer", t[0].value);
    xchg_reply(x, 200, "text/plain", body);
}

static void upload_part(struct xchg *x, struct str part)
{
    w.uploaded += part.n;
    if (w.hold)
        w.held += part.n;
    else
        xchg_consume(x, part.n);
}

static void upload_end(struct xchg *x)
{
    xchg_reply(x, 200, "text/plain", STR("uploaded"));
}

static void download(struct xchg *x)
{
    static const char piece[16384];

    while (w.to_send > 0) {
        w.to_send -= (int64_t)sizeof piece;
        if (xchg_write(x, piece, sizeof piece) == 1) {
            w.writes_refused++;
            return;
        }
    }
    xchg_end(x, NULL, 0);
}

static const struct xchg_ops closed_ops = {.closed = count_closed};
static const struct xchg_ops upload_ops = {
    .body = upload_part, .body_end = upload_end, .closed = count_closed};
static const struct xchg_ops download_ops = {.drained = download, .closed = count_closed};

static int ten_digits(void)
{
    int fd = memfd_create("digits", MFD_CLOEXEC);

    assert_int_equal(fd_write_all(fd, "0123456789", 10), 0);
    return fd;
}

static void serve_special(struct xchg *x, struct str path)
{
    static const struct static_info info = {.type = "text/plain", .etag = "\"v1\""};
    static const char *const origins[] = {"https://good.example"};
    const struct cors cors = {origins, 1};

    if (str_eq_c(path, "/digits"))
        static_fd(x, ten_digits(), &info);
    else if (str_eq_c(path, "/directory"))
        static_fd(x, open("/tmp", O_RDONLY | O_CLOEXEC), &info);
    else if (str_starts(path, STR("/tmp/")))
        static_fd(x, open(arena_cstr(xchg_arena(x), path), O_RDONLY | O_CLOEXEC),
                  &(struct static_info){.type = "a/b"});
    else if (str_eq_c(path, "/cors")) {
        if (!cors_apply(&cors, x))
            xchg_reply(x, 200, "text/plain", STR("ok"));
    } else if (str_eq_c(path, "/inject"))
        xchg_reply_with(x, 200, &(struct http_header){STR("x"), STR("a\r\nb: c")}, 1, STR(""));
    else if (str_eq_c(path, "/short")) {
        xchg_head(x, 200, &(struct http_header){STR("content-length"), STR("9")}, 1);
        xchg_end(x, NULL, 0);
    } else if (str_eq_c(path, "/silent"))
        return;
    else
        xchg_fail(x, &(struct err){.code = ERR_NOT_FOUND, .msg = "no such path"});
}

static void handler(struct xchg *x, void *arg)
{
    struct str path = xchg_req(x)->path;

    (void)arg;
    if (str_eq_c(path, "/hello")) {
        xchg_handle(x, &closed_ops, NULL);
        xchg_reply(x, 200, "text/plain", STR("hi"));
    } else if (str_eq_c(path, "/echo")) {
        xchg_collect(x, 1000, echo);
    } else if (str_eq_c(path, "/upload")) {
        xchg_limit_body(x, 0);
        w.waiting = x;
        xchg_handle(x, &upload_ops, NULL);
    } else if (str_eq_c(path, "/download")) {
        xchg_handle(x, &download_ops, NULL);
        xchg_head(x, 200, NULL, 0);
        download(x);
    } else if (str_eq_c(path, "/wait")) {
        w.waiting = x;
        xchg_handle(x, &closed_ops, NULL);
    } else {
        serve_special(x, path);
    }
}

static int set_up(void **state)
{
    struct server_config c = {.loop = &w.loop, .limits = &w.limits, .handler = handler};
    struct err e;

    (void)state;
    (void)signal(SIGPIPE, SIG_IGN);
    w = (struct world){
        .limits = {.header_max = 4096,
                   .header_count_max = 20,
                   .body_max = 100000,
                   .connections_max = 50,
                   .connections_per_peer = 40,
                   .requests_per_conn = 10,
                   .idle_ms = 60000,
                   .header_ms = 60000,
                   .body_idle_ms = 60000,
                   .write_ms = 60000},
    };
    assert_int_equal(uv_loop_init(&w.loop), 0);
    assert_int_equal(server_new(&c, &w.server, &e), 0);
    assert_int_equal(server_listen(w.server, "127.0.0.1:0", LISTEN_API, &e), 0);
    return 0;
}

static void on_stopped(void *arg)
{
    (void)arg;
    w.stopped = true;
}

static int tear_down(void **state)
{
    (void)state;
    if (!w.stopping)
        server_stop(w.server, 0, on_stopped, NULL);
    (void)uv_run(&w.loop, UV_RUN_DEFAULT);
    assert_true(w.stopped);
    assert_int_equal(uv_loop_close(&w.loop), 0);
    return 0;
}

struct client {
    int fd;
    struct buf got;
    bool eof, reset;
};

static void client_done(struct client *c)
{
    fd_close(c->fd);
    buf_done(&c->got);
}
#define CLIENT __attribute__((cleanup(client_done)))

static struct client client_open(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct client c = {.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};

    a.sin_port = htons((uint16_t)server_listener(w.server, 0)->port);
    assert_int_equal(connect(c.fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(fcntl(c.fd, F_SETFL, O_NONBLOCK), 0);
    return c;
}

/* One turn of the loop, then whatever the client can read. */
static void turn(struct client *c)
{
    char *to;
    ssize_t n;

    if (uv_run(&w.loop, UV_RUN_NOWAIT) == 0 || !c || c->eof || c->reset) {
        (void)usleep(1000);
        return;
    }
    assert_int_equal(buf_reserve(&c->got, 65536, &to), 0);
    n = recv(c->fd, to, 65536, 0);
    if (n > 0)
        buf_added(&c->got, (size_t)n);
    else if (n == 0)
        c->eof = true;
    else if (errno == ECONNRESET)
        c->reset = true;
    else
        (void)usleep(200);
}

static void turn_for(struct client *c, int64_t ms)
{
    int64_t until = clock_mono_ms() + ms;

    while (clock_mono_ms() < until)
        turn(c);
}

static void say(struct client *c, struct str s)
{
    int64_t until = clock_mono_ms() + PATIENCE_MS;

    while (s.n > 0 && clock_mono_ms() < until) {
        ssize_t n = send(c->fd, s.p, s.n, MSG_NOSIGNAL);

        if (n > 0)
            s = str_skip(s, (size_t)n);
        else
            turn(c);
    }
    assert_int_equal(s.n, 0);
}

static size_t count_of(struct client *c, const char *text)
{
    const char *p = buf_cstr(&c->got);
    size_t n = 0;

    while ((p = strstr(p, text))) {
        n++;
        p++;
    }
    return n;
}

static void expect_n(struct client *c, const char *text, size_t n)
{
    int64_t until = clock_mono_ms() + PATIENCE_MS;

    while (count_of(c, text) < n && clock_mono_ms() < until)
        turn(c);
    if (count_of(c, text) != n)
        fail_msg("%zu times '%s', not %zu, in:\n%s", count_of(c, text), text, n, buf_cstr(&c->got));
}

static void expect(struct client *c, const char *text)
{
    expect_n(c, text, 1);
}

static void expect_end(struct client *c)
{
    int64_t until = clock_mono_ms() + PATIENCE_MS;

    while (!c->eof && !c->reset && clock_mono_ms() < until)
        turn(c);
    assert_true(c->eof || c->reset);
}

static void expect_closed(size_t closed, size_t done)
{
    int64_t until = clock_mono_ms() + PATIENCE_MS;

    while (w.closed < closed && clock_mono_ms() < until)
        turn(NULL);
    assert_int_equal(w.closed, closed);
    assert_int_equal(w.closed_done, done);
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"

static void a_connection_serves_many_requests(void **state)
{
    CLIENT struct client c = client_open();

    (void)state;
    for (size_t i = 1; i <= 3; i++) {
        say(&c, STR(GET("/hello")));
        expect_n(&c, "content-length: 2\r\n\r\nhi", i);
    }
    expect_n(&c, "connection: close", 0);
    expect_closed(3, 3);
    say(&c, STR("GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
    expect(&c, "connection: close");
    expect_end(&c);
    assert_true(c.eof);
}

static void http_1_0_closes_unless_asked(void **state)
{
    CLIENT struct client c = client_open();

    (void)state;
    w.to_send = 16384;
    say(&c, STR("GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
    expect(&c, "connection: keep-alive\r\n");
    say(&c, STR("GET /download HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
    expect_end(&c);
    expect_n(&c, "chunked", 0);
    expect(&c, "connection: close");
}

static void pipelined_replies_come_in_order(void **state)
{
    CLIENT struct client c = client_open();
    AUTO(buf_done) struct buf b = {0};
    const char *hello, *echoed;

    (void)state;
    for (int i = 0; i < 100; i++)
        buf_add_c(&b,
                  GET("/hello") "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc");
    say(&c, buf_str(&b));
    expect_n(&c, "\r\n\r\nabc", 100);
    expect_n(&c, "\r\n\r\nhi", 100);
    hello = strstr(buf_cstr(&c.got), "\r\n\r\nhi");
    echoed = strstr(buf_cstr(&c.got), "\r\n\r\nabc");
    assert_true(hello && echoed && hello < echoed);
    expect_closed(100, 100);
}

static void a_pipelined_request_waits_for_the_reply_before_it(void **state)
{
    CLIENT struct client c = client_open();

    (void)state;
    say(&c, STR(GET("/wait") GET("/hello")));
    while (!w.waiting)
        turn(&c);
    turn_for(&c, 30);
    expect_n(&c, "HTTP/1.1", 0);
    assert_non_null(w.waiting);
    xchg_reply(w.waiting, 201, "text/plain", STR("late"));
    expect(&c, "\r\n\r\nhi");
    assert_true(str_starts(buf_str(&c.got), STR("HTTP/1.1 201 ")));
}

static void chunked_bodies_come_in_with_trailers(void **state)
{
    CLIENT struct client c = client_open();
    const struct str text =
        STR("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
            "3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nX-Sum: 42\r\n\r\n");

    (void)state;
    for (size_t i = 0; i < text.n; i++) {
        say(&c, str_make(text.p + i, 1));
        turn(&c);
    }
    expect(&c, "x-trailer: 42");
    expect(&c, "\r\n\r\nabcdefg");
    say(&c, STR(GET("/hello")));
    expect(&c, "\r\n\r\nhi");
}

static void head_and_errors_have_no_surprises(void **state)
{
    CLIENT struct client c = client_open();

    (void)state;
    say(&c, STR("HEAD /hello HTTP/1.1\r\nHost: a\r\n\r\n" GET("/none") GET("/silent")));
    expect(&c, "content-length: 2\r\n\r\nHTTP/1.1 404 Not Found");
    expect(&c, "{\"error\":{\"code\":\"not_found\",\"message\":\"no such path\"");
    expect(&c, "HTTP/1.1 500 ");
}

static void bad_requests_get_json_and_the_end(void **state)
{
    static const struct {
        const char *want;
        struct str text;
    } cases[] = {
        {"HTTP/1.1 400 Bad Request\r\n", STR("GET / HTTP/1.1\nHost: a\n\n")},
        {"HTTP/1.1 400 Bad Request\r\n", STR("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n"
                                             "Transfer-Encoding: chunked\r\n\r\n")},
        {"HTTP/1.1 501 ", STR("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: x\r\n\r\n")},
        {"HTTP/1.1 505 ", STR("GET / HTTP/3.0\r\nHost: a\r\n\r\n")},
        {"HTTP/1.1 417 ",
         STR("POST / HTTP/1.1\r\nHost: a\r\nExpect: x\r\nContent-Length: 1\r\n\r\n")},
        {"HTTP/1.1 400 ",
         STR("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz")},
        {"HTTP/1.1 413 ", STR("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n")},
        {"HTTP/1.1 413 ", STR("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                              "3e8\r\n")},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLIENT struct client c = client_open();
        AUTO(buf_done) struct buf b = {0};

        buf_add_str(&b, cases[i].text);
        if (i == 7) {
            for (int k = 0; k < 1000; k++)
                buf_add_char(&b, 'x');
            buf_add_c(&b, "\r\n1\r\nx\r\n");
        }
        say(&c, buf_str(&b));
        expect(&c, cases[i].want);
        expect(&c, "{\"error\":{\"code\":\"");
        expect(&c, "connection: close");
        expect_end(&c);
    }
}

static void oversized_heads_are_refused(void **state)
{
    CLIENT struct client c = client_open(), d = client_open();
    AUTO(buf_done) struct buf b = {0};

    (void)state;
    buf_add_c(&b, "GET /");
    for (int i = 0; i < 20000; i++)
        buf_add_char(&b, 'x');
    say(&c, buf_str(&b));
    expect(&c, "HTTP/1.1 414 ");
    buf_clear(&b);
    buf_add_c(&b, "GET / HTTP/1.1\r\n");
    for (int i = 0; i < 30; i++)
        buf_add_c(&b, "a: b\r\n");
    say(&d, buf_str(&b));
    expect(&d, "HTTP/1.1 431 ");
}

static void a_100_goes_out_when_the_body_is_wanted(void **state)
{
    CLIENT struct client c = client_open(), d = client_open();

    (void)state;
    say(&c,
        STR("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"));
    expect(&c, "HTTP/1.1 100 Continue\r\n\r\n");
    say(&c, STR("ok"));
    expect(&c, "\r\n\r\nok");
    say(&d,
        STR("POST /none HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"));
    expect(&d, "HTTP/1.1 404 ");
    expect(&d, "connection: close"); /* whether the two bytes will come nobody knows */
    expect_n(&d, "100 Continue", 0);
    expect_end(&d);
}

static void a_body_nobody_wants_is_drained(void **state)
{
    CLIENT struct client c = client_open(), d = client_open();
    AUTO(buf_done) struct buf b = {0};

    (void)state;
    say(&c, STR("POST /none HTTP/1.1\r\nHost: a\r\nContent-Length: 50000\r\n\r\n"));
    expect(&c, "HTTP/1.1 404 ");
    for (int i = 0; i < 50000; i++)
        buf_add_char(&b, 'x');
    say(&c, buf_str(&b));
    say(&c, STR(GET("/hello")));
    expect(&c, "\r\n\r\nhi");
    say(&d, STR("POST /none HTTP/1.1\r\nHost: a\r\nContent-Length: 5000000\r\n\r\n"));
    say(&d, buf_str(&b));
    expect(&d, "connection: close");
    expect(&d, "no such path"); /* not destroyed by a reset */
    expect_end(&d);
    assert_true(d.eof);
}

static void a_refused_upload_still_sees_the_reply(void **state)
{
    CLIENT struct client c = client_open();
    static char block[300000];

    (void)state;
    say(&c, STR("POST /none HTTP/1.1\r\nHost: a\r\nContent-Length: 9000000\r\n\r\n"));
    assert_int_equal(send(c.fd, block, sizeof block, 0), sizeof block);
    turn_for(NULL, 30);
    for (int i = 0; i < 5; i++) { /* a closed socket would answer the first by a reset */
        assert_int_equal(send(c.fd, block, 1000, MSG_NOSIGNAL), 1000);
        turn_for(NULL, 5);
    }
    expect(&c, "no such path");
    expect_end(&c);
    assert_true(c.eof);
}

static void draining_has_an_end(void **state)
{
    CLIENT struct client c = client_open();
    static char block[400000];

    (void)state;
    say(&c, STR("POST /none HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"));
    expect(&c, "no such path");
    expect_n(&c, "connection: close", 0);
    say(&c, STR("61a80\r\n"));
    say(&c, str_make(block, sizeof block));
    say(&c, STR("\r\n0\r\n\r\n" GET("/hello")));
    expect_end(&c);
    expect_n(&c, "\r\n\r\nhi", 0);
}

static void a_slow_handler_slows_the_upload(void **state)
{
    CLIENT struct client c = client_open();
    static char block[65536];
    size_t sent = 0, stuck = 0;

    (void)state;
    w.hold = true;
    say(&c, STR("POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 33554432\r\n\r\n"));
    while (sent < 33554432 && stuck < 200) {
        ssize_t n = send(c.fd, block, size_min(sizeof block, 33554432 - sent), MSG_NOSIGNAL);

        stuck = n > 0 ? 0 : stuck + 1;
        sent += n > 0 ? (size_t)n : 0;
        turn(&c);
    }
    assert_true(sent < 33554432);
    assert_int_equal(w.uploaded, 256 * 1024);
    w.hold = false;
    xchg_consume(w.waiting, w.held);
    while (sent < 33554432) {
        ssize_t n = send(c.fd, block, size_min(sizeof block, 33554432 - sent), MSG_NOSIGNAL);

        sent += n > 0 ? (size_t)n : 0;
        turn(&c);
    }
    expect(&c, "uploaded");
    assert_int_equal(w.uploaded, 33554432);
}

static void a_slow_reader_slows_the_download(void **state)
{
    CLIENT struct client c = client_open();
    const int64_t total = 64LL << 20;
    size_t got = 0;

    (void)state;
    w.to_send = total;
    say(&c, STR(GET("/download")));
    for (int i = 0; i < 300; i++)
        turn(NULL);
    assert_true(w.writes_refused > 0 && w.to_send > total / 2);
    while (!strstr(buf_cstr(&c.got), "\r\n0\r\n\r\n")) {
        size_t keep = size_min(buf_len(&c.got), 16);

        got += buf_len(&c.got) - keep;
        buf_take(&c.got, buf_len(&c.got) - keep);
        turn(&c);
        for (char *p = buf_data(&c.got); p && p < buf_data(&c.got) + buf_len(&c.got); p++)
            *p = *p ? *p : '.'; /* so that strstr sees it all */
    }
    got += buf_len(&c.got);
    assert_true(got > (size_t)total && got < (size_t)(total + total / 50));
    assert_int_equal(w.to_send, 0);
    expect_closed(1, 1);
}

static void a_disconnect_is_seen_while_the_reply_is_owed(void **state)
{
    struct client c = client_open();
    CLIENT struct client d = client_open();

    (void)state;
    say(&c, STR(GET("/wait")));
    while (!w.waiting)
        turn(NULL);
    client_done(&c);
    expect_closed(1, 0);
    assert_null(w.waiting);
    w.limits.body_idle_ms = w.limits.idle_ms = w.limits.header_ms = w.limits.write_ms = 50;
    say(&d, STR(GET("/wait"))); /* and no timeout runs meanwhile */
    turn_for(&d, 700);
    assert_non_null(w.waiting);
    xchg_reply(w.waiting, 200, "text/plain", STR("at last"));
    expect(&d, "at last");
}

static void a_disconnect_is_seen_behind_unread_input(void **state)
{
    struct client c = client_open();
    static char junk[100000];

    (void)state;
    say(&c, STR(GET("/wait")));
    say(&c, str_make(junk, sizeof junk)); /* more than is kept for later */
    while (!w.waiting)
        turn(NULL);
    turn_for(NULL, 20);
    client_done(&c);
    expect_closed(1, 0);
}

static void slow_peers_are_timed_out(void **state)
{
    CLIENT struct client head = client_open(), body = client_open(), idle = client_open(),
                         reader = client_open();

    (void)state;
    w.limits.header_ms = w.limits.body_idle_ms = w.limits.idle_ms = w.limits.write_ms = 2000;
    w.to_send = 64LL << 20;
    say(&head, STR("GET / HT"));
    say(&body, STR("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n12"));
    say(&idle, STR(GET("/hello")));
    say(&reader, STR(GET("/download")));
    turn_for(NULL, 100);
    say(&head, STR("TP/1.1\r\nX:")); /* a byte now and then does not help */
    expect(&head, "HTTP/1.1 408 ");
    expect(&body, "HTTP/1.1 408 ");
    expect(&idle, "\r\n\r\nhi");
    expect_end(&head);
    expect_end(&body);
    expect_end(&idle);
    expect_closed(2, 1); /* idle's request ended well, reader's did not */
}

static void a_request_that_waited_for_a_busy_loop_is_served(void **state)
{
    CLIENT struct client c = client_open(), fresh = client_open();

    (void)state;
    w.limits.idle_ms = 300;
    say(&c, STR(GET("/hello")));
    expect(&c, "\r\n\r\nhi");
    buf_clear(&c.got);
    turn_for(NULL, 20);
    (void)usleep(700000); /* the loop does something else; the sweep is due before the requests */
    say(&c, STR(GET("/hello")));
    say(&fresh, STR(GET("/hello")));
    expect(&c, "\r\n\r\nhi");
    expect(&fresh, "\r\n\r\nhi");
}

static void connections_are_limited(void **state)
{
    struct client many[50];

    (void)state;
    for (size_t i = 0; i < 40; i++) {
        many[i] = client_open();
        turn(NULL);
    }
    many[40] = client_open();
    expect(&many[40], "HTTP/1.1 429 ");
    expect_end(&many[40]);
    w.limits.connections_max = 40;
    many[41] = client_open();
    expect(&many[41], "HTTP/1.1 503 ");
    say(&many[0], STR(GET("/hello")));
    expect(&many[0], "\r\n\r\nhi");
    assert_int_equal(server_connection_count(w.server), 40);
    for (size_t i = 0; i < 42; i++)
        client_done(&many[i]);
    for (int64_t until = clock_mono_ms() + PATIENCE_MS;
         server_connection_count(w.server) > 0 && clock_mono_ms() < until;)
        turn(NULL);
    assert_int_equal(server_connection_count(w.server), 0);
}

static void ranges_and_tags_work(void **state)
{
    static const struct {
        const char *extra, *want, *tail;
    } cases[] = {
        {"", "HTTP/1.1 200 ", "\r\n\r\n0123456789"},
        {"Range: bytes=2-4\r\n", "content-range: bytes 2-4/10", "\r\n\r\n234"},
        {"Range: bytes=7-\r\n", "content-range: bytes 7-9/10", "\r\n\r\n789"},
        {"Range: bytes=-2\r\n", "content-range: bytes 8-9/10", "\r\n\r\n89"},
        {"Range: bytes=10-\r\n", "HTTP/1.1 416 ", "content-range: bytes */10"},
        {"Range: bytes=1-2,4-5\r\n", "HTTP/1.1 200 ", "\r\n\r\n0123456789"},
        {"If-None-Match: W/\"v1\"\r\n", "HTTP/1.1 304 ", "etag: \"v1\""},
        {"If-None-Match: \"v0\"\r\n", "HTTP/1.1 200 ", "etag: \"v1\""},
        {"Range: bytes=2-4\r\nIf-Range: \"v1\"\r\n", "HTTP/1.1 206 ", "\r\n\r\n234"},
        {"Range: bytes=2-4\r\nIf-Range: \"v0\"\r\n", "HTTP/1.1 200 ", "\r\n\r\n0123456789"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLIENT struct client c = client_open();
        AUTO(buf_done) struct buf b = {0};

        buf_printf(&b, "GET /digits HTTP/1.1\r\nHost: a\r\n%s\r\n", cases[i].extra);
        say(&c, buf_str(&b));
        expect(&c, cases[i].want);
        expect(&c, cases[i].tail);
    }
}

static void files_are_streamed(void **state)
{
    CLIENT struct client c = client_open();
    char path[] = "/tmp/holt-static-XXXXXX";
    AUTO(fd_close) int fd = mkstemp(path);
    AUTO(buf_done) struct buf b = {0};

    (void)state;
    for (int i = 0; i < 300000; i++)
        buf_add_char(&b, (char)('a' + i % 26));
    buf_add_c(&b, "!THE END!");
    assert_int_equal(fd_write_all(fd, buf_data(&b), buf_len(&b)), 0);
    buf_clear(&b);
    buf_printf(&b,
               "GET %s HTTP/1.1\r\nHost: a\r\n\r\nGET /directory HTTP/1.1\r\nHost: a\r\n\r\n"
               "HEAD %s HTTP/1.1\r\nHost: a\r\n\r\n"
               "DELETE %s HTTP/1.1\r\nHost: a\r\n\r\n",
               path, path, path);
    say(&c, buf_str(&b));
    expect(&c, "!THE END!HTTP/1.1 404 ");
    expect_n(&c, "content-length: 300009", 2);
    expect(&c, "HTTP/1.1 405 ");
    (void)unlink(path);
}

static void cors_follows_the_list(void **state)
{
    CLIENT struct client c = client_open(), d = client_open();

    (void)state;
    say(&c, STR("GET /cors HTTP/1.1\r\nHost: a\r\nOrigin: https://good.example\r\n\r\n"));
    expect(&c, "access-control-allow-origin: https://good.example\r\n");
    expect(&c, "vary: Origin\r\n");
    say(&c,
        STR("OPTIONS /cors HTTP/1.1\r\nHost: a\r\nOrigin: https://good.example\r\n"
            "Access-Control-Request-Method: PUT\r\nAccess-Control-Request-Headers: x-y\r\n\r\n"));
    expect(&c, "HTTP/1.1 204 ");
    expect(&c, "access-control-allow-headers: x-y\r\n");
    say(&d, STR("GET /cors HTTP/1.1\r\nHost: a\r\nOrigin: https://bad.example\r\n\r\n"
                "OPTIONS /cors HTTP/1.1\r\nHost: a\r\nOrigin: https://bad.example\r\n"
                "Access-Control-Request-Method: PUT\r\n\r\n"));
    expect(&d, "HTTP/1.1 403 ");
    expect_n(&d, "access-control-allow-origin", 0);
    expect_n(&d, "vary: Origin\r\n", 2);
}

static void wrong_replies_cut_the_connection(void **state)
{
    CLIENT struct client c = client_open(), d = client_open();

    (void)state;
    say(&c, STR(GET("/inject")));
    expect_end(&c);
    assert_int_equal(buf_len(&c.got), 0);
    say(&d, STR(GET("/short")));
    expect_end(&d);
    assert_true(d.reset);
}

static void stopping_lets_replies_end(void **state)
{
    CLIENT struct client c = client_open(), idle = client_open();

    (void)state;
    say(&c, STR(GET("/wait")));
    while (!w.waiting)
        turn(&c);
    w.stopping = true;
    server_stop(w.server, 5000, on_stopped, NULL);
    expect_end(&idle);
    assert_false(w.stopped);
    xchg_reply(w.waiting, 200, "text/plain", STR("bye"));
    expect(&c, "connection: close");
    expect(&c, "\r\n\r\nbye");
    expect_end(&c);
    expect_closed(1, 1);
}

static void addresses_are_checked(void **state)
{
    char path[] = "/tmp/holt-sock-XXXXXX", address[64], taken[64];
    struct err e;

    (void)state;
    (void)snprintf(taken, sizeof taken, "127.0.0.1:%d", server_listener(w.server, 0)->port);
    assert_int_equal(server_listen(w.server, taken, LISTEN_API, &e), -1);
    assert_non_null(strstr(e.msg, taken));
    assert_int_equal(server_listen(w.server, "nowhere", LISTEN_API, &e), -1);
    assert_int_equal(server_listen(w.server, "1.2.3.4.5:80", LISTEN_API, &e), -1);
    assert_int_equal(server_listen(w.server, "127.0.0.1:99999", LISTEN_API, &e), -1);
    assert_int_equal(server_listen(w.server, "tls://127.0.0.1:0", LISTEN_API, &e), -1);
    assert_int_equal(server_listen(w.server, "[::1]:0", LISTEN_API, &e), 0);
    assert_true(server_listener(w.server, 1)->port > 0 && server_listener(w.server, 1)->loopback);
    fd_close(mkstemp(path));
    (void)snprintf(address, sizeof address, "unix:%s", path);
    assert_int_equal(server_listen(w.server, address, LISTEN_API, &e),
                     -1); /* no socket: not ours */
    (void)unlink(path);
    assert_int_equal(server_listen(w.server, address, LISTEN_API, &e), 0);
    assert_int_equal(server_listen(w.server, address, LISTEN_API, &e), -1); /* somebody answers */
    assert_int_equal(e.sys, EADDRINUSE);
}

static void a_stale_socket_file_is_replaced(void **state)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    AUTO(fd_close) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CLIENT struct client c = {.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    char address[128];
    struct err e;

    (void)state;
    (void)snprintf(a.sun_path, sizeof a.sun_path, "/tmp/holt-stale-%d", (int)getpid());
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    (void)snprintf(address, sizeof address, "unix:%s", a.sun_path);
    assert_int_equal(server_listen(w.server, address, LISTEN_API, &e), 0);
    assert_int_equal(connect(c.fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(fcntl(c.fd, F_SETFL, O_NONBLOCK), 0);
    say(&c, STR(GET("/wait")));
    while (!w.waiting)
        turn(&c);
    assert_int_equal(xchg_peer(w.waiting)->uid, getuid());
    assert_int_equal(xchg_peer(w.waiting)->pid, (uint32_t)getpid());
    xchg_reply(w.waiting, 200, "text/plain", STR("local"));
    expect(&c, "local");
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_connection_serves_many_requests),
        CASE(http_1_0_closes_unless_asked),
        CASE(pipelined_replies_come_in_order),
        CASE(a_pipelined_request_waits_for_the_reply_before_it),
        CASE(chunked_bodies_come_in_with_trailers),
        CASE(head_and_errors_have_no_surprises),
        CASE(bad_requests_get_json_and_the_end),
        CASE(oversized_heads_are_refused),
        CASE(a_100_goes_out_when_the_body_is_wanted),
        CASE(a_body_nobody_wants_is_drained),
        CASE(a_refused_upload_still_sees_the_reply),
        CASE(draining_has_an_end),
        CASE(a_slow_handler_slows_the_upload),
        CASE(a_slow_reader_slows_the_download),
        CASE(a_disconnect_is_seen_while_the_reply_is_owed),
        CASE(a_disconnect_is_seen_behind_unread_input),
        CASE(slow_peers_are_timed_out),
        CASE(a_request_that_waited_for_a_busy_loop_is_served),
        CASE(connections_are_limited),
        CASE(ranges_and_tags_work),
        CASE(files_are_streamed),
        CASE(cors_follows_the_list),
        CASE(wrong_replies_cut_the_connection),
        CASE(stopping_lets_replies_end),
        CASE(addresses_are_checked),
        CASE(a_stale_socket_file_is_replaced),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
