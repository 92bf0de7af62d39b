/* xchg: one request and its reply, for handlers of either HTTP version. */
#include "net/xchg.h"

#include "base/clock.h"
#include "base/mem.h"
#include "net/conn.h"
#include "net/metrics.h"
#include "proto/http1.h"
#include "proto/json.h"

/* Exchanges kept for the next requests, each with one arena block: as many as one turn of the loop
 * can bring (libuv takes 1024 events at a time), so that a burst does not fragment the heap; fewer
 * in quiet times. */
#define SPARES_MAX 1024
#define SPARES_QUIET 64

static struct xchg *spares;
static size_t spare_count;

static void finish(struct xchg *x);
static void pump(struct xchg *x);

struct xchg *xchg_new(struct conn *c, const struct xchg_proto *p, void *state)
{
    struct xchg *x = spares;
    struct arena arena = {0};

    if (x) {
        spares = x->next;
        spare_count--;
        arena = x->arena;
    } else {
        x = xmalloc(sizeof *x);
    }
    *x = (struct xchg){.arena = arena, .conn = c, .proto = p, .state = state};
    x->body_max = server_limits(c->server)->body_max;
    x->started_ns = clock_mono_ns();
    return x;
}

static void trim_spares(size_t keep)
{
    while (spare_count > keep) {
        struct xchg *x = spares;

        spares = x->next;
        spare_count--;
        arena_done(&x->arena);
        free(x);
    }
}

void xchg_free_spares(bool all)
{
    trim_spares(all ? 0 : size_max(SPARES_QUIET, spare_count - spare_count / 8));
}

static bool is_open(const struct xchg *x)
{
    return !x->reply_ended && !x->aborted && !x->gone;
}

/* Every call into the handler is between enter and leave, which defer the effects of its calls. */
static bool enter(struct xchg *x)
{
    bool outer = x->in_callback;

    x->in_callback = true;
    return outer;
}

static void leave(struct xchg *x, bool outer)
{
    x->in_callback = outer;
    if (outer)
        return;
    if (x->gone)
        finish(x);
    else
        pump(x);
}

/* The bytes an exchange holds: its head, its collected body, buffers of a layer above. */
static bool count_held(struct xchg *x)
{
    int64_t now = x->head_size + (int64_t)buf_len(&x->collected) + (int64_t)x->layer;
    struct err e;

    if (x->trusted || !x->settled || x->gone)
        return true;
    if (server_hold(x->conn->server, x->conn, now - x->held, &e) == 0) {
        x->held = now;
        return true;
    }
    xchg_fail(x, &e);
    return false;
}

static void release_held(struct xchg *x)
{
    struct err e;

    (void)!server_hold(x->conn->server, x->conn, -x->held, &e);
    x->held = 0;
}

void xchg_trust(struct xchg *x)
{
    struct conn *c = x->conn;
    struct err e;

    x->trusted = c->trusted = true;
    release_held(x);
    (void)!conn_hold(c, &c->kept, 0, &e);
    (void)!conn_hold(c, &c->fixed, 0, &e);
}

bool xchg_hold(struct xchg *x, size_t n)
{
    x->layer = n;
    return count_held(x);
}

void xchg_begin(struct xchg *x)
{
    bool outer = enter(x);
    struct err e;

    x->begun = true;
    server_handle(x->conn->server, x);
    if (!x->ops && x->status == 0 && is_open(x)) {
        (void)err_set(&e, ERR_INTERNAL, 0, "no handler took the request");
        xchg_fail(x, &e);
    }
    x->settled = true; /* most requests are answered or authenticated by now, and are not counted */
    if (is_open(x))
        (void)count_held(x);
    leave(x, outer);
}

static void too_large(struct xchg *x, int64_t max)
{
    struct err e;

    (void)err_set(&e, ERR_TOO_LARGE, 0,
                  "the body is larger than %lld bytes, the limit of this request", (long long)max);
    if (max == server_limits(x->conn->server)->body_max)
        (void)err_hint(&e, "the setting 'body_max' sets the limit");
    xchg_refuse(x, 413, &e);
}

static bool is_listening(const struct xchg *x)
{
    return x->collect_done || (x->ops && x->ops->body);
}

bool xchg_wants_body(struct xchg *x)
{
    int64_t max = x->collect_done ? (int64_t)x->collect_max : x->body_max;

    if (!is_open(x) || !is_listening(x))
        return false;
    if (x->collect_done && x->body_max >= 0)
        max = i64_min(max, x->body_max);
    if (max >= 0 && x->req.content_length > max) {
        too_large(x, max);
        return false;
    }
    return true;
}

void xchg_body(struct xchg *x, struct str part)
{
    bool outer;

    if (!is_open(x)) {
        x->proto->consume(x, part.n);
        return;
    }
    if (x->body_max >= 0 && (int64_t)part.n > x->body_max - x->body_seen) {
        too_large(x, x->body_max);
        return;
    }
    x->body_seen += (int64_t)part.n;
    if (is_listening(x) && !x->collect_done && buf_len(&x->collected) == 0) {
        outer = enter(x);
        x->ops->body(x, part);
        leave(x, outer);
        return;
    }
    if (x->collect_done && part.n > x->collect_max - buf_len(&x->collected)) {
        too_large(x, (int64_t)x->collect_max);
        return;
    }
    buf_add_str(&x->collected, part); /* to be collected, or held until the handler wants it */
    if (!count_held(x))
        return;
    if (x->collect_done)
        x->proto->consume(x, part.n);
}

void xchg_body_end(struct xchg *x)
{
    x->body_ended = true;
    if (!x->in_callback)
        pump(x);
}

/* Hands over input that arrived before the handler was ready, and the end of the body. */
static void pump(struct xchg *x)
{
    bool outer;

    if (x->in_callback || !is_open(x) || !x->ops)
        return;
    if (is_listening(x) && !x->collect_done && buf_len(&x->collected) > 0) {
        struct buf held = x->collected;

        x->collected = (struct buf){0};
        outer = enter(x);
        x->ops->body(x, buf_str(&held));
        buf_done(&held);
        (void)count_held(x);
        leave(x, outer); /* called again for the end */
        return;
    }
    if (!x->body_ended || x->body_told || !is_open(x) || !(is_listening(x) || x->ops->body_end))
        return;
    x->body_told = true;
    outer = enter(x);
    if (x->collect_done)
        x->collect_done(x, buf_str(&x->collected));
    else if (x->ops->body_end)
        x->ops->body_end(x);
    leave(x, outer);
}

void xchg_drained(struct xchg *x)
{
    bool outer = enter(x);

    if (is_open(x) && x->ops && x->ops->drained)
        x->ops->drained(x);
    leave(x, outer);
}

bool xchg_stalled(struct xchg *x)
{
    bool outer = enter(x), ended = false;

    if (is_open(x) && x->ops && x->ops->stalled)
        ended = x->ops->stalled(x);
    leave(x, outer);
    return ended;
}

static void finish(struct xchg *x)
{
    if (x->begun)
        net_metrics_reply(x->gone_done ? x->status : 0);
    if (x->ops && x->ops->closed) {
        x->in_callback = true;
        x->ops->closed(x, x->gone_done);
    }
    release_held(x);
    buf_done(&x->collected);
    if (spare_count >= SPARES_MAX) {
        arena_done(&x->arena);
        free(x);
        return;
    }
    arena_reset(&x->arena);
    x->next = spares;
    spares = x;
    spare_count++;
}

void xchg_gone(struct xchg *x, bool done)
{
    if (x->gone)
        return;
    x->gone = true;
    x->gone_done = done;
    if (!x->in_callback)
        finish(x);
}

const struct http_req *xchg_req(const struct xchg *x)
{
    return &x->req;
}

struct arena *xchg_arena(struct xchg *x)
{
    return &x->arena;
}

const struct peer *xchg_peer(const struct xchg *x)
{
    return stream_peer(x->conn->stream);
}

const struct listener_info *xchg_listener(const struct xchg *x)
{
    return x->conn->listener;
}

struct server *xchg_server(const struct xchg *x)
{
    return x->conn->server;
}

const struct http_header *xchg_trailers(const struct xchg *x, size_t *ret_count)
{
    *ret_count = x->trailer_count;
    return x->trailers;
}

/* The handler's callbacks have changed: the protocol may have to resume reading. */
static void reconsider(struct xchg *x)
{
    if (!is_open(x) || !is_listening(x))
        return;
    x->proto->consume(x, 0);
    if (!x->in_callback)
        pump(x);
}

void xchg_handle(struct xchg *x, const struct xchg_ops *ops, void *arg)
{
    x->ops = ops;
    x->arg = arg;
    reconsider(x);
}

void *xchg_arg(const struct xchg *x)
{
    return x->arg;
}

void xchg_consume(struct xchg *x, size_t n)
{
    if (n > 0 && !x->gone)
        x->proto->consume(x, n);
}

void xchg_limit_body(struct xchg *x, int64_t max)
{
    x->body_max = max > 0 ? max : -1;
}

void xchg_collect(struct xchg *x, size_t max, void (*done)(struct xchg *x, struct str body))
{
    static const struct xchg_ops none = {0};
    size_t held = buf_len(&x->collected);

    if (!x->ops)
        x->ops = &none;
    x->collect_max = max;
    x->collect_done = done;
    if (held > max) {
        too_large(x, (int64_t)max);
        return;
    }
    if (held > 0)
        x->proto->consume(x, held);
    reconsider(x);
}

static bool are_clean(const struct http_header *h, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!http1_is_name(h[i].name) || !http1_is_value(h[i].value))
            return false;
    return true;
}

void xchg_head(struct xchg *x, int status, const struct http_header *headers, size_t count)
{
    const struct http_header *all = headers;

    if (!is_open(x))
        return;
    assert(x->status == 0 && status >= 200 && status <= 599);
    if (!are_clean(headers, count)) {
        xchg_abort(x);
        return;
    }
    if (x->extra_count > 0) {
        struct http_header *merged =
            arena_alloc(&x->arena, (count + x->extra_count) * sizeof *merged);

        if (count > 0)
            memcpy(merged, headers, count * sizeof *merged);
        memcpy(merged + count, x->extra, x->extra_count * sizeof *merged);
        count += x->extra_count;
        all = merged;
    }
    x->status = status;
    x->head_only = status == 204 || status == 304 || str_eq_c(x->req.method, "HEAD");
    x->proto->head(x, status, all, count);
}

bool xchg_can_upgrade(const struct xchg *x)
{
    return x->proto->upgrade && x->req.version == HTTP_1_1 && x->req.content_length == 0 &&
           http_has_token(http_req_header(&x->req, "connection"), "upgrade");
}

void xchg_upgrade(struct xchg *x, const struct http_header *headers, size_t count)
{
    if (!is_open(x))
        return;
    assert(x->status == 0);
    if (are_clean(headers, count))
        x->proto->upgrade(x, headers, count);
    else
        xchg_abort(x);
}

int xchg_write(struct xchg *x, const void *p, size_t n)
{
    if (!is_open(x) || x->head_only || n == 0)
        return 0;
    assert(x->status != 0);
    return x->proto->write(x, p, n);
}

void xchg_end(struct xchg *x, const struct http_header *trailers, size_t count)
{
    if (!is_open(x))
        return;
    assert(x->status != 0);
    if (!are_clean(trailers, count)) {
        xchg_abort(x);
        return;
    }
    x->reply_ended = true;
    x->proto->end(x, trailers, count);
}

void xchg_abort(struct xchg *x)
{
    if (!is_open(x))
        return;
    x->aborted = true;
    x->proto->abort(x);
}

bool xchg_head_sent(const struct xchg *x)
{
    return x->status != 0;
}

void xchg_reply_with(struct xchg *x, int status, const struct http_header *headers, size_t count,
                     struct str body)
{
    struct http_header *all = arena_alloc(&x->arena, (count + 1) * sizeof *all);
    char *length = arena_alloc(&x->arena, 24);
    int n = snprintf(length, 24, "%zu", body.n);

    if (count > 0)
        memcpy(all, headers, count * sizeof *all);
    all[count] = (struct http_header){STR("content-length"), str_make(length, (size_t)n)};
    /* RFC 9110 section 8.6: no length with 204. */
    xchg_head(x, status, all, status == 204 ? count : count + 1);
    (void)!xchg_write(x, body.p, body.n);
    xchg_end(x, NULL, 0);
}

void xchg_reply(struct xchg *x, int status, const char *content_type, struct str body)
{
    struct http_header h = {STR("content-type"), str_of(content_type)};

    xchg_reply_with(x, status, &h, content_type ? 1 : 0, body);
}

void xchg_refuse(struct xchg *x, int status, const struct err *e)
{
    AUTO(buf_done) struct buf body = {0};
    struct http_header h[3] = {{STR("content-type"), STR("application/json")}};
    size_t n = 1;

    if (!is_open(x))
        return;
    if (x->status != 0) {
        xchg_abort(x);
        return;
    }
    if (status == 401)
        h[n++] = (struct http_header){STR("www-authenticate"), STR("Bearer realm=\"holt\"")};
    if ((status == 429 || status == 503) && !http_get(x->extra, x->extra_count, "retry-after"))
        h[n++] = (struct http_header){STR("retry-after"), STR("1")};
    server_write_error(x->conn->server, &body, x->req.path, e);
    xchg_reply_with(x, status, h, n, buf_str(&body));
}

void xchg_fail(struct xchg *x, const struct err *e)
{
    assert(e->code > ERR_NONE && e->code < ERR_CODE_COUNT);
    xchg_refuse(x, err_table[e->code].http, e);
}

void xchg_add_header(struct xchg *x, const char *name, struct str value)
{
    struct http_header h = {str_of(name), arena_str(&x->arena, value)};

    assert(x->extra_count < ARRAY_LEN(x->extra));
    if (!are_clean(&h, 1)) {
        xchg_abort(x);
        return;
    }
    x->extra[x->extra_count++] = h;
}
