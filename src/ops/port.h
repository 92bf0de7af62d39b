/* port: inputs of the operations on servers inside a sandbox. */
#pragma once

#include "ops/op.h"

struct port_proxy_in {
    struct str id, port, path; /* path: as sent, without its first slash */
};

struct port_tunnel_in {
    struct str id, port;
};

struct port_preview_in {
    struct str id;
    int64_t port;
};

#define OP_PREVIEW_COOKIE "holt_preview" /* on a preview's own origin */

extern const struct op op_port_proxy, op_port_tunnel, op_port_preview;
