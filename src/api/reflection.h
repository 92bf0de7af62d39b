/* reflection: the standard gRPC service that describes services and their messages to clients
 * (grpc.reflection.v1 and v1alpha), from the tables printed by the build. */
#pragma once

#include "api/rpc.h"

extern const struct rpc_method reflection_rpcs[];
extern const size_t reflection_rpc_count;
