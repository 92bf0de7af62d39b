/* client: one outgoing HTTP/1.1 request and its reply, on a connection of its own.
 * Life: client_start; ops->head when the reply's head has arrived; ops->body parts; ops->closed is
 * the last call, comes exactly once and never from inside client_start.  client_cancel is allowed
 * at any time before.  Back-pressure both ways: client_write returns 1 to wait for ops->writable;
 * body parts count against a window until client_consume.  No retries, no redirects.  Thread: the
 * loop's. */
#pragma once

#include "base/err.h"
#include "net/dial.h"
#include "proto/http.h"

struct client; /* one request */

struct client_url { /* owns its texts */
    bool tls;
    char *host;      /* name or address without brackets; NULL: a Unix socket */
    int port;        /* 0: a Unix socket */
    char *path;      /* of the Unix socket, or NULL */
    char *prefix;    /* prepended to every target: "" or "/holt" */
    char *authority; /* for Host */
};
/* "http://host[:port][/prefix]", "https://…", "unix:/path". */
CHECKED int client_url_parse(const char *text, struct client_url *ret, struct err *e);
void client_url_done(struct client_url *u);
static inline UNUSED void client_url_done_p(struct client_url *u)
{
    client_url_done(u);
}

struct client_ops {                     /* any but closed may be NULL */
    void (*writable)(struct client *c); /* a streamed request body may continue */
    void (*head)(struct client *c, int status, const struct http_header *h, size_t count);
    /* part is valid during the call.  Call client_consume(c, n) when n bytes are used, at once or
     * later. */
    void (*body)(struct client *c, struct str part);
    /* ERR_NONE: the reply is complete.  Frees c when it returns. */
    void (*closed)(struct client *c, const struct err *e);
};

#define CLIENT_BODY_CHUNKED (-1)

struct client_request {
    uv_loop_t *loop;
    const struct client_url *url; /* copied */
    struct dial_tls *tls;         /* for https; lives longer than the request */
    const char *method;
    const char *target; /* "/holt/v1/events?follow=true": as sent */
    const struct http_header *headers;
    size_t header_count;
    struct str body;         /* a complete body … */
    bool streamed;           /* … or one sent by client_write … */
    int64_t streamed_length; /* … of this length, or CLIENT_BODY_CHUNKED */
    bool upgrade;            /* accept a 101: raw bytes both ways after it */
    int64_t connect_ms;      /* until connected, TLS included; each 0: no limit */
    int64_t head_ms;         /* from then until the reply's head */
    int64_t idle_ms;         /* without a byte of the reply's body */
    int64_t total_ms;
    const struct client_ops *ops;
    void *arg;
};

CHECKED int client_start(const struct client_request *r, struct client **ret, struct err *e);
void *client_arg(const struct client *c);
int client_write(struct client *c, const void *p, size_t n) CHECKED; /* 1: wait for writable */
void client_write_end(struct client *c);
void client_consume(struct client *c, size_t n);
void client_cancel(struct client *c); /* closed follows with ERR_CANCELLED */
