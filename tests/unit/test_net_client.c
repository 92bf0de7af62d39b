#include "net/client.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "unit.h"

#include <ares.h>
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

/* Stands before c-ares's own: for this name, a server that never answers. */
void ares_getaddrinfo(ares_channel channel, const char *name, const char *service,
                      const struct ares_addrinfo_hints *hints, ares_addrinfo_callback done,
                      void *arg)
{
    void (*real)(ares_channel, const char *, const char *, const struct ares_addrinfo_hints *,
                 ares_addrinfo_callback, void *);
    static int mute = -1;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    char server[32];

    if (strcmp(name, "slow.test") == 0 && mute < 0) {
        mute = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(mute, (struct sockaddr *)&at, size), 0);
        assert_int_equal(getsockname(mute, (struct sockaddr *)&at, &size), 0);
        (void)snprintf(server, sizeof server, "127.0.0.1:%d", ntohs(at.sin_port));
        assert_int_equal(ares_set_servers_ports_csv(channel, server), ARES_SUCCESS);
    }
    *(void **)&real = dlsym(RTLD_NEXT, "ares_getaddrinfo");
    real(channel, name, service, hints, done, arg);
}

/* A peer that reads one request, then sends what it was told to. */
struct peer_script {
    const char *reply;
    size_t split;       /* bytes of one send; 0: all at once */
    size_t body_bytes;  /* of a made-up body behind it */
    size_t request_end; /* reads until this many bytes came; 0: until the empty line */
    int hold_ms;        /* then keeps the connection open */
};

struct server_thread {
    pthread_t thread;
    int listener, port;
    const struct peer_script *script;
    struct buf got;
};

static void read_request(struct server_thread *s, int fd)
{
    char part[65536];

    for (;;) {
        ssize_t n;
        size_t end = s->script->request_end;

        if (end ? buf_len(&s->got) >= end
                : buf_len(&s->got) > 0 && strstr(buf_cstr(&s->got), "\r\n\r\n") != NULL)
            return;
        n = read(fd, part, sizeof part);
        if (n <= 0)
            return;
        buf_add(&s->got, part, (size_t)n);
    }
}

static void *serve(void *arg)
{
    struct server_thread *s = arg;
    AUTO(fd_close) int fd = accept(s->listener, NULL, NULL);
    const struct peer_script *p = s->script;
    size_t n = strlen(p->reply), split = p->split ? p->split : n;
    char zeros[4096] = {0};

    read_request(s, fd);
    for (size_t at = 0; at < n; at += split) {
        if (send(fd, p->reply + at, size_min(split, n - at), MSG_NOSIGNAL) < 0)
            return NULL;
        if (p->split)
            usleep(200);
    }
    for (size_t left = p->body_bytes; left > 0;) {
        ssize_t w = send(fd, zeros, size_min(left, sizeof zeros), MSG_NOSIGNAL);

        if (w <= 0)
            return NULL;
        left -= (size_t)w;
    }
    if (p->hold_ms) /* or until the client goes */
        (void)poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, p->hold_ms);
    return NULL;
}

static void server_start(struct server_thread *s, const struct peer_script *script)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t n = sizeof a;

    *s = (struct server_thread){.script = script};
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->listener, (const struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(s->listener, 1), 0);
    assert_int_equal(getsockname(s->listener, (struct sockaddr *)&a, &n), 0);
    s->port = ntohs(a.sin_port);
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void server_end(struct server_thread *s)
{
    pthread_join(s->thread, NULL);
    fd_close(s->listener);
    buf_done(&s->got);
}

struct seen {
    int status, heads, closed;
    char type[64];
    struct buf body;
    size_t body_total;
    struct err e;
    size_t most_unconsumed, unconsumed;
    bool keep, slow, cancel_at_head, cancel_at_body;
    uv_timer_t timer;
    struct client *client;
    int64_t closed_ms;
    size_t to_send; /* of a streamed request body */
};

static void on_head(struct client *c, int status, const struct http_header *h, size_t count)
{
    struct seen *s = client_arg(c);
    const struct http_header *type = http_get(h, count, "content-type");

    s->heads++;
    s->status = status;
    if (type)
        (void)snprintf(s->type, sizeof s->type, STR_FMT, STR_ARG(type->value));
    if (s->cancel_at_head)
        client_cancel(c);
}

static void on_body(struct client *c, struct str part)
{
    struct seen *s = client_arg(c);

    s->body_total += part.n;
    if (s->keep)
        buf_add(&s->body, part.p, part.n);
    if (s->cancel_at_body)
        client_cancel(c);
    else if (s->slow) {
        s->unconsumed += part.n;
        s->most_unconsumed = size_max(s->most_unconsumed, s->unconsumed);
    } else {
        client_consume(c, part.n);
    }
}

static void on_writable(struct client *c)
{
    static char block[30000];
    struct seen *s = client_arg(c);
    int r = 0;

    while (s->to_send > 0 && r == 0) {
        size_t n = size_min(s->to_send, sizeof block);

        s->to_send -= n;
        r = client_write(c, block, n);
    }
    if (s->to_send == 0)
        client_write_end(c);
}

static void on_closed(struct client *c, const struct err *e)
{
    struct seen *s = client_arg(c);

    s->closed++;
    s->closed_ms = clock_mono_ms();
    s->e = *e;
    s->client = NULL;
    if (s->slow)
        uv_close((uv_handle_t *)&s->timer, NULL);
}

static void on_tick(uv_timer_t *t)
{
    struct seen *s = t->data;
    size_t n = s->unconsumed;

    s->unconsumed = 0;
    if (s->client && n > 0)
        client_consume(s->client, n);
}

static void run(struct seen *s, struct client_request *r, const char *url_text)
{
    static const struct client_ops ops = {
        .head = on_head, .body = on_body, .writable = on_writable, .closed = on_closed};
    AUTO(client_url_done) struct client_url url = {0};
    struct err e = {0};
    uv_loop_t loop;

    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(client_url_parse(url_text, &url, &e), 0);
    r->loop = &loop;
    r->url = &url;
    r->method = r->method ? r->method : "GET";
    r->target = r->target ? r->target : "/x?y=1";
    r->ops = &ops;
    r->arg = s;
    assert_int_equal(client_start(r, &s->client, &e), 0);
    if (s->slow) {
        s->timer.data = s;
        assert_int_equal(uv_timer_init(&loop, &s->timer), 0);
        assert_int_equal(uv_timer_start(&s->timer, on_tick, 2, 2), 0);
    }
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    assert_int_equal(s->closed, 1);
}

static void ask(struct seen *s, struct client_request *r, const struct peer_script *script,
                struct buf *ret_request)
{
    struct server_thread server;
    char url[64];

    server_start(&server, script);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d/base/", server.port);
    run(s, r, url);
    if (ret_request)
        buf_add_str(ret_request, buf_str(&server.got));
    server_end(&server);
}

static void whole_replies_of_every_framing(void **state)
{
    static const char *const replies[] = {
        "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nTransfer-Encoding: chunked\r\n\r\n"
        "2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nT: v\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nConnection: close\r\n\r\nhello",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nA: b\r\n\r\n"
        "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nContent-Length: 5\r\n\r\nhello",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(replies) * 2; i++) {
        struct peer_script p = {.reply = replies[i / 2], .split = i % 2};
        struct seen s = {.keep = true};

        ask(&s, &(struct client_request){0}, &p, NULL);
        assert_int_equal(s.e.code, ERR_NONE);
        assert_int_equal(s.status, 200);
        assert_int_equal(s.heads, 1);
        assert_string_equal(s.type, "a/b");
        assert_string_equal(buf_cstr(&s.body), "hello");
        buf_done(&s.body);
    }
}

static void the_request_is_as_told(void **state)
{
    struct http_header h[] = {{STR("x-a"), STR("b")}};
    struct peer_script p = {.reply = "HTTP/1.1 204 No Content\r\n\r\n"};
    struct client_request r = {
        .method = "POST", .headers = h, .header_count = 1, .body = STR("{}")};
    AUTO(buf_done) struct buf got = {0};
    struct seen s = {0};

    (void)state;
    ask(&s, &r, &p, &got);
    assert_int_equal(s.e.code, ERR_NONE);
    assert_int_equal(s.status, 204);
    assert_true(str_starts(buf_str(&got), STR("POST /base/x?y=1 HTTP/1.1\r\nhost: 127.0.0.1:")));
    assert_non_null(strstr(buf_cstr(&got), "\r\nx-a: b\r\n"));
    assert_non_null(strstr(buf_cstr(&got), "\r\ncontent-length: 2\r\n"));
    assert_true(str_ends(buf_str(&got), STR("\r\n\r\n{}")));
}

static void what_would_forge_a_request_is_refused(void **state)
{
    static const struct {
        const char *method, *target, *name, *value;
    } bad[] = {
        {"GET", "/a b", "x", "y"}, {"GET", "/a\r\nx: y", "x", "y"},
        {"G T", "/", "x", "y"},    {"GET", "/", "x", "y\r\nz: 1"},
        {"GET", "/", "x y", "z"},  {"GET", "nopath", "x", "y"},
    };
    static const struct client_ops ops = {.closed = on_closed};
    struct client_url url = {.prefix = (char[]){""}, .authority = (char[]){"h"}};
    struct client *c;
    struct err e;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct http_header h = {str_of(bad[i].name), str_of(bad[i].value)};
        struct client_request r = {.url = &url,
                                   .method = bad[i].method,
                                   .target = bad[i].target,
                                   .headers = &h,
                                   .header_count = 1,
                                   .ops = &ops};

        assert_int_equal(client_start(&r, &c, &e), -1);
        assert_int_equal(e.code, ERR_INVALID);
    }
}

static void a_streamed_body_is_chunked_or_counted(void **state)
{
    struct peer_script p = {.reply = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
                            .request_end = 3000000};
    AUTO(buf_done) struct buf chunked = {0};
    AUTO(buf_done) struct buf counted = {0};
    struct seen s = {.to_send = 3000000};
    struct client_request r = {.method = "PUT", .streamed = true, .streamed_length = -1};

    (void)state;
    ask(&s, &r, &p, &chunked);
    assert_int_equal(s.e.code, ERR_NONE);
    assert_int_equal(s.to_send, 0);
    assert_non_null(strstr(buf_cstr(&chunked), "transfer-encoding: chunked\r\n\r\n7530\r\n"));
    s = (struct seen){.to_send = 3000000};
    r = (struct client_request){.method = "PUT", .streamed = true, .streamed_length = 3000000};
    ask(&s, &r, &p, &counted);
    assert_int_equal(s.e.code, ERR_NONE);
    assert_non_null(strstr(buf_cstr(&counted), "content-length: 3000000\r\n"));
}

static void a_slow_reader_bounds_the_memory(void **state)
{
    struct peer_script p = {.reply = "HTTP/1.1 200 OK\r\nContent-Length: 8000000\r\n\r\n",
                            .body_bytes = 8000000};
    struct seen s = {.slow = true};

    (void)state;
    ask(&s, &(struct client_request){.idle_ms = 5000}, &p, NULL);
    assert_int_equal(s.e.code, ERR_NONE);
    assert_int_equal(s.body_total, 8000000);
    assert_in_range(s.most_unconsumed, 1, 400 * 1024);
}

static void broken_replies_are_errors(void **state)
{
    static const char *const replies[] = {
        "",
        "HTTP/1.1 200 OK\r\nContent-Le",
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "SSH-2.0-OpenSSH_9.2\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(replies); i++) {
        struct peer_script p = {.reply = replies[i]};
        struct seen s = {0};

        ask(&s, &(struct client_request){0}, &p, NULL);
        assert_int_equal(s.e.code, ERR_UNAVAILABLE);
        assert_true(s.e.msg[0] != '\0');
    }
}

static void every_wait_has_an_end(void **state)
{
    static const struct {
        struct peer_script p;
        struct client_request r;
        const char *words;
    } rows[] = {
        {{.reply = "", .hold_ms = 60000}, {.head_ms = 50}, "no reply in time"},
        {{.reply = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab", .hold_ms = 60000},
         {.idle_ms = 500},
         "the reply stalled"},
        {{.reply = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab", .hold_ms = 60000},
         {.total_ms = 2000},
         "the reply stalled"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct client_request r = rows[i].r;
        int64_t before = clock_mono_ms();
        struct seen s = {0};
        struct server_thread server;
        char url[64];

        server_start(&server, &rows[i].p);
        (void)snprintf(url, sizeof url, "http://127.0.0.1:%d", server.port);
        run(&s, &r, url);
        assert_in_range(clock_mono_ms() - before, 40, 50000);
        server_end(&server);
        assert_int_equal(s.e.code, ERR_TIMEOUT);
        assert_non_null(strstr(s.e.msg, rows[i].words));
    }
}

static void cancelling_ends_it_at_once(void **state)
{
    struct peer_script p = {.reply = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct seen s = {.cancel_at_head = i == 0, .cancel_at_body = i == 1};

        ask(&s, &(struct client_request){0}, &p, NULL);
        assert_int_equal(s.e.code, ERR_CANCELLED);
        assert_int_equal(s.body_total, i == 0 ? 0 : 5);
    }
}

static void nobody_there_is_an_error(void **state)
{
    struct seen s = {0};

    (void)state;
    run(&s, &(struct client_request){0}, "unix:/nonexistent/holt.sock");
    assert_int_equal(s.e.code, ERR_UNAVAILABLE);
    assert_int_equal(s.e.sys, ENOENT);
    s = (struct seen){0};
    run(&s, &(struct client_request){0}, "http://127.0.0.1:1");
    assert_int_equal(s.e.sys, ECONNREFUSED);
    s = (struct seen){0};
    run(&s, &(struct client_request){.connect_ms = 5000}, "http://no-such-host.invalid");
    assert_true(s.e.code == ERR_UNAVAILABLE || s.e.code == ERR_TIMEOUT);
}

static void a_slow_name_server_does_not_delay_the_end(void **state)
{
    int64_t before = clock_mono_ms();
    struct seen s = {0};

    (void)state;
    run(&s, &(struct client_request){.connect_ms = 50}, "http://slow.test");
    assert_int_equal(s.e.code, ERR_TIMEOUT);
    assert_in_range(s.closed_ms - before, 40, 50000);
}

static void an_upgrade_becomes_raw_bytes(void **state)
{
    struct peer_script p = {.reply = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n"
                                     "Connection: upgrade\r\n\r\nraw\r\n\r\nbytes"};
    struct seen s = {.keep = true};

    (void)state;
    ask(&s, &(struct client_request){.upgrade = true}, &p, NULL);
    assert_int_equal(s.e.code, ERR_NONE);
    assert_int_equal(s.status, 101);
    assert_string_equal(buf_cstr(&s.body), "raw\r\n\r\nbytes");
    buf_done(&s.body);
}

static void urls(void **state)
{
    static const struct {
        const char *text, *host, *prefix;
        int port;
        bool tls;
    } good[] = {
        {"http://h", "h", "", 80, false},
        {"https://h.example/", "h.example", "", 443, true},
        {"http://[::1]:8122/a/b//", "::1", "/a/b", 8122, false},
        {"https://127.0.0.1:1", "127.0.0.1", "", 1, true},
    };
    static const char *const bad[] = {"",
                                      "h",
                                      "http://",
                                      "http://:80",
                                      "http://h:",
                                      "http://h:x",
                                      "http://h:70000",
                                      "http://a b",
                                      "http://h?q",
                                      "http://[::1",
                                      "http://[]:1",
                                      "unix:",
                                      "unix:x",
                                      "http://u:p@h",
                                      "http://[::1]x",
                                      "http://a:1:2"};
    struct err e;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        AUTO(client_url_done) struct client_url u = {0};

        assert_int_equal(client_url_parse(good[i].text, &u, &e), 0);
        assert_string_equal(u.host, good[i].host);
        assert_string_equal(u.prefix, good[i].prefix);
        assert_int_equal(u.port, good[i].port);
        assert_int_equal(u.tls, good[i].tls);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct client_url u = {0};

        if (client_url_parse(bad[i], &u, &e) == 0)
            fail_msg("'%s' was accepted", bad[i]);
        assert_int_equal(e.code, ERR_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_replies_of_every_framing),
        cmocka_unit_test(the_request_is_as_told),
        cmocka_unit_test(what_would_forge_a_request_is_refused),
        cmocka_unit_test(a_streamed_body_is_chunked_or_counted),
        cmocka_unit_test(a_slow_reader_bounds_the_memory),
        cmocka_unit_test(broken_replies_are_errors),
        cmocka_unit_test(every_wait_has_an_end),
        cmocka_unit_test(cancelling_ends_it_at_once),
        cmocka_unit_test(nobody_there_is_an_error),
        cmocka_unit_test(a_slow_name_server_does_not_delay_the_end),
        cmocka_unit_test(an_upgrade_becomes_raw_bytes),
        cmocka_unit_test(urls),
    };

    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
