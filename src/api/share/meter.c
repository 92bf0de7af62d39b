/* meter: what all running sandboxes use, for lists and live charts. */
#include "api/share/meter.h"

#include "api/share/revocable_stream.h"
#include "api/share/sandbox.h"
#include "base/clock.h"
#include "base/mem.h"
#include "net/sse.h"

#include <stdlib.h>
#include <string.h>

#define ROUND_MS 2000
#define KEEPALIVE_MS 15000

struct sample {
    char id[ID_SIZE];
    struct driver_stats stats;
    bool changed; /* since the round before */
};

struct round { /* in order of id */
    struct sample *v;
    size_t count, size;
    int64_t at_ms;
};

struct meter {
    struct api *api;
    struct list watchers;
    struct round now, before;
    char at[ID_SIZE]; /* the sandbox that is measured */
    int64_t begun_ms; /* of the last round, monotonic */
    bool measuring, stopped;
};

/* A request that waits for a round, or a stream of them: in the exchange's arena. */
struct watcher {
    struct list link;
    struct meter *meter;
    struct request *r;
    struct principal who;
    struct waiter waiter; /* of a single reply */
    struct sse *sse;      /* of a stream */
    struct revocable_stream live;
    bool begun;   /* it has had a whole round */
    bool blocked; /* its client does not read: rounds are left out until it does */
};

static int by_id(const void *a, const void *b)
{
    const struct sample *x = a, *y = b;

    return strcmp(x->id, y->id);
}

static const struct sample *find(const struct round *all, const char *id)
{
    struct sample key;

    if (all->count == 0)
        return NULL;
    (void)snprintf(key.id, sizeof key.id, "%s", id);
    return bsearch(&key, all->v, all->count, sizeof *all->v, by_id);
}

static void keep(struct meter *m, const struct driver_stats *s)
{
    struct round *all = &m->now;
    const struct sample *before = find(&m->before, m->at);
    struct sample *to;

    if (all->count == all->size) {
        all->size = all->size ? 2 * all->size : 16;
        all->v = xrealloc(all->v, all->size * sizeof *all->v);
    }
    to = &all->v[all->count++];
    *to = (struct sample){.stats = *s};
    (void)snprintf(to->id, sizeof to->id, "%s", m->at);
    to->changed = !before || memcmp(&before->stats, s, sizeof *s) != 0;
}

/* --- what watchers get --- */

void meter_write_stats(struct jw *w, const char *id, const struct driver_stats *s)
{
    jw_kc(w, "id", id);
    jw_kint(w, "memory_bytes", s->memory_bytes);
    jw_kint(w, "memory_peak_bytes", s->memory_peak_bytes);
    jw_kint(w, "cpu_us", s->cpu_us);
    jw_kint(w, "pids", s->pids);
    jw_kint(w, "oom_kills", s->oom_kills);
    jw_kint(w, "disk_bytes", s->disk_bytes);
    jw_kint(w, "net_rx_bytes", s->net_rx_bytes);
    jw_kint(w, "net_tx_bytes", s->net_tx_bytes);
}

/* The caller's sandboxes are found anew each time: it may have lost one, or gained one. */
static void write_round(struct jw *w, const struct watcher *to, bool all)
{
    const struct meter *m = to->meter;
    const struct sample *s;
    struct sandbox_info i;
    char at[ID_SIZE] = "";
    struct sandbox *box;

    jw_array(w);
    while ((box = sandbox_next(m->api->c.sandboxes, &to->who, str_of(at)))) {
        sandbox_info(box, &i);
        (void)snprintf(at, sizeof at, "%s", i.id);
        s = find(&m->now, at);
        if (!s || !(all || s->changed))
            continue;
        jw_object(w);
        meter_write_stats(w, s->id, &s->stats);
        jw_object_end(w);
    }
    jw_array_end(w);
}

static void send_reply(struct watcher *to)
{
    struct request *r = waiter_end(&to->waiter);
    struct jw w = request_json(r);

    list_unlink(&to->link);
    jw_object(&w);
    jw_key(&w, "stats");
    write_round(&w, to, true);
    jw_kc(&w, "cursor", NULL);
    jw_object_end(&w);
    request_send_json(r, 0);
}

static void send_event(struct watcher *to)
{
    AUTO(buf_done) struct buf json = {0};
    struct jw w = {.to = &json};

    if (to->blocked)
        return;
    jw_object(&w);
    jw_ktime(&w, "at", to->meter->now.at_ms);
    jw_kbool(&w, "all", !to->begun);
    jw_key(&w, "stats");
    write_round(&w, to, !to->begun);
    jw_object_end(&w);
    to->begun = true;
    if (sse_send(to->sse, STR(""), STR("stats"), buf_str(&json)))
        to->blocked = true;
}

/* --- rounds --- */

static void meter_next(struct meter *m);

static void box_measured(void *arg, const struct driver_stats *s, const struct err *e)
{
    struct meter *m = arg;

    m->measuring = !m->stopped;
    if (m->stopped) /* the sandboxes are being closed: their last callbacks */
        return;
    if (e->code == ERR_NONE)
        keep(m, s);
    meter_next(m);
}

static void round_over(struct meter *m)
{
    struct watcher *to;

    m->measuring = false;
    m->now.at_ms = clock_wall_ms();
    LIST_EACH (&m->watchers, at) {
        to = LIST_ENTRY(at, struct watcher, link);
        if (to->sse)
            send_event(to);
        else
            send_reply(to);
    }
}

static void meter_next(struct meter *m)
{
    struct sandbox_info i;
    struct sandbox *s;

    while ((s = sandbox_next(m->api->c.sandboxes, &principal_system, str_of(m->at)))) {
        sandbox_info(s, &i);
        (void)snprintf(m->at, sizeof m->at, "%s", i.id);
        if (i.state == SANDBOX_RUNNING || i.state == SANDBOX_PAUSED) {
            sandbox_stats(s, box_measured, m);
            return;
        }
    }
    round_over(m);
}

static void round_begin(struct meter *m)
{
    struct round old = m->before;

    m->before = m->now;
    m->now = (struct round){.v = old.v, .size = old.size};
    m->at[0] = 0;
    m->measuring = true;
    m->begun_ms = clock_mono_ms();
    meter_next(m);
}

void meter_tick(struct api *a)
{
    struct meter *m = a->meter;

    /* Half a second of grace: ticks come about every second. */
    if (m && !m->measuring && !m->stopped && !list_is_empty(&m->watchers) &&
        clock_mono_ms() - m->begun_ms >= ROUND_MS - 500)
        round_begin(m);
}

static struct watcher *watcher_new(struct request *r)
{
    struct watcher *to = arena_zalloc(xchg_arena(r->x), sizeof *to);
    struct meter *m = r->api->meter;

    if (!m) {
        r->api->meter = m = xzalloc(sizeof *m);
        m->api = r->api;
        list_init(&m->watchers);
    }
    to->meter = m;
    to->r = r;
    to->who = request_who(r);
    list_push(&m->watchers, &to->link);
    return to;
}

/* A new watcher does not wait for the next tick. */
static void round_for(struct meter *m)
{
    if (!m->measuring && !m->stopped)
        round_begin(m);
}

static void client_gone(struct waiter *w)
{
    list_unlink(&CONTAINER_OF(w, struct watcher, waiter)->link);
}

static void refuse_stopped(struct request *r)
{
    struct err e = {0};

    err_set(&e, ERR_UNAVAILABLE, 0, "holtd is stopping");
    request_fail(r, &e);
}

void meter_reply(struct request *r)
{
    struct watcher *to;

    if (r->api->meter && r->api->meter->stopped) {
        refuse_stopped(r);
        return;
    }
    to = watcher_new(r);
    to->waiter.gone = client_gone;
    request_wait(r, &to->waiter);
    round_for(to->meter);
}

static void on_sse_drained(struct sse *s)
{
    struct watcher *to = sse_arg(s);

    to->blocked = false;
    to->begun = false; /* it missed changes */
}

static void on_sse_closed(struct sse *s)
{
    struct watcher *to = sse_arg(s);

    revocable_stream_end(&to->live);
    list_unlink(&to->link);
}

static void on_live_end(struct revocable_stream *l, int ws_code, const char *why)
{
    struct watcher *to = CONTAINER_OF(l, struct watcher, live);

    (void)ws_code, (void)why;
    list_unlink(&to->link);
    sse_end(to->sse);
}

void meter_stream(struct request *r)
{
    static const struct sse_ops ops = {.drained = on_sse_drained, .closed = on_sse_closed};
    struct watcher *to = watcher_new(r);

    request_count(r, 200);
    to->sse = sse_start(r->x, KEEPALIVE_MS, &ops, to);
    revocable_stream_begin(&to->live, r, on_live_end);
    round_for(to->meter);
}

void meter_stop(struct api *a)
{
    struct watcher *to;

    if (!a->meter)
        return;
    a->meter->stopped = true;
    LIST_EACH (&a->meter->watchers, at) {
        to = LIST_ENTRY(at, struct watcher, link);
        if (!to->sse) { /* streams are ended with all others */
            list_unlink(at);
            refuse_stopped(waiter_end(&to->waiter));
        }
    }
}

void meter_free(struct api *a)
{
    struct meter *m = a->meter;

    if (!m)
        return;
    assert(m->stopped && !m->measuring && list_is_empty(&m->watchers));
    mem_free(m->now.v);
    mem_free(m->before.v);
    mem_free(m);
}
