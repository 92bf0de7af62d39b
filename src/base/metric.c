/* metric: registers counters, gauges and histograms and prints them as Prometheus text. */
#include "base/metric.h"

#include "base/mem.h"

static struct metric *families; /* children follow their family in the list */

static const struct metric_bounds usual_bounds = {
    11,
    {50000, 100000, 250000, 1000000, 2500000, 10000000, 25000000, 100000000, 500000000, 2500000000,
     10000000000},
};

static const struct metric_bounds *bounds_of(const struct metric *m)
{
    return m->bounds ? m->bounds : &usual_bounds;
}

void metric_add(struct metric *m)
{
    struct metric **at = &families;

    for (; *at; at = &(*at)->next)
        if (*at == m)
            return;
    *at = m;
}

struct metric *metric_child(struct metric *m, const char *labels)
{
    struct metric *c;

    metric_add(m);
    for (c = m; c && strcmp(c->name, m->name) == 0; c = c->next)
        if (c->labels && strcmp(c->labels, labels) == 0)
            return c;
    c = xzalloc(sizeof *c);
    c->name = m->name;
    c->help = m->help;
    c->kind = m->kind;
    c->bounds = m->bounds;
    c->labels = xstrdup(labels);
    c->next = m->next;
    m->next = c;
    return c;
}

void metric_inc(struct metric *m, int64_t by)
{
    atomic_fetch_add_explicit(&m->value, by, memory_order_relaxed);
}

void metric_set(struct metric *m, int64_t value)
{
    atomic_store_explicit(&m->value, value, memory_order_relaxed);
}

int64_t metric_value(const struct metric *m)
{
    return atomic_load_explicit(&m->value, memory_order_relaxed);
}

void metric_observe(struct metric *m, int64_t ns)
{
    const struct metric_bounds *b = bounds_of(m);
    size_t i = 0;

    while (i < b->n && ns > b->ns[i])
        i++;
    atomic_fetch_add_explicit(&m->buckets[i], 1, memory_order_relaxed);
    metric_inc(m, ns);
}

static void print_histogram(struct buf *to, const struct metric *m, const char *name, double unit)
{
    const char *labels = m->labels ? m->labels : "", *comma = m->labels ? "," : "";
    const char *open = m->labels ? "{" : "", *shut = m->labels ? "}" : "";
    const struct metric_bounds *b = bounds_of(m);
    int64_t total = 0;

    for (size_t i = 0; i <= b->n; i++) {
        total += atomic_load_explicit(&m->buckets[i], memory_order_relaxed);
        buf_printf(to, "%s_bucket{%s%sle=\"", name, labels, comma);
        if (i < b->n)
            buf_printf(to, "%g", (double)b->ns[i] / unit);
        else
            buf_add_c(to, "+Inf");
        buf_printf(to, "\"} %lld\n", (long long)total);
    }
    buf_printf(to, "%s_sum%s%s%s %.9f\n", name, open, labels, shut, (double)metric_value(m) / unit);
    buf_printf(to, "%s_count%s%s%s %lld\n", name, open, labels, shut, (long long)total);
}

void metric_print_as(struct buf *to, const struct metric *m, const char *name, const char *help,
                     double unit_ns)
{
    buf_printf(to, "# HELP %s %s\n# TYPE %s histogram\n", name, help, name);
    print_histogram(to, m, name, unit_ns);
}

void metric_print(struct buf *to)
{
    static const char *const kinds[] = {"counter", "gauge", "histogram"};
    const char *family = "";

    for (struct metric *m = families; m; m = m->next) {
        if (strcmp(family, m->name) != 0)
            buf_printf(to, "# HELP %s %s\n# TYPE %s %s\n", m->name, m->help, m->name,
                       kinds[m->kind]);
        family = m->name;
        if (!m->labels && m->next && m->next->labels && strcmp(m->next->name, m->name) == 0)
            continue; /* the family itself; its children hold the values */
        if (m->kind == METRIC_HISTOGRAM)
            print_histogram(to, m, m->name, 1e9);
        else
            buf_printf(to, "%s%s%s%s %lld\n", m->name, m->labels ? "{" : "",
                       m->labels ? m->labels : "", m->labels ? "}" : "",
                       (long long)metric_value(m));
    }
}
