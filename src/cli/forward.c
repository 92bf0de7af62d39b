/* forward: joins a local TCP connection to a port inside a sandbox. */
#include "cli/forward.h"

#include "base/mem.h"
#include "cli/print.h"
#include "net/ws_client.h"

#include <unistd.h>

#define PROTOCOL "holt.tcp.v1"
#define MESSAGE_MAX (4 * 1024 * 1024)
#define PING_MS 15000
#define HIGH (256 * 1024) /* unsent bytes to the local client at which the server must wait */
#define LOW (64 * 1024)
#define LIVE_MAX 1024

struct forward {
    uv_tcp_t tcp;
    struct forward_to *to;
    struct ws_client *ws; /* NULL: not connected */
    char room[64 * 1024];
    bool open;       /* ws accepts messages */
    bool tcp_closed; /* … or closing */
    bool tcp_gone;
    bool paused;
};

struct out { /* bytes being written to the local client */
    uv_write_t req;
    struct forward *f;
    char bytes[];
};

static void free_when_done(struct forward *f)
{
    if (!f->tcp_gone || f->ws)
        return;
    f->to->live--;
    mem_free(f);
}

static void on_tcp_closed(uv_handle_t *h)
{
    struct forward *f = h->data;

    f->tcp_gone = true;
    free_when_done(f);
}

static void close_tcp(struct forward *f)
{
    if (f->tcp_closed)
        return;
    f->tcp_closed = true;
    uv_close((uv_handle_t *)&f->tcp, on_tcp_closed);
}

static void forward_end(struct forward *f)
{
    close_tcp(f);
    if (f->ws)
        ws_client_close(f->ws, WS_NORMAL, "");
}

/* --- from the local client --- */

static void on_alloc(uv_handle_t *h, size_t size, uv_buf_t *buf)
{
    struct forward *f = h->data;

    (void)size;
    *buf = uv_buf_init(f->room, sizeof f->room);
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
    struct forward *f = s->data;
    int full = 0;

    if (n == UV_EOF) {
        (void)uv_read_stop(s);
        (void)!ws_client_send(f->ws, WS_OP_BINARY, (struct str){0});
    } else if (n < 0) {
        forward_end(f);
    } else if (n > 0) {
        full = ws_client_send(f->ws, WS_OP_BINARY, str_make(buf->base, (size_t)n));
    }
    if (full > 0)
        (void)uv_read_stop(s);
}

static void read_on(struct ws_client *w)
{
    struct forward *f = ws_client_arg(w);

    if (!f->tcp_closed && uv_is_readable((uv_stream_t *)&f->tcp))
        (void)uv_read_start((uv_stream_t *)&f->tcp, on_alloc, on_read);
}

/* --- from the sandbox --- */

static void on_written(uv_write_t *req, int status)
{
    struct out *o = req->data;
    struct forward *f = o->f;

    mem_free(o);
    if (status < 0 && status != UV_ECANCELED)
        forward_end(f);
    if (f->paused && f->ws && f->tcp.write_queue_size < LOW) {
        f->paused = false;
        ws_client_pause(f->ws, false);
    }
}

static void on_shut(uv_shutdown_t *req, int status)
{
    (void)status;
    mem_free(req);
}

static void end_writing(struct forward *f)
{
    uv_shutdown_t *req = xzalloc(sizeof *req);

    if (uv_shutdown(req, (uv_stream_t *)&f->tcp, on_shut) < 0)
        mem_free(req);
}

static void on_message(struct ws_client *w, enum ws_op kind, struct str data)
{
    struct forward *f = ws_client_arg(w);
    struct out *o;
    uv_buf_t buf;

    if (kind != WS_OP_BINARY || f->tcp_closed)
        return;
    if (data.n == 0) {
        end_writing(f);
        return;
    }
    o = xmalloc(sizeof *o + data.n);
    *o = (struct out){.f = f};
    o->req.data = o;
    memcpy(o->bytes, data.p, data.n);
    buf = uv_buf_init(o->bytes, (unsigned)data.n);
    if (uv_write(&o->req, (uv_stream_t *)&f->tcp, &buf, 1, on_written) < 0) {
        mem_free(o);
        forward_end(f);
        return;
    }
    f->paused = f->tcp.write_queue_size > HIGH;
    if (f->paused)
        ws_client_pause(w, true);
}

static void report(struct forward *f, const struct ws_client_end *end)
{
    AUTO(buf_done) struct buf line = {0};
    struct err e = end->e;

    if (end->status)
        (void)request_refused(f->to->t, end->status, end->body, &e);
    else if (end->code != WS_VANISHED && end->code != WS_NORMAL && end->reason.n > 0)
        (void)err_set(&e, ERR_UNAVAILABLE, 0, "%.*s", (int)size_min(end->reason.n, 120),
                      end->reason.p);
    if (e.code == ERR_NONE || f->tcp_closed)
        return;
    buf_add_c(&line, "holt: ");
    print_safe(&line, str_of(e.msg));
    buf_add_char(&line, '\n');
    (void)!write(STDERR_FILENO, buf_data(&line), buf_len(&line));
}

static void on_tcp_flushed(uv_shutdown_t *req, int status)
{
    struct forward *f = req->handle->data;

    (void)status;
    mem_free(req);
    close_tcp(f);
}

/* Bytes received before the end are still written to the local client. */
static void on_closed(struct ws_client *w, const struct ws_client_end *ended)
{
    struct forward *f = ws_client_arg(w);
    uv_shutdown_t *req = xzalloc(sizeof *req);

    report(f, ended);
    f->ws = NULL;
    f->open = false;
    if (!f->tcp_closed)
        (void)uv_read_stop((uv_stream_t *)&f->tcp);
    if (f->tcp_closed || ended->code != WS_NORMAL ||
        uv_shutdown(req, (uv_stream_t *)&f->tcp, on_tcp_flushed) < 0) {
        mem_free(req);
        close_tcp(f);
    }
    free_when_done(f);
}

void forward_accept(struct forward_to *to, uv_stream_t *listener, const char *target)
{
    static const struct ws_client_ops ops = {
        .opened = read_on, .message = on_message, .drained = read_on, .closed = on_closed};
    struct forward *f = xzalloc(sizeof *f);
    struct err e;

    f->to = to;
    if (uv_tcp_init(to->loop, &f->tcp) < 0) {
        mem_free(f);
        return;
    }
    to->live++;
    f->tcp.data = f;
    if (uv_accept(listener, (uv_stream_t *)&f->tcp) < 0 || to->live > LIVE_MAX ||
        ws_client_start(&(struct ws_client_request){.loop = to->loop,
                                                    .url = to->url,
                                                    .tls = to->tls,
                                                    .target = target,
                                                    .protocol = PROTOCOL,
                                                    .headers = to->headers->v,
                                                    .header_count = to->headers->n,
                                                    .message_max = MESSAGE_MAX,
                                                    .connect_ms = REQUEST_CONNECT_MS,
                                                    .head_ms = REQUEST_CONNECT_MS,
                                                    .ping_ms = PING_MS,
                                                    .ops = &ops,
                                                    .arg = f},
                        &f->ws, &e) < 0)
        close_tcp(f);
    else
        (void)uv_tcp_nodelay(&f->tcp, 1);
}
