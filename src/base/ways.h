/* ways: a network without an interface (docs/egress.md): every address is local (a default route of
 * the kind "local" on lo), and every TCP connection to another address than the sandbox's own is
 * redirected to one port.  Used by holt-spawn in a sandbox's network namespace, and by holt-init
 * where it has a kernel of its own.  The caller needs CAP_NET_ADMIN there.  Errors: -1 with *e set;
 * ways_listen: -errno. */
#pragma once

#include "base/err.h"

#include <stdint.h>
#include <sys/socket.h>

/* 100.64.0.2: AI_ADDRCONFIG of getaddrinfo(3) requires one that is not loopback */
#define WAYS_OWN_ADDRESS 0x64400002u

CHECKED int ways_make(uint16_t port, struct err *e);
bool ways_has_ipv6(void);
/* A socket on a port of all addresses: SOCK_STREAM, or SOCK_DGRAM with IP_PKTINFO, because replies
 * must come from the address that was asked. */
CHECKED int ways_listen(int family, int type, uint16_t port);
/* Where a redirected connection was meant to go; false: to the listener itself. */
bool ways_original(int fd, bool v6, struct sockaddr_storage *ret);
