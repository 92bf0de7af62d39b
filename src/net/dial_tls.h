/* dial_tls: TLS of one outgoing connection, without I/O: encrypted bytes in and out of two memory
 * buffers.  For dial, and for holt-egress, which connects to addresses it has checked. */
#pragma once

#include "base/buf.h"
#include "net/dial.h"

struct tls_end; /* one connection */

CHECKED int tls_end_new(struct dial_tls *t, const char *host, struct tls_end **ret, struct err *e);
struct tls_end *tls_end_free(struct tls_end *t); /* takes NULL; returns NULL */
/* Takes bytes from the peer. */
void tls_end_feed(struct tls_end *t, struct str bytes);
/* 1: done; 0: needs more input. */
CHECKED int tls_end_handshake(struct tls_end *t, struct err *e);
/* Returns the number of decrypted bytes; 0: needs more input, or *ret_eof. */
CHECKED int tls_end_read(struct tls_end *t, void *to, size_t n, bool *ret_eof, struct err *e);
CHECKED int tls_end_write(struct tls_end *t, const void *p, size_t n, struct err *e);
void tls_end_output(struct tls_end *t, struct buf *to); /* moves the bytes to send */
