/* health: the standard gRPC health service (grpc.health.v1): Check, List, Watch.
 * Ownership: health_free ends the watches that are still open.  Thread: the loop's. */
#pragma once

#include "net/grpc.h"

struct health;

enum health_state { HEALTH_NO_SUCH_SERVICE, HEALTH_SERVING, HEALTH_NOT_SERVING };

/* service "" is the whole server. */
typedef enum health_state (*health_ask)(const char *service, void *arg);

/* services: NULL-terminated, for List; "" need not be among them. */
struct health *health_new(health_ask ask, const char *const *services, void *arg);
void health_free(struct health *h);        /* takes NULL */
void health_end_watches(struct health *h); /* with UNAVAILABLE: the server is shutting down */
void health_changed(struct health *h);     /* asks again and notifies watchers of changes */

extern const struct grpc_method health_grpc[]; /* arg: the struct health */
extern const size_t health_grpc_count;
