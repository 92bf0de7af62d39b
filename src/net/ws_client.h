/* ws_client: the client's end of a WebSocket (RFC 6455), on a connection of its own.
 * Life: ws_client_start; ops->opened once the server agreed; ops->message as they come;
 * ops->closed is the last call, comes exactly once and never from inside ws_client_start.
 * Pings are answered; a silent server is pinged, and given up when it does not answer.
 * Back-pressure both ways: ws_client_send says when to wait for ops->drained; ws_client_pause stops
 * the messages.  Thread: the loop's. */
#pragma once

#include "net/client.h"
#include "proto/ws.h"

struct ws_client;

struct ws_client_end {
    struct err e;      /* ERR_NONE: the server closed it in order, or ws_client_close did */
    int code;          /* of the server's close frame; WS_VANISHED: it sent none */
    struct str reason; /* … and its text */
    int status;        /* of an HTTP reply that was no upgrade; 0: none */
    struct str body;   /* … and its beginning */
};

struct ws_client_ops { /* any but closed may be NULL */
    void (*opened)(struct ws_client *w);
    void (*message)(struct ws_client *w, enum ws_op kind, struct str data); /* TEXT or BINARY */
    void (*drained)(struct ws_client *w);
    void (*closed)(struct ws_client *w, const struct ws_client_end *end); /* frees w behind it */
};

struct ws_client_request {
    uv_loop_t *loop;
    const struct client_url *url; /* copied */
    struct dial_tls *tls;         /* for https; lives longer than the connection */
    const char *target;
    const char *protocol; /* the subprotocol that the server must choose; NULL: none */
    const struct http_header *headers;
    size_t header_count;
    size_t message_max;
    int64_t connect_ms, head_ms; /* 0: no limit */
    int64_t ping_ms;             /* of silence before a ping; three such and it is over; 0: never */
    const struct ws_client_ops *ops;
    void *arg;
};

CHECKED int ws_client_start(const struct ws_client_request *r, struct ws_client **ret,
                            struct err *e);
void *ws_client_arg(const struct ws_client *w);
/* 1: wait for drained.  Not before opened; what comes after the close is dropped. */
int ws_client_send(struct ws_client *w, enum ws_op kind, struct str data) CHECKED;
void ws_client_pause(struct ws_client *w, bool on);
/* Says goodbye and waits a little for the server's; before opened it is a cancel. */
void ws_client_close(struct ws_client *w, int code, const char *reason);
void ws_client_cancel(struct ws_client *w); /* at once; closed follows with ERR_CANCELLED */
