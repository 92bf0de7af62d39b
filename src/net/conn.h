/* conn: private to src/net: the interfaces between a connection, its protocol and its exchanges.
 * conn.c detects the protocol and runs the timers; conn_h1.c and conn_h2.c implement the protocols;
 * xchg.c is the interface for handlers.  A protocol makes an exchange with xchg_new, fills its
 * request and calls xchg_begin. */
#pragma once

#include "base/buf.h"
#include "base/list.h"
#include "net/server.h"
#include "net/stream.h"

#define TLS_COST (16 * 1024) /* approximate bytes of a TLS session */

struct conn;

struct conn_proto { /* "h1", "h2" */
    const char *name;
    void (*start)(struct conn *c);
    size_t (*data)(struct conn *c, struct str bytes); /* as stream_ops.data */
    void (*eof)(struct conn *c);
    void (*writable)(struct conn *c);
    void (*shutdown)(struct conn *c); /* no new exchanges; close after the last one */
    void (*gone)(
        struct conn *c); /* the stream is closed: end all exchanges (xchg_gone), free own state */
    void (*sent)(struct conn *c);    /* as stream_ops.sent; may be NULL */
    void (*timeout)(struct conn *c); /* c->wait has lasted too long; NULL: conn_close */
    void (*hangup)(struct conn *c);  /* as stream_ops.hangup; may be NULL */
    bool (*stalled)(struct conn *c); /* as stream_ops.stalled; may be NULL */
    /* bytes to reserve in struct conn: keeps long-lived state apart from buffers on the heap */
    size_t room;
};

/* What one peer uses of this server: an address (for IPv6 its /64), a uid, or a sandbox. */
struct peer_use {
    int64_t connections;
    int64_t pending; /* buffered bytes that count against pending_per_peer */
};

/* The timeout depends on what the peer owes us; none runs while we owe the reply. */
enum conn_wait { CONN_WAIT_NOTHING, CONN_WAIT_HEAD, CONN_WAIT_BODY, CONN_WAIT_REQUEST };

struct conn {
    struct server *server;
    struct stream *stream;
    const struct listener_info *listener;
    const struct conn_proto *proto;
    void *state;      /* the protocol's state */
    struct list link; /* in the server's list */
    enum conn_wait wait;
    int64_t wait_since_ms; /* monotonic */
    bool closing;
    bool trusted; /* a request on it was authenticated: its buffers no longer count */
    struct peer_use *use;
    int64_t kept;             /* counted: input not consumed yet, a half-read head */
    int64_t fixed;            /* counted: the TLS or HTTP/2 session */
    _Alignas(16) char room[]; /* conn_h1.room bytes */
};

void conn_wait(struct conn *c, enum conn_wait wait); /* restarts the timeout */
void conn_close(struct conn *c);                     /* after flushing */
void conn_cut(struct conn *c);                       /* at once: the peer sees a reset */
/* Sets *count (a member of c) to `now` bytes; -1: over a limit, *count is unchanged. */
CHECKED int conn_hold(struct conn *c, int64_t *count, int64_t now, struct err *e);
/* Replies to an error before there is an exchange, in HTTP/1.1 and JSON; then closes. */
/* path: as far as it is known. */
void conn_refuse(struct conn *c, int status, struct str path, const struct err *e);
extern const struct conn_proto conn_h1, conn_h2;

/* For server.c. */
void conn_new(struct server *s, struct stream *stream, const struct listener_info *l,
              struct peer_use *use);
void conn_shutdown(struct conn *c);
void conn_sweep(struct server *s, int64_t now_ms);

/* For conn.c: the server's connections by their wait, longest first. */
struct list *server_conns(struct server *s, enum conn_wait wait);
void server_conn_gone(struct server *s, struct conn *c);
struct stream_hub *server_streams(const struct server *s);
bool server_is_stopping(const struct server *s);
/* Counts bytes held for a peer that is not authenticated yet. */
CHECKED int server_hold(struct server *s, struct conn *c, int64_t change, struct err *e);
void server_handle(struct server *s, struct xchg *x); /* calls the handler */

/* "Sun, 06 Nov 1994 08:49:37 GMT"; updated a few times a second. */
struct str conn_date(const struct conn *c);

struct xchg_proto { /* the protocol's operations for an exchange */
    void (*head)(struct xchg *x, int status, const struct http_header *h, size_t count);
    int (*write)(struct xchg *x, const void *p, size_t n); /* 1: wait */
    void (*end)(struct xchg *x, const struct http_header *trailers, size_t count);
    void (*abort)(struct xchg *x);
    void (*consume)(struct xchg *x, size_t n);
    /* Sends 101; from then on body and write carry raw bytes (HTTP/1.1 only; NULL on HTTP/2). */
    void (*upgrade)(struct xchg *x, const struct http_header *h, size_t count);
};

struct xchg {
    struct http_req req;
    struct arena arena;
    const struct xchg_proto *proto;
    struct conn *conn;
    void *state; /* the protocol's, e.g. the stream id */
    const struct xchg_ops *ops;
    void *arg;
    int64_t started_ns;
    int64_t body_max, body_seen; /* -1: no limit */
    int64_t head_size;           /* bytes of the request's head */
    int64_t held;                /* counted against the limits on pending bytes */
    size_t layer;                /* of these: held by WebSocket or gRPC (xchg_hold) */
    bool trusted, settled;       /* xchg_trust; the handler has returned once */
    struct http_header extra[8]; /* xchg_add_header */
    size_t extra_count;
    struct http_header *trailers;
    size_t trailer_count;
    struct buf collected;
    void (*collect_done)(struct xchg *x, struct str body);
    int status;       /* of the reply; 0: no head yet */
    bool head_only;   /* HEAD, 204, 304: the body is dropped */
    bool reply_ended; /* xchg_end was called */
    bool body_ended;  /* the peer's body is complete */
    bool in_callback;
    bool gone;
    size_t collect_max;
    bool begun; /* the handler has been called */
    bool aborted;
    bool body_told;   /* ops->body_end or collect_done was called */
    bool gone_done;   /* the argument for ops->closed */
    bool hangup_ends; /* upgraded: a peer that stops sending is gone, even with unread input */
    /* HTTP/1.1: the value of stream_sent() at which the kernel has the whole reply */
    uint64_t sent_at;
    struct xchg *next; /* HTTP/1.1: queue of ended replies; xchg.c: list of spare exchanges */
};

struct xchg *xchg_new(struct conn *c, const struct xchg_proto *p, void *state);
void xchg_begin(struct xchg *x);                 /* the head is complete: calls the handler */
void xchg_body(struct xchg *x, struct str part); /* counts, checks limits, calls ops->body */
void xchg_body_end(struct xchg *x);
void xchg_drained(struct xchg *x);
bool xchg_stalled(struct xchg *x); /* as ops->stalled */
/* Whether the handler wants body bytes now.  Until then HTTP/1.1 leaves them in the kernel (and
 * delays 100 Continue); proto->consume(x, 0) reports a change.  Replies 413 itself if the declared
 * length is over the limit. */
bool xchg_wants_body(struct xchg *x);
/* Replies with the JSON error form and any status: for protocol errors.  After the head: aborts. */
void xchg_refuse(struct xchg *x, int status, const struct err *e);
void xchg_free_spares(bool all); /* or, called regularly, slowly down to a few */
/* The reply was sent (done) or never will be: calls ops->closed, updates metrics, frees. */
void xchg_gone(struct xchg *x, bool done);
