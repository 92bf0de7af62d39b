/* dns: a DNS server that answers locally and sends no query (RFC 1035): every valid name has one
 * made-up IPv4 address and no data of other types.  No I/O, no allocation. */
#pragma once

#include "base/str.h"
#include "proto/ip.h"

#define DNS_MESSAGE_MAX 512 /* size of a reply: question and one record always fit */

/* The IPv4 address assigned to a name in canonical form. */
typedef uint32_t (*dns_address)(void *arg, const char *name);

/* Writes the reply to a query; 0: send none (too short, or not a query).  `to` has DNS_MESSAGE_MAX
 * bytes. */
size_t dns_answer(struct str query, dns_address address, void *arg, uint8_t *to);
