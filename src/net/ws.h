/* ws: the server's end of a WebSocket (RFC 6455; over HTTP/2 by RFC 8441 if the peer asks so).
 * Made from an exchange, which it takes over.  ops->closed comes exactly once and is the last call.
 * Text is UTF-8 checked; pings are answered; fragments are joined up to the limit.
 * Thread: the loop's. */
#pragma once

#include "net/xchg.h"
#include "proto/ws.h" /* close codes */

struct ws;

enum ws_kind { WS_TEXT = 1, WS_BINARY = 2 };

struct buf;
struct ws_ops {
    void (*message)(struct ws *w, enum ws_kind kind, struct str data);
    void (*drained)(struct ws *w); /* ws_send said 1, and there is room again */
    void (*closed)(struct ws *w, int code, struct str reason); /* 1006: the peer vanished */
};

/* Is x a WebSocket handshake?  Decide before replying. */
bool ws_is_handshake(const struct xchg *x);
/* Answers 101 (or an error reply: then NULL, and the exchange is settled).  protocols: what the
 * server speaks, in its order of preference, NULL-terminated; NULL: none is chosen. */
struct ws *ws_accept(struct xchg *x, const char *const *protocols, const struct ws_ops *ops,
                     void *arg);
void *ws_arg(const struct ws *w);
int ws_send(struct ws *w, enum ws_kind kind, struct str data) CHECKED; /* 1: wait for drained */
/* A message as its frame, made once and sent to many; it waits as ws_send does. */
void ws_frame(enum ws_kind kind, struct str data, struct buf *to);
int ws_send_frame(struct ws *w, const struct buf *frame) CHECKED;
void ws_pause(struct ws *w, bool on); /* stop or go on reading: slows the peer */
void ws_close(struct ws *w, int code, const char *reason);
