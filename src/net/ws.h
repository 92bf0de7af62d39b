/* ws: the server side of a WebSocket (RFC 6455; over HTTP/2 by RFC 8441).
 * Made from an exchange, which it takes over.  ops->closed comes exactly once and is the last
 * call.  Text is checked to be UTF-8; pings are answered; fragments are joined up to the limit.
 * Thread: the loop's. */
#pragma once

#include "net/xchg.h"
#include "proto/ws.h" /* close codes */

struct ws;

enum ws_kind { WS_TEXT = 1, WS_BINARY = 2 };

struct buf;
struct ws_ops {
    void (*message)(struct ws *w, enum ws_kind kind, struct str data);
    void (*drained)(struct ws *w); /* there is room again after ws_send returned 1 */
    void (*closed)(struct ws *w, int code, struct str reason); /* 1006: the connection was lost */
};

/* Whether x is a WebSocket handshake.  Decide before replying. */
bool ws_is_handshake(const struct xchg *x);
/* Replies 101, or with an error: then NULL, and the exchange is settled.  protocols: the server's
 * subprotocols in order of preference, NULL-terminated; NULL: none is chosen. */
struct ws *ws_accept(struct xchg *x, const char *const *protocols, const struct ws_ops *ops,
                     void *arg);
void *ws_arg(const struct ws *w);
int ws_send(struct ws *w, enum ws_kind kind, struct str data) CHECKED; /* 1: wait for drained */
/* Encodes a message as a frame, to be sent to many; ws_send_frame returns 1 to wait like
 * ws_send. */
void ws_frame(enum ws_kind kind, struct str data, struct buf *to);
int ws_send_frame(struct ws *w, const struct buf *frame) CHECKED;
void ws_pause(struct ws *w, bool on); /* stops or resumes reading: slows the peer down */
void ws_close(struct ws *w, int code, const char *reason);
