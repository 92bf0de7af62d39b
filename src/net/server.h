/* server: listeners and their connections.
 * Every listener speaks HTTP/1.1, HTTP/2 (prior knowledge), WebSocket and gRPC, distinguished by
 * the first bytes; a TLS hello starts TLS where a certificate is set, and ALPN then
 * chooses.  Thread: the loop's. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "net/xchg.h"

#include <uv.h>

struct server_limits {            /* src/conf/settings.c has the defaults and their reasons */
    int64_t header_max;           /* bytes of one request head */
    int64_t header_count_max;     /* fields of one request head */
    int64_t body_max;             /* bytes of one body, unless the handler sets another limit */
    int64_t connections_max;      /* in total */
    int64_t connections_per_peer; /* by address; Unix sockets by uid */
    int64_t pending_max;          /* bytes held for unauthenticated peers, in total; 0: no limit */
    int64_t pending_per_peer;     /* … for one peer */
    int64_t requests_per_conn;    /* outstanding at once: pipelined, or HTTP/2 streams */
    int64_t idle_ms;              /* between requests */
    int64_t header_ms;            /* from the first byte of a head to its last */
    int64_t body_idle_ms;         /* without progress while the peer owes a body */
    int64_t write_ms;             /* without progress while the peer does not read */
    int64_t ws_message_max;
    int64_t grpc_message_max;
};

/* How requests on a listener are served: */
enum listener_role {
    LISTEN_API,
    LISTEN_SEED,    /* the API; requests without a token get the setting's identity */
    LISTEN_RELAY,   /* the API for a sandbox: the client is inside it and limited to it */
    LISTEN_PROCESS, /* process_api for a sandbox; not the API */
    LISTEN_PREVIEW, /* pages of sandboxes, each in an origin of its own; not the API */
};

struct listener_info {
    /* as configured: "127.0.0.1:8122", "[::1]:0", "unix:/run/holt.sock", "tls://…" */
    char *address;
    int port;      /* the actual port; 0 for a Unix socket */
    bool loopback; /* not reachable from outside */
    enum listener_role role;
    bool tls_only; /* "tls://…": clear text is refused */
};

/* Called when a request head is complete.  Must take the exchange (xchg_handle) or reply. */
typedef void (*server_handler)(struct xchg *x, void *arg);

/* Formats the error of a reply that no handler writes, by the request's path, which may be empty or
 * malformed.  NULL: json_error. */
typedef void (*server_error)(struct buf *to, struct str path, const struct err *e);

struct server_config {
    uv_loop_t *loop;
    const struct server_limits *limits; /* read at each use, so that a reload takes effect */
    const char *tls_cert, *tls_key;     /* PEM files, or NULL: no TLS */
    server_handler handler;
    server_error error;
    void *arg;
};

CHECKED int server_new(const struct server_config *c, struct server **ret, struct err *e);
/* "host:port", "[v6]:port", "unix:PATH", each with an optional "tls://" before it (then clear text
 * is refused). */
CHECKED int server_listen(struct server *s, const char *address, enum listener_role role,
                          struct err *e);
/* Adds a connection that no listener accepted: fd is a stream socket (taken also on failure), peer
 * its name; l tells how to serve its requests and outlives the server. */
CHECKED int server_adopt(struct server *s, int fd, const char *peer, const struct listener_info *l,
                         struct err *e);
size_t server_listener_count(const struct server *s);
const struct listener_info *server_listener(const struct server *s, size_t i);
uv_loop_t *server_loop(const struct server *s);
const struct server_limits *server_limits(const struct server *s);
int64_t server_connection_count(const struct server *s);
void server_write_error(const struct server *s, struct buf *to, struct str path,
                        const struct err *e);
CHECKED int server_reload_tls(struct server *s, struct err *e); /* reads both files again */
/* Stops listening, lets exchanges finish for grace_ms (HTTP/2 gets GOAWAY, idle connections close
 * at once), then cuts the rest.  Calls done when the last handle is closed; frees the server. */
void server_stop(struct server *s, int64_t grace_ms, void (*done)(void *arg), void *arg);
/* Whether that time is over: a connection that ends now was cut by us. */
bool server_is_cutting(const struct server *s);
