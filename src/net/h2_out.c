/* h2_out: HTTP/2 output: reply heads, bodies, flow control, the pump. */
#include "net/h2.h"

static void h2_idle(uv_idle_t *idle)
{
    struct h2 *h = idle->data;

    (void)uv_idle_stop(idle);
    h2_pump(h);
}

void h2_schedule(struct h2 *h)
{
    if (!h->receiving && !h->dead)
        (void)uv_idle_start(h->idle, h2_idle);
}

static void resume(struct h2_stream *s)
{
    if (s->deferred) {
        s->deferred = false;
        (void)nghttp2_session_resume_data(s->h2->session, s->id);
    }
    h2_schedule(s->h2);
}

static ssize_t body_read(nghttp2_session *session, int32_t id, uint8_t *to, size_t room,
                         uint32_t *flags, nghttp2_data_source *source, void *arg)
{
    struct h2_stream *s = source->ptr;
    size_t n = size_min(buf_len(&s->out), room);

    (void)to;
    (void)arg;
    if (n == 0 && !s->ended) {
        s->deferred = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (n < buf_len(&s->out) || !s->ended)
        return (ssize_t)n;
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (s->trailer_count > 0) {
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        if (nghttp2_submit_trailer(session, id, s->trailers, s->trailer_count) != 0)
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    return (ssize_t)n;
}

/* Copies a DATA frame from the exchange's buffer straight into the stream's. */
static int body_send(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head, size_t n,
                     nghttp2_data_source *source, void *arg)
{
    struct h2_stream *s = source->ptr;
    struct h2 *h = arg;
    struct buf *to = stream_out(h->conn->stream);

    (void)session;
    (void)frame;
    buf_add(to, head, 9); /* RFC 9113 §4.1; we never request padding */
    buf_add(to, buf_data(&s->out), n);
    buf_take(&s->out, n);
    buf_shrink(&s->out, STREAM_LOW);
    h->progress = true;
    return 0;
}

/* A reply without a body that is complete before it was submitted ends with its head: gRPC calls
 * this form trailers-only, and for HEAD it saves a frame. */
static void submit_head(struct h2_stream *s)
{
    nghttp2_data_provider body = {.source.ptr = s, .read_callback = body_read};
    bool alone = s->ended && buf_len(&s->out) == 0 && s->trailer_count == 0;

    s->submitted = true;
    if (nghttp2_submit_response(s->h2->session, s->id, s->head, s->head_count,
                                alone ? NULL : &body) != 0)
        (void)nghttp2_submit_rst_stream(s->h2->session, NGHTTP2_FLAG_NONE, s->id,
                                        NGHTTP2_INTERNAL_ERROR);
}

/* Returns whether it called drained for any writer. */
static bool tell_drained(struct h2 *h)
{
    bool any = false;

    LIST_EACH (&h->streams, node) {
        struct h2_stream *s = LIST_ENTRY(node, struct h2_stream, link);

        if (s->waiting && s->x && buf_len(&s->out) < STREAM_LOW) {
            s->waiting = false;
            any = true;
            xchg_drained(s->x);
        }
    }
    return any;
}

static void submit_fresh(struct h2 *h)
{
    struct list *node;

    while ((node = list_pop(&h->fresh)))
        submit_head(LIST_ENTRY(node, struct h2_stream, fresh));
}

static bool send_frames(struct h2 *h)
{
    struct stream *out = h->conn->stream;
    const uint8_t *p;
    ssize_t n = 0;

    while (stream_pending(out) <= STREAM_HIGH && (n = nghttp2_session_mem_send(h->session, &p)) > 0)
        buf_add(stream_out(out), p, (size_t)n);
    stream_flush_soon(out);
    return n >= 0;
}

/* Chooses the timeout.  The header timeout runs from a head's first frame to its last, the idle
 * timeout without streams, the body timeout when every stream waits for the peer: for the rest of a
 * request, or for its window to open.  A PING does not count as activity. */
static void update_wait(struct h2 *h)
{
    enum conn_wait wait = CONN_WAIT_NOTHING;
    size_t theirs = 0, blocked = 0;

    LIST_EACH (&h->streams, node) {
        struct h2_stream *s = LIST_ENTRY(node, struct h2_stream, link);

        if (s->submitted && buf_len(&s->out) > 0)
            blocked++;
        else if (!s->received && !s->submitted && !s->tunnel && s->unconsumed == 0)
            theirs++;
    }
    if (h->head_open)
        wait = CONN_WAIT_HEAD;
    else if (h->stream_count == 0)
        wait = CONN_WAIT_REQUEST;
    else if (theirs == h->stream_count ||
             (blocked > 0 && stream_pending(h->conn->stream) <= STREAM_HIGH))
        wait = CONN_WAIT_BODY;
    if (wait != h->conn->wait || (wait == CONN_WAIT_BODY && h->progress))
        conn_wait(h->conn, wait);
    h->progress = false;
}

void h2_pump(struct h2 *h)
{
    bool more = true;

    if (h->dead)
        return;
    while (more) {
        submit_fresh(h);
        if (!send_frames(h)) {
            h->dead = true;
            conn_close(h->conn);
            return;
        }
        more = stream_pending(h->conn->stream) <= STREAM_HIGH && tell_drained(h);
    }
    update_wait(h);
    if (h->shutting_down && h->stream_count == 0)
        (void)nghttp2_session_terminate_session(h->session, NGHTTP2_NO_ERROR);
    if (h->shutting_down && h->stream_count == 0)
        (void)send_frames(h);
    if (!nghttp2_session_want_read(h->session) && !nghttp2_session_want_write(h->session)) {
        h->dead = true;
        conn_close(h->conn);
    }
}

static nghttp2_nv *copy_fields(struct xchg *x, const struct http_header *h, size_t count,
                               size_t extra)
{
    nghttp2_nv *to = arena_zalloc(&x->arena, (count + extra + 1) * sizeof *to);

    for (size_t i = 0; i < count; i++) {
        struct str name = arena_str(&x->arena, h[i].name);
        struct str value = arena_str(&x->arena, h[i].value);

        to[extra + i] = (nghttp2_nv){.name = (uint8_t *)(uintptr_t)name.p,
                                     .value = (uint8_t *)(uintptr_t)value.p,
                                     .namelen = name.n,
                                     .valuelen = value.n};
    }
    return to;
}

static void out_head(struct xchg *x, int status, const struct http_header *h, size_t count)
{
    struct h2_stream *s = x->state;
    struct http_header *kept;
    size_t n = 0;
    char *text;

    if (s->head || s->aborted)
        return;
    kept = arena_alloc(&x->arena, (count + 1) * sizeof *kept);
    for (size_t i = 0; i < count; i++)
        if (!h2_is_hop_field(h[i].name))
            kept[n++] = h[i];
    text = arena_printf(&x->arena, "%d", status);
    if (!http_get(kept, n, "date"))
        kept[n++] = (struct http_header){STR("date"), conn_date(x->conn)};
    s->head = copy_fields(x, kept, n, 1);
    s->head[0] = (nghttp2_nv){.name = (uint8_t *)(uintptr_t)":status",
                              .value = (uint8_t *)text,
                              .namelen = 7,
                              .valuelen = strlen(text)};
    s->head_count = n + 1;
    list_push(&s->h2->fresh, &s->fresh);
    h2_schedule(s->h2);
}

static int out_write(struct xchg *x, const void *p, size_t n)
{
    struct h2_stream *s = x->state;

    if (s->aborted)
        return 0;
    buf_add(&s->out, p, n);
    resume(s);
    if (buf_len(&s->out) <= STREAM_HIGH)
        return 0;
    s->waiting = true;
    return 1;
}

static void out_end(struct xchg *x, const struct http_header *trailers, size_t count)
{
    struct h2_stream *s = x->state;

    if (count > 0) {
        s->trailers = copy_fields(x, trailers, count, 0);
        s->trailer_count = count;
    }
    s->ended = true;
    s->waiting = false;
    resume(s);
}

static void out_abort(struct xchg *x)
{
    struct h2_stream *s = x->state;

    if (s->aborted)
        return;
    s->aborted = true;
    s->waiting = false;
    list_unlink(&s->fresh);
    (void)nghttp2_submit_rst_stream(s->h2->session, NGHTTP2_FLAG_NONE, s->id,
                                    NGHTTP2_INTERNAL_ERROR);
    h2_schedule(s->h2);
}

/* RFC 9110 §10.1.1: the client holds its body back until it gets a 100. */
void h2_continue(struct h2_stream *s)
{
    const nghttp2_nv status = {.name = (uint8_t *)(uintptr_t)":status",
                               .value = (uint8_t *)(uintptr_t)"100",
                               .namelen = 7,
                               .valuelen = 3};

    if (!s->expect || s->head || s->aborted || !xchg_wants_body(s->x))
        return;
    s->expect = false;
    (void)nghttp2_submit_headers(s->h2->session, NGHTTP2_FLAG_NONE, s->id, NULL, &status, 1, NULL);
    h2_schedule(s->h2);
}

static void out_consume(struct xchg *x, size_t n)
{
    struct h2_stream *s = x->state;

    if (n == 0) {
        h2_continue(s);
        return;
    }
    n = size_min(n, s->unconsumed);
    s->unconsumed -= n;
    (void)nghttp2_session_consume(s->h2->session, s->id, n);
    h2_schedule(s->h2);
}

/* RFC 8441 §4: a 200 accepts the extended CONNECT; the stream's bytes are then the tunnel's. */
static void out_upgrade(struct xchg *x, const struct http_header *h, size_t count)
{
    x->status = 200;
    x->body_max = -1;
    out_head(x, 200, h, count);
}

void h2_set_callbacks_out(nghttp2_session_callbacks *cb)
{
    nghttp2_session_callbacks_set_send_data_callback(cb, body_send);
}

const struct xchg_proto h2_xchg_proto = {
    .head = out_head,
    .write = out_write,
    .end = out_end,
    .abort = out_abort,
    .consume = out_consume,
    .upgrade = out_upgrade,
};
