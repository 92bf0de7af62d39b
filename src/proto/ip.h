/* ip: addresses, networks and host names in the canonical form that policies use.
 * An IPv4-mapped IPv6 address is the IPv4 address; a name is lower case, without its last
 * dot.  Other forms that the C library accepts as an address (octal, hex, short and whole-number
 * forms) are refused, never guessed at.  Pure functions.  Errors: 0, or -1 with *e set. */
#pragma once

#include "base/err.h"
#include "base/str.h"

#define IP_TEXT 48
#define HOST_NAME_MAX_LEN 253 /* RFC 1035 section 2.3.4, without the last dot */

struct ip {
    uint8_t bytes[16]; /* an IPv4 address is ::ffff:a.b.c.d */
};
struct ip_net {
    struct ip base;
    unsigned bits; /* out of 128 */
};

struct ip ip_v4(uint32_t host_order);
bool ip_is_v4(const struct ip *a);
uint32_t ip_to_v4(const struct ip *a); /* host order; for IPv4 addresses only */
char *ip_text(const struct ip *a, char to[static IP_TEXT]);
/* Dotted decimal with four parts, or IPv6 without brackets and zone. */
bool ip_parse(struct str s, struct ip *ret);
/* "10.0.0.0/8", "2001:db8::/32", or one address; bits after the prefix must be zero. */
CHECKED int ip_net_parse(struct str s, struct ip_net *ret, struct err *e);
bool ip_net_has(const struct ip_net *n, const struct ip *a);
/* Why traffic to it needs a rule ("loopback", "private", …); NULL: it is public. */
const char *ip_special(const struct ip *a);

struct host { /* the destination of a connection */
    bool is_ip;
    struct ip ip;
    char name[HOST_NAME_MAX_LEN + 1]; /* for an address: its text */
};
/* A name, an address, or an address in brackets. */
CHECKED int host_parse(struct str s, struct host *ret, struct err *e);
/* A name only, made canonical; underscores are allowed, as in service names. */
CHECKED int host_name_canonical(struct str s, char to[static HOST_NAME_MAX_LEN + 1], struct err *e);
