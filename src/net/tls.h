/* tls: the server side of TLS 1.2+ between memory buffers; no I/O of its own.
 * Ownership: tls_new/tls_free; contexts are counted by OpenSSL.  Thread: the loop's. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <openssl/ssl.h>

struct tls;

/* Reads the PEM chain and key; ALPN offers h2, then http/1.1. */
CHECKED int tls_context_new(const char *cert, const char *key, SSL_CTX **ret, struct err *e);

struct tls *tls_new(SSL_CTX *ctx);
void tls_free(struct tls *t);
void tls_input(struct tls *t, struct str cipher);
/* Decrypts input.  Returns bytes; 0: needs more input; -1: failed, *e set.  *ret_eof: the peer sent
 * close_notify. */
CHECKED int tls_read(struct tls *t, char *to, size_t n, bool *ret_eof, struct err *e);
/* Encrypts as much of plain as the handshake allows, and removes it from plain. */
CHECKED int tls_write(struct tls *t, struct buf *plain, struct err *e);
void tls_shutdown(struct tls *t);                   /* queues close_notify */
void tls_output(struct tls *t, struct buf *cipher); /* moves the bytes to send */
bool tls_is_ready(const struct tls *t);             /* the handshake is done */
const char *tls_alpn(const struct tls *t);          /* "h2", "http/1.1" or NULL */
