/* xchg: one exchange: a request and the reply owed to it, over HTTP/1.1 and HTTP/2 alike.
 *
 * Life: the server calls its handler when the head is complete; the handler sets callbacks and
 * either replies at once or keeps the pointer until ops->closed, which is always the last call and
 * comes exactly once: after the reply has been handed to the kernel, or when the peer is
 * gone.  After xchg_end or xchg_abort the handler makes no further call.
 * Back-pressure: body bytes count against a window until xchg_consume; xchg_write returns 1 to wait
 * for ops->drained.  Ownership: the server's.  Thread: the loop's. */
#pragma once

#include "base/err.h"
#include "proto/http.h"

struct xchg;
struct server;
struct listener_info;

struct xchg_ops { /* any may be NULL */
    /* Part of the request body, valid during the call.  Call xchg_consume(x, n) when n bytes are
     * used (at once, or later: that slows the peer down). */
    void (*body)(struct xchg *x, struct str part);
    void (*body_end)(struct xchg *x); /* trailers: xchg_trailers */
    void (*drained)(struct xchg *x);  /* there is room again after xchg_write returned 1 */
    /* The peer read nothing of the reply for write_ms.  True: xchg_end was called, and the peer has
     * write_ms more to read the rest; false: cut the connection. */
    bool (*stalled)(struct xchg *x);
    /* The last call.  done: the whole reply was sent; otherwise the peer disconnected or xchg_abort
     * was called. */
    void (*closed)(struct xchg *x, bool done);
};

enum peer_kind { PEER_TCP, PEER_UNIX, PEER_INSIDE }; /* inside: in a sandbox, through its relay */

struct peer { /* the other end of the connection */
    enum peer_kind kind;
    char address[64];  /* "127.0.0.1:40112", "unix", "sandbox/sb_…" */
    uint32_t pid, uid; /* of a Unix peer (SO_PEERCRED) */
    bool tls;
    bool loopback; /* TCP from 127/8 or ::1, or a Unix socket */
};

const struct http_req *xchg_req(const struct xchg *x);
struct arena *xchg_arena(struct xchg *x); /* freed after ops->closed */
const struct peer *xchg_peer(const struct xchg *x);
const struct listener_info *xchg_listener(const struct xchg *x); /* net/server.h */
struct server *xchg_server(const struct xchg *x);
const struct http_header *xchg_trailers(const struct xchg *x, size_t *ret_count);

void xchg_handle(struct xchg *x, const struct xchg_ops *ops, void *arg);
void *xchg_arg(const struct xchg *x);
void xchg_consume(struct xchg *x, size_t n);
/* Limits the rest of the body; past it the server replies 413 itself.  The default is the body_max
 * limit; 0: no limit (a streamed upload). */
void xchg_limit_body(struct xchg *x, int64_t max);

/* The client is authenticated: from now on neither this exchange's bytes nor its connection's idle
 * costs count against the limits for unauthenticated peers (pending_max). */
void xchg_trust(struct xchg *x);
/* A layer above (WebSocket, gRPC) now holds n bytes of an incomplete message.  False: over a limit;
 * the exchange was refused or cut. */
bool xchg_hold(struct xchg *x, size_t n);

/* Collects the whole body, then calls done(x, body) once; over max the server replies 413 itself
 * and only closed is called.  Uses the body callbacks: set closed by xchg_handle before. */
void xchg_collect(struct xchg *x, size_t max, void (*done)(struct xchg *x, struct str body));

/* The reply: a head, then any number of writes, then the end.  content-length in the headers
 * decides the framing; without it HTTP/1.1 replies are chunked.  HEAD and 204/304 drop the
 * body.  Names and values are checked: a CR, LF or NUL aborts the exchange. */
void xchg_head(struct xchg *x, int status, const struct http_header *headers, size_t count);
/* 0: continue; 1: wait for drained */
int xchg_write(struct xchg *x, const void *p, size_t n) CHECKED;
void xchg_end(struct xchg *x, const struct http_header *trailers, size_t count);
void xchg_abort(struct xchg *x); /* cuts the connection or resets the stream */
bool xchg_head_sent(const struct xchg *x);

/* A whole reply in one call. */
void xchg_reply(struct xchg *x, int status, const char *content_type, struct str body);
void xchg_reply_with(struct xchg *x, int status, const struct http_header *headers, size_t count,
                     struct str body);
/* Replies with the JSON error form: status, code, message, object, hint.  401 carries
 * WWW-Authenticate, 429 and 503 Retry-After.  After the head was sent it aborts. */
void xchg_fail(struct xchg *x, const struct err *e);
/* Adds a header to the reply, whatever it is (CORS, Allow, Retry-After): call before the head. */
void xchg_add_header(struct xchg *x, const char *name, struct str value);

/* Replies 101 to an upgrade request (RFC 9110 section 7.8); from then on body and write carry raw
 * bytes.  Only if xchg_can_upgrade is true: HTTP/1.1. */
bool xchg_can_upgrade(const struct xchg *x);
void xchg_upgrade(struct xchg *x, const struct http_header *headers, size_t count);
