/* grpc: gRPC calls: the health service, then the dialects' methods. */
#include "api/grpc.h"

#include "api/rpc.h"

static const char *const services[] = {"holt", "sandbox.v1.SandboxService", NULL};

static enum health_state ask_health(const char *service, void *arg)
{
    const struct api *a = arg;
    bool known = service[0] == '\0';
    struct err e = {0};

    for (size_t i = 0; services[i]; i++)
        known = known || strcmp(service, services[i]) == 0;
    if (!known)
        return HEALTH_NO_SUCH_SERVICE;
    return store_is_healthy(a->c.store, &e) ? HEALTH_SERVING : HEALTH_NOT_SERVING;
}

struct health *api_health_new(struct api *a)
{
    return health_new(ask_health, services, a);
}

/* The health service needs no token, like /healthz: a load balancer has none. */
void api_grpc(struct request *r)
{
    const struct grpc_method *health =
        grpc_find(health_grpc, health_grpc_count, xchg_req(r->x)->path);

    if (health)
        grpc_start(r->x, health, r->api->health);
    else
        rpc_grpc(r);
}
