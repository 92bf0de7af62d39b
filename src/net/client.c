/* client: sends one HTTP/1.1 request and reads its reply. */
#include "net/client.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "proto/http1.h"

#include <inttypes.h>

#define WINDOW_HIGH (256 * 1024) /* unconsumed body bytes at which reading stops … */
#define WINDOW_LOW (64 * 1024)   /* … until it is below this again */
#define INTERIM_MAX 32

static const struct http1_limits limits = {.head_max = 64 * 1024, .count_max = 200};

enum state { CONNECTING, WAITING, READING, ENDED };

struct client {
    struct dial *dial;
    const struct client_ops *ops;
    void *arg;
    struct buf head_out; /* the request, until the connection is established */
    struct buf in;       /* the reply's head so far */
    struct http1_scan scan;
    struct http1_response reply;
    struct http1_body body;
    struct arena arena;
    struct err e;
    int64_t head_ms, idle_ms;
    int64_t deadline_ms; /* monotonic; 0: none */
    size_t unconsumed;
    int interim;
    enum state state;
    bool head_only, upgrade, raw;
    bool streamed, chunked, write_ended;
    bool in_data, paused;
};

/* --- the end --- */

/* The reply is complete (ERR_NONE), or failed. */
static void end(struct client *c)
{
    if (c->state == ENDED)
        return;
    c->state = ENDED;
    dial_close(c->dial);
}

static void on_closed(struct dial *d, const struct err *e)
{
    struct client *c = dial_arg(d);

    if (c->state != ENDED) /* the connection ended by itself */
        c->e = *e;
    if (c->state != ENDED && e->code == ERR_NONE)
        (void)err_set(&c->e, ERR_CANCELLED, 0, "the request was cancelled");
    c->ops->closed(c, &c->e);
    http1_body_done(&c->body);
    buf_done(&c->head_out);
    buf_done(&c->in);
    arena_done(&c->arena);
    mem_free(c);
}

void client_cancel(struct client *c)
{
    if (c->state == ENDED)
        return;
    (void)err_set(&c->e, ERR_CANCELLED, 0, "the request was cancelled");
    end(c);
}

/* --- timeouts --- */

static void limit_wait(struct client *c, int64_t ms)
{
    if (c->deadline_ms > 0) {
        int64_t left = i64_max(c->deadline_ms - clock_mono_ms(), 1);

        ms = ms > 0 ? i64_min(ms, left) : left;
    }
    dial_expire(c->dial, ms);
}

static void on_expired(struct dial *d)
{
    static const char *const what[] = {
        [CONNECTING] = "no connection in time",
        [WAITING] = "no reply in time",
        [READING] = "the reply stalled",
        [ENDED] = "",
    };
    struct client *c = dial_arg(d);

    if (c->state == ENDED)
        return;
    (void)err_set(&c->e, ERR_TIMEOUT, 0, "%s", what[c->state]);
    end(c);
}

/* --- the reply --- */

static void begin_body(struct client *c)
{
    c->state = READING;
    http1_body_init(&c->body, c->reply.framing, c->reply.content_length);
    if (c->reply.status == 101)
        c->raw = true;
    limit_wait(c, c->raw ? 0 : c->idle_ms);
    if (c->ops->head)
        c->ops->head(c, c->reply.status, c->reply.headers, c->reply.header_count);
    if (c->state == READING && !c->raw && c->reply.framing == HTTP1_NO_BODY)
        end(c);
}

/* 1: the head is complete; 0: more is needed, or the request has ended. */
static int read_head(struct client *c)
{
    int r = http1_scan(&c->scan, buf_str(&c->in), &limits, &c->e);

    if (r == 0)
        return 0;
    if (r > 0)
        r = http1_response(&c->scan, buf_str(&c->in), c->head_only, &c->arena, &c->reply, &c->e);
    if (r >= 0 && c->reply.status == 101 && !c->upgrade)
        r = err_set(&c->e, ERR_UNAVAILABLE, 0, "a protocol switch that was not requested");
    if (r < 0) {
        c->e.code = ERR_UNAVAILABLE; /* the server's fault, not the caller's */
        (void)err_wrap(&c->e, "the reply is not HTTP");
        end(c);
        return 0;
    }
    buf_take(&c->in, c->scan.at);
    c->scan = (struct http1_scan){0};
    return 1;
}

/* Heads of 1xx are interim (RFC 9110 section 15.2): the real one follows. */
static void read_heads(struct client *c)
{
    while (c->state != ENDED && read_head(c) > 0) {
        if (c->reply.status >= 200 || c->reply.status == 101) {
            begin_body(c);
            return;
        }
        if (++c->interim > INTERIM_MAX) {
            (void)err_set(&c->e, ERR_UNAVAILABLE, 0, "the server sends only interim replies");
            end(c);
        }
    }
}

static void give(struct client *c, struct str part)
{
    if (part.n == 0)
        return;
    c->unconsumed += part.n;
    if (c->ops->body)
        c->ops->body(c, part);
    else
        c->unconsumed -= part.n;
}

static void read_body(struct client *c, struct str in)
{
    if (c->raw) {
        give(c, in);
        return;
    }
    while (c->state == READING) {
        size_t used = 0;
        struct str part = {0};
        int r = http1_body_next(&c->body, in, &used, &part, &c->e);

        if (r < 0) {
            c->e.code = ERR_UNAVAILABLE;
            (void)err_wrap(&c->e, "the reply's body is not HTTP");
            end(c);
            return;
        }
        in = str_skip(in, used);
        give(c, part);
        if (r > 0)
            end(c);
        else if (in.n == 0)
            return;
    }
}

static void adapt_reading(struct client *c)
{
    bool pause = c->unconsumed > (c->paused ? WINDOW_LOW : WINDOW_HIGH);

    if (c->state != READING || pause == c->paused)
        return;
    c->paused = pause;
    limit_wait(c, pause || c->raw ? 0 : c->idle_ms); /* no timeout while our own reader is slow */
    dial_read(c->dial, !pause);
}

static void on_data(struct dial *d, struct str bytes)
{
    struct client *c = dial_arg(d);

    if (c->state == ENDED)
        return;
    c->in_data = true;
    if (c->state == READING) {
        limit_wait(c, c->raw ? 0 : c->idle_ms);
        read_body(c, bytes);
    } else {
        buf_add(&c->in, bytes.p, bytes.n);
        read_heads(c);
        if (c->state == READING && buf_len(&c->in) > 0)
            read_body(c, buf_str(&c->in));
        if (c->state == READING)
            buf_done(&c->in);
    }
    c->in_data = false;
    adapt_reading(c);
}

static void on_eof(struct dial *d)
{
    struct client *c = dial_arg(d);

    if (c->state == ENDED)
        return;
    if (c->state != READING || (!c->raw && c->reply.framing != HTTP1_UNTIL_CLOSE))
        (void)err_set(&c->e, ERR_UNAVAILABLE, 0,
                      c->state == READING ? "the server closed the connection during its reply"
                                          : "the server closed the connection without a reply");
    end(c);
}

void client_consume(struct client *c, size_t n)
{
    assert(n <= c->unconsumed);
    c->unconsumed -= n;
    if (!c->in_data)
        adapt_reading(c);
}

/* --- the request --- */

static void on_connected(struct dial *d)
{
    struct client *c = dial_arg(d);

    if (c->state == ENDED)
        return;
    c->state = WAITING;
    limit_wait(c, c->head_ms);
    if (dial_write(d, buf_data(&c->head_out), buf_len(&c->head_out)) == 0 && c->streamed &&
        c->ops->writable)
        c->ops->writable(c);
    buf_done(&c->head_out);
}

static void on_drained(struct dial *d)
{
    struct client *c = dial_arg(d);

    if (c->state != ENDED && (c->streamed || c->raw) && !c->write_ended && c->ops->writable)
        c->ops->writable(c);
}

int client_write(struct client *c, const void *p, size_t n)
{
    char size[24];
    int r;

    assert((c->streamed || c->raw) && !c->write_ended);
    if (c->state == ENDED || n == 0)
        return 0;
    assert(c->state != CONNECTING); /* not before ops->writable */
    if (!c->chunked || c->raw)
        return dial_write(c->dial, p, n);
    (void)snprintf(size, sizeof size, "%zx\r\n", n);
    r = dial_write(c->dial, size, strlen(size));
    r |= dial_write(c->dial, p, n);
    return dial_write(c->dial, "\r\n", 2) | r;
}

void client_write_end(struct client *c)
{
    if (c->write_ended || c->state == ENDED)
        return;
    c->write_ended = true;
    if (c->chunked && !c->raw)
        (void)!dial_write(c->dial, "0\r\n\r\n", 5);
}

static bool is_target(const char *s)
{
    if (s[0] != '/' && strcmp(s, "*") != 0)
        return false;
    for (; *s; s++)
        if ((unsigned char)*s <= ' ' || (unsigned char)*s == 0x7f || *s == '#')
            return false;
    return true;
}

static int write_head(const struct client_request *r, struct buf *to, struct err *e)
{
    bool has_body = r->body.n > 0 || strcmp(r->method, "POST") == 0 ||
                    strcmp(r->method, "PUT") == 0 || strcmp(r->method, "PATCH") == 0;

    if (!http1_is_name(str_of(r->method)) || !is_target(r->target))
        return err_set(e, ERR_INVALID, 0, "'%.20s %.120s' is not a request", r->method, r->target);
    buf_printf(to, "%s %s%s HTTP/1.1\r\nhost: %s\r\n", r->method, r->url->prefix, r->target,
               r->url->authority);
    for (size_t i = 0; i < r->header_count; i++) {
        const struct http_header *h = &r->headers[i];

        if (!http1_is_name(h->name) || !http1_is_value(h->value))
            return err_set(e, ERR_INVALID, 0,
                           "header '" STR_FMT "' contains bytes that are not allowed in a header",
                           STR_ARG(h->name));
        buf_printf(to, STR_FMT ": " STR_FMT "\r\n", STR_ARG(h->name), STR_ARG(h->value));
    }
    if (!r->upgrade)
        buf_add_c(to, "connection: close\r\n");
    if (r->streamed && r->streamed_length < 0)
        buf_add_c(to, "transfer-encoding: chunked\r\n");
    else if (r->streamed)
        buf_printf(to, "content-length: %" PRId64 "\r\n", r->streamed_length);
    else if (has_body)
        buf_printf(to, "content-length: %zu\r\n", r->body.n);
    buf_add_c(to, "\r\n");
    buf_add_str(to, r->body);
    return 0;
}

int client_start(const struct client_request *r, struct client **ret, struct err *e)
{
    static const struct dial_ops ops = {
        .connected = on_connected,
        .data = on_data,
        .eof = on_eof,
        .drained = on_drained,
        .expired = on_expired,
        .closed = on_closed,
    };
    AUTO(buf_done) struct buf head = {0};
    struct client *c;

    assert(r->ops && r->ops->closed && (!r->streamed || r->body.n == 0));
    assert(!r->url->tls || r->tls);
    if (write_head(r, &head, e) < 0)
        return -1;
    c = xzalloc(sizeof *c);
    c->ops = r->ops;
    c->arg = r->arg;
    c->head_out = head;
    head = (struct buf){0};
    c->head_ms = r->head_ms;
    c->idle_ms = r->idle_ms;
    c->deadline_ms = r->total_ms > 0 ? clock_mono_ms() + r->total_ms : 0;
    c->head_only = strcmp(r->method, "HEAD") == 0;
    c->upgrade = r->upgrade;
    c->streamed = r->streamed;
    c->chunked = r->streamed && r->streamed_length < 0;
    c->dial = dial_start(&(struct dial_config){
        .loop = r->loop,
        .host = r->url->path ? r->url->path : r->url->host,
        .port = r->url->path ? 0 : r->url->port,
        .tls = r->url->tls ? r->tls : NULL,
        .ops = &ops,
        .arg = c,
    });
    limit_wait(c, r->connect_ms);
    *ret = c;
    return 0;
}

void *client_arg(const struct client *c)
{
    return c->arg;
}
