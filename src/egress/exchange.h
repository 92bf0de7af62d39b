/* exchange: one HTTP/1.1 connection that is read on its way: requests from a client, one at a time,
 * judged, with secrets filled in, to one server; its replies, scrubbed of them, back.  Strict: what
 * two readers could read in two ways is refused, and what goes on is written anew, so that the
 * server reads what was judged.  No I/O: the owner moves bytes in, and takes them from the two
 * buffers.
 *
 *   request:  head ─▶ (body) ─▶ sent        reply:  none ─▶ head (1xx: again) ─▶ (body) ─▶ over
 *   both done: the next request, or the end;  101: bytes both ways
 *
 * Ownership: exchange_new makes, exchange_free frees (and wipes). */
#pragma once

#include "proto/binding.h"

#define EXCHANGE_HIGH (64 * 1024) /* bytes that wait past which no more should be read */
#define EXCHANGE_RULE 320

struct exchange;

struct exchange_ops {
    /* May this request pass?  False: why_not says which rule. */
    bool (*judge)(void *arg, struct str method, struct str path,
                  char why_not[static EXCHANGE_RULE]);
    void (*refused)(void *arg, const char *why);   /* to be told; the client has its reply */
    const struct bindings *(*bindings)(void *arg); /* as they are now; NULL: none */
    /* A reply, or a part of a WebSocket, had values in it.  False: too often, it ends here.  NULL:
     * nobody counts. */
    bool (*came_back)(void *arg);
};

struct exchange_config {
    const struct host *host; /* outlives it, as ops */
    unsigned port;
    bool tls;   /* both ways */
    bool proxy; /* one request, in absolute form, as to a proxy */
    const struct exchange_ops *ops;
    void *arg;
};

enum exchange_end {
    EXCHANGE_GOES_ON,
    EXCHANGE_ENDS,  /* once the client has all of what waits for it */
    EXCHANGE_BROKE, /* in the middle of something: the client must see that */
};

struct exchange *exchange_new(const struct exchange_config *c);
struct exchange *exchange_free(struct exchange *x); /* takes NULL; returns NULL */
void exchange_from_client(struct exchange *x, struct str bytes);
void exchange_from_server(struct exchange *x, struct str bytes);
/* The secrets are others.  False: what is under way cannot be searched for them, it must end. */
CHECKED bool exchange_follows(struct exchange *x);
void exchange_client_ended(struct exchange *x);
void exchange_server_ended(struct exchange *x, bool clean);       /* clean: it said so itself */
void exchange_server_failed(struct exchange *x, const char *why); /* it cannot be spoken to */
bool exchange_wants_client(const struct exchange *x);
bool exchange_wants_server(const struct exchange *x);
struct buf *exchange_to_client(struct exchange *x);
struct buf *exchange_to_server(struct exchange *x);
enum exchange_end exchange_end(const struct exchange *x);
