/* exchange_request: reads requests strictly, checks them, writes them with secrets filled in. */
#include "egress/exchange_internal.h"
#include "egress/guards.h"

#include <stdio.h>

#define FILLED_HEAD_MAX (128 * 1024) /* of a request with its values filled in */

static void refuse(struct exchange *x, int status, const char *why)
{
    char text[EXCHANGE_RULE + HOST_NAME_MAX_LEN + 32];

    x->c.ops->refused(x->c.arg, why);
    (void)snprintf(text, sizeof text, "%s port %u is refused: %s", x->c.host->name, x->c.port, why);
    exchange_answer(x, status, text);
}

#define GUESSED_TOLD "it contains the value of a secret itself; send its placeholder"

/* A client knows placeholders, not values: one that sends a value has guessed it, or was told.  It
 * must not learn which of many guesses that was, from the place of a placeholder in an echo: the
 * whole request is refused. */
static bool contains_value(struct exchange *x)
{
    if (x->sent.hits == 0)
        return false;
    if (x->c.ops->guessed)
        x->c.ops->guessed(x->c.arg);
    refuse(x, 403, GUESSED_TOLD);
    return true;
}

static void search_sent(struct exchange *x, struct str text)
{
    AUTO(buf_wipe) struct buf dropped = {0};

    scrub_all(&x->sent, text, &dropped);
}

static void search_head(struct exchange *x, const struct http_req *q)
{
    search_sent(x, q->path);
    search_sent(x, q->query);
    for (size_t i = 0; i < q->header_count; i++) {
        search_sent(x, q->headers[i].name);
        search_sent(x, q->headers[i].value);
    }
}

/* The outcome may wait for the rest of a line: then it is that of a later part. */
static bool body_contains_value(struct exchange *x, struct str part, bool last)
{
    AUTO(buf_wipe) struct buf dropped = {0};

    if (x->sent.count == 0)
        return false;
    scrub_feed(&x->sent, part, &dropped);
    if (last)
        scrub_end(&x->sent, &dropped);
    return contains_value(x);
}

static struct binding_query query_of(const struct exchange *x, const struct http_req *r)
{
    return (struct binding_query){
        .host = x->c.host, .tls = x->c.tls, .method = r->method, .path = r->path};
}

/* RFC 9110 section 7.4: a request for another host than the connection's. */
static bool is_for_host(const struct exchange *x, struct str authority)
{
    uint64_t port = x->c.tls ? 443 : 80;
    const char *colon;
    struct host h;
    struct err e;
    size_t at;

    if (authority.n == 0)
        return true; /* HTTP/1.0: we add our Host */
    colon = memrchr(authority.p, ':', authority.n);
    at = colon ? (size_t)(colon - authority.p) : authority.n;
    if (authority.p[authority.n - 1] == ']')
        at = authority.n;
    if (at < authority.n && str_parse_u64(str_skip(authority, at + 1), &port) < 0)
        return false;
    return port == x->c.port && host_parse(str_make(authority.p, at), &h, &e) == 0 &&
           strcmp(h.name, x->c.host->name) == 0;
}

/* CGI and its successors (RFC 3875 section 4.1.18) treat '_' as '-'. */
static bool is_named(struct str name, const char *want)
{
    for (size_t i = 0; i < name.n; i++)
        if ((name.p[i] == '_' ? '-' : name.p[i]) != want[i])
            return false;
    return want[name.n] == '\0';
}

static bool is_one_of(struct str name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (is_named(name, names[i]))
            return true;
    return false;
}

/* Fields that make the server treat the request as another one. */
static bool overrides(struct str name)
{
    static const char *const names[] = {
        "x-http-method-override",
        "x-http-method",
        "x-method-override",
        "x-original-method",
        "x-original-url",
        "x-original-uri",
        "x-rewrite-url",
        "x-rewrite-uri",
        "x-override-url",
        "x-forwarded-uri",
        "x-forwarded-path",
        "x-forwarded-method",
        "x-forwarded-host",
        "x-original-host",
        "x-host",
        "forwarded",
        "x-forwarded-server",
        "x-forwarded-port",
        "x-http-host-override",
    };

    return is_one_of(name, names, ARRAY_LEN(names)) && !guard_left_out("overrides");
}

/* Ranges, deltas and compression would hide a value in a reply. */
static bool hides_replies(struct str name)
{
    static const char *const names[] = {"accept-encoding", "range", "if-range", "a-im"};

    return is_one_of(name, names, ARRAY_LEN(names));
}

/* Written here, or useless: WebSocket frames are parsed, and extensions would change them. */
static bool is_written_here(struct str name)
{
    static const char *const names[] = {"host", "content-length", "transfer-encoding",
                                        "sec-websocket-extensions"};

    return is_one_of(name, names, ARRAY_LEN(names));
}

static bool is_ours(const struct exchange *x, const struct http1_request *r, struct str name)
{
    const struct http_req *q = &r->req;

    if (is_written_here(name) || overrides(name) || http_is_hop(q->headers, q->header_count, name))
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
    struct str key = http_req_header(q, "sec-websocket-key");
    AUTO(buf_wipe) struct buf head = {0};
    struct binding_query which = query_of(x, q);
    char why[EXCHANGE_RULE];

    x->head_only = str_eq_c(q->method, "HEAD");
    x->keep = r->keep_alive && !x->c.proxy;
    x->old_client = q->version == HTTP_1_0;
    x->upgrade = r->wants_upgrade && str_case_eq_c(upgrade, "websocket") && !x->c.proxy &&
                 r->framing == HTTP1_NO_BODY && ws_key_is_valid(key);
    if (x->upgrade)
        ws_accept_key(key, x->accept);
    if (!is_for_host(x, q->authority)) {
        refuse(x, 421, "a request for another host");
        return;
    }
    if (!x->c.ops->judge(x->c.arg, q->method, q->path, why)) {
        refuse(x, 403, why);
        return;
    }
    if (x->failed) {
        exchange_answer(x, 502, x->failed);
        return;
    }
    scrub_done(&x->scrub);
    if (!guard_left_out("scrub"))
        bindings_scrub(x->c.ops->bindings(x->c.arg), &which, &x->scrub);
    scrub_done(&x->sent);
    if (!guard_left_out("guessing"))
        bindings_scrub(x->c.ops->bindings(x->c.arg), &which, &x->sent);
    search_head(x, q);
    if (contains_value(x))
        return;
    write_request(x, r, &head);
    if (buf_len(&head) > FILLED_HEAD_MAX) {
        exchange_answer(x, 431, "the request is too large with its secrets");
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
    static const struct http1_limits limits = {.head_max = EXCHANGE_REQUEST_MAX, .count_max = 128};
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
        exchange_answer(x, -st, e.msg);
        return false;
    }
    buf_take(&x->client_in, x->scan.at);
    x->scan = (struct http1_scan){0};
    take_request(x, &r);
    return true;
}

/* Chunks are framed anew; extensions and trailers are dropped. */
static bool read_body(struct exchange *x)
{
    bool chunked = x->body.framing == HTTP1_CHUNKED;
    struct str part;
    struct err e;
    size_t used = 0;
    int st = http1_body_next(&x->body, buf_str(&x->client_in), &used, &part, &e);

    if (st < 0) {
        x->c.ops->refused(x->c.arg, e.msg);
        exchange_answer(x, -st, e.msg);
        return false;
    }
    if (body_contains_value(x, part, st > 0))
        return false;
    if (chunked)
        exchange_put_chunk(&x->to_server, part);
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

/* Frames are not checked, but anything else, such as a second request, does not pass. */
static void tunnel_request(struct exchange *x)
{
    struct str in = buf_str(&x->client_in), head, data;

    while (in.n > 0)
        if (ws_frame_next(&x->client_frames, &in, &head, &data) < 0) {
            x->end = EXCHANGE_BROKE;
            return;
        }
    buf_add_str(&x->to_server, buf_str(&x->client_in));
    buf_clear(&x->client_in);
}

void exchange_run_client(struct exchange *x)
{
    bool more = true;

    while (more && x->end == EXCHANGE_GOES_ON) {
        if (x->tunnel) {
            tunnel_request(x);
            return;
        }
        more = x->request == REQUEST_HEAD   ? read_request(x)
               : x->request == REQUEST_BODY ? read_body(x)
                                            : false;
    }
}
