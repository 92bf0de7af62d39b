/* stream_internal: private to stream.c (one peer) and stream_hub.c (all streams of a loop: the end
 * of each turn, and the sweep for stalled ones). */
#pragma once

#include "base/buf.h"
#include "base/list.h"
#include "net/peer.h"
#include "net/stream.h"

#include <openssl/ssl.h>

#define STREAM_READ (64 * 1024) /* bytes of one read */

struct stream_hub {
    uv_loop_t *loop;
    uv_prepare_t prepare; /* the end of the turn: offers kept input, flushes output */
    uv_idle_t idle;       /* active while work is left over: then the loop does not sleep */
    uint64_t turn;
    struct list dirty;     /* streams with work at the end of the turn, in order */
    struct list blocked;   /* waiting for the kernel to take output: longest first */
    struct list lingering; /* half closed by us, longest first */
    struct list deaf;      /* not being read: the sweep checks whether the peer has closed */
    size_t count;
    size_t handles;
    char *scratch; /* STREAM_READ bytes, for all reads */
    char *plain;   /* STREAM_READ bytes, for decrypted input */
    void (*freed)(void *arg);
    void *freed_arg;
};

/* open ──stream_close──▶ closing ──output gone──▶ lingering ──EOF or time──▶ closed
 *   └───────────stream_cut, error, write timeout───────────────────────────────▲ */
enum stream_state { STREAM_OPEN, STREAM_CLOSING, STREAM_LINGERING, STREAM_CLOSED };

struct stream {
    union {
        uv_handle_t any;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } h;
    struct stream_hub *hub;
    const struct stream_ops *ops;
    void *arg;
    SSL_CTX *ctx; /* until the first byte has chosen TLS or clear text */
    struct tls *tls;
    struct list dirty; /* in hub->dirty */
    struct list deaf;  /* in hub->deaf */
    struct list link;  /* in hub->blocked or hub->lingering */
    struct buf in;     /* offered but not consumed */
    struct buf out;    /* plain */
    struct buf cipher; /* encrypted output before it is in flight */
    struct buf flight; /* held by uv_write */
    uv_write_t *write; /* of the flight */
    size_t encrypted;  /* plain bytes contained in cipher and flight */
    uint64_t sent;
    uint64_t turn; /* when it was put in the dirty list */
    int64_t progress_ms;
    size_t unsent_seen; /* bytes uv_write still held at the last sweep */
    size_t keep_max, lingered;
    enum stream_state state;
    bool reading, eof, offer, in_data, was_high, untold;
    struct err *failed;
    struct peer peer;
};

/* --- stream.c --- */
void stream_turn(struct stream *s); /* the end of a turn: offers kept input, flushes output */
void stream_end(struct stream *s, bool reset);
void stream_fail(struct stream *s, const struct err *e);
void stream_fail_sys(struct stream *s, int uv_error, const char *what);

/* --- stream_hub.c --- */
void stream_hub_left(struct stream_hub *h); /* a stream was freed */
