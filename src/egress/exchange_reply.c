/* exchange_reply: reads replies strictly, scrubs values, frames them anew. */
#include "egress/exchange_internal.h"
#include "egress/guards.h"

#include <stdio.h>

#define REPLY_HEAD_MAX (64 * 1024)
#define INTERIM_MAX 16 /* 1xx replies to one request */

void exchange_bad_reply(struct exchange *x, const char *why)
{
    char text[400];

    (void)snprintf(text, sizeof text, "the reply of %s port %u: %s", x->c.host->name, x->c.port,
                   why);
    exchange_answer(x, 502, text);
}

void exchange_reply_over(struct exchange *x)
{
    AUTO(buf_done) struct buf last = {0};

    scrub_end(&x->scrub, &last);
    if (x->out == OUT_CHUNKED) {
        exchange_put_chunk(&x->to_client, buf_str(&last));
        buf_add_c(&x->to_client, "0\r\n\r\n");
    } else {
        buf_add_str(&x->to_client, buf_str(&last));
    }
    /* Bytes after a reply belong to no request. */
    if (!x->keep || x->request != REQUEST_SENT || buf_len(&x->server_in) > 0) {
        x->end = EXCHANGE_ENDS;
        return;
    }
    x->request = REQUEST_HEAD;
    x->reply = REPLY_NONE;
    x->replied = false;
    exchange_run_client(x);
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

/* Whether a field's name, which has lost its capitals here, is a value: then drop the field. */
static bool is_value(struct exchange *x, struct str name)
{
    if (!scrub_finds_any_case(&x->scrub, name) || guard_left_out("names"))
        return false;
    x->scrub.hits++;
    return true;
}

static void write_reply(struct exchange *x, const struct http1_response *r)
{
    struct buf *to = &x->to_client;

    buf_printf(to, "HTTP/1.1 %d ", r->status);
    put_scrubbed(x, r->reason);
    buf_add_c(to, "\r\n");
    for (size_t i = 0; i < r->header_count; i++) {
        if (is_dropped(x, r, r->headers[i].name) || is_value(x, r->headers[i].name))
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

/* RFC 6455 section 4.1: the server must know the key, not merely be tricked into a 101. */
static bool takes_upgrade(const struct exchange *x, const struct http1_response *r)
{
    const struct http_header *h = http_get(r->headers, r->header_count, "sec-websocket-accept");

    return h && str_eq_c(h->value, x->accept);
}

/* True: an interim reply, followed by another. */
static bool take_interim(struct exchange *x, const struct http1_response *r)
{
    x->out = OUT_NONE;
    if (r->status == 101 && x->upgrade && takes_upgrade(x, r)) {
        write_reply(x, r);
        x->tunnel = x->replied = true;
        x->client_frames = (struct ws_reader){.limit = SIZE_MAX, .masked = true};
        x->server_frames = (struct ws_reader){.limit = SIZE_MAX};
        exchange_run_client(x);
        return true;
    }
    if (r->status == 101 || ++x->interim > INTERIM_MAX) {
        exchange_bad_reply(x, "it does not belong to this request");
        return true;
    }
    if (!x->old_client)
        write_reply(x, r);
    return true;
}

/* A value may be longer or shorter than its placeholder: then the length is unknown beforehand. */
static enum out choose_out(const struct exchange *x, const struct http1_response *r)
{
    if (r->framing == HTTP1_NO_BODY)
        return OUT_NONE;
    if (r->framing == HTTP1_LENGTH && x->scrub.count == 0)
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
        exchange_bad_reply(
            x, "it is compressed although it must not be: a secret in it could not be found");
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
        exchange_reply_over(x);
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
        exchange_bad_reply(x, "it is malformed");
        return false;
    }
    buf_take(&x->server_in, x->reply_scan.at);
    x->reply_scan = (struct http1_scan){0};
    if (r.status < 200)
        return take_interim(x, &r);
    x->reply_has_hit = false;
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
        exchange_put_chunk(&x->to_client, part);
    else
        buf_add_str(&x->to_client, part);
    buf_take(&x->server_in, used);
    if (st > 0)
        exchange_reply_over(x);
    return used > 0;
}

#define WS_FIN 0x80
#define WS_CONTROL 0x08

static void put_frame(struct buf *to, unsigned first, struct str data)
{
    unsigned char head[10] = {(unsigned char)first};
    size_t bytes = data.n < 126 ? 0 : data.n <= UINT16_MAX ? 2 : 8;

    head[1] = (unsigned char)(bytes == 0 ? data.n : bytes == 2 ? 126 : 127);
    for (size_t i = 0; i < bytes; i++)
        head[2 + i] = (unsigned char)(data.n >> (8 * (bytes - 1 - i)));
    buf_add(to, head, 2 + bytes);
    buf_add_str(to, data);
}

/* Cuts a text that a placeholder made too long, at a character boundary, which clients check. */
static struct str control_text(struct str s)
{
    size_t n = size_min(s.n, WS_CONTROL_MAX), code = size_min(n, 2);

    while (n > code && n < s.n && !str_is_utf8(str_make(s.p + code, n - code)))
        n--;
    return str_make(s.p, n);
}

/* A frame is written anew, in as many parts as it arrives in (RFC 6455 section 5.4): the server's
 * length would reveal the length of a value. */
static void pass_frame(struct exchange *x, bool ended)
{
    const struct ws_reader *r = &x->server_frames;
    bool control = r->op & WS_CONTROL;
    unsigned first = (x->frame_begun ? 0 : (unsigned)r->op) | (ended && r->fin ? WS_FIN : 0);

    if (control && ended)
        put_frame(&x->to_client, WS_FIN | (unsigned)r->op, control_text(buf_str(&x->frame)));
    else if (!control && (ended || buf_len(&x->frame) > 0))
        put_frame(&x->to_client, first, buf_str(&x->frame));
    else
        return;
    if (!control)
        x->frame_begun = !ended;
    buf_clear(&x->frame);
}

/* Holds back what may be the start of a value until more of its frame arrives, and no longer. */
static void tunnel_reply(struct exchange *x)
{
    struct str in = buf_str(&x->server_in), head, data;

    while (in.n > 0) {
        int r = ws_frame_next(&x->server_frames, &in, &head, &data);

        if (r < 0) {
            x->end = EXCHANGE_BROKE;
            return;
        }
        if (x->scrub.count == 0 && !x->frame_begun && buf_len(&x->frame) == 0) {
            buf_add_str(&x->to_client, head);
            buf_add_str(&x->to_client, data);
            continue;
        }
        scrub_feed(&x->scrub, data, &x->frame);
        if (r > 0)
            scrub_end(&x->scrub, &x->frame);
        if (r > 0 || x->server_frames.in_payload)
            pass_frame(x, r > 0);
    }
    buf_clear(&x->server_in);
}

/* A client that sends guesses to an echoing server would learn which one is a value.  No client
 * needs many replies with values in a short time; the number within one reply does not matter. */
static void tell_hits(struct exchange *x)
{
    bool more = x->scrub.hits > x->hits_told;

    x->hits_told = x->scrub.hits;
    if (!more || (x->reply_has_hit && !x->tunnel))
        return;
    x->reply_has_hit = true;
    if (x->c.ops->came_back && !x->c.ops->came_back(x->c.arg))
        x->end = EXCHANGE_BROKE;
}

static void run_server(struct exchange *x)
{
    while (x->end == EXCHANGE_GOES_ON && buf_len(&x->server_in) > 0) {
        if (x->tunnel) {
            tunnel_reply(x);
            return;
        }
        if (x->reply == REPLY_NONE) { /* no request is open */
            x->end = EXCHANGE_ENDS;
            return;
        }
        if (!(x->reply == REPLY_HEAD ? read_reply(x) : read_reply_body(x)))
            return;
    }
}

void exchange_run_server(struct exchange *x)
{
    run_server(x);
    if (x->end != EXCHANGE_BROKE)
        tell_hits(x);
}
