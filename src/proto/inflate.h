/* inflate: a whole text that is compressed as gzip (RFC 1952) or zlib (RFC 1950) does it; HTTP and
 * gRPC call the latter "deflate".  No I/O.  Thread: any. */
#pragma once

#include "base/buf.h"

/* Appends it to *to.  -EMSGSIZE: over max bytes; -EPROTO: it is broken, or something follows. */
int inflate_all(struct str in, size_t max, struct buf *to) CHECKED;
