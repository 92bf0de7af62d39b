/* port: input of the reverse proxy to a server inside a sandbox. */
#pragma once

#include "ops/op.h"

struct port_proxy_in {
    struct str id, port, path; /* path: as sent, without its first slash */
};

extern const struct op op_port_proxy;
