/* h2: private to conn_h2.c (input, the connection's life) and h2_out.c (output).
 * An exchange is freed only inside nghttp2's stream-close callback or when the connection is gone,
 * never inside a handler's call: such calls only queue, and an idle handle pumps the queue at the
 * next turn of the loop (or the receiving code does, when it is on the stack). */
#pragma once

#include "net/conn.h"
#include "proto/h2.h"

#include <nghttp2/nghttp2.h>
#include <uv.h>

#define H2_STREAM_WINDOW (256 * 1024)
#define H2_CONN_WINDOW (1024 * 1024)

struct h2 { /* one connection */
    struct conn *conn;
    nghttp2_session *session;
    uv_idle_t *idle;     /* runs while output waits for the pump */
    uv_timer_t *linger;  /* on expiry, resets the streams with early replies */
    struct list streams; /* struct h2_stream.link */
    struct list fresh;   /* struct h2_stream.fresh: reply heads waiting for the pump */
    size_t stream_count;
    struct h2_head head; /* the header block being received */
    bool head_open;      /* … it has begun */
    bool head_over;      /* … it passed a limit */
    int continuations;   /* … number of its CONTINUATION frames */
    double calm;         /* tokens left for frames that are cheap for the peer */
    int64_t calm_at_ms;
    bool receiving;     /* inside nghttp2_session_mem_recv: its caller pumps */
    bool progress;      /* body bytes moved since the timeout was last set */
    bool shutting_down; /* GOAWAY is sent: close after the last stream */
    bool calm_lost;     /* the peer passed a flood limit */
    bool dead;          /* closing: all further input is dropped */
};

struct h2_stream {
    struct h2 *h2;
    struct xchg *x; /* NULL before the head is complete */
    int32_t id;
    struct list link, fresh;
    struct buf out;    /* of the reply's body */
    size_t unconsumed; /* body bytes not yet returned to the window */
    nghttp2_nv *head;  /* the reply's head, in the exchange's arena until it is submitted */
    size_t head_count;
    nghttp2_nv *trailers;
    size_t trailer_count;
    bool submitted; /* nghttp2 has the reply's head */
    bool ended;     /* xchg_end was called */
    bool deferred;  /* nghttp2 waits for more data */
    bool waiting;   /* the writer waits for drained */
    bool sent;      /* our END_STREAM was sent */
    bool received;  /* the peer's END_STREAM was received */
    bool tunnel;    /* gRPC or extended CONNECT: the request body may stay open for hours */
    bool expect;    /* the client waits for a 100 */
    bool aborted;   /* by its handler */
    bool refused;   /* its head was not a request: no handler saw it */
};

extern const struct xchg_proto h2_xchg_proto;
void h2_schedule(struct h2 *h); /* pumps at the next turn */
void h2_pump(struct h2 *h);     /* not from inside a callback of nghttp2 or of an exchange */
void h2_continue(struct h2_stream *s);
void h2_set_callbacks_out(nghttp2_session_callbacks *cb);
