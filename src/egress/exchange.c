/* exchange: one intercepted HTTP/1.1 connection. */
#include "egress/exchange.h"

#include "base/mem.h"
#include "egress/exchange_internal.h"

#define KEPT 4096 /* kept of a buffer between two requests */

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
    scrub_done(&x->sent);
    buf_wipe(&x->frame);
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
    return x->end == EXCHANGE_GOES_ON && buf_len(&x->client_in) < EXCHANGE_REQUEST_MAX * 2 &&
           buf_len(&x->to_server) < EXCHANGE_HIGH;
}

bool exchange_wants_server(const struct exchange *x)
{
    return x->end == EXCHANGE_GOES_ON && buf_len(&x->to_client) < EXCHANGE_HIGH;
}

/* ---- ends ---- */

void exchange_answer(struct exchange *x, int status, const char *text)
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

void exchange_put_chunk(struct buf *to, struct str part)
{
    if (part.n == 0)
        return; /* this would be the last */
    buf_printf(to, "%zx\r\n", part.n);
    buf_add_str(to, part);
    buf_add_c(to, "\r\n");
}

/* ---- input and its end ---- */

void exchange_from_client(struct exchange *x, struct str bytes)
{
    if (x->end != EXCHANGE_GOES_ON)
        return;
    buf_add_str(&x->client_in, bytes);
    exchange_run_client(x);
    buf_shrink(&x->client_in, KEPT);
}

void exchange_from_server(struct exchange *x, struct str bytes)
{
    if (x->end != EXCHANGE_GOES_ON)
        return;
    buf_add_str(&x->server_in, bytes);
    exchange_run_server(x);
    buf_shrink(&x->server_in, KEPT);
}

/* A reply whose request had no secrets may have a length and be compressed. */
bool exchange_follows(struct exchange *x)
{
    struct binding_query q = {.host = x->c.host, .tls = x->c.tls};
    bool searched = x->scrub.count > 0;

    if (x->end != EXCHANGE_GOES_ON || x->reply == REPLY_NONE)
        return true;
    bindings_scrub(x->c.ops->bindings(x->c.arg), &q, &x->scrub);
    return searched || x->scrub.count == 0;
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
        exchange_bad_reply(x, "the connection ended before it");
    else if (x->reply == REPLY_BODY && x->reply_body.framing == HTTP1_UNTIL_CLOSE && clean)
        exchange_reply_over(x);
    else
        x->end = x->reply == REPLY_BODY ? EXCHANGE_BROKE : EXCHANGE_ENDS;
}

void exchange_server_failed(struct exchange *x, const char *why)
{
    if (!x->failed)
        x->failed = xstrdup(why);
    if (x->reply != REPLY_NONE)
        exchange_answer(x, 502, why);
}
