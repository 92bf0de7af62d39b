/* ws_client: the client side of a WebSocket (RFC 6455), on a connection of its own.
 * Life: ws_client_start; ops->opened once the server has agreed; ops->message for each message;
 * ops->closed is the last call, comes exactly once and never from inside ws_client_start.
 * Pings are answered; a silent server is pinged, and the connection ends if it does not reply.
 * Back-pressure both ways: ws_client_send returns 1 to wait for ops->drained; ws_client_pause stops
 * the messages.  Thread: the loop's. */
#pragma once

#include "net/client.h"
#include "proto/ws.h"

struct ws_client;

struct ws_client_end {
    struct err e;      /* ERR_NONE: closed cleanly by the server or by ws_client_close */
    int code;          /* of the server's close frame; WS_VANISHED: there was none */
    struct str reason; /* … and its text */
    int status;        /* of an HTTP reply other than 101; 0: none */
    struct str body;   /* … and the start of its body */
};

struct ws_client_ops { /* any but closed may be NULL */
    void (*opened)(struct ws_client *w);
    void (*message)(struct ws_client *w, enum ws_op kind, struct str data); /* TEXT or BINARY */
    void (*drained)(struct ws_client *w);
    /* w is freed afterwards */
    void (*closed)(struct ws_client *w, const struct ws_client_end *end);
};

struct ws_client_request {
    uv_loop_t *loop;
    const struct client_url *url; /* copied */
    struct dial_tls *tls;         /* for https; lives longer than the connection */
    const char *target;
    const char *protocol; /* subprotocols, "a, b": the server must choose one; NULL: none */
    const struct http_header *headers;
    size_t header_count;
    size_t message_max;
    int64_t connect_ms, head_ms; /* 0: no limit */
    int64_t ping_ms; /* silence before a ping; the connection ends after three such; 0: never */
    const struct ws_client_ops *ops;
    void *arg;
};

CHECKED int ws_client_start(const struct ws_client_request *r, struct ws_client **ret,
                            struct err *e);
void *ws_client_arg(const struct ws_client *w);
const char *ws_client_protocol(const struct ws_client *w); /* chosen; NULL: none, or not opened */
/* 1: wait for drained.  Not before opened; messages after the close are dropped. */
int ws_client_send(struct ws_client *w, enum ws_op kind, struct str data) CHECKED;
void ws_client_pause(struct ws_client *w, bool on);
/* Sends a close frame and waits briefly for the server's; before opened it cancels. */
void ws_client_close(struct ws_client *w, int code, const char *reason);
void ws_client_cancel(struct ws_client *w); /* at once; closed follows with ERR_CANCELLED */
