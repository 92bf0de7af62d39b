/* reflection: the standard gRPC service that tells clients which services there are and what their
 * messages look like (grpc.reflection.v1 and v1alpha), from the tables that the build printed. */
#pragma once

#include "api/rpc.h"

extern const struct rpc_method reflection_rpcs[];
extern const size_t reflection_rpc_count;
