/* stream: bytes to and from one peer, over TCP or a Unix socket, with or without TLS.
 * Output is collected and goes to the kernel once per turn of the loop (or when it passes 64
 * KiB).  Input is offered in place from one buffer shared by all streams: idle streams hold no
 * memory.
 * Ownership: made by the listener (server.c) or connector; stream_close begins the end, ops->closed
 * is the last call and comes exactly once, then the stream is freed.  Thread: the loop's. */
#pragma once

#include "base/err.h"
#include "net/xchg.h"

#include <uv.h>

#define STREAM_HIGH (256 * 1024) /* pending output at which writers should wait … */
#define STREAM_LOW (64 * 1024)   /* … until it is below this again */

#define STREAM_PIECES 3

struct stream;

struct stream_ops {
    /* Returns the number of bytes consumed; the stream keeps the rest and offers it again with the
     * next bytes, or after stream_read_on.  Consuming nothing while the kept input is at keep_max
     * stops reading. */
    size_t (*data)(struct stream *s, struct str bytes);
    void (*eof)(struct stream *s); /* the peer has stopped sending; writing may still work */
    void (*writable)(
        struct stream *s); /* pending output fell below STREAM_LOW after being past HIGH */
    void (*closed)(struct stream *s, const struct err *e); /* e->code ERR_NONE: we closed it */
    void (*sent)(struct stream *s);                        /* the kernel took output; may be NULL */
    void (*handshaking)(struct stream *s);                 /* a TLS hello has begun; may be NULL */
    /* While reading is off: the peer has closed its end (eof follows after the unread
     * input).  Called again at each sweep; may be NULL. */
    void (*hangup)(struct stream *s);
    /* The peer read nothing for write_ms.  True: the output has been completed, and the peer has
     * write_ms more to read it; false: cut the connection.  May be NULL: false. */
    bool (*stalled)(struct stream *s);
};

/* Shared by all streams of a loop: the read buffer, and the list of streams with work in this
 * turn. */
struct stream_hub;
struct stream_hub *stream_hub_new(uv_loop_t *loop);
/* Call it a few times a second: notifies or cuts streams whose peer read nothing for write_ms, and
 * ends lingering ones. */
void stream_hub_sweep(struct stream_hub *h, int64_t write_ms);
/* Waits for the last stream's end, then calls done when its own handles are closed. */
void stream_hub_free(struct stream_hub *h, void (*done)(void *arg), void *arg);

struct ssl_ctx_st;
/* Accepts the next connection of a listener; NULL with *e set on failure.  Reading begins with
 * stream_handle.  With a context, a first byte 0x16 starts TLS. */
struct stream *stream_accept(struct stream_hub *h, uv_stream_t *listener, struct ssl_ctx_st *tls,
                             struct err *e);

/* Adopts a connected socket, also taken on failure; peer is its name. */
struct stream *stream_adopt(struct stream_hub *h, int fd, const char *peer, struct err *e);

void stream_handle(struct stream *s, const struct stream_ops *ops, void *arg);
void *stream_arg(const struct stream *s);
const struct peer *stream_peer(const struct stream *s);
const char *stream_alpn(const struct stream *s);  /* "h2", "http/1.1", or NULL */
void stream_keep_max(struct stream *s, size_t n); /* limit of unread input */
/* offers kept input again (in this turn) and resumes reading */
void stream_read_on(struct stream *s);
/* Appends to the output; the bytes are copied.  Returns 1 when pending is past STREAM_HIGH. */
int stream_write(struct stream *s, const void *p, size_t n) CHECKED;
/* The same for several pieces, at most STREAM_PIECES.  Large ones go to the kernel from where they
 * lie; only what it does not take now is copied. */
int stream_write_pieces(struct stream *s, const struct str *pieces, size_t count) CHECKED;
struct buf *stream_out(struct stream *s); /* for appending in place; then call stream_flush_soon */
void stream_flush_soon(struct stream *s); /* at the end of this turn */
size_t stream_pending(const struct stream *s);
bool stream_has_input(const struct stream *s); /* unread input has arrived */
uint64_t stream_sent(const struct stream *s);  /* output bytes taken by the kernel */
void stream_close(
    struct stream *s); /* flushes first (bounded by write_ms), TLS close_notify, closes */
void stream_cut(struct stream *s); /* closes now, drops output */
