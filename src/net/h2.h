/* h2: private to conn_h2.c (what comes in, the connection's life) and h2_out.c (what goes out).
 * An exchange is freed only inside nghttp2's stream-close callback or when the connection is gone,
 * never inside a call that a handler makes: such calls only queue, and an idle handle pumps the
 * queue at the next turn of the loop (or the receiving code does, when it is on the stack). */
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
    uv_idle_t *idle;     /* runs while something waits to be pumped */
    uv_timer_t *linger;  /* then streams that we have answered early are reset */
    struct list streams; /* struct h2_stream.link */
    struct list fresh;   /* struct h2_stream.fresh: a reply head waits for the pump */
    size_t stream_count;
    struct h2_head head; /* the header block that is coming in */
    bool head_open;      /* … it has begun */
    bool head_over;      /* … it passed a limit */
    int continuations;   /* … frames of it */
    double calm;         /* tokens left for frames that cost the peer nothing */
    int64_t calm_at_ms;
    bool receiving;     /* inside nghttp2_session_mem_recv: whoever called it pumps */
    bool progress;      /* body bytes moved since the timeout was last set */
    bool shutting_down; /* GOAWAY is on its way: close after the last stream */
    bool calm_lost;     /* the peer passed a flood limit */
    bool dead;          /* closing: all further input is dropped */
};

struct h2_stream {
    struct h2 *h2;
    struct xchg *x; /* NULL before the head is complete */
    int32_t id;
    struct list link, fresh;
    struct buf out;    /* of the reply's body */
    size_t unconsumed; /* body bytes that the window does not have back yet */
    nghttp2_nv *head;  /* the reply's, in the exchange's arena until the pump submits it */
    size_t head_count;
    nghttp2_nv *trailers;
    size_t trailer_count;
    bool submitted; /* the reply's head is nghttp2's business now */
    bool ended;     /* xchg_end was called */
    bool deferred;  /* nghttp2 waits for data */
    bool waiting;   /* the writer was told to wait */
    bool sent;      /* our END_STREAM went out */
    bool received;  /* the peer's END_STREAM came in */
    bool tunnel;    /* gRPC or extended CONNECT: the request body may stay open for hours */
    bool expect;    /* the client waits for a 100 */
    bool aborted;   /* by its handler */
    bool refused;   /* its head was no request: no handler saw it */
};

extern const struct xchg_proto h2_xchg_proto;
void h2_schedule(struct h2 *h); /* a pump at the next turn */
void h2_pump(struct h2 *h);     /* not from inside a callback of nghttp2 or of an exchange */
void h2_continue(struct h2_stream *s);
void h2_set_callbacks_out(nghttp2_session_callbacks *cb);
