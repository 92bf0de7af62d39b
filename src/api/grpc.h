/* grpc: private to src/api: gRPC calls, from path to method, with the same checks as requests. */
#pragma once

#include "api/health.h"
#include "api/request.h"

struct health *api_health_new(struct api *a);
void api_grpc(struct request *r); /* Host was checked already */
