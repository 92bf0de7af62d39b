/* dial: outgoing TCP and Unix connections, with optional TLS. */
#include "net/dial.h"

#include "base/buf.h"
#include "base/mem.h"
#include "net/dial_tls.h"
#include "net/resolver.h"

#include <arpa/inet.h>

#define READ_SIZE (64 * 1024)

struct dial {
    uv_loop_t *loop;
    const struct dial_ops *ops;
    void *arg;
    struct dial_tls *tls;
    struct tls_end *end; /* NULL: clear text, or not connected yet */
    char *host;
    int port;
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } h;
    uv_timer_t timer;          /* open until the end: its close callback defers ops->closed */
    struct resolver *resolver; /* NULL: no lookup in progress */
    uv_connect_t connect;
    uv_write_t write;
    struct ip addresses[RESOLVER_ADDRESSES];
    size_t address_count, next_address;
    struct buf out, sending;
    struct err e;
    int connect_error;
    bool handle_open, connected, reading, writing;
    bool was_full, write_failed, eof_seen, closing, timer_closed;
    char in[READ_SIZE];
};

static void try_next(struct dial *d);
static void flush(struct dial *d);

/* --- the end --- */

static void finish_if_idle(struct dial *d)
{
    if (!d->closing || d->handle_open || !d->timer_closed)
        return;
    d->ops->closed(d, &d->e);
    (void)tls_end_free(d->end);
    buf_done(&d->out);
    buf_done(&d->sending);
    mem_free(d->host);
    mem_free(d);
}

static void on_timer_closed(uv_handle_t *h)
{
    struct dial *d = h->data;

    d->timer_closed = true;
    finish_if_idle(d);
}

static void on_handle_closed(uv_handle_t *h)
{
    struct dial *d = h->data;

    d->handle_open = false;
    if (d->closing)
        finish_if_idle(d);
    else
        try_next(d);
}

void dial_close(struct dial *d)
{
    if (d->closing)
        return;
    d->closing = true;
    uv_close((uv_handle_t *)&d->timer, on_timer_closed);
    if (d->handle_open && !uv_is_closing(&d->h.handle))
        uv_close(&d->h.handle, on_handle_closed);
    d->resolver = resolver_free(d->resolver);
}

static void fail(struct dial *d)
{
    assert(d->e.code != ERR_NONE);
    dial_close(d);
}

/* --- reading --- */

static void tls_pump(struct dial *d)
{
    bool eof = false;
    char *plain;
    int n;

    if (!d->connected) {
        n = tls_end_handshake(d->end, &d->e);
        tls_end_output(d->end, &d->out);
        flush(d);
        if (n < 0)
            fail(d);
        if (n <= 0 || d->closing)
            return;
        d->connected = true;
        d->ops->connected(d);
    }
    plain = xmalloc(READ_SIZE);
    while (!d->closing && d->reading && !eof) {
        n = tls_end_read(d->end, plain, READ_SIZE, &eof, &d->e);
        if (n < 0)
            fail(d);
        if (n <= 0)
            break;
        d->ops->data(d, str_make(plain, (size_t)n));
    }
    mem_free(plain);
    if (d->closing)
        return;
    tls_end_output(d->end, &d->out); /* replies to key updates and alerts */
    flush(d);
    if (eof && !d->eof_seen) {
        d->eof_seen = true;
        d->ops->eof(d);
    }
}

static void on_alloc(uv_handle_t *h, size_t hint, uv_buf_t *buf)
{
    struct dial *d = h->data;

    (void)hint;
    *buf = uv_buf_init(d->in, READ_SIZE);
}

static void on_end_of_input(struct dial *d, int status)
{
    if (status != UV_EOF) {
        (void)err_set(&d->e, err_code_from_errno(-status), -status, "read from %s", d->host);
        fail(d);
        return;
    }
    (void)uv_read_stop(&d->h.stream);
    if (d->end && d->connected && !d->eof_seen) {
        /* Without close_notify anyone on the path may have truncated the stream (RFC 8446 6.1). */
        (void)err_set(&d->e, ERR_UNAVAILABLE, 0, "the TLS connection to %s was cut", d->host);
        fail(d);
    } else if (!d->connected) {
        (void)err_set(&d->e, ERR_UNAVAILABLE, 0, "%s closed the connection", d->host);
        fail(d);
    } else if (!d->eof_seen) {
        d->eof_seen = true;
        d->ops->eof(d);
    }
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
    struct dial *d = s->data;

    if (n == 0 || d->closing)
        return;
    if (n < 0) {
        on_end_of_input(d, (int)n);
        return;
    }
    if (d->end) {
        tls_end_feed(d->end, str_make(buf->base, (size_t)n));
        tls_pump(d);
    } else {
        d->ops->data(d, str_make(buf->base, (size_t)n));
    }
}

void dial_read(struct dial *d, bool on)
{
    if (d->reading == on)
        return;
    d->reading = on;
    if (!d->connected || d->closing || d->eof_seen)
        return;
    if (on)
        (void)uv_read_start(&d->h.stream, on_alloc, on_read);
    else
        (void)uv_read_stop(&d->h.stream);
    /* Input decrypted before the pause: no event will announce it. */
    if (on && d->end)
        tls_pump(d);
}

/* --- writing --- */

static void on_written(uv_write_t *req, int status)
{
    struct dial *d = req->data;

    d->writing = false;
    buf_clear(&d->sending);
    if (status < 0)
        d->write_failed = true;
    if (d->closing)
        return;
    flush(d);
    if (d->was_full && buf_len(&d->out) + buf_len(&d->sending) < DIAL_LOW) {
        d->was_full = false;
        d->ops->drained(d);
    }
}

/* One write at a time; later output goes with the next. */
static void flush(struct dial *d)
{
    struct buf swap = d->sending;
    uv_buf_t part;

    if (d->write_failed)
        buf_clear(&d->out);
    if (d->writing || d->closing || buf_len(&d->out) == 0)
        return;
    d->sending = d->out;
    d->out = swap;
    part = uv_buf_init(buf_data(&d->sending), (unsigned)buf_len(&d->sending));
    d->write.data = d;
    if (uv_write(&d->write, &d->h.stream, &part, 1, on_written) < 0) {
        d->write_failed = true;
        buf_clear(&d->sending);
        return;
    }
    d->writing = true;
}

int dial_write(struct dial *d, const void *p, size_t n)
{
    assert(d->connected);
    if (d->closing || d->write_failed)
        return 0;
    if (d->end) {
        if (tls_end_write(d->end, p, n, &d->e) < 0) {
            fail(d);
            return 0;
        }
        tls_end_output(d->end, &d->out);
    } else {
        buf_add(&d->out, p, n);
    }
    flush(d);
    d->was_full = d->was_full || buf_len(&d->out) + buf_len(&d->sending) > DIAL_HIGH;
    return d->was_full;
}

/* --- connecting --- */

static void set_connect_error(struct dial *d, int status)
{
    enum err_code code = err_code_from_errno(-status);

    if (status == UV_EACCES || status == UV_EPERM)
        code = ERR_FORBIDDEN;
    else if (code != ERR_TIMEOUT)
        code = ERR_UNAVAILABLE;
    if (d->port)
        (void)err_set(&d->e, code, -status, "connect to %s port %d", d->host, d->port);
    else
        (void)err_set(&d->e, code, -status, "connect to %s", d->host);
}

static void on_connected(uv_connect_t *req, int status)
{
    struct dial *d = req->data;

    if (d->closing)
        return;
    if (status < 0) {
        d->connect_error = status;
        uv_close(&d->h.handle, on_handle_closed); /* then try the next address */
        return;
    }
    if (uv_read_start(&d->h.stream, on_alloc, on_read) < 0)
        abort(); /* reading a connected stream cannot fail */
    if (d->port)
        (void)uv_tcp_nodelay(&d->h.tcp, 1);
    if (!d->tls) {
        d->connected = true;
        d->ops->connected(d);
        if (!d->reading && !d->closing)
            (void)uv_read_stop(&d->h.stream);
        return;
    }
    if (tls_end_new(d->tls, d->host, &d->end, &d->e) < 0)
        fail(d);
    else
        tls_pump(d);
}

static void address_of(const struct dial *d, const struct ip *a, struct sockaddr_storage *ret)
{
    struct sockaddr_in in4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)d->port)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)d->port)};

    if (ip_is_v4(a)) {
        in4.sin_addr.s_addr = htonl(ip_to_v4(a));
        memcpy(ret, &in4, sizeof in4);
    } else {
        memcpy(&in6.sin6_addr, a->bytes, sizeof a->bytes);
        memcpy(ret, &in6, sizeof in6);
    }
}

static void try_next(struct dial *d)
{
    struct sockaddr_storage to;

    if (d->next_address >= d->address_count) {
        set_connect_error(d, d->connect_error ? d->connect_error : UV_EADDRNOTAVAIL);
        fail(d);
        return;
    }
    address_of(d, &d->addresses[d->next_address++], &to);
    if (uv_tcp_init(d->loop, &d->h.tcp) < 0)
        abort();
    d->h.handle.data = d;
    d->handle_open = true;
    d->connect.data = d;
    d->connect_error =
        uv_tcp_connect(&d->connect, &d->h.tcp, (const struct sockaddr *)&to, on_connected);
    if (d->connect_error < 0)
        uv_close(&d->h.handle, on_handle_closed);
}

static void on_resolved(void *arg, const struct ip *addresses, size_t n, const struct err *e)
{
    struct dial *d = arg;

    if (d->closing)
        return;
    if (n == 0) {
        d->e = *e;
        d->e.code = ERR_UNAVAILABLE;
        fail(d);
        return;
    }
    memcpy(d->addresses, addresses, n * sizeof *addresses);
    d->address_count = n;
    try_next(d);
}

/* An address needs no lookup.  A new resolver for each connection reads the system's current
 * settings. */
static void start_tcp(struct dial *d)
{
    if (ip_parse(str_of(d->host), &d->addresses[0])) {
        d->address_count = 1;
        try_next(d);
    } else if (resolver_new(d->loop, NULL, &d->resolver, &d->e) < 0) {
        fail(d);
    } else {
        (void)resolver_ask(d->resolver, NULL, d->host, on_resolved, d);
    }
}

static void start_unix(struct dial *d)
{
    if (uv_pipe_init(d->loop, &d->h.pipe, 0) < 0)
        abort();
    d->h.handle.data = d;
    d->handle_open = true;
    d->connect.data = d;
    uv_pipe_connect(&d->connect, &d->h.pipe, d->host, on_connected);
}

static void on_timer(uv_timer_t *t)
{
    struct dial *d = t->data;

    d->ops->expired(d);
}

void dial_expire(struct dial *d, int64_t ms)
{
    if (d->closing)
        return;
    (void)uv_timer_stop(&d->timer);
    if (ms > 0)
        (void)uv_timer_start(&d->timer, on_timer, (uint64_t)ms, 0);
}

void *dial_arg(const struct dial *d)
{
    return d->arg;
}

struct dial *dial_start(const struct dial_config *c)
{
    struct dial *d = xzalloc(sizeof *d);

    d->loop = c->loop;
    d->ops = c->ops;
    d->arg = c->arg;
    d->tls = c->tls;
    d->host = xstrdup(c->host);
    d->port = c->port;
    d->reading = true;
    if (uv_timer_init(c->loop, &d->timer) < 0)
        abort();
    d->timer.data = d;
    if (c->port)
        start_tcp(d);
    else
        start_unix(d);
    return d;
}
