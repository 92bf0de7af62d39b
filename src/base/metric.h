/* metric: counters, gauges and histograms, printed as Prometheus text.
 * A metric is a static struct, registered once by metric_add; a family with labels is one metric
 * per label set, made with metric_child.  Thread: any (relaxed atomics); registering: the loop's.
 */
#pragma once

#include "base/buf.h"

#include <stdatomic.h>

enum metric_kind { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

#define METRIC_BUCKETS 12

struct metric {
    const char *name; /* "holt_http_requests_total" */
    const char *help;
    enum metric_kind kind;
    char *labels;                            /* `method="GET",code="200"`, or NULL */
    _Atomic int64_t value;                   /* counter, gauge; for a histogram the sum in ns */
    _Atomic int64_t buckets[METRIC_BUCKETS]; /* histogram: 50 µs, 100 µs, 250 µs … 10 s, +Inf */
    struct metric *next;
};

void metric_add(struct metric *m); /* adding twice is harmless */
/* The member of m's family with these labels, made on first use and never freed.  The caller bounds
 * the number of label sets. */
struct metric *metric_child(struct metric *m, const char *labels);
void metric_inc(struct metric *m, int64_t by);
void metric_set(struct metric *m, int64_t value);
void metric_observe(struct metric *m, int64_t ns);
void metric_print(struct buf *to);
