/* tls_hello: the server name that a TLS client asks for, read from its first bytes (RFC 8446
 * section 4.1.2, RFC 6066 section 3).  No I/O.  Splitting the input anywhere changes nothing. */
#pragma once

#include "base/str.h"
#include "proto/ip.h"

#define TLS_HELLO_MAX (16 * 1024) /* a hello with post-quantum keys is 2 KiB */

enum tls_hello {
    TLS_HELLO_MORE,    /* it is not complete */
    TLS_HELLO_NAMED,   /* *ret is the name, in its one form */
    TLS_HELLO_UNNAMED, /* it names nobody */
    TLS_HELLO_NOT,     /* it is no hello, or one that says two things */
};
/* in: everything from the connection's start. */
enum tls_hello tls_hello_name(struct str in, char ret[static HOST_NAME_MAX_LEN + 1]);
