/* dns: the answers of a resolver that asks nobody (RFC 1035): every valid name has one made-up IPv4
 * address, other types of it have no data.  No I/O, no allocation. */
#pragma once

#include "base/str.h"
#include "proto/ip.h"

#define DNS_MESSAGE_MAX 512 /* of what we answer: question and one record always fit */

/* The IPv4 address that stands for a name in its one form. */
typedef uint32_t (*dns_address)(void *arg, const char *name);

/* Writes the answer to a query; 0: it deserves none (too short, an answer itself).  to has
 * DNS_MESSAGE_MAX bytes. */
size_t dns_answer(struct str query, dns_address address, void *arg, uint8_t *to);
