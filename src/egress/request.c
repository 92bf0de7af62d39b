/* request: parses HTTP CONNECT, absolute-form HTTP and SOCKS5 requests, and writes replies. */
#include "base/mem.h"
#include "egress/conn.h"
#include "egress/guards.h"
#include "proto/socks.h"
#include "proto/tls_hello.h"

#include <stdio.h>

static const struct http1_limits limits = {.head_max = CONN_HEAD_MAX, .count_max = 128};

/* ---- replies ---- */

/* reason: of the status line; NULL: the standard one. */
static void http_reply_as(struct conn *c, int status, const char *reason, const char *text)
{
    AUTO(buf_done) struct buf b = {0};

    buf_printf(&b,
               "HTTP/1.1 %d %s\r\n%scontent-type: text/plain; charset=utf-8\r\n"
               "content-length: %zu\r\nconnection: close\r\nproxy-agent: holt\r\n\r\nholt: %s\n",
               status, reason ? reason : http_status_text(status),
               status == 407 ? "proxy-authenticate: Basic realm=\"holt\"\r\n" : "",
               strlen(text) + 7, text);
    conn_send(&c->client, buf_str(&b));
    conn_linger(c);
}

static void http_reply(struct conn *c, int status, const char *text)
{
    http_reply_as(c, status, NULL, text);
}

static void socks_say(struct conn *c, enum socks_code code)
{
    uint8_t reply[SOCKS_REPLY];

    socks_reply(code, reply);
    conn_send(&c->client, str_make(reply, sizeof reply));
}

/* The client speaks HTTP with us, and no tunnel has begun. */
static bool answers_http(const struct conn *c)
{
    return (c->via == EGRESS_CONNECT || c->via == EGRESS_HTTP) && c->state != CONN_HELLO;
}

static void refuse(struct conn *c, enum socks_code code, const char *text)
{
    if (c->via != EGRESS_SOCKS || c->state == CONN_HELLO) {
        conn_reset(c, text);
    } else {
        socks_say(c, code);
        conn_linger(c);
    }
}

/* Most programs (apt, pip, wget) show only the status line of a refused tunnel: it names the
 * rule.  The rule's text is ours: canonical hosts, no control characters. */
static void http_refuse(struct conn *c, const char *rule, const char *text)
{
    char reason[640];

    (void)snprintf(reason, sizeof reason, "refused by holt: %.600s", rule);
    http_reply_as(c, 403, reason, text);
}

/* The flag of `holt run` and `holt create` that would have allowed it; "": no single one. */
static void name_flag(const struct conn *c, const char *rule, char *to, size_t size)
{
    to[0] = '\0';
    if (strcmp(rule, POLICY_NO_RULE) != 0 && strcmp(rule, POLICY_NO_NETWORK) != 0)
        return;
    if (c->port == 80 || c->port == 443)
        (void)snprintf(to, size, " (--allow %s)", c->host.name);
    else if (!strchr(c->host.name, ':'))
        (void)snprintf(to, size, " (--allow %s:%u)", c->host.name, c->port);
}

void request_refused_as(struct conn *c, const char *rule, const char *shown)
{
    char text[768], why[700], flag[320];

    conn_tell(c, EGRESS_DENIED, rule);
    name_flag(c, rule, flag, sizeof flag);
    (void)snprintf(why, sizeof why, "%.256s%s", shown, flag);
    (void)snprintf(text, sizeof text, "%.255s port %u is refused: %.480s", c->host.name, c->port,
                   why);
    if (answers_http(c))
        http_refuse(c, why, text);
    else
        refuse(c, SOCKS_DENIED, text);
}

void request_refused(struct conn *c, const char *rule)
{
    request_refused_as(c, rule, rule);
}

void request_failed(struct conn *c, const char *why)
{
    if (answers_http(c))
        http_reply(c, 502, why);
    else
        refuse(c, SOCKS_UNREACHABLE, why);
}

static void begin(struct conn *c)
{
    if (intercept_is_needed(c, &c->verdict))
        intercept_begin(c);
    else
        relay_begin(c);
}

void request_accepted(struct conn *c)
{
    static const char ok[] = "HTTP/1.1 200 Connection established\r\n\r\n";

    if (c->via == EGRESS_CONNECT)
        conn_send(&c->client, str_make(ok, sizeof ok - 1));
    else if (c->via == EGRESS_SOCKS)
        socks_say(c, SOCKS_OK);
    if (!c->verdict.tls || guard_left_out("sni")) {
        begin(c);
        return;
    }
    c->state = CONN_HELLO;
    conn_expire(c, CONN_HEAD_MS);
    polled_want(&c->client.io, EPOLLIN);
    if (buf_len(&c->in) > 0)
        request_input(c);
}

/* ---- TLS ---- */

static void read_hello(struct conn *c)
{
    char name[HOST_NAME_MAX_LEN + 1], why[384];

    switch (tls_hello_name(buf_str(&c->in), name)) {
    case TLS_HELLO_MORE:
        if (buf_len(&c->in) >= TLS_HELLO_MAX)
            request_refused(c, "its TLS hello is too long");
        return;
    case TLS_HELLO_NAMED:
        if (strcmp(name, c->host.name) == 0) {
            begin(c);
            return;
        }
        (void)snprintf(why, sizeof why, "TLS for another name (%s)", name);
        request_refused(c, why);
        return;
    case TLS_HELLO_UNNAMED:
        request_refused(c, "TLS without a server name");
        return;
    case TLS_HELLO_NOT:
        break;
    }
    request_refused(c, "a request without TLS on a port for TLS");
}

/* ---- HTTP ---- */

/* "host:port", "[v6]:port"; without a port: preset, or refused if there is none. */
static int split_authority(struct str a, unsigned preset, struct conn *c, struct err *e)
{
    const char *colon = memrchr(a.p, ':', a.n);
    size_t at = colon ? (size_t)(colon - a.p) : a.n;
    uint64_t port = preset;

    if (a.n > 0 && a.p[a.n - 1] == ']')
        at = a.n; /* the colon belongs to the address */
    if (at < a.n && (str_parse_u64(str_skip(a, at + 1), &port) < 0 || port > 65535))
        port = 0;
    if (port == 0)
        return err_set(e, ERR_INVALID, 0, "'" STR_FMT "' has no port", (int)size_min(a.n, 100),
                       a.p);
    if (memchr(a.p, ':', at) && a.p[0] != '[')
        return err_set(e, ERR_INVALID, 0, "an IPv6 address must be in brackets");
    c->port = (unsigned)port;
    return host_parse(str_make(a.p, at), &c->host, e);
}

/* RFC 9112 section 3.2.2 and RFC 9110 section 7.6.1: origin form, our Host, no hop-by-hop
 * fields.  One request per connection: bytes after it cannot be taken for a second one. */
static void write_head(struct conn *c, const struct http1_request *r)
{
    const struct http_req *q = &r->req;
    bool framed = false;

    buf_add_str(&c->head, q->method);
    buf_add_char(&c->head, ' ');
    buf_add_str(&c->head, q->path);
    if (q->query.p) {
        buf_add_char(&c->head, '?');
        buf_add_str(&c->head, q->query);
    }
    buf_printf(&c->head, " HTTP/1.1\r\nhost: " STR_FMT "\r\n", STR_ARG(q->authority));
    for (size_t i = 0; i < q->header_count; i++) {
        const struct http_header *h = &q->headers[i];

        /* Connection must not remove the framing fields. */
        framed = str_eq_c(h->name, "content-length") || str_eq_c(h->name, "transfer-encoding");
        if (str_eq_c(h->name, "host") ||
            (!framed && http_is_hop(q->headers, q->header_count, h->name)))
            continue;
        buf_add_str(&c->head, h->name);
        buf_add_c(&c->head, ": ");
        buf_add_str(&c->head, h->value);
        buf_add_c(&c->head, "\r\n");
    }
    buf_add_c(&c->head, "connection: close\r\n\r\n");
    http1_body_init(&c->body, r->framing, q->content_length);
    c->request_done = http1_body_is_complete(&c->body);
}

static void read_head(struct conn *c)
{
    AUTO(arena_done) struct arena a = {0};
    struct http1_request r;
    struct err e = {0};
    int st = http1_scan(&c->scan, buf_str(&c->in), &limits, &e);
    bool connect;

    if (st == 0)
        return;
    if (st > 0)
        st = http1_proxy_request(&c->scan, buf_str(&c->in), &a, &r, &e);
    if (st < 0) {
        http_reply(c, -st, e.msg);
        return;
    }
    if (gate_is_before(c) && gate_admit(c, &r.req, &e) < 0) {
        http_reply(c, 407, e.msg);
        return;
    }
    connect = str_eq_c(r.req.method, "CONNECT");
    c->via = connect ? EGRESS_CONNECT : EGRESS_HTTP;
    if (split_authority(r.req.authority, connect ? 0 : 80, c, &e) < 0) {
        http_reply(c, 400, e.msg);
        return;
    }
    if (!connect)
        write_head(c, &r);
    if (connect)
        buf_take(&c->in, c->scan.at);
    target_begin(c);
}

/* ---- SOCKS ---- */

static void read_greeting(struct conn *c)
{
    static const char yes[] = {5, 0}, no[] = {5, (char)0xff};
    bool ok = false;
    int n = socks_greeting(buf_str(&c->in), &ok);

    if (n == 0)
        return;
    c->via = EGRESS_SOCKS;
    if (n < 0) {
        conn_reset(c, "not a SOCKS5 greeting");
        return;
    }
    conn_send(&c->client, str_make(ok ? yes : no, 2));
    if (!ok) {
        conn_linger(c);
        return;
    }
    buf_take(&c->in, (size_t)n);
    c->state = CONN_SOCKS_REQUEST;
    if (buf_len(&c->in) > 0)
        request_input(c);
}

static void read_socks_request(struct conn *c)
{
    enum socks_code code = SOCKS_OK;
    int n = socks_request(buf_str(&c->in), &c->host, &c->port, &code);

    if (n == 0)
        return;
    if (n < 0) {
        conn_reset(c, "not a SOCKS5 request");
        return;
    }
    buf_take(&c->in, (size_t)n);
    if (code == SOCKS_OK) {
        target_begin(c);
        return;
    }
    socks_say(c, code);
    conn_linger(c);
}

/* ---- input ---- */

void request_input(struct conn *c)
{
    char first = buf_data(&c->in)[0];

    if (c->state == CONN_SNIFF && !(first >= 'A' && first <= 'Z') &&
        (first != 5 || gate_is_before(c))) {
        conn_reset(c, "neither HTTP nor SOCKS5");
        return;
    }
    if (c->state == CONN_SNIFF)
        c->state = first == 5 ? CONN_SOCKS_GREETING : CONN_HTTP;
    if (c->state == CONN_HTTP)
        read_head(c);
    else if (c->state == CONN_SOCKS_GREETING)
        read_greeting(c);
    else if (c->state == CONN_SOCKS_REQUEST)
        read_socks_request(c);
    else if (c->state == CONN_HELLO)
        read_hello(c);
}
