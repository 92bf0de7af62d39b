/* listeners: the sockets in a sandbox's network on which holt-egress accepts its connections.  The
 * callee of a call with them owns the descriptors. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define EGRESS_LISTENERS 4

struct egress_listeners {
    uint32_t kinds; /* bits 1 << enum spawn_listener (wire/spawn.h): one descriptor each */
    int fds[EGRESS_LISTENERS];
    size_t n;
};
