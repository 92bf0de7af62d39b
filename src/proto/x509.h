/* x509: makes our own certificate authority, as PEM text (RFC 7468).  No I/O.
 * Errors: -1 with *e set. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/* A self-signed authority for leaf certificates only (path length 0): EC P-256, valid from an hour
 * ago (clocks differ) for this many days. */
CHECKED int x509_make_authority(const char *name, int64_t days, struct buf *cert, struct buf *key,
                                struct err *e);
/* Whether it is an authority, valid now, and matches the key. */
CHECKED int x509_check_authority(struct str cert, struct str key, struct err *e);
