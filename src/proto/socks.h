/* socks: the requests of SOCKS5 (RFC 1928) with no authentication and CONNECT only.  No I/O. */
#pragma once

#include "base/str.h"
#include "proto/ip.h"

enum socks_code { /* codes of a reply */
                  SOCKS_OK = 0,
                  SOCKS_FAILED = 1,
                  SOCKS_DENIED = 2,
                  SOCKS_UNREACHABLE = 4,
                  SOCKS_REFUSED = 5,
                  SOCKS_NO_COMMAND = 7,
                  SOCKS_NO_ADDRESS = 8,
};
#define SOCKS_REPLY 10

/* Both return the number of bytes used, 0: more are needed, -1: malformed.  *ret_ok: the client
 * offers "no authentication". */
CHECKED int socks_greeting(struct str in, bool *ret_ok);
/* *ret_code: SOCKS_OK, or why the request is refused. */
CHECKED int socks_request(struct str in, struct host *ret_host, unsigned *ret_port,
                          enum socks_code *ret_code);
void socks_reply(enum socks_code code, uint8_t to[static SOCKS_REPLY]);
