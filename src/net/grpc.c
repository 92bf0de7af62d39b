/* grpc: the server side of gRPC and gRPC-Web calls. */
#include "net/grpc.h"

#include "base/enc.h"
#include "base/mem.h"
#include "net/grpc_reply.h"
#include "net/server.h"
#include "proto/grpc.h"
#include "proto/inflate.h"

#include <errno.h>
#include <uv.h>

/* The text form returns its window at once, so the input after a message needs its own bound. */
#define IN_SLACK (256 * 1024)

struct grpc_call {
    struct xchg *x;
    const struct grpc_ops *ops;
    void *arg;
    struct grpc_reply reply;
    struct grpc_reader reader;
    struct buf in;    /* input after the message being handled, not consumed yet */
    struct buf plain; /* the message being handled, if it was compressed */
    struct buf text;  /* gRPC-Web text: up to three characters of an unfinished group */
    uv_timer_t *timer;
    bool busy;        /* a message waits for grpc_consume */
    bool feeding;     /* feed is on the stack */
    bool body_ended;  /* the peer has stopped sending */
    bool half_closed; /* … and the method was notified */
    bool ended;       /* the reply is complete, or never will be */
};

static const struct grpc_ops no_ops;

bool grpc_is_call(const struct xchg *x)
{
    struct str type = http_req_header(xchg_req(x), "content-type"), start = STR("application/grpc");

    return type.n >= start.n && str_case_eq(str_make(type.p, start.n), start);
}

static void end_with(struct grpc_call *c, const struct err *e)
{
    c->ended = true;
    if (c->timer)
        (void)uv_timer_stop(c->timer);
    grpc_reply_end(&c->reply, e);
}

/* Ends a call that its method has begun and cannot finish. */
static void cancel(struct grpc_call *c, const struct err *e)
{
    const struct grpc_ops *ops = c->ops;

    if (c->ended)
        return;
    c->ended = true;
    if (ops->cancelled)
        ops->cancelled(c);
    if (e)
        end_with(c, e);
}

static void bad_frame(struct grpc_call *c, int code)
{
    struct err e;

    if (code == -EMSGSIZE)
        (void)err_set(&e, ERR_TOO_LARGE, 0, "the message exceeds the limit of %zu bytes",
                      c->reader.limit);
    else if (code == -EOPNOTSUPP)
        (void)err_set(&e, ERR_INTERNAL, 0, "a compressed message, but no grpc-encoding");
    else
        (void)err_set(&e, ERR_INTERNAL, 0, "the message framing is broken");
    cancel(c, &e);
}

static void tell_half_closed(struct grpc_call *c)
{
    if (!c->body_ended || c->half_closed || c->busy || c->ended)
        return;
    if (!grpc_reader_is_between(&c->reader) || buf_len(&c->text) > 0) {
        bad_frame(c, -EPROTO);
        return;
    }
    c->half_closed = true;
    if (c->ops->half_closed)
        c->ops->half_closed(c);
}

/* The next message, decompressed. */
static int next_message(struct grpc_call *c, struct str *in, struct str *ret)
{
    struct grpc_frame f;
    int r = grpc_reader_next(&c->reader, in, &f);

    if (r <= 0)
        return r;
    *ret = f.data;
    if (!f.compressed)
        return 1;
    buf_done(&c->plain);
    r = inflate_all(f.data, c->reader.limit, &c->plain);
    *ret = buf_str(&c->plain);
    return r < 0 ? r : 1;
}

/* Hands out messages until one is not consumed at once; returns the rest of in. */
static struct str call_feed(struct grpc_call *c, struct str in)
{
    struct str message;

    c->feeding = true;
    while (!c->busy && !c->ended) {
        int r = next_message(c, &in, &message);

        if (r == 0)
            break;
        if (r < 0) {
            bad_frame(c, r);
            break;
        }
        c->busy = true;
        if (c->ops->message)
            c->ops->message(c, message);
        else
            c->busy = false;
    }
    c->feeding = false;
    return c->ended ? STR("") : in;
}

/* gRPC-Web text: groups of four characters, each with optional padding. */
static int decode_text(struct grpc_call *c, struct str part, struct buf *to)
{
    for (size_t i = 0; i < part.n; i++) {
        buf_add_char(&c->text, part.p[i]);
        if (buf_len(&c->text) < 4)
            continue;
        if (dec_base64(to, buf_str(&c->text)) < 0)
            return -EPROTO;
        buf_clear(&c->text);
    }
    return 0;
}

static void on_body(struct xchg *x, struct str part)
{
    struct grpc_call *c = xchg_arg(x);
    AUTO(buf_done) struct buf plain = {0};
    struct str in = part, left;

    if (c->ended) {
        xchg_consume(x, part.n);
        return;
    }
    if (c->reply.text) { /* the window counts the text form, so return it at once */
        xchg_consume(x, part.n);
        if (decode_text(c, part, &plain) < 0) {
            bad_frame(c, -EPROTO);
            return;
        }
        in = buf_str(&plain);
    }
    if (buf_len(&c->in) + in.n > c->reader.limit + IN_SLACK) {
        bad_frame(c, -EMSGSIZE);
        return;
    }
    left = c->busy ? in : call_feed(c, in);
    buf_add_str(&c->in, left);
    if (!xchg_hold(x, buf_len(&c->in) + buf_len(&c->reader.message)))
        return;
    if (!c->reply.text)
        xchg_consume(x, in.n - left.n);
}

static void on_body_end(struct xchg *x)
{
    struct grpc_call *c = xchg_arg(x);

    c->body_ended = true;
    if (buf_len(&c->in) == 0)
        tell_half_closed(c);
}

static void on_drained(struct xchg *x)
{
    struct grpc_call *c = xchg_arg(x);

    if (!c->ended && c->ops->drained)
        c->ops->drained(c);
}

static void timer_closed(uv_handle_t *t)
{
    mem_free(t);
}

static void on_closed(struct xchg *x, bool done)
{
    struct grpc_call *c = xchg_arg(x);

    (void)done;
    cancel(c, NULL);
    if (c->ops->closed)
        c->ops->closed(c);
    if (c->timer)
        uv_close((uv_handle_t *)c->timer, timer_closed);
    grpc_reader_done(&c->reader);
    buf_done(&c->in);
    buf_done(&c->plain);
    buf_done(&c->text);
    mem_free(c);
}

static void on_deadline(uv_timer_t *t)
{
    struct err e;

    (void)err_set(&e, ERR_TIMEOUT, 0, "the call's deadline has passed");
    cancel(t->data, &e);
}

static int set_deadline(struct grpc_call *c, struct err *e)
{
    struct str text = http_req_header(xchg_req(c->x), "grpc-timeout");
    int64_t ms;

    if (!text.p)
        return 0;
    if (grpc_timeout_parse(text, &ms) < 0)
        return err_set(e, ERR_INVALID, 0, "grpc-timeout is malformed");
    c->timer = xzalloc(sizeof *c->timer);
    (void)uv_timer_init(server_loop(xchg_server(c->x)), c->timer);
    c->timer->data = c;
    (void)uv_timer_start(c->timer, on_deadline, (uint64_t)ms, 0);
    return 0;
}

/* A request that is not a valid gRPC call gets a plain HTTP error. */
static int check_http(const struct xchg *x, struct err *e)
{
    const struct http_req *r = xchg_req(x);

    if (!str_eq_c(r->method, "POST"))
        return err_set(e, ERR_METHOD, 0, "gRPC calls are POST requests");
    switch (grpc_form(x)) {
    case GRPC_FORM_NONE:
        return err_set(e, ERR_MEDIA_TYPE, 0, "the content type '" STR_FMT "' is not supported",
                       STR_ARG(http_req_header(r, "content-type")));
    case GRPC_FORM_PLAIN:
        if (r->version == HTTP_2)
            return 0;
        return err_set(e, ERR_UNSUPPORTED, 0, "gRPC needs HTTP/2; HTTP/1.1 carries gRPC-Web");
    case GRPC_FORM_WEB:
    case GRPC_FORM_WEB_TEXT:
        return 0;
    }
    return 0;
}

static int check_call(struct grpc_call *c, const struct grpc_method *method, struct err *e)
{
    struct str coding = http_req_header(xchg_req(c->x), "grpc-encoding");

    if (!method)
        /* the text of gRPC's own servers */
        return err_set(e, ERR_UNSUPPORTED, 0, "Method not found!");
    c->reader.compressed = str_eq_c(coding, "gzip") || str_eq_c(coding, "deflate");
    if (coding.p && !c->reader.compressed && !str_eq_c(coding, "identity"))
        return err_set(e, ERR_UNSUPPORTED, 0,
                       "messages can be compressed only with gzip or deflate");
    return set_deadline(c, e);
}

void grpc_limit_message(struct grpc_call *c, size_t max)
{
    c->reader.limit = size_min(max, (size_t)server_limits(xchg_server(c->x))->grpc_message_max);
}

static struct grpc_call *new_call(struct xchg *x)
{
    static const struct xchg_ops xchg_ops = {
        .body = on_body, .body_end = on_body_end, .drained = on_drained, .closed = on_closed};
    struct grpc_call *c;
    struct err e;

    if (check_http(x, &e) < 0) {
        xchg_fail(x, &e);
        return NULL;
    }
    c = xzalloc(sizeof *c);
    c->x = x;
    c->ops = &no_ops;
    grpc_limit_message(c, GRPC_SMALL);
    grpc_reply_init(&c->reply, x);
    xchg_limit_body(x, 0); /* messages have their own limit */
    xchg_handle(x, &xchg_ops, c);
    return c;
}

void grpc_start(struct xchg *x, const struct grpc_method *method, void *arg)
{
    struct grpc_call *c = new_call(x);
    struct err e;

    if (!c)
        return;
    if (check_call(c, method, &e) < 0)
        end_with(c, &e);
    else
        method->start(c, arg);
}

const struct grpc_method *grpc_find(const struct grpc_method *methods, size_t count,
                                    struct str path)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq_c(path, methods[i].path))
            return &methods[i];
    return NULL;
}

void grpc_refuse(struct xchg *x, const struct err *e)
{
    struct grpc_call *c = new_call(x);

    if (c)
        end_with(c, e);
}

void grpc_handle(struct grpc_call *c, const struct grpc_ops *ops, void *arg)
{
    c->ops = ops;
    c->arg = arg;
}

void *grpc_arg(const struct grpc_call *c)
{
    return c->arg;
}

struct xchg *grpc_xchg(const struct grpc_call *c)
{
    return c->x;
}

int grpc_get_bin(const struct grpc_call *c, const char *name, struct buf *to)
{
    struct str value = http_req_header(xchg_req(c->x), name);

    if (!value.p)
        return 0;
    return dec_base64(to, value) < 0 ? -EINVAL : 1;
}

void grpc_consume(struct grpc_call *c)
{
    AUTO(buf_done) struct buf in = {0};
    struct str left;

    if (!c->busy)
        return;
    c->busy = false;
    if (c->feeding || c->ended)
        return;
    in = c->in;
    c->in = (struct buf){0};
    left = call_feed(c, buf_str(&in));
    buf_add_str(&c->in, left);
    if (!c->reply.text)
        xchg_consume(c->x, buf_len(&in) - left.n);
    if (buf_len(&c->in) == 0)
        tell_half_closed(c);
}

void grpc_metadata(struct grpc_call *c, const char *name, struct str value)
{
    grpc_reply_metadata(&c->reply, name, value);
}

void grpc_trailer(struct grpc_call *c, const char *name, struct str value)
{
    grpc_reply_trailer(&c->reply, name, value);
}

int grpc_send(struct grpc_call *c, struct str message)
{
    return c->ended ? 0 : grpc_reply_send(&c->reply, message);
}

void grpc_set_status(struct grpc_call *c, int status)
{
    c->reply.status = status;
}

void grpc_finish(struct grpc_call *c)
{
    const struct err ok = {0};

    if (!c->ended)
        end_with(c, &ok);
}

void grpc_fail(struct grpc_call *c, const struct err *e)
{
    if (!c->ended)
        end_with(c, e);
}
