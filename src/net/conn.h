/* conn: private to src/net: what a connection, its protocol and its exchanges know of each other.
 * conn.c sniffs the protocol and keeps the timers; conn_h1.c and conn_h2.c speak it; xchg.c is what
 * handlers see.  A protocol makes an exchange with xchg_new, fills its request and calls
 * xchg_begin. */
#pragma once

#include "base/buf.h"
#include "base/list.h"
#include "net/server.h"
#include "net/stream.h"

#define TLS_COST (16 * 1024) /* bytes that a TLS session takes, about */

struct conn;

struct conn_proto { /* "h1", "h2" */
    const char *name;
    void (*start)(struct conn *c);
    size_t (*data)(struct conn *c, struct str bytes); /* as stream_ops.data */
    void (*eof)(struct conn *c);
    void (*writable)(struct conn *c);
    void (*shutdown)(struct conn *c); /* no new exchange; close when the last has ended */
    void (*gone)(
        struct conn *c); /* the stream is closed: end all exchanges (xchg_gone), free own state */
    void (*sent)(struct conn *c);    /* as stream_ops.sent; may be NULL */
    void (*timeout)(struct conn *c); /* c->wait has lasted too long; NULL: conn_close */
    void (*hangup)(struct conn *c);  /* as stream_ops.hangup; may be NULL */
    bool (*stalled)(struct conn *c); /* as stream_ops.stalled; may be NULL */
    size_t room; /* wanted in struct conn: what lives as long as it is not mixed with buffers */
};

/* What one peer has at this server: an address (of IPv6 its /64), a uid, or a sandbox. */
struct peer_use {
    int64_t connections;
    int64_t pending; /* bytes held that count against pending_per_peer */
};

/* What the peer owes us decides which timeout runs; none runs while we owe the reply. */
enum conn_wait { CONN_WAIT_NOTHING, CONN_WAIT_HEAD, CONN_WAIT_BODY, CONN_WAIT_REQUEST };

struct conn {
    struct server *server;
    struct stream *stream;
    const struct listener_info *listener;
    const struct conn_proto *proto;
    void *state;      /* the protocol's */
    struct list link; /* in the server's list */
    enum conn_wait wait;
    int64_t wait_since_ms; /* monotonic */
    bool closing;
    bool trusted; /* a request on it was somebody's: what it holds is no longer counted */
    struct peer_use *use;
    int64_t kept;             /* counted: input that nobody has taken yet, a half-read head */
    int64_t fixed;            /* counted: what the session of TLS or HTTP/2 costs */
    _Alignas(16) char room[]; /* conn_h1.room bytes */
};

void conn_wait(struct conn *c, enum conn_wait wait); /* restarts that timeout */
void conn_close(struct conn *c);                     /* after flushing */
void conn_cut(struct conn *c);                       /* at once: the peer sees a reset */
/* Sets what is counted in *count (a member of c) to now bytes; -1: over a limit, *count stays. */
CHECKED int conn_hold(struct conn *c, int64_t *count, int64_t now, struct err *e);
/* HTTP/1.1's answer to an error before there is an exchange, in the JSON form; then closes. */
/* path: as far as it is known. */
void conn_refuse(struct conn *c, int status, struct str path, const struct err *e);
extern const struct conn_proto conn_h1, conn_h2;

/* For server.c. */
void conn_new(struct server *s, struct stream *stream, const struct listener_info *l,
              struct peer_use *use);
void conn_shutdown(struct conn *c);
void conn_sweep(struct server *s, int64_t now_ms);

/* For conn.c: the server's connections by what they wait for, longest first. */
struct list *server_conns(struct server *s, enum conn_wait wait);
void server_conn_gone(struct server *s, struct conn *c);
bool server_is_stopping(const struct server *s);
/* Counts bytes held for a peer that has not shown who it is. */
CHECKED int server_hold(struct server *s, struct conn *c, int64_t change, struct err *e);
void server_handle(struct server *s, struct xchg *x); /* calls the handler */

/* "Sun, 06 Nov 1994 08:49:37 GMT"; renewed a few times a second. */
struct str conn_date(const struct conn *c);

struct xchg_proto { /* how an exchange reaches its protocol */
    void (*head)(struct xchg *x, int status, const struct http_header *h, size_t count);
    int (*write)(struct xchg *x, const void *p, size_t n); /* 1: wait */
    void (*end)(struct xchg *x, const struct http_header *trailers, size_t count);
    void (*abort)(struct xchg *x);
    void (*consume)(struct xchg *x, size_t n);
    /* 101 and raw bytes from now on (HTTP/1.1 only; NULL on HTTP/2): body and write then carry raw
     * bytes. */
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
    bool begun; /* the handler has seen it */
    bool aborted;
    bool body_told;    /* ops->body_end or collect_done was called */
    bool gone_done;    /* what ops->closed will be told */
    bool hangup_ends;  /* upgraded: a peer that sends no more is gone, whatever is not read yet */
    uint64_t sent_at;  /* HTTP/1.1: stream_sent() at which the whole reply is with the kernel */
    struct xchg *next; /* HTTP/1.1: ended replies wait in order; xchg.c: spare ones */
};

struct xchg *xchg_new(struct conn *c, const struct xchg_proto *p, void *state);
void xchg_begin(struct xchg *x);                 /* the head is complete: calls the handler */
void xchg_body(struct xchg *x, struct str part); /* counts, limits, calls ops->body */
void xchg_body_end(struct xchg *x);
void xchg_drained(struct xchg *x);
bool xchg_stalled(struct xchg *x); /* as ops->stalled */
/* Does the handler want body bytes now?  HTTP/1.1 leaves them in the kernel until it does (and then
 * sends 100 Continue); later it is told so by proto->consume(x, 0).  Answers 413 itself when the
 * declared length is over the limit. */
bool xchg_wants_body(struct xchg *x);
/* The JSON error form with any status: for what a protocol finds wrong.  After the head: aborts. */
void xchg_refuse(struct xchg *x, int status, const struct err *e);
void xchg_free_spares(bool all); /* or, called now and then, slowly down to a few */
/* The reply is sent (done) or will never be: calls ops->closed, writes metrics, frees. */
void xchg_gone(struct xchg *x, bool done);
