/* sha1: FIPS 180-4's SHA-1, for the WebSocket handshake alone (RFC 6455 §4.2.2), where it proves
 * only that the peer speaks WebSocket.  Not OpenSSL's: that takes a millisecond to set up, more
 * than the rest of the command line's start. */
#pragma once

#include "base/str.h"

#define SHA1_SIZE 20
void sha1(struct str data, unsigned char to[SHA1_SIZE]);
