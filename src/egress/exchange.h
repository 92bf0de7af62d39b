/* exchange: one intercepted HTTP/1.1 connection: requests from a client, one at a time, checked and
 * with secrets filled in, to one server; its replies, scrubbed of them, back.  Strict: ambiguous
 * messages are refused, and messages are written anew, so that the server reads exactly what was
 * checked.  No I/O: the owner feeds bytes in, and takes them from the two buffers.
 *
 *   request:  head ─▶ (body) ─▶ sent        reply:  none ─▶ head (1xx: again) ─▶ (body) ─▶ over
 *   both done: the next request, or the end;  101: bytes both ways
 *
 * Ownership: exchange_new makes, exchange_free frees (and wipes). */
#pragma once

#include "proto/binding.h"

#define EXCHANGE_HIGH (64 * 1024) /* pending output at which reading should stop */
#define EXCHANGE_RULE 320

struct exchange;

struct exchange_ops {
    /* Whether this request may pass.  False: why_not names the rule. */
    bool (*judge)(void *arg, struct str method, struct str path,
                  char why_not[static EXCHANGE_RULE]);
    void (*refused)(void *arg, const char *why);   /* for the event; the client gets a reply */
    const struct bindings *(*bindings)(void *arg); /* the current ones; NULL: none */
    /* A reply, or a part of a WebSocket, contained values.  False: too often, end the
     * connection.  NULL: not counted. */
    bool (*came_back)(void *arg);
    /* A request contained a value itself, not its placeholder; it was refused.  NULL: not
     * counted. */
    void (*guessed)(void *arg);
};

struct exchange_config {
    const struct host *host; /* must outlive it, as must ops */
    unsigned port;
    bool tls;   /* on both sides */
    bool proxy; /* one request, in absolute form, as sent to a proxy */
    const struct exchange_ops *ops;
    void *arg;
};

enum exchange_end {
    EXCHANGE_GOES_ON,
    EXCHANGE_ENDS,  /* once the client has read its pending output */
    EXCHANGE_BROKE, /* in the middle of a message: the client must notice */
};

struct exchange *exchange_new(const struct exchange_config *c);
struct exchange *exchange_free(struct exchange *x); /* takes NULL; returns NULL */
void exchange_from_client(struct exchange *x, struct str bytes);
void exchange_from_server(struct exchange *x, struct str bytes);
/* The secrets have changed.  False: the reply in progress cannot be searched for them, end it. */
CHECKED bool exchange_follows(struct exchange *x);
void exchange_client_ended(struct exchange *x);
void exchange_server_ended(struct exchange *x, bool clean);       /* clean: with close_notify */
void exchange_server_failed(struct exchange *x, const char *why); /* it cannot be reached */
bool exchange_wants_client(const struct exchange *x);
bool exchange_wants_server(const struct exchange *x);
struct buf *exchange_to_client(struct exchange *x);
struct buf *exchange_to_server(struct exchange *x);
enum exchange_end exchange_end(const struct exchange *x);
