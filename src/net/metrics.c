/* metrics: the HTTP metrics of src/net. */
#include "net/metrics.h"

struct metric metric_bytes_in = {
    .name = "holt_http_received_bytes_total",
    .help = "Bytes read from connections, before decryption.",
    .kind = METRIC_COUNTER,
};
struct metric metric_bytes_out = {
    .name = "holt_http_sent_bytes_total",
    .help = "Bytes written to connections, after encryption.",
    .kind = METRIC_COUNTER,
};
struct metric metric_connections = {
    .name = "holt_http_connections",
    .help = "Open connections.",
    .kind = METRIC_GAUGE,
};
struct metric metric_refused = {
    .name = "holt_http_refused_connections_total",
    .help = "Connections refused because of a limit.",
    .kind = METRIC_COUNTER,
};
struct metric metric_bad_requests = {
    .name = "holt_http_bad_requests_total",
    .help = "Requests refused by the protocol layer: malformed, too large or too slow.",
    .kind = METRIC_COUNTER,
};
struct metric metric_pending = {
    .name = "holt_http_pending_bytes",
    .help = "Bytes held for clients that have not authenticated yet.",
    .kind = METRIC_GAUGE,
};
struct metric metric_loop_lag = {
    .name = "holt_loop_lag_seconds",
    .help = "Delay of timers of the event loop.",
    .kind = METRIC_HISTOGRAM,
};
struct metric metric_ws = {
    .name = "holt_ws_connections",
    .help = "Open WebSockets.",
    .kind = METRIC_GAUGE,
};
struct metric metric_ws_total = {
    .name = "holt_ws_connections_total",
    .help = "WebSockets that were opened.",
    .kind = METRIC_COUNTER,
};
static struct metric requests = {
    .name = "holt_http_requests_total",
    .help = "Requests answered, by class of status.",
    .kind = METRIC_COUNTER,
};
static struct metric *requests_by_class[6];

void net_metrics_add(void)
{
    static const char *const labels[] = {
        "class=\"none\"", "class=\"1xx\"", "class=\"2xx\"",
        "class=\"3xx\"",  "class=\"4xx\"", "class=\"5xx\"",
    };

    metric_add(&metric_bytes_in);
    metric_add(&metric_bytes_out);
    metric_add(&metric_connections);
    metric_add(&metric_refused);
    metric_add(&metric_bad_requests);
    metric_add(&metric_pending);
    metric_add(&metric_loop_lag);
    metric_add(&metric_ws);
    metric_add(&metric_ws_total);
    metric_add(&requests);
    for (size_t i = 0; i < ARRAY_LEN(labels); i++)
        requests_by_class[i] = metric_child(&requests, labels[i]);
}

void net_metrics_reply(int status)
{
    size_t class = status >= 100 && status < 600 ? (size_t)status / 100 : 0;

    metric_inc(requests_by_class[class], 1);
}
