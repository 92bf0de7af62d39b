/* stream: a gRPC call over HTTP/2, by nghttp2. */
#include "agent/stream.h"

#include "agent/connect.h"
#include "base/enc.h"
#include "base/fd.h"
#include "base/loop.h"
#include "base/mem.h"
#include "proto/grpc.h"

#include <errno.h>
#include <netdb.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define PATH "/agentic.sandbox.v1.AgentService/Connect"
#define MESSAGE_MAX (1 << 20)
#define FULL (256 * 1024)
#define OUT_HIGH (64 * 1024)
#define READS_PER_TURN 16
#define WHY_MAX 256

enum state { STREAM_IDLE, STREAM_CONNECTING, STREAM_OPEN };

static struct {
    enum state state;
    const struct stream_ops *ops;
    struct stream_target to;
    struct watch w; /* of the connector, then of the connection */
    nghttp2_session *h2;
    int32_t id;
    struct buf up;  /* messages, framed */
    struct buf out; /* HTTP/2 */
    struct grpc_reader reader;
    bool was_full, finished, deferred;
    bool over;      /* the call has ended: the loop cleans up */
    int http, grpc; /* statuses; -1: none yet */
    char why[WHY_MAX];
} s = {.w = {.fd = -1}};

/* --- the end --- */

static void stream_end(void)
{
    /* grpc-status: INVALID_ARGUMENT, PERMISSION_DENIED, UNAUTHENTICATED */
    bool refused = s.grpc == 3 || s.grpc == 7 || s.grpc == 16;

    loop_remove(&s.w);
    nghttp2_session_del(s.h2);
    s.h2 = NULL;
    buf_done(&s.up);
    buf_done(&s.out);
    grpc_reader_done(&s.reader);
    s.reader = (struct grpc_reader){0};
    s.state = STREAM_IDLE;
    s.ops->ended(s.why[0] ? s.why : "the server closed the connection", refused);
}

static void fail(const char *why)
{
    if (!s.why[0])
        (void)snprintf(s.why, sizeof s.why, "%s", why);
    s.over = true;
}

/* --- nghttp2's callbacks --- */

static int on_header(nghttp2_session *h2, const nghttp2_frame *f, const uint8_t *name, size_t n,
                     const uint8_t *value, size_t size, uint8_t flags, void *arg)
{
    struct str key = str_make(name, n), text = str_make(value, size);
    AUTO(buf_done) struct buf plain = {0};
    int64_t number;

    (void)h2, (void)f, (void)flags, (void)arg;
    if (str_eq_c(key, ":status") && str_parse_i64(text, &number) == 0)
        s.http = (int)number;
    else if (str_eq_c(key, "grpc-status") && str_parse_i64(text, &number) == 0)
        s.grpc = (int)number;
    else if (str_eq_c(key, "grpc-message") && dec_percent(&plain, text, false) == 0)
        (void)snprintf(s.why, sizeof s.why, "%.*s", (int)size_min(buf_len(&plain), WHY_MAX - 1),
                       buf_data(&plain));
    return 0;
}

static int on_data(nghttp2_session *h2, uint8_t flags, int32_t id, const uint8_t *data, size_t n,
                   void *arg)
{
    struct str in = str_make(data, n);
    struct grpc_frame f;
    int r = 0;

    (void)h2, (void)flags, (void)id, (void)arg;
    while (!s.over && (r = grpc_reader_next(&s.reader, &in, &f)) > 0)
        s.ops->message(f.data);
    if (r < 0)
        fail("the server's messages are broken");
    return 0;
}

static int on_stream_close(nghttp2_session *h2, int32_t id, uint32_t code, void *arg)
{
    (void)h2, (void)id, (void)arg;
    if (s.http > 0 && s.http != 200 && !s.why[0])
        (void)snprintf(s.why, sizeof s.why, "the server's HTTP status is %d", s.http);
    fail(code ? "the server reset the call" : "the server ended the call");
    return 0;
}

static ssize_t read_up(nghttp2_session *h2, int32_t id, uint8_t *to, size_t size, uint32_t *flags,
                       nghttp2_data_source *source, void *arg)
{
    size_t n = size_min(size, buf_len(&s.up));

    (void)h2, (void)id, (void)source, (void)arg;
    if (n > 0)
        memcpy(to, buf_data(&s.up), n);
    buf_take(&s.up, n);
    if (s.finished && buf_len(&s.up) == 0)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    else if (n == 0) {
        s.deferred = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    return (ssize_t)n;
}

/* --- bytes --- */

static void want(void)
{
    loop_want(&s.w, EPOLLIN | (buf_len(&s.out) > 0 ? (uint32_t)EPOLLOUT : 0));
}

static void pump(void)
{
    const uint8_t *p;
    ssize_t n = 0;

    if (s.deferred && (buf_len(&s.up) > 0 || s.finished)) {
        s.deferred = false;
        (void)nghttp2_session_resume_data(s.h2, s.id);
    }
    for (;;) {
        while (buf_len(&s.out) < OUT_HIGH && (n = nghttp2_session_mem_send(s.h2, &p)) > 0)
            buf_add(&s.out, p, (size_t)n);
        if (n < 0) {
            fail("HTTP/2 failed");
            return;
        }
        if (buf_len(&s.out) == 0)
            break;
        n = send(s.w.fd, buf_data(&s.out), buf_len(&s.out), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            fail("the connection to the server broke");
        if (n <= 0)
            break;
        buf_take(&s.out, (size_t)n);
    }
    if (!s.over)
        want();
}

static void read_some(void)
{
    uint8_t bytes[16384];

    for (int i = 0; i < READS_PER_TURN && !s.over; i++) {
        ssize_t n = recv(s.w.fd, bytes, sizeof bytes, MSG_DONTWAIT);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0)
            fail("the server closed the connection");
        else if (nghttp2_session_mem_recv(s.h2, bytes, (size_t)n) < 0)
            fail("the server does not speak HTTP/2 here");
    }
}

static void on_socket(struct watch *w, uint32_t events)
{
    (void)w;
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        read_some();
    if (!s.over)
        pump();
    if (s.over) {
        stream_end();
        return;
    }
    if (s.was_full && !stream_is_full()) {
        s.was_full = false;
        s.ops->room();
    }
}

/* --- the call --- */

static nghttp2_nv field(const char *name, const char *value)
{
    return (nghttp2_nv){.name = (uint8_t *)(uintptr_t)name,
                        .value = (uint8_t *)(uintptr_t)value,
                        .namelen = strlen(name),
                        .valuelen = strlen(value)};
}

static bool begin_session(void)
{
    nghttp2_session_callbacks *c;
    int r;

    if (nghttp2_session_callbacks_new(&c) != 0)
        return false;
    nghttp2_session_callbacks_set_on_header_callback(c, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(c, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(c, on_stream_close);
    r = nghttp2_session_client_new(&s.h2, c, NULL);
    nghttp2_session_callbacks_del(c);
    return r == 0 && nghttp2_submit_settings(s.h2, NGHTTP2_FLAG_NONE, NULL, 0) == 0;
}

static bool begin_call(void)
{
    AUTO(mem_free) char *authority = xasprintf("%s:%s", s.to.host, s.to.port);
    const nghttp2_nv head[] = {
        field(":method", "POST"),
        field(":scheme", "http"),
        field(":path", PATH),
        field(":authority", authority),
        field("te", "trailers"),
        field("content-type", "application/grpc"),
        field("user-agent", "holt-agent"),
        field("x-agent-id", s.to.id),
        field("x-agent-secret", s.to.secret),
    };
    const nghttp2_data_provider up = {.read_callback = read_up};

    s.id = nghttp2_submit_request(s.h2, NULL, head, ARRAY_LEN(head), &up, NULL);
    return s.id > 0;
}

static void on_connected(struct watch *w, uint32_t events)
{
    int fd = connect_take(w->fd, s.why, sizeof s.why);

    (void)events;
    loop_remove(w); /* closes the connector's end */
    if (fd < 0) {
        stream_end();
        return;
    }
    s.why[0] = '\0';
    loop_add(&s.w, fd, on_socket);
    s.state = STREAM_OPEN;
    if (!begin_session() || !begin_call()) {
        fail("HTTP/2 failed");
        stream_end();
        return;
    }
    s.ops->opened();
    loop_want(&s.w, EPOLLIN | EPOLLOUT);
}

void stream_open(const struct stream_target *to, const struct stream_ops *ops)
{
    int fd = connect_begin(to->host, to->port);

    s.ops = ops;
    s.to = *to;
    s.http = s.grpc = -1;
    s.was_full = s.finished = s.deferred = s.over = false;
    s.reader.limit = MESSAGE_MAX;
    s.why[0] = '\0';
    s.state = STREAM_CONNECTING;
    if (fd < 0) {
        s.state = STREAM_IDLE;
        (void)snprintf(s.why, sizeof s.why, "no thread to connect on");
        ops->ended(s.why, false);
        return;
    }
    loop_add(&s.w, fd, on_connected);
    loop_want(&s.w, EPOLLIN);
}

void stream_send(struct str message)
{
    unsigned char head[GRPC_HEAD];

    if (s.state != STREAM_OPEN || s.over)
        return;
    grpc_frame_head(head, 0, message.n);
    buf_add(&s.up, head, sizeof head);
    buf_add_str(&s.up, message);
    loop_want(&s.w, EPOLLIN | EPOLLOUT); /* sent in the next turn */
}

bool stream_is_full(void)
{
    bool full = buf_len(&s.up) + buf_len(&s.out) >= FULL;

    s.was_full = s.was_full || full;
    return full;
}

bool stream_is_open(void)
{
    return s.state == STREAM_OPEN && !s.over;
}

void stream_local(char *to, size_t size)
{
    struct sockaddr_storage a;
    socklen_t n = sizeof a;

    to[0] = '\0';
    if (s.state == STREAM_OPEN && getsockname(s.w.fd, (struct sockaddr *)&a, &n) == 0)
        (void)getnameinfo((struct sockaddr *)&a, n, to, (socklen_t)size, NULL, 0, NI_NUMERICHOST);
}

void stream_finish(void)
{
    if (!stream_is_open())
        return;
    s.finished = true;
    loop_want(&s.w, EPOLLIN | EPOLLOUT);
}

void stream_abort(const char *why)
{
    if (!stream_is_open())
        return;
    fail(why);
    loop_want(&s.w, EPOLLIN | EPOLLOUT);
}
