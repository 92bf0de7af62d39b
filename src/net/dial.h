/* dial: one outgoing byte connection: TCP or Unix socket, TLS on top or without.
 * Names are resolved by net/resolver on the loop; each address is tried in turn.
 * Life: dial_start; ops->connected; then ops->data as bytes come; dial_close at any time;
 * ops->closed is the last call, comes exactly once and never from inside dial_start or dial_close.
 * Thread: the loop's. */
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <uv.h>

#define DIAL_HIGH (256 * 1024) /* pending output past which writers should wait … */
#define DIAL_LOW (64 * 1024)   /* … until it is below this again */

struct dial;
struct dial_tls; /* which authorities are trusted; shared by many connections */

/* The system's authorities, and those of a PEM file (NULL: none further). */
CHECKED int dial_tls_new(const char *cacert, struct dial_tls **ret, struct err *e);
struct dial_tls *dial_tls_free(struct dial_tls *t); /* takes NULL; returns NULL */
DEFINE_AUTO(struct dial_tls *, dial_tls_free)

struct dial_ops {
    void (*connected)(struct dial *d); /* the TLS handshake included */
    void (*data)(struct dial *d, struct str bytes);
    void (*eof)(struct dial *d);     /* the peer sends no more */
    void (*drained)(struct dial *d); /* pending output fell below DIAL_LOW after being past HIGH */
    void (*expired)(struct dial *d); /* the time set by dial_expire is over */
    void (*closed)(struct dial *d, const struct err *e); /* ERR_NONE: dial_close did it */
};

struct dial_config {
    uv_loop_t *loop;
    const char *host; /* name or address; with port 0: the path of a Unix socket */
    int port;
    struct dial_tls *tls; /* NULL: clear text */
    const struct dial_ops *ops;
    void *arg;
};

struct dial *dial_start(const struct dial_config *c);
void *dial_arg(const struct dial *d);
void dial_read(struct dial *d, bool on); /* off: the peer is slowed down; it is on at first */
int dial_write(struct dial *d, const void *p, size_t n) CHECKED; /* 1: wait for drained */
void dial_expire(struct dial *d, int64_t ms); /* calls expired then, once; 0: never */
void dial_close(struct dial *d);              /* drops pending output; calling twice is harmless */
