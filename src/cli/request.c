/* request: sends a request to the daemon and waits for its reply. */
#include "cli/request.h"

#include "base/enc.h"
#include "base/mem.h"
#include "base/rnd.h"
#include "conf/conf.h"
#include "proto/json.h"

struct run {
    const struct request *rq;
    struct reply *reply;
    struct err e, feed_e;
    bool closed;
    bool fed;     /* the streamed body is complete */
    bool stopped; /* by the callback */
    bool too_large;
};

static void on_head(struct client *c, int status, const struct http_header *h, size_t count)
{
    struct run *run = client_arg(c);

    (void)h;
    (void)count;
    run->reply->status = status;
}

static void on_body(struct client *c, struct str part)
{
    struct run *run = client_arg(c);

    if (run->rq->part && run->reply->status < 300) {
        run->stopped = run->stopped || run->rq->part(run->rq->arg, part) != 0;
    } else if (buf_len(&run->reply->body) + part.n > REPLY_MAX) {
        run->too_large = true;
    } else {
        buf_add(&run->reply->body, part.p, part.n);
    }
    if (run->stopped || run->too_large)
        client_cancel(c);
    else
        client_consume(c, part.n);
}

/* Writes until the connection is full; a feed that fails ends the request. */
static void on_writable(struct client *c)
{
    struct run *run = client_arg(c);
    int r = 0;

    while (!run->fed && r == 0) {
        AUTO(buf_done) struct buf part = {0};
        int more = run->rq->feed(run->rq->arg, &part, &run->feed_e);

        if (more < 0) {
            run->fed = true;
            client_cancel(c);
            return;
        }
        r = client_write(c, buf_data(&part), buf_len(&part));
        if (more > 0)
            continue;
        run->fed = true;
        client_write_end(c);
    }
}

static void on_closed(struct client *c, const struct err *e)
{
    struct run *run = client_arg(c);

    run->e = *e;
    run->closed = true;
}

static void add_header(struct request_headers *h, const char *name, const char *value)
{
    assert(h->n < REQUEST_HEADERS);
    h->v[h->n++] = (struct http_header){str_of(name), str_of(value)};
}

void request_headers_make(const struct target *t, struct request_headers *h)
{
    (void)snprintf(h->agent, sizeof h->agent, "holt/%s", holt_version);
    add_header(h, "user-agent", h->agent);
    if (t->token) {
        h->bearer = xasprintf("Bearer %s", t->token);
        add_header(h, "authorization", h->bearer);
    }
}

void request_headers_done(struct request_headers *h)
{
    mem_free(h->bearer);
}

static void make_headers(const struct target *t, const struct request *rq,
                         struct request_headers *h)
{
    unsigned char key[16];

    request_headers_make(t, h);
    add_header(h, "accept", rq->accept ? rq->accept : "application/json");
    if (rq->body.n > 0 || rq->type)
        add_header(h, "content-type", rq->type ? rq->type : "application/json");
    if (rq->last_event)
        add_header(h, "last-event-id", rq->last_event);
    if (rq->creates) {
        rnd_bytes(key, sizeof key);
        enc_hex(key, sizeof key, h->key);
        add_header(h, "idempotency-key", h->key);
    }
}

/* --- errors --- */

static int no_daemon(const struct target *t, struct err *e)
{
    char why[96];
    const char *sys = e->sys ? strerror(e->sys) : NULL;

    if (!sys) {
        char cause[sizeof e->msg];

        memcpy(cause, e->msg, sizeof cause);
        return err_set(e, e->code, 0, "no daemon answers at %s (%.150s)", t->server, cause);
    }
    (void)snprintf(why, sizeof why, "%c%s", sys[0] | 0x20, sys + 1);
    (void)err_set(e, e->code, 0, "no daemon answers at %s (%s)", t->server, why);
    if (strcmp(t->chosen, "default") == 0)
        return err_hint(e, "start it with `holtd` or `make run`, or set HOLT_SERVER");
    return err_hint(e, "start it there, or choose another server (this one is from %s)",
                    strcmp(t->chosen, "context") == 0 ? "the context" : t->chosen);
}

int request_failed(const struct target *t, const char *method, const char *path, struct err *e)
{
    if (e->code == ERR_TIMEOUT) {
        (void)err_wrap(e, "%s %.80s at %s", method, path, t->server);
        return err_hint(e, "--request-timeout 5m waits longer, 0 without limit");
    }
    if (e->code == ERR_UNAVAILABLE)
        return no_daemon(t, e);
    return err_wrap(e, "ask %s", t->server);
}

static void copy_text(char *to, size_t size, const json_t *from)
{
    if (json_is_string(from))
        (void)snprintf(to, size, "%s", json_string_value(from));
}

int request_error(const json_t *error, struct err *e)
{
    const char *code = json_string_value(json_object_get(error, "code"));

    (void)err_set(e, err_code_from_name(code ? code : ""), 0, "%s", "the server gave no reason");
    copy_text(e->msg, sizeof e->msg, json_object_get(error, "message"));
    copy_text(e->object, sizeof e->object, json_object_get(error, "object"));
    copy_text(e->hint, sizeof e->hint, json_object_get(error, "hint"));
    return -1;
}

int request_refused(const struct target *t, int status, struct str body, struct err *e)
{
    AUTO(json_decref) json_t *v = NULL;
    const json_t *error;
    struct err ignored;

    if (json_read(body, &v, &ignored) < 0)
        v = NULL;
    error = json_object_get(v, "error");
    if (!json_is_string(json_object_get(error, "code"))) {
        (void)err_set(e, err_code_from_http(status), 0, "%s answered with status %d", t->server,
                      status);
        return err_hint(e, "is that a holt server?");
    }
    (void)request_error(error, e);
    if (e->code == ERR_UNAUTHENTICATED && !t->token) {
        (void)err_set(e, e->code, 0, "not logged in to %.100s", t->server);
        return err_hint(e,
                        "set HOLT_TOKEN, or keep one: `holt context add NAME %.60s --token-file "
                        "FILE`",
                        t->server);
    }
    return -1;
}

static bool abandoned;

bool request_abandoned(void)
{
    return abandoned;
}

/* A name lookup that outlasts our deadline is abandoned with its loop. */
static void run_loop(uv_loop_t *loop, const struct run *run)
{
    while (!run->closed)
        (void)uv_run(loop, UV_RUN_ONCE);
    (void)uv_run(loop, UV_RUN_NOWAIT);
}

uv_loop_t *request_loop(struct err *e)
{
    uv_loop_t *loop = xmalloc(sizeof *loop);
    int r = uv_loop_init(loop);

    if (r == 0)
        return loop;
    mem_free(loop);
    (void)err_set(e, ERR_INTERNAL, -r, "make an event loop");
    return NULL;
}

void request_loop_end(uv_loop_t *loop)
{
    if (uv_loop_close(loop) == 0)
        mem_free(loop);
    else
        abandoned = true;
}

int request_run(const struct target *t, const struct request *rq, struct reply *ret, struct err *e)
{
    static const struct client_ops ops = {
        .writable = on_writable, .head = on_head, .body = on_body, .closed = on_closed};
    AUTO(client_url_done) struct client_url url = {0};
    AUTO(dial_tls_free) struct dial_tls *tls = NULL;
    struct run run = {.rq = rq, .reply = ret};
    AUTO(request_headers_done) struct request_headers h = {0};
    struct client *c;
    uv_loop_t *loop;
    int r;

    *ret = (struct reply){0};
    if (client_url_parse(t->server, &url, e) < 0)
        return -1;
    if (url.tls && dial_tls_new(t->cacert, &tls, e) < 0)
        return -1;
    loop = request_loop(e);
    if (!loop)
        return -1;
    make_headers(t, rq, &h);
    r = client_start(
        &(struct client_request){.loop = loop,
                                 .url = &url,
                                 .tls = tls,
                                 .method = rq->method,
                                 .target = rq->target,
                                 .headers = h.v,
                                 .header_count = h.n,
                                 .body = rq->body,
                                 .streamed = rq->feed != NULL,
                                 .streamed_length = CLIENT_BODY_CHUNKED,
                                 .connect_ms = rq->connect_ms ? rq->connect_ms : REQUEST_CONNECT_MS,
                                 .head_ms = rq->timeout_ms,
                                 .idle_ms = rq->timeout_ms,
                                 .ops = &ops,
                                 .arg = &run},
        &c, e);
    if (r == 0)
        run_loop(loop, &run);
    request_loop_end(loop);
    if (r < 0)
        return -1;
    if (run.too_large)
        return err_set(e, ERR_TOO_LARGE, 0, "the reply of %s is over 64 MiB", t->server);
    if (run.stopped)
        return 1;
    if (run.feed_e.code != ERR_NONE) {
        *e = run.feed_e;
        return -1;
    }
    *e = run.e;
    if (e->code != ERR_NONE)
        return request_failed(t, rq->method, rq->target, e);
    return ret->status >= 400 ? request_refused(t, ret->status, buf_str(&ret->body), e) : 0;
}

int reply_json(const struct reply *r, json_t **ret, struct err *e)
{
    if (json_read_lax(buf_str(&r->body), ret, e) < 0) {
        e->code = ERR_UNAVAILABLE;
        (void)err_wrap(e, "the reply is not JSON");
        return err_hint(e, "is that a holt server?");
    }
    return 0;
}
