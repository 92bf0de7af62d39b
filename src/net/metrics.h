/* metrics: the counters of src/net, all named holt_http_*.  Thread: the loop's. */
#pragma once

#include "base/metric.h"

extern struct metric metric_bytes_in, metric_bytes_out, metric_connections, metric_refused,
    metric_bad_requests, metric_pending, metric_loop_lag;
void net_metrics_add(void); /* registers them; calling twice is harmless */
void net_metrics_reply(int status);
