/* server: listeners, and the connections that come in through them.
 * Every listener speaks HTTP/1.1, HTTP/2 (prior knowledge), WebSocket and gRPC, told apart by the
 * first bytes; a TLS hello starts TLS where a certificate is set, and ALPN then chooses. Thread:
 * the loop's. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "net/xchg.h"

#include <uv.h>

struct server_limits {            /* src/conf/settings.c has the defaults and their reasons */
    int64_t header_max;           /* bytes of one request head */
    int64_t header_count_max;     /* fields of one request head */
    int64_t body_max;             /* bytes of one body, where the handler sets no other */
    int64_t connections_max;      /* in all */
    int64_t connections_per_peer; /* by address; Unix sockets by uid */
    int64_t pending_max;          /* bytes held for peers that are not known yet, in all; 0: any */
    int64_t pending_per_peer;     /* … of one peer */
    int64_t requests_per_conn;    /* outstanding at once: pipelined, or HTTP/2 streams */
    int64_t idle_ms;              /* between requests */
    int64_t header_ms;            /* from the first byte of a head to its last */
    int64_t body_idle_ms;         /* without progress while a body is owed by the peer */
    int64_t write_ms;             /* without progress while the peer does not read */
    int64_t ws_message_max;
    int64_t grpc_message_max;
};

/* What comes in there is served as: */
enum listener_role {
    LISTEN_API,
    LISTEN_SEED,    /* the API; requests without a token get the setting's identity */
    LISTEN_RELAY,   /* the API, for a sandbox: what asks is inside it, and nothing more */
    LISTEN_PROCESS, /* process_api, for a sandbox; nothing of the API */
    LISTEN_PREVIEW, /* pages of sandboxes, each in an origin of its own; nothing of the API */
};

struct listener_info {
    char *address; /* as asked: "127.0.0.1:8122", "[::1]:0", "unix:/run/holt.sock", "tls://…" */
    int port;      /* the real one; 0 for a Unix socket */
    bool loopback; /* nobody from outside reaches it */
    enum listener_role role;
    bool tls_only; /* "tls://…": clear text is refused */
};

/* Called when a request head is complete.  Must take the exchange (xchg_handle) or reply. */
typedef void (*server_handler)(struct xchg *x, void *arg);

/* How an error stands in a reply that no handler writes: by the path that was asked for, which may
 * be empty and anything.  json_error where there is none. */
typedef void (*server_error)(struct buf *to, struct str path, const struct err *e);

struct server_config {
    uv_loop_t *loop;
    const struct server_limits *limits; /* read at each use: a reload changes what follows */
    const char *tls_cert, *tls_key;     /* PEM files, or NULL: no TLS */
    server_handler handler;
    server_error error;
    void *arg;
};

CHECKED int server_new(const struct server_config *c, struct server **ret, struct err *e);
/* "host:port", "[v6]:port", "unix:PATH", each also with "tls://" before it (then clear text is
 * refused). */
CHECKED int server_listen(struct server *s, const char *address, enum listener_role role,
                          struct err *e);
/* A connection that did not come through a listener: fd is a stream socket (taken, whatever
 * happens), peer its name, l says how its requests are served and outlives the server. */
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
/* Stops listening, lets exchanges end for grace_ms (HTTP/2 gets GOAWAY, idle connections close at
 * once), then cuts the rest; calls done when the last handle is closed; frees the server. */
void server_stop(struct server *s, int64_t grace_ms, void (*done)(void *arg), void *arg);
