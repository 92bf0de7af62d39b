/* tls_hello: the server name in a TLS client's first bytes (RFC 8446 section 4.1.2, RFC 6066
 * section 3).  No I/O.  The outcome does not depend on how the input is split. */
#pragma once

#include "base/str.h"
#include "proto/ip.h"

#define TLS_HELLO_MAX (16 * 1024) /* a hello with post-quantum keys is 2 KiB */

enum tls_hello {
    TLS_HELLO_MORE,    /* not complete yet */
    TLS_HELLO_NAMED,   /* *ret is the name, in canonical form */
    TLS_HELLO_UNNAMED, /* it has no server name */
    TLS_HELLO_NOT,     /* not a hello, or an ambiguous one */
};
/* in: everything from the connection's start. */
enum tls_hello tls_hello_name(struct str in, char ret[static HOST_NAME_MAX_LEN + 1]);
