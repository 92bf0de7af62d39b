/* stream: buffered input and output of one connection, with optional TLS. */
#include "net/stream.h"

#include "base/fd.h"
#include "base/mem.h"
#include "net/metrics.h"
#include "net/stream_internal.h"
#include "net/tls.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define FLUSH_AT (64 * 1024)     /* output past this is flushed before the end of the turn */
#define LINGER_MAX (1024 * 1024) /* bytes a peer may still send after our FIN */
#define KEEP_DEFAULT (16 * 1024)
#define DIRECT (16 * 1024) /* pieces of this size are worth a system call of their own */

static void update_reading(struct stream *s);
static void flush(struct stream *s);

static int64_t now_ms(const struct stream *s)
{
    return (int64_t)uv_now(s->hub->loop);
}

static void mark(struct stream *s)
{
    if (!list_is_empty(&s->dirty) || s->state == STREAM_CLOSED)
        return;
    s->turn = s->hub->turn;
    list_push(&s->hub->dirty, &s->dirty);
}

static void on_closed(uv_handle_t *h)
{
    struct stream *s = h->data;
    struct stream_hub *hub = s->hub;
    struct err none = {0};

    s->ops->closed(s, s->failed ? s->failed : &none);
    tls_free(s->tls);
    SSL_CTX_free(s->ctx);
    buf_done(&s->in);
    buf_done(&s->out);
    buf_done(&s->cipher);
    buf_done(&s->flight);
    free(s->write);
    free(s->failed);
    free(s);
    stream_hub_left(hub);
}

void stream_end(struct stream *s, bool reset)
{
    if (s->state == STREAM_CLOSED)
        return;
    s->state = STREAM_CLOSED;
    list_unlink(&s->dirty);
    list_unlink(&s->link);
    list_unlink(&s->deaf);
    if (!reset || s->peer.kind != PEER_TCP || uv_tcp_close_reset(&s->h.tcp, on_closed) < 0)
        uv_close(&s->h.any, on_closed);
}

void stream_fail(struct stream *s, const struct err *e)
{
    if (s->state == STREAM_CLOSED)
        return;
    if (!s->failed)
        s->failed = xmemdup(e, sizeof *e);
    stream_end(s, true);
}

void stream_fail_sys(struct stream *s, int uv_error, const char *what)
{
    struct err e;

    (void)err_set(&e, ERR_UNAVAILABLE, -uv_error, "%s %s", what, s->peer.address);
    stream_fail(s, &e);
}

/* RFC 9112 section 9.6: a full close with unread input makes the kernel send RST, which can destroy
 * the reply before the peer has read it.  So send FIN, then read until the peer's FIN. */
static void linger(struct stream *s)
{
    uv_os_fd_t fd;

    if (s->eof || uv_fileno(&s->h.any, &fd) < 0 || shutdown(fd, SHUT_WR) < 0) {
        stream_end(s, false);
        return;
    }
    s->state = STREAM_LINGERING;
    s->progress_ms = now_ms(s);
    list_unlink(&s->link);
    list_push(&s->hub->lingering, &s->link);
    buf_done(&s->in);
    update_reading(s);
}

static void on_written(uv_write_t *w, int status)
{
    struct stream *s = w->data;

    if (s->state == STREAM_CLOSED)
        return;
    list_unlink(&s->link);
    if (status < 0) {
        stream_fail_sys(s, status, "write to");
        return;
    }
    metric_inc(&metric_bytes_out, (int64_t)buf_len(&s->flight));
    s->sent += s->tls ? s->encrypted : buf_len(&s->flight);
    s->encrypted = 0;
    s->untold = true;
    s->progress_ms = now_ms(s);
    buf_done(&s->flight);
    free(TAKE(s->write));
    mark(s);
}

/* Output that the kernel does not take at once goes in flight; only one write is in flight. */
static void start_flight(struct stream *s, struct buf *wire)
{
    uv_buf_t b;
    int r;

    s->flight = *wire;
    *wire = (struct buf){0};
    s->write = xzalloc(sizeof *s->write);
    s->write->data = s;
    b = uv_buf_init(buf_data(&s->flight), (unsigned)buf_len(&s->flight));
    s->progress_ms = now_ms(s);
    s->unsent_seen = buf_len(&s->flight);
    list_unlink(&s->link);
    list_push(&s->hub->blocked, &s->link);
    r = uv_write(s->write, &s->h.stream, &b, 1, on_written);
    if (r < 0)
        stream_fail_sys(s, r, "write to");
}

static int encrypt(struct stream *s)
{
    size_t before = buf_len(&s->out);
    struct err e;

    if (tls_write(s->tls, &s->out, &e) < 0) {
        stream_fail(s, &e);
        return -1;
    }
    s->encrypted += before - buf_len(&s->out);
    tls_output(s->tls, &s->cipher);
    if (buf_len(&s->out) == 0)
        buf_done(&s->out);
    return 0;
}

/* The number of bytes that the kernel took; -1: the stream has failed. */
static int try_write(struct stream *s, const uv_buf_t *pieces, unsigned count)
{
    int n = uv_try_write(&s->h.stream, pieces, count);

    if (n < 0 && n != UV_EAGAIN) {
        stream_fail_sys(s, n, "write to");
        return -1;
    }
    if (n <= 0)
        return 0;
    metric_inc(&metric_bytes_out, n);
    s->progress_ms = now_ms(s);
    s->untold = true;
    s->sent += s->tls ? 0 : (uint64_t)n;
    return n;
}

/* Passes output to the kernel as far as it takes it; makes no callbacks. */
static void push(struct stream *s)
{
    struct buf *wire = s->tls ? &s->cipher : &s->out;
    uv_buf_t b;
    int n;

    if (s->write || s->state >= STREAM_LINGERING || (s->tls && encrypt(s) < 0) ||
        buf_len(wire) == 0)
        return;
    b = uv_buf_init(buf_data(wire), (unsigned)size_min(buf_len(wire), INT32_MAX));
    n = try_write(s, &b, 1);
    if (n < 0)
        return;
    buf_take(wire, (size_t)n);
    if (buf_len(wire) > 0) {
        start_flight(s, wire);
        return;
    }
    s->sent += s->encrypted;
    s->encrypted = 0;
    buf_done(wire);
}

/* Pushes, then reports the result by callbacks. */
static void flush(struct stream *s)
{
    push(s);
    if (s->untold && s->state < STREAM_LINGERING) {
        s->untold = false;
        if (s->ops->sent)
            s->ops->sent(s);
    }
    if (s->was_high && stream_pending(s) < STREAM_LOW && s->state == STREAM_OPEN) {
        s->was_high = false;
        s->ops->writable(s);
    }
    if (s->state == STREAM_CLOSING && !s->write && buf_len(&s->out) == 0) {
        if (s->tls) {
            tls_shutdown(s->tls);
            push(s);
        }
        if (!s->write && s->state == STREAM_CLOSING)
            linger(s);
    }
}

static void deliver(struct stream *s, struct str bytes)
{
    struct str view = bytes;
    size_t taken;

    if (s->state != STREAM_OPEN)
        return;
    if (buf_len(&s->in) > 0) {
        buf_add_str(&s->in, bytes);
        view = buf_str(&s->in);
    }
    s->offer = false;
    s->in_data = true;
    taken = s->ops->data(s, view);
    s->in_data = false;
    assert(taken <= view.n);
    if (buf_len(&s->in) > 0)
        buf_take(&s->in, taken);
    else if (taken < view.n)
        buf_add_str(&s->in, str_skip(view, taken));
    if (buf_len(&s->in) == 0 && s->in.base)
        buf_done(&s->in);
    if (s->offer)
        mark(s);
    update_reading(s);
}

/* The input may hold several records; the handshake may have to reply. */
static void deliver_tls(struct stream *s, struct str cipher)
{
    struct err e = {0};
    bool eof = false;
    int n;

    tls_input(s->tls, cipher);
    do {
        n = tls_read(s->tls, s->hub->plain, STREAM_READ, &eof, &e);
        if (n > 0)
            deliver(s, str_make(s->hub->plain, (size_t)n));
    } while (n > 0 && s->state == STREAM_OPEN);
    if (n < 0) { /* OpenSSL has queued an alert */
        stream_close(s);
        return;
    }
    mark(s);
    if (eof && !s->eof && s->state == STREAM_OPEN) {
        s->eof = true;
        update_reading(s);
        s->ops->eof(s);
    }
}

static void input(struct stream *s, struct str bytes)
{
    if (s->ctx) {
        if (bytes.p[0] == 0x16) {
            s->tls = tls_new(s->ctx);
            s->peer.tls = true;
            if (s->ops->handshaking)
                s->ops->handshaking(s);
        }
        SSL_CTX_free(TAKE(s->ctx));
    }
    if (s->tls)
        deliver_tls(s, bytes);
    else
        deliver(s, bytes);
}

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *ret)
{
    struct stream *s = h->data;
    size_t n = STREAM_READ, kept = buf_len(&s->in);

    (void)suggested;
    if (kept > 0 && kept < s->keep_max) /* input that is not consumed stays within its limit */
        n = size_min(n, s->keep_max - kept);
    *ret = uv_buf_init(s->hub->scratch, (unsigned)n);
}

static void on_read(uv_stream_t *h, ssize_t n, const uv_buf_t *b)
{
    struct stream *s = h->data;

    if (s->state == STREAM_CLOSED || n == 0)
        return;
    if (n > 0)
        metric_inc(&metric_bytes_in, n);
    if (s->state == STREAM_LINGERING) {
        s->lingered += n > 0 ? (size_t)n : 0;
        if (n < 0 || s->lingered > LINGER_MAX)
            stream_end(s, false);
        return;
    }
    if (n > 0) {
        input(s, str_make(b->base, (size_t)n));
        return;
    }
    if (n != UV_EOF) {
        stream_fail_sys(s, (int)n, "read from");
        return;
    }
    if (s->eof)
        return;
    s->eof = true;
    update_reading(s);
    if (s->state == STREAM_OPEN)
        s->ops->eof(s);
}

static void update_reading(struct stream *s)
{
    bool want = s->state != STREAM_CLOSED && !s->eof &&
                (s->state == STREAM_LINGERING || buf_len(&s->in) < s->keep_max);

    if (want == s->reading || s->state == STREAM_CLOSED)
        return;
    s->reading = want;
    list_unlink(&s->deaf);
    if (!want) {
        (void)uv_read_stop(&s->h.stream);
        if (!s->eof)
            list_push(&s->hub->deaf, &s->deaf);
    } else if (uv_read_start(&s->h.stream, on_alloc, on_read) < 0) {
        stream_fail_sys(s, UV_EIO, "read from");
    }
}

void stream_turn(struct stream *s)
{
    if (s->offer && s->state == STREAM_OPEN)
        deliver(s, STR(""));
    if (s->state != STREAM_CLOSED)
        flush(s);
}

static void on_unborn(uv_handle_t *h)
{
    struct stream *s = h->data;

    SSL_CTX_free(s->ctx);
    free(s);
}

static struct stream *stream_new(struct stream_hub *h, enum peer_kind kind)
{
    struct stream *s = xzalloc(sizeof *s);
    int r;

    s->hub = h;
    s->keep_max = KEEP_DEFAULT;
    list_init(&s->dirty);
    list_init(&s->link);
    list_init(&s->deaf);
    s->peer.kind = kind;
    r = kind == PEER_TCP ? uv_tcp_init(h->loop, &s->h.tcp) : uv_pipe_init(h->loop, &s->h.pipe, 0);
    assert(r == 0);
    s->h.any.data = s;
    return s;
}

struct stream *stream_adopt(struct stream_hub *h, int fd, const char *peer, struct err *e)
{
    struct stream *s = stream_new(h, PEER_INSIDE);
    int r = uv_pipe_open(&s->h.pipe, fd);

    if (r < 0) {
        fd_close(fd);
        uv_close(&s->h.any, on_unborn);
        (void)err_set(e, ERR_INTERNAL, -r, "take a connection over");
        return NULL;
    }
    (void)snprintf(s->peer.address, sizeof s->peer.address, "%s", peer);
    s->progress_ms = now_ms(s);
    h->count++;
    return s;
}

struct stream *stream_accept(struct stream_hub *h, uv_stream_t *listener, struct ssl_ctx_st *tls,
                             struct err *e)
{
    struct stream *s = stream_new(h, listener->type == UV_TCP ? PEER_TCP : PEER_UNIX);
    int r = uv_accept(listener, &s->h.stream);

    if (r < 0) {
        uv_close(&s->h.any, on_unborn);
        (void)err_set(e, err_code_from_errno(-r), -r, "accept a connection");
        return NULL;
    }
    if (tls && SSL_CTX_up_ref(tls) == 1)
        s->ctx = tls;
    if (s->peer.kind == PEER_TCP) {
        (void)uv_tcp_nodelay(&s->h.tcp, 1);
        peer_name_tcp(&s->h.tcp, &s->peer);
    } else {
        peer_name_unix(&s->h.pipe, &s->peer);
    }
    s->progress_ms = now_ms(s);
    h->count++;
    return s;
}

void stream_handle(struct stream *s, const struct stream_ops *ops, void *arg)
{
    s->ops = ops;
    s->arg = arg;
    update_reading(s);
}

void *stream_arg(const struct stream *s)
{
    return s->arg;
}

const struct peer *stream_peer(const struct stream *s)
{
    return &s->peer;
}

const char *stream_alpn(const struct stream *s)
{
    return s->tls ? tls_alpn(s->tls) : NULL;
}

void stream_keep_max(struct stream *s, size_t n)
{
    s->keep_max = n;
    update_reading(s);
}

void stream_read_on(struct stream *s)
{
    s->offer = true;
    if (!s->in_data)
        mark(s);
}

/* Sends the output collected so far and the pieces in one call; the rest is in flight. */
static void push_pieces(struct stream *s, const struct str *pieces, size_t count)
{
    uv_buf_t all[1 + STREAM_PIECES];
    size_t had = buf_len(&s->out), taken;
    int n;

    all[0] = uv_buf_init(buf_data(&s->out), (unsigned)had);
    for (size_t i = 0; i < count; i++)
        all[1 + i] = uv_buf_init((char *)(uintptr_t)pieces[i].p, (unsigned)pieces[i].n);
    n = try_write(s, all, (unsigned)(1 + count));
    if (n < 0)
        return;
    taken = size_min((size_t)n, had);
    buf_take(&s->out, taken);
    taken = (size_t)n - taken;
    for (size_t i = 0; i < count; i++) {
        size_t skip = size_min(taken, pieces[i].n);

        buf_add_str(&s->out, str_skip(pieces[i], skip));
        taken -= skip;
    }
    if (buf_len(&s->out) > 0)
        start_flight(s, &s->out);
}

int stream_write_pieces(struct stream *s, const struct str *pieces, size_t count)
{
    size_t total = 0;

    assert(count <= STREAM_PIECES);
    if (s->state != STREAM_OPEN)
        return 0;
    for (size_t i = 0; i < count; i++)
        total += pieces[i].n;
    if (total >= DIRECT && !s->tls && !s->write && buf_len(&s->out) < FLUSH_AT)
        push_pieces(s, pieces, count);
    else
        for (size_t i = 0; i < count; i++)
            buf_add_str(&s->out, pieces[i]);
    stream_flush_soon(s);
    return s->was_high ? 1 : 0;
}

int stream_write(struct stream *s, const void *p, size_t n)
{
    return stream_write_pieces(s, &(struct str){p, n}, 1);
}

struct buf *stream_out(struct stream *s)
{
    return &s->out;
}

void stream_flush_soon(struct stream *s)
{
    if (s->state >= STREAM_LINGERING) {
        buf_done(&s->out);
        return;
    }
    if (buf_len(&s->out) >= FLUSH_AT)
        push(s);
    if (stream_pending(s) > STREAM_HIGH)
        s->was_high = true;
    mark(s);
}

size_t stream_pending(const struct stream *s)
{
    return buf_len(&s->out) + (s->tls ? s->encrypted : buf_len(&s->flight));
}

bool stream_has_input(const struct stream *s)
{
    uv_os_fd_t fd;
    int n = 0;

    return uv_fileno(&s->h.any, &fd) == 0 && ioctl(fd, FIONREAD, &n) == 0 && n > 0;
}

uint64_t stream_sent(const struct stream *s)
{
    return s->sent;
}

void stream_close(struct stream *s)
{
    if (s->state != STREAM_OPEN)
        return;
    s->state = STREAM_CLOSING;
    mark(s);
}

void stream_cut(struct stream *s)
{
    stream_end(s, true);
}
