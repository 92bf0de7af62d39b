/* metrics: private to src/api: counts of requests, and the output of /metrics. */
#pragma once

#include "api/request.h"

void metrics_start(struct api *a);
/* Counts one answered request; route NULL: none was found.  Labels are operation names and classes
 * of status, so a client cannot make new ones.  ns < 0: a stream, whose duration is not counted. */
void metrics_count(struct api *a, const struct route *route, int status, int64_t ns);
void metrics_run(struct request *r); /* the operation's handler */
void metrics_send_json(struct request *r);
