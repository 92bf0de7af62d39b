/* inflate: decompresses a whole text in gzip (RFC 1952) or zlib (RFC 1950) format; HTTP and gRPC
 * call the latter "deflate".  No I/O.  Thread: any. */
#pragma once

#include "base/buf.h"

/* Appends the result to *to.  -EMSGSIZE: over max bytes; -EPROTO: corrupt, or followed by more
 * bytes. */
int inflate_all(struct str in, size_t max, struct buf *to) CHECKED;
