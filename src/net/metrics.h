/* metrics: what src/net counts, all of holt_http_*.  Thread: the loop's. */
#pragma once

#include "base/metric.h"

extern struct metric metric_bytes_in, metric_bytes_out, metric_connections, metric_refused,
    metric_bad_requests, metric_pending, metric_loop_lag;
void net_metrics_add(void); /* registers them; again is harmless */
void net_metrics_reply(int status);
