/* port: inputs of the ways to a server inside a sandbox. */
#pragma once

#include "ops/op.h"

struct port_proxy_in {
    struct str id, port, path; /* path: as sent, without its first slash */
};

struct port_tunnel_in {
    struct str id, port;
};

extern const struct op op_port_proxy, op_port_tunnel;
