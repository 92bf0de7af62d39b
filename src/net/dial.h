/* dial: one outgoing connection: TCP or Unix socket, with or without TLS.
 * Names are resolved by net/resolver on the loop; addresses are tried in turn.
 * Life: dial_start; ops->connected; then ops->data as bytes arrive; dial_close at any time;
 * ops->closed is the last call, comes exactly once and never from inside dial_start or dial_close.
 * Thread: the loop's. */
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <uv.h>

#define DIAL_HIGH (256 * 1024) /* pending output at which writers should wait … */
#define DIAL_LOW (64 * 1024)   /* … until it is below this again */

struct dial;
struct dial_tls; /* the trusted authorities; shared by many connections */

/* The system's authorities, and those of a PEM file (NULL: none). */
CHECKED int dial_tls_new(const char *cacert, struct dial_tls **ret, struct err *e);
struct dial_tls_config {  /* all texts are PEM; empty: none */
    struct str ca;        /* the only authorities to trust; empty: the system's */
    struct str cert, key; /* our own certificate, with its chain, and its key */
    const char *name;     /* expected of the server instead of its host; NULL: its host */
    bool unverified;      /* anybody is the server */
};
CHECKED int dial_tls_make(const struct dial_tls_config *c, struct dial_tls **ret, struct err *e);
struct dial_tls *dial_tls_free(struct dial_tls *t); /* takes NULL; returns NULL */
DEFINE_AUTO(struct dial_tls *, dial_tls_free)

struct dial_ops {
    void (*connected)(struct dial *d); /* after the TLS handshake */
    void (*data)(struct dial *d, struct str bytes);
    void (*eof)(struct dial *d);     /* the peer has stopped sending */
    void (*drained)(struct dial *d); /* pending output fell below DIAL_LOW after being past HIGH */
    void (*expired)(struct dial *d); /* the time set by dial_expire has passed */
    void (*closed)(struct dial *d, const struct err *e); /* ERR_NONE: closed by dial_close */
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
void dial_read(struct dial *d, bool on); /* on at first; off: slows the peer down */
int dial_write(struct dial *d, const void *p, size_t n) CHECKED; /* 1: wait for drained */
void dial_expire(struct dial *d, int64_t ms); /* calls expired after ms, once; 0: never */
void dial_close(struct dial *d);              /* drops pending output; calling twice is harmless */
