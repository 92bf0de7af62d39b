/* pool: how many sandboxes to make ahead, and of which kind. */
#include "core/sandbox/pool.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/metric.h"

#include <stdio.h>

#define SECONDS 60      /* seconds that count */
#define KINDS 8         /* kinds that are distinguished; the least requested makes room */
#define AUTOSIZE_MAX 10 /* if none is set */

struct history { /* creates by the second */
    struct {
        int64_t second;
        int64_t n;
    } at[SECONDS];
};

struct kind {
    struct history history;
    int64_t last_ms; /* 0: free */
    struct sandbox_limits limits;
    struct str *layers; /* one allocation with its texts */
    size_t layer_count;
};

struct pool {
    struct pool_config c;
    struct driver *d;
    bool is_default, asking;
    int64_t reserved; /* for templates */
    bool heard; /* the runtime has replied; it may have some that an earlier holtd requested */
    struct history history;
    struct kind kinds[KINDS];
    int64_t told; /* the size last sent to the runtime */
    struct pool_counts counts;
    struct metric *size, *ready, *claims, *misses, *broken;
};

static struct metric size_metric = {.name = "holt_pool_size",
                                    .help = "Spare sandboxes that a runtime should keep ready.",
                                    .kind = METRIC_GAUGE};
static struct metric ready_metric = {
    .name = "holt_pool_ready", .help = "Sandboxes that are ready.", .kind = METRIC_GAUGE};
static struct metric claims_metric = {.name = "holt_pool_claims_total",
                                      .help = "Creates that used a spare sandbox.",
                                      .kind = METRIC_COUNTER};
static struct metric misses_metric = {
    .name = "holt_pool_misses_total",
    .help = "Creates for which no spare sandbox was ready or suitable.",
    .kind = METRIC_COUNTER};
static struct metric broken_metric = {.name = "holt_pool_broken_total",
                                      .help = "Spare sandboxes that ended before they were used.",
                                      .kind = METRIC_COUNTER};

/* --- the number --- */

static void history_add(struct history *h, int64_t ms)
{
    int64_t second = ms / 1000;
    size_t i = (size_t)(second % SECONDS);

    if (h->at[i].second > second)
        return; /* older than what counts */
    if (h->at[i].second < second)
        h->at[i].n = 0;
    h->at[i].second = second;
    h->at[i].n++;
}

static int64_t history_count(const struct history *h, int64_t now_ms)
{
    int64_t since = now_ms / 1000 - SECONDS, n = 0;

    for (size_t i = 0; i < SECONDS; i++)
        if (h->at[i].second > since)
            n += h->at[i].n;
    return n;
}

int64_t pool_desired(const struct pool *p, int64_t now_ms)
{
    int64_t creates = history_count(&p->history, now_ms);
    int64_t max = p->c.max > 0 ? p->c.max : i64_max(AUTOSIZE_MAX, p->c.min);

    if (!p->d->ops->pool)
        return 0;
    if (!p->is_default && creates == 0)
        return p->reserved;
    return p->reserved + (p->c.autosize ? i64_min(i64_max(creates, p->c.min), max) : p->c.size);
}

void pool_reserve(struct pool *p, int64_t n)
{
    p->reserved = n;
}

/* --- the kind --- */

static bool is_same(const struct kind *k, const struct driver_kind *as)
{
    if (k->last_ms == 0 || k->layer_count != as->layer_count ||
        memcmp(&k->limits, &as->limits, sizeof k->limits) != 0)
        return false;
    for (size_t i = 0; i < k->layer_count; i++)
        if (!str_eq(k->layers[i], as->layers[i]))
            return false;
    return true;
}

static struct str *copy_layers(const struct driver_kind *from)
{
    size_t bytes = from->layer_count * sizeof(struct str);
    struct str *to;
    char *text;

    for (size_t i = 0; i < from->layer_count; i++)
        bytes += from->layers[i].n;
    to = xmalloc(bytes + 1);
    text = (char *)(to + from->layer_count);
    for (size_t i = 0; i < from->layer_count; i++) {
        memcpy(text, from->layers[i].p, from->layers[i].n);
        to[i] = str_make(text, from->layers[i].n);
        text += from->layers[i].n;
    }
    return to;
}

static struct kind *find_kind(struct pool *p, const struct driver_kind *as)
{
    struct kind *oldest = &p->kinds[0];

    for (size_t i = 0; i < KINDS; i++) {
        if (is_same(&p->kinds[i], as))
            return &p->kinds[i];
        if (p->kinds[i].last_ms < oldest->last_ms)
            oldest = &p->kinds[i];
    }
    mem_free(oldest->layers);
    *oldest = (struct kind){
        .limits = as->limits, .layers = copy_layers(as), .layer_count = as->layer_count};
    return oldest;
}

/* The kind most requested in the last minute; among equals the latest.  If none: the plainest. */
static struct driver_kind best_kind(const struct pool *p, int64_t now_ms)
{
    static const struct kind plain;
    const struct kind *best = &plain;
    int64_t most = 0;

    for (size_t i = 0; i < KINDS; i++) {
        const struct kind *k = &p->kinds[i];
        int64_t n = history_count(&k->history, now_ms);

        if (k->last_ms == 0 || n < most || (n == most && k->last_ms < best->last_ms))
            continue;
        best = k;
        most = n;
    }
    return (struct driver_kind){best->layers, best->layer_count, best->limits};
}

/* --- events --- */

struct pool *pool_new(const struct pool_config *c, struct driver *d, bool is_default)
{
    struct pool *p = xzalloc(sizeof *p);
    char label[64];

    *p = (struct pool){.c = *c, .d = d, .is_default = is_default};
    (void)snprintf(label, sizeof label, "runtime=\"%s\"", d->ops->name);
    p->size = metric_child(&size_metric, label);
    p->ready = metric_child(&ready_metric, label);
    p->claims = metric_child(&claims_metric, label);
    p->misses = metric_child(&misses_metric, label);
    p->broken = metric_child(&broken_metric, label);
    return p;
}

void pool_configure(struct pool *p, const struct pool_config *c)
{
    p->c = *c;
}

struct pool *pool_free(struct pool *p)
{
    for (size_t i = 0; p && i < KINDS; i++)
        mem_free(p->kinds[i].layers);
    mem_free(p);
    return NULL;
}

void pool_seed(struct pool *p, int64_t then_ms)
{
    history_add(&p->history, then_ms);
}

void pool_created(struct pool *p, const struct driver_kind *kind, bool warm, int64_t now_ms)
{
    struct kind *k = find_kind(p, kind);

    history_add(&p->history, now_ms);
    history_add(&k->history, now_ms);
    k->last_ms = now_ms;
    if (p->told == 0 && !warm)
        return; /* it was not requested */
    *(warm ? &p->counts.claims : &p->counts.misses) += 1;
    metric_inc(warm ? p->claims : p->misses, 1);
}

static void pool_counted(void *arg, const struct driver_pooled *r, const struct err *e)
{
    struct pool *p = arg;

    p->asking = false;
    if (e->code != ERR_NONE)
        return; /* requested again with the next tick */
    p->heard = true;
    p->counts.ready = r->ready;
    metric_set(p->ready, r->ready);
    metric_set(p->broken, r->broken);
    p->counts.broken = r->broken;
}

void pool_tick(struct pool *p, int64_t now_ms)
{
    struct driver_want want = {.size = (uint32_t)pool_desired(p, now_ms)};

    p->counts.desired = want.size;
    metric_set(p->size, want.size);
    if (p->asking || !p->d->ops->pool ||
        (want.size == 0 && p->told == 0 && p->counts.ready == 0 && p->heard))
        return;
    want.kind = best_kind(p, now_ms);
    p->asking = true;
    p->told = want.size;
    p->d->ops->pool(p->d, &want, pool_counted, p);
}

void pool_count(const struct pool *p, struct pool_counts *to)
{
    to->desired += p->counts.desired;
    to->ready += p->counts.ready;
    to->claims += p->counts.claims;
    to->misses += p->counts.misses;
    to->broken += p->counts.broken;
}
