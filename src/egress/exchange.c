#include "egress/exchange.h"

#include "base/mem.h"
#include "egress/guards.h"
#include "proto/http1.h"
#include "proto/scrub.h"

#include <stdio.h>

#define REQUEST_HEAD_MAX (32 * 1024)
#define FILLED_HEAD_MAX (128 * 1024) /* of a request whose placeholders became values */
#define REPLY_HEAD_MAX (64 * 1024)
#define INTERIM_MAX 16 /* 1xx replies to one request */

enum request { REQUEST_HEAD, REQUEST_BODY, REQUEST_SENT };
enum reply { REPLY_NONE, REPLY_HEAD, REPLY_BODY };
enum out { OUT_NONE, OUT_LENGTH, OUT_CHUNKED, OUT_UNTIL_CLOSE };

struct exchange {
    struct exchange_config c;
    struct buf client_in, server_in; /* not read yet */
    struct buf to_client, to_server; /* not taken yet */
    struct http1_scan scan, reply_scan;
    enum request request;
    enum reply reply;
    struct http1_body body, reply_body;
    bool keep, old_client, head_only, upgrade, tunnel;
    bool replied; /* the client has a part of the reply */
    unsigned interim;
    enum out out;
    struct scrub scrub;
    char *failed; /* why the server cannot be spoken to */
    enum exchange_end end;
};

struct exchange *exchange_new(const struct exchange_config *c)
{
    struct exchange *x = xzalloc(sizeof *x);

    x->c = *c;
    return x;
}

struct exchange *exchange_free(struct exchange *x)
{
    if (!x)
        return NULL;
    buf_wipe(&x->client_in);
    buf_wipe(&x->server_in);
    buf_wipe(&x->to_client);
    buf_wipe(&x->to_server);
    http1_body_done(&x->body);
    http1_body_done(&x->reply_body);
    scrub_done(&x->scrub);
    mem_free(x->failed);
    mem_free(x);
    return NULL;
}

struct buf *exchange_to_client(struct exchange *x)
{
    return &x->to_client;
}

struct buf *exchange_to_server(struct exchange *x)
{
    return &x->to_server;
}

enum exchange_end exchange_end(const struct exchange *x)
{
    return x->end;
}

bool exchange_wants_client(const struct exchange *x)
{
    return x->end == EXCHANGE_GOES_ON && buf_len(&x->client_in) < REQUEST_HEAD_MAX * 2 &&
           buf_len(&x->to_server) < EXCHANGE_HIGH;
}

bool exchange_wants_server(const struct exchange *x)
{
    return x->end == EXCHANGE_GOES_ON && buf_len(&x->to_client) < EXCHANGE_HIGH;
}

/* ---- ends ---- */

static void reply_ourselves(struct exchange *x, int status, const char *text)
{
    if (x->end != EXCHANGE_GOES_ON)
        return;
    x->end = x->replied || x->tunnel ? EXCHANGE_BROKE : EXCHANGE_ENDS;
    buf_clear(&x->to_server);
    if (x->end == EXCHANGE_BROKE)
        return;
    buf_printf(&x->to_client,
               "HTTP/1.1 %d %s\r\ncontent-type: text/plain; charset=utf-8\r\n"
               "content-length: %zu\r\nconnection: close\r\n\r\n",
               status, http_status_text(status), x->head_only ? 0 : strlen(text) + 7);
    if (!x->head_only)
        buf_printf(&x->to_client, "holt: %s\n", text);
}

static void refuse(struct exchange *x, int status, const char *why)
{
    char text[EXCHANGE_RULE + HOST_NAME_MAX_LEN + 32];

    x->c.ops->refused(x->c.arg, why);
    (void)snprintf(text, sizeof text, "%s port %u is refused: %s", x->c.host->name, x->c.port, why);
    reply_ourselves(x, status, text);
}

/* ---- requests ---- */

static struct binding_query query_of(const struct exchange *x, const struct http_req *r)
{
    return (struct binding_query){
        .host = x->c.host, .tls = x->c.tls, .method = r->method, .path = r->path};
}

/* RFC 9110 section 7.4: a request for another host than that to which the connection goes. */
static bool is_for_host(const struct exchange *x, struct str authority)
{
    uint64_t port = x->c.tls ? 443 : 80;
    const char *colon;
    struct host h;
    struct err e;
    size_t at;

    if (authority.n == 0)
        return true; /* HTTP/1.0: the server gets ours */
    colon = memrchr(authority.p, ':', authority.n);
    at = colon ? (size_t)(colon - authority.p) : authority.n;
    if (authority.p[authority.n - 1] == ']')
        at = authority.n;
    if (at < authority.n && str_parse_u64(str_skip(authority, at + 1), &port) < 0)
        return false;
    return port == x->c.port && host_parse(str_make(authority.p, at), &h, &e) == 0 &&
           strcmp(h.name, x->c.host->name) == 0;
}

/* What asks the server to take the request for another one than it is. */
static bool overrides(struct str name)
{
    static const char *const names[] = {"x-http-method-override", "x-http-method",
                                        "x-method-override",      "x-original-url",
                                        "x-rewrite-url",          "x-forwarded-host"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (str_eq_c(name, names[i]))
            return !guard_left_out("overrides");
    return false;
}

/* Parts, deltas and compressed forms would hide a value that comes back. */
static bool hides_replies(struct str name)
{
    return str_eq_c(name, "accept-encoding") || str_eq_c(name, "range") ||
           str_eq_c(name, "if-range") || str_eq_c(name, "a-im") ||
           str_eq_c(name, "sec-websocket-extensions");
}

static bool is_ours(const struct exchange *x, const struct http1_request *r, struct str name)
{
    const struct http_req *q = &r->req;

    if (str_eq_c(name, "host") || str_eq_c(name, "content-length") ||
        str_eq_c(name, "transfer-encoding") || overrides(name) ||
        http_is_hop(q->headers, q->header_count, name))
        return true;
    return x->scrub.count > 0 && hides_replies(name) && !guard_left_out("hidden");
}

static void write_first_lines(struct exchange *x, const struct http_req *q, struct buf *to)
{
    const struct bindings *b = x->c.ops->bindings(x->c.arg);
    struct binding_query which = query_of(x, q);

    buf_add_str(to, q->method);
    buf_add_char(to, ' ');
    buf_add_str(to, q->path);
    if (q->query.p) {
        buf_add_char(to, '?');
        (void)bindings_fill_query(b, &which, q->query, to);
    }
    buf_printf(to, " HTTP/1.1\r\nhost: %s%s%s", strchr(x->c.host->name, ':') ? "[" : "",
               x->c.host->name, strchr(x->c.host->name, ':') ? "]" : "");
    if (x->c.port != (x->c.tls ? 443 : 80))
        buf_printf(to, ":%u", x->c.port);
    buf_add_c(to, "\r\n");
}

static void write_request(struct exchange *x, const struct http1_request *r, struct buf *to)
{
    const struct bindings *b = x->c.ops->bindings(x->c.arg);
    const struct http_req *q = &r->req;
    struct binding_query which = query_of(x, q);

    write_first_lines(x, q, to);
    for (size_t i = 0; i < q->header_count; i++) {
        const struct http_header *h = &q->headers[i];

        if (is_ours(x, r, h->name))
            continue;
        buf_add_str(to, h->name);
        buf_add_c(to, ": ");
        (void)bindings_fill_header(b, &which, h, to);
        buf_add_c(to, "\r\n");
    }
    if (x->scrub.count > 0 && !guard_left_out("hidden"))
        buf_add_c(to, "accept-encoding: identity\r\n");
    if (r->framing == HTTP1_CHUNKED)
        buf_add_c(to, "transfer-encoding: chunked\r\n");
    else if (http_get(q->headers, q->header_count, "content-length"))
        buf_printf(to, "content-length: %lld\r\n", (long long)q->content_length);
    if (x->upgrade)
        buf_add_c(to, "connection: upgrade\r\nupgrade: websocket\r\n");
    else if (!x->keep)
        buf_add_c(to, "connection: close\r\n");
    buf_add_c(to, "\r\n");
}

static void take_request(struct exchange *x, const struct http1_request *r)
{
    const struct http_req *q = &r->req;
    struct str upgrade = http_req_header(q, "upgrade");
    AUTO(buf_wipe) struct buf head = {0};
    struct binding_query which = query_of(x, q);
    char why[EXCHANGE_RULE];

    x->head_only = str_eq_c(q->method, "HEAD");
    x->keep = r->keep_alive && !x->c.proxy;
    x->old_client = q->version == HTTP_1_0;
    x->upgrade = r->wants_upgrade && str_case_eq_c(upgrade, "websocket") && !x->c.proxy &&
                 r->framing == HTTP1_NO_BODY;
    if (!is_for_host(x, q->authority)) {
        refuse(x, 421, "a request for another host");
        return;
    }
    if (!x->c.ops->judge(x->c.arg, q->method, q->path, why)) {
        refuse(x, 403, why);
        return;
    }
    if (x->failed) {
        reply_ourselves(x, 502, x->failed);
        return;
    }
    scrub_done(&x->scrub);
    x->scrub.same_length = x->upgrade;
    if (!guard_left_out("scrub"))
        bindings_scrub(x->c.ops->bindings(x->c.arg), &which, &x->scrub);
    write_request(x, r, &head);
    if (buf_len(&head) > FILLED_HEAD_MAX) {
        reply_ourselves(x, 431, "the request is too large once its secrets are filled in");
        return;
    }
    buf_add_str(&x->to_server, buf_str(&head));
    http1_body_done(&x->body);
    http1_body_init(&x->body, r->framing, q->content_length);
    x->request = http1_body_is_complete(&x->body) ? REQUEST_SENT : REQUEST_BODY;
    x->reply = REPLY_HEAD;
    x->interim = 0;
}

/* False: more bytes are needed, or it has ended. */
static bool read_request(struct exchange *x)
{
    static const struct http1_limits limits = {.head_max = REQUEST_HEAD_MAX, .count_max = 128};
    AUTO(arena_done) struct arena a = {0};
    struct http1_request r;
    struct err e = {0};
    int st;

    if (x->reply != REPLY_NONE || buf_len(&x->client_in) == 0)
        return false;
    st = http1_scan(&x->scan, buf_str(&x->client_in), &limits, &e);
    if (st == 0)
        return false;
    if (st > 0 && x->c.proxy)
        st = http1_proxy_request(&x->scan, buf_str(&x->client_in), &a, &r, &e);
    else if (st > 0)
        st = http1_request(&x->scan, buf_str(&x->client_in), &a, &r, &e);
    if (st < 0) {
        x->head_only = false;
        x->c.ops->refused(x->c.arg, e.msg);
        reply_ourselves(x, -st, e.msg);
        return false;
    }
    buf_take(&x->client_in, x->scan.at);
    x->scan = (struct http1_scan){0};
    take_request(x, &r);
    return true;
}

static void put_chunk(struct buf *to, struct str part)
{
    if (part.n == 0)
        return; /* would be the last one */
    buf_printf(to, "%zx\r\n", part.n);
    buf_add_str(to, part);
    buf_add_c(to, "\r\n");
}

/* Chunks are cut anew; their extensions and trailers stay here. */
static bool read_body(struct exchange *x)
{
    bool chunked = x->body.framing == HTTP1_CHUNKED;
    struct str part;
    struct err e;
    size_t used = 0;
    int st = http1_body_next(&x->body, buf_str(&x->client_in), &used, &part, &e);

    if (st < 0) {
        x->c.ops->refused(x->c.arg, e.msg);
        reply_ourselves(x, -st, e.msg);
        return false;
    }
    if (chunked)
        put_chunk(&x->to_server, part);
    else
        buf_add_str(&x->to_server, part);
    buf_take(&x->client_in, used);
    if (st > 0) {
        if (chunked)
            buf_add_c(&x->to_server, "0\r\n\r\n");
        x->request = REQUEST_SENT;
    }
    return used > 0;
}

static void run_client(struct exchange *x)
{
    bool more = true;

    while (more && x->end == EXCHANGE_GOES_ON) {
        if (x->tunnel) {
            buf_add_str(&x->to_server, buf_str(&x->client_in));
            buf_clear(&x->client_in);
            return;
        }
        more = x->request == REQUEST_HEAD   ? read_request(x)
               : x->request == REQUEST_BODY ? read_body(x)
                                            : false;
    }
}

/* ---- replies ---- */

static void bad_reply(struct exchange *x, const char *why)
{
    char text[400];

    (void)snprintf(text, sizeof text, "the reply of %s port %u: %s", x->c.host->name, x->c.port,
                   why);
    reply_ourselves(x, 502, text);
}

static void over(struct exchange *x)
{
    AUTO(buf_done) struct buf last = {0};

    scrub_end(&x->scrub, &last);
    if (x->out == OUT_CHUNKED) {
        put_chunk(&x->to_client, buf_str(&last));
        buf_add_c(&x->to_client, "0\r\n\r\n");
    } else {
        buf_add_str(&x->to_client, buf_str(&last));
    }
    /* Bytes behind a reply answer nothing that was asked. */
    if (!x->keep || x->request != REQUEST_SENT || buf_len(&x->server_in) > 0) {
        x->end = EXCHANGE_ENDS;
        return;
    }
    x->request = REQUEST_HEAD;
    x->reply = REPLY_NONE;
    x->replied = false;
    run_client(x);
}

static bool is_dropped(const struct exchange *x, const struct http1_response *r, struct str name)
{
    if (str_eq_c(name, "content-length"))
        return x->out == OUT_CHUNKED || x->out == OUT_UNTIL_CLOSE;
    return str_eq_c(name, "transfer-encoding") || str_eq_c(name, "alt-svc") ||
           http_is_hop(r->headers, r->header_count, name);
}

static void put_scrubbed(struct exchange *x, struct str s)
{
    scrub_all(&x->scrub, s, &x->to_client);
}

static void write_reply(struct exchange *x, const struct http1_response *r)
{
    struct buf *to = &x->to_client;

    buf_printf(to, "HTTP/1.1 %d ", r->status);
    put_scrubbed(x, r->reason);
    buf_add_c(to, "\r\n");
    for (size_t i = 0; i < r->header_count; i++) {
        if (is_dropped(x, r, r->headers[i].name))
            continue;
        put_scrubbed(x, r->headers[i].name);
        buf_add_c(to, ": ");
        put_scrubbed(x, r->headers[i].value);
        buf_add_c(to, "\r\n");
    }
    if (x->out == OUT_CHUNKED)
        buf_add_c(to, "transfer-encoding: chunked\r\n");
    if (r->status == 101)
        buf_add_c(to, "connection: upgrade\r\nupgrade: websocket\r\n");
    else if (r->status >= 200 && !x->keep)
        buf_add_c(to, "connection: close\r\n");
    else if (r->status >= 200 && x->old_client)
        buf_add_c(to, "connection: keep-alive\r\n");
    buf_add_c(to, "\r\n");
}

/* True: it was one that another follows. */
static bool take_interim(struct exchange *x, const struct http1_response *r)
{
    x->out = OUT_NONE;
    if (r->status == 101 && x->upgrade) {
        write_reply(x, r);
        x->tunnel = x->replied = true;
        run_client(x);
        return true;
    }
    if (r->status == 101 || ++x->interim > INTERIM_MAX) {
        bad_reply(x, "it is not one to this request");
        return true;
    }
    if (!x->old_client)
        write_reply(x, r);
    return true;
}

/* A value may be longer or shorter than its placeholder: then no length is known beforehand. */
static enum out choose_out(const struct exchange *x, const struct http1_response *r)
{
    if (r->framing == HTTP1_NO_BODY)
        return OUT_NONE;
    if (r->framing == HTTP1_LENGTH && (x->scrub.count == 0 || x->scrub.same_length))
        return OUT_LENGTH;
    return x->old_client ? OUT_UNTIL_CLOSE : OUT_CHUNKED;
}

static bool is_readable(const struct exchange *x, const struct http1_response *r)
{
    size_t at = 0;
    const struct http_header *h;

    if (x->scrub.count == 0 || r->framing == HTTP1_NO_BODY || guard_left_out("compressed"))
        return true;
    while ((h = http_find(r->headers, r->header_count, "content-encoding", &at)))
        if (h->value.n > 0 && !str_case_eq_c(h->value, "identity"))
            return false;
    return true;
}

static void take_reply(struct exchange *x, const struct http1_response *r)
{
    if (!is_readable(x, r)) {
        bad_reply(x, "it is compressed, though it may not be: a secret in it would not be found");
        return;
    }
    x->upgrade = false;
    x->out = choose_out(x, r);
    x->keep = x->keep && r->keep_alive && x->out != OUT_UNTIL_CLOSE;
    write_reply(x, r);
    x->replied = true;
    http1_body_done(&x->reply_body);
    http1_body_init(&x->reply_body, r->framing, r->content_length);
    x->reply = REPLY_BODY;
    if (http1_body_is_complete(&x->reply_body))
        over(x);
}

static bool read_reply(struct exchange *x)
{
    static const struct http1_limits limits = {.head_max = REPLY_HEAD_MAX, .count_max = 256};
    AUTO(arena_done) struct arena a = {0};
    struct http1_response r;
    struct err e = {0};
    int st = http1_scan(&x->reply_scan, buf_str(&x->server_in), &limits, &e);

    if (st == 0)
        return false;
    if (st > 0)
        st = http1_response(&x->reply_scan, buf_str(&x->server_in), x->head_only, &a, &r, &e);
    if (st < 0) {
        bad_reply(x, "it is malformed");
        return false;
    }
    buf_take(&x->server_in, x->reply_scan.at);
    x->reply_scan = (struct http1_scan){0};
    if (r.status < 200)
        return take_interim(x, &r);
    take_reply(x, &r);
    return true;
}

static bool read_reply_body(struct exchange *x)
{
    AUTO(buf_done) struct buf clean = {0};
    struct str part;
    struct err e;
    size_t used = 0;
    int st = http1_body_next(&x->reply_body, buf_str(&x->server_in), &used, &part, &e);

    if (st < 0) {
        x->end = EXCHANGE_BROKE;
        return false;
    }
    if (x->scrub.count > 0) {
        scrub_feed(&x->scrub, part, &clean);
        part = buf_str(&clean);
    }
    if (x->out == OUT_CHUNKED)
        put_chunk(&x->to_client, part);
    else
        buf_add_str(&x->to_client, part);
    buf_take(&x->server_in, used);
    if (st > 0)
        over(x);
    return used > 0;
}

/* Nothing is held back: the end of a message within need not be the end of the bytes. */
static void tunnel_reply(struct exchange *x)
{
    put_scrubbed(x, buf_str(&x->server_in));
    buf_clear(&x->server_in);
}

static void run_server(struct exchange *x)
{
    while (x->end == EXCHANGE_GOES_ON && buf_len(&x->server_in) > 0) {
        if (x->tunnel) {
            tunnel_reply(x);
            return;
        }
        if (x->reply == REPLY_NONE) { /* nobody asked */
            x->end = EXCHANGE_ENDS;
            return;
        }
        if (!(x->reply == REPLY_HEAD ? read_reply(x) : read_reply_body(x)))
            return;
    }
}

/* ---- bytes and ends from outside ---- */

void exchange_from_client(struct exchange *x, struct str bytes)
{
    if (x->end != EXCHANGE_GOES_ON)
        return;
    buf_add_str(&x->client_in, bytes);
    run_client(x);
}

void exchange_from_server(struct exchange *x, struct str bytes)
{
    if (x->end != EXCHANGE_GOES_ON)
        return;
    buf_add_str(&x->server_in, bytes);
    run_server(x);
}

void exchange_client_ended(struct exchange *x)
{
    if (x->end != EXCHANGE_GOES_ON || (x->request == REQUEST_SENT && !x->tunnel))
        return; /* it may still wait for its reply */
    x->end = x->request == REQUEST_BODY ? EXCHANGE_BROKE : EXCHANGE_ENDS;
}

void exchange_server_ended(struct exchange *x, bool clean)
{
    if (x->end != EXCHANGE_GOES_ON)
        return;
    if (x->reply == REPLY_HEAD && !x->tunnel)
        bad_reply(x, "the connection ended before it");
    else if (x->reply == REPLY_BODY && x->reply_body.framing == HTTP1_UNTIL_CLOSE && clean)
        over(x);
    else
        x->end = x->reply == REPLY_BODY ? EXCHANGE_BROKE : EXCHANGE_ENDS;
}

void exchange_server_failed(struct exchange *x, const char *why)
{
    if (!x->failed)
        x->failed = xstrdup(why);
    if (x->reply != REPLY_NONE)
        reply_ourselves(x, 502, why);
}
