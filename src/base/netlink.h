/* netlink: messages built by hand and sent as one batch (netlink(7)), so that holt-spawn needs no
 * library for routes and rules.  One batch, fixed memory.  Errors: -errno. */
#pragma once

#include "base/macro.h"

#include <linux/netlink.h>

#define NETLINK_BATCH 8192

struct nl_batch {
    uint32_t seq;
    uint32_t acks; /* number of messages that requested one */
    size_t n;
    size_t message; /* offset of the last one */
    bool full;
    _Alignas(struct nlmsghdr) uint8_t bytes[NETLINK_BATCH];
};

/* Begins a message; head: the part after the netlink header. */
void nl_begin(struct nl_batch *b, uint16_t type, uint16_t flags, const void *head, size_t n);
void nl_raw(struct nl_batch *b, const void *p, size_t n); /* a head within an attribute */
void nl_attr(struct nl_batch *b, uint16_t type, const void *p, size_t n);
void nl_attr_text(struct nl_batch *b, uint16_t type, const char *text); /* with its NUL */
void nl_attr_be32(struct nl_batch *b, uint16_t type, uint32_t v);
size_t nl_nest(struct nl_batch *b, uint16_t type); /* for nl_nest_end */
void nl_nest_end(struct nl_batch *b, size_t at);
/* Sends all and waits for every reply: the kernel writes them before send returns. */
CHECKED int nl_run(struct nl_batch *b, int protocol);
