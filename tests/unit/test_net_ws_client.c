#include "net/ws_client.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "unit.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#define PEER_MAX 4194304

/* A server that does its part of the handshake (or a wrong one), sends bytes, and gives messages
 * back until a close frame comes. */
struct peer {
    const char *head;     /* instead of the right one */
    const char *protocol; /* that it chooses */
    struct str bytes;     /* behind the head, as they are */
    bool echo;            /* answers messages and the close frame */
    bool silent;          /* reads nothing, answers nothing, until the client goes */
    int listener, port;
    pthread_t thread;
    struct buf request;
    struct buf got; /* "op:length " of each frame */
    bool masked;    /* all were */
};

static void peer_read_head(struct peer *p, int fd)
{
    char c;

    while (read(fd, &c, 1) == 1) {
        buf_add_char(&p->request, c);
        if (str_ends(buf_str(&p->request), STR("\r\n\r\n")))
            return;
    }
}

static void peer_send(int fd, const struct buf *b)
{
    size_t at = 0;

    while (at < buf_len(b)) {
        ssize_t n = send(fd, buf_data(b) + at, buf_len(b) - at, MSG_NOSIGNAL);

        if (n <= 0)
            return;
        at += (size_t)n;
    }
}

static void peer_answer_head(struct peer *p, int fd)
{
    AUTO(buf_done) struct buf out = {0};
    char accept_key[WS_ACCEPT_SIZE];
    const char *key = strstr(buf_cstr(&p->request), "sec-websocket-key: ");

    assert_non_null(key);
    ws_accept_key(str_make(key + 19, 24), accept_key);
    if (p->head)
        buf_add_c(&out, p->head);
    else
        buf_printf(
            &out,
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Accept: %s\r\n%s%s%s\r\n",
            accept_key, p->protocol ? "Sec-WebSocket-Protocol: " : "",
            p->protocol ? p->protocol : "", p->protocol ? "\r\n" : "");
    buf_add_str(&out, p->bytes);
    peer_send(fd, &out);
}

static bool peer_take(struct peer *p, int fd, const struct ws_event *ev)
{
    AUTO(buf_done) struct buf out = {0};

    buf_printf(&p->got, "%d:%zu ", (int)ev->op, ev->data.n);
    if (!p->echo)
        return ev->op == WS_OP_CLOSE;
    if (ev->op == WS_OP_CLOSE)
        ws_write_close(&out, WS_NORMAL, STR("bye"), NULL);
    else if (ev->op == WS_OP_TEXT || ev->op == WS_OP_BINARY)
        ws_write(&out, ev->op, ev->data, NULL);
    peer_send(fd, &out);
    return ev->op == WS_OP_CLOSE;
}

static void *peer_serve(void *arg)
{
    struct peer *p = arg;
    AUTO(fd_close) int fd = accept(p->listener, NULL, NULL);
    struct ws_reader in = {.limit = PEER_MAX, .masked = true};
    char part[65536];
    bool over = false;
    ssize_t n;

    peer_read_head(p, fd);
    peer_answer_head(p, fd);
    while (p->silent && poll(&(struct pollfd){.fd = fd, .events = POLLRDHUP}, 1, 5000) == 0)
        continue;
    while (!p->silent && !over && (n = read(fd, part, sizeof part)) > 0) {
        struct str bytes = str_make(part, (size_t)n);
        struct ws_event ev;
        int r;

        while ((r = ws_reader_next(&in, &bytes, &ev)) > 0 && !over)
            over = peer_take(p, fd, &ev);
        if (r < 0) {
            buf_printf(&p->got, "fault:%d ", r);
            break;
        }
    }
    ws_reader_done(&in);
    return NULL;
}

static void peer_start(struct peer *p)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t n = sizeof a;

    p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(p->listener, (const struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(p->listener, 1), 0);
    assert_int_equal(getsockname(p->listener, (struct sockaddr *)&a, &n), 0);
    p->port = ntohs(a.sin_port);
    assert_int_equal(pthread_create(&p->thread, NULL, peer_serve, p), 0);
}

static void peer_end(struct peer *p)
{
    pthread_join(p->thread, NULL);
    fd_close(p->listener);
    buf_done(&p->request);
    buf_done(&p->got);
}

/* --- the client's side --- */

struct seen {
    struct ws_client *w;
    uv_timer_t timer;
    struct buf messages; /* "op:" and the data, ';' between */
    size_t bytes, count, drains;
    size_t to_send;     /* sent as messages of 50,000 zeros */
    size_t close_after; /* messages; 0: never */
    bool paused;
    bool pause_each; /* after each message, for a moment */
    bool cancel_at_open, close_at_open;
    bool opened, closed, timer_on;
    struct ws_client_end end;
    struct buf reason, body;
};

static void send_more(struct seen *s)
{
    static char zeros[50000];
    int r = 0;

    while (s->to_send > 0 && r == 0) {
        size_t n = size_min(s->to_send, sizeof zeros);

        s->to_send -= n;
        r = ws_client_send(s->w, WS_OP_BINARY, str_make(zeros, n));
    }
}

static void on_opened(struct ws_client *w)
{
    struct seen *s = ws_client_arg(w);

    s->opened = true;
    if (s->cancel_at_open)
        ws_client_cancel(w);
    if (s->close_at_open)
        ws_client_close(w, WS_NORMAL, "enough");
    send_more(s);
}

static void on_resume(uv_timer_t *t)
{
    struct seen *s = t->data;

    s->paused = false;
    if (s->w)
        ws_client_pause(s->w, false);
}

static void on_message(struct ws_client *w, enum ws_op kind, struct str data)
{
    struct seen *s = ws_client_arg(w);

    assert_false(s->paused);
    s->count++;
    s->bytes += data.n;
    if (data.n < 100) {
        buf_printf(&s->messages, "%d:", (int)kind);
        buf_add_str(&s->messages, data);
        buf_add_char(&s->messages, ';');
    }
    if (s->pause_each) {
        ws_client_pause(w, true);
        s->paused = true;
        (void)uv_timer_start(&s->timer, on_resume, 2, 0);
    }
    if (s->close_after && s->count == s->close_after)
        ws_client_close(w, WS_NORMAL, "");
}

static void on_drained(struct ws_client *w)
{
    struct seen *s = ws_client_arg(w);

    s->drains++;
    send_more(s);
}

static void on_closed(struct ws_client *w, const struct ws_client_end *end)
{
    struct seen *s = ws_client_arg(w);

    assert_false(s->closed);
    s->closed = true;
    s->w = NULL;
    s->end = *end;
    buf_add_str(&s->reason, end->reason);
    buf_add_str(&s->body, end->body);
    uv_close((uv_handle_t *)&s->timer, NULL);
}

static void run(struct peer *p, struct seen *s, const char *protocol, int64_t ping_ms)
{
    static const struct ws_client_ops ops = {
        .opened = on_opened, .message = on_message, .drained = on_drained, .closed = on_closed};
    static const struct http_header more[] = {{STR("authorization"), STR("Bearer x")}};
    AUTO(client_url_done) struct client_url url = {0};
    AUTO(mem_free) char *text = NULL;
    struct err e;
    uv_loop_t loop;

    peer_start(p);
    text = xasprintf("http://127.0.0.1:%d", p->port);
    assert_int_equal(client_url_parse(text, &url, &e), 0);
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(uv_timer_init(&loop, &s->timer), 0);
    s->timer.data = s;
    assert_int_equal(ws_client_start(&(struct ws_client_request){.loop = &loop,
                                                                 .url = &url,
                                                                 .target = "/x?y=1",
                                                                 .protocol = protocol,
                                                                 .headers = more,
                                                                 .header_count = 1,
                                                                 .message_max = PEER_MAX,
                                                                 .connect_ms = 60000,
                                                                 .head_ms = 60000,
                                                                 .ping_ms = ping_ms,
                                                                 .ops = &ops,
                                                                 .arg = s},
                                     &s->w, &e),
                     0);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    assert_true(s->closed);
}

static void seen_done(struct seen *s)
{
    buf_done(&s->messages);
    buf_done(&s->reason);
    buf_done(&s->body);
}

static void frames_both_ways(void **state)
{
    AUTO(buf_done) struct buf in = {0};
    struct peer p = {.protocol = "p.v1", .echo = true};
    struct seen s = {.to_send = 120000, .close_after = 5};

    (void)state;
    ws_write(&in, WS_OP_TEXT, STR("hello"), NULL);
    ws_write(&in, WS_OP_PING, STR("are you there"), NULL);
    buf_add(&in,
            "\x02\x01"
            "a\x80\x01"
            "b",
            6); /* in two fragments */
    p.bytes = buf_str(&in);
    run(&p, &s, "p.v1", 0);
    assert_string_equal(buf_cstr(&s.messages), "1:hello;2:ab;");
    assert_int_equal(s.bytes, 5 + 2 + 120000);
    assert_int_equal(s.end.e.code, ERR_NONE);
    assert_int_equal(s.end.code, WS_NORMAL);
    assert_string_equal(buf_cstr(&s.reason), "bye");
    pthread_join(p.thread, NULL);
    assert_non_null(strstr(buf_cstr(&p.got), "2:50000 2:50000 2:20000"));
    assert_non_null(strstr(buf_cstr(&p.got), "10:13 ")); /* the pong */
    assert_null(strstr(buf_cstr(&p.got), "fault"));
    assert_non_null(strstr(buf_cstr(&p.request), "GET /x?y=1 HTTP/1.1\r\n"));
    assert_non_null(strstr(buf_cstr(&p.request), "authorization: Bearer x\r\n"));
    assert_non_null(strstr(buf_cstr(&p.request), "sec-websocket-protocol: p.v1\r\n"));
    fd_close(p.listener);
    buf_done(&p.request);
    buf_done(&p.got);
    seen_done(&s);
}

static void pausing_holds_messages_back(void **state)
{
    AUTO(buf_done) struct buf in = {0};
    struct peer p = {.echo = true};
    struct seen s = {.pause_each = true, .close_after = 20};

    (void)state;
    for (int i = 0; i < 20; i++)
        ws_write(&in, WS_OP_TEXT, STR("m"), NULL);
    p.bytes = buf_str(&in);
    run(&p, &s, NULL, 0);
    assert_int_equal(s.count, 20);
    assert_int_equal(s.end.e.code, ERR_NONE);
    peer_end(&p);
    seen_done(&s);
}

static void much_is_sent_in_order_of_room(void **state)
{
    struct peer p = {.echo = true};
    struct seen s = {.to_send = 3000000, .close_after = 60};

    (void)state;
    run(&p, &s, NULL, 0);
    assert_int_equal(s.bytes, 3000000);
    assert_true(s.drains > 0);
    peer_end(&p);
    seen_done(&s);
}

static void wrong_handshakes_are_refused(void **state)
{
    static const struct {
        const char *head, *protocol, *asked, *said;
    } t[] = {
        {"HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "
         "AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n",
         NULL, NULL, "does not match the key"},
        {"HTTP/1.1 101 X\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n", NULL, NULL,
         "another protocol"},
        {NULL, NULL, "p.v1", "requested subprotocol"},
        {NULL, "other", "p.v1", "requested subprotocol"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(t); i++) {
        struct peer p = {.head = t[i].head, .protocol = t[i].protocol};
        struct seen s = {0};

        run(&p, &s, t[i].asked, 0);
        assert_false(s.opened);
        assert_int_equal(s.end.e.code, ERR_UNAVAILABLE);
        assert_non_null(strstr(s.end.e.msg, t[i].said));
        peer_end(&p);
        seen_done(&s);
    }
}

static void a_refusal_is_told_with_its_body(void **state)
{
    struct peer p = {.head = "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone"};
    struct seen s = {0};

    (void)state;
    run(&p, &s, NULL, 0);
    assert_false(s.opened);
    assert_int_equal(s.end.status, 404);
    assert_string_equal(buf_cstr(&s.body), "none");
    peer_end(&p);
    seen_done(&s);
}

static void broken_frames_end_it(void **state)
{
    static const struct str bad[] = {
        STR("\x81\x80\0\0\0\0"),                 /* masked by a server */
        STR("\x83\x01x"),                        /* no such kind */
        STR("\x80\x01x"),                        /* a continuation of nothing */
        STR("\x81\x01\xff"),                     /* no UTF-8 */
        STR("\x82\x7f\0\0\0\0\x7f\xff\xff\xff"), /* over the limit */
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct peer p = {.bytes = bad[i]};
        struct seen s = {0};

        run(&p, &s, NULL, 0);
        assert_true(s.opened);
        assert_int_equal(s.end.e.code, ERR_UNAVAILABLE);
        pthread_join(p.thread, NULL);
        assert_non_null(strstr(buf_cstr(&p.got), "8:")); /* it was told why */
        fd_close(p.listener);
        buf_done(&p.request);
        buf_done(&p.got);
        seen_done(&s);
    }
}

static void leaving(void **state)
{
    struct peer p = {.echo = true}, q = {.silent = true}, r = {.silent = true};
    struct seen s = {.close_at_open = true}, t = {.cancel_at_open = true}, u = {0};

    (void)state;
    run(&p, &s, NULL, 0);
    assert_int_equal(s.end.e.code, ERR_NONE);
    run(&q, &t, NULL, 0);
    assert_int_equal(t.end.e.code, ERR_CANCELLED);
    run(&r, &u, NULL, 30); /* a server that answers no ping */
    assert_int_equal(u.end.e.code, ERR_TIMEOUT);
    peer_end(&p);
    peer_end(&q);
    peer_end(&r);
    seen_done(&s);
    seen_done(&t);
    seen_done(&u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_both_ways),
        cmocka_unit_test(pausing_holds_messages_back),
        cmocka_unit_test(much_is_sent_in_order_of_room),
        cmocka_unit_test(wrong_handshakes_are_refused),
        cmocka_unit_test(a_refusal_is_told_with_its_body),
        cmocka_unit_test(broken_frames_end_it),
        cmocka_unit_test(leaving),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
