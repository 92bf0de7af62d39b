/* metric: counters, gauges and histograms, printed as Prometheus text.
 * A metric is a static struct, registered once by metric_add; a family with labels is one metric
 * per label set, made with metric_child.  Thread: any (relaxed atomics); registering: the loop's.
 */
#pragma once

#include "base/buf.h"

#include <stdatomic.h>

enum metric_kind { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

#define METRIC_BUCKETS 12

struct metric_bounds { /* of a histogram's buckets, in ns, rising; one more has the rest */
    size_t n;          /* at most METRIC_BUCKETS - 1 */
    int64_t ns[METRIC_BUCKETS - 1];
};

struct metric {
    const char *name; /* "holt_http_requests_total" */
    const char *help;
    enum metric_kind kind;
    char *labels;          /* `method="GET",code="200"`, or NULL */
    _Atomic int64_t value; /* counter, gauge; for a histogram the sum in ns */
    _Atomic int64_t buckets[METRIC_BUCKETS];
    const struct metric_bounds *bounds; /* histogram; NULL: 50 µs, 100 µs, 250 µs … 10 s */
    struct metric *next;
};

void metric_add(struct metric *m); /* adding twice is harmless */
/* The member of m's family with these labels, made on first use and never freed.  The caller bounds
 * the number of label sets. */
struct metric *metric_child(struct metric *m, const char *labels);
void metric_inc(struct metric *m, int64_t by);
void metric_set(struct metric *m, int64_t value);
void metric_observe(struct metric *m, int64_t ns);
int64_t metric_value(const struct metric *m);
void metric_print(struct buf *to);
/* A histogram under another name, its times divided by unit_ns: 1e9 for seconds. */
void metric_print_as(struct buf *to, const struct metric *m, const char *name, const char *help,
                     double unit_ns);
