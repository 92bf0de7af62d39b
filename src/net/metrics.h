/* metrics: the counters of src/net, named holt_http_*, holt_ws_* and holt_loop_*.  Thread: the
 * loop's. */
#pragma once

#include "base/metric.h"

extern struct metric metric_bytes_in, metric_bytes_out, metric_connections, metric_refused,
    metric_bad_requests, metric_pending, metric_loop_lag, metric_ws, metric_ws_total;
void net_metrics_add(void); /* registers them; calling twice is harmless */
void net_metrics_reply(int status);
