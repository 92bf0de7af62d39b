/* crash: the counting of crashes, and what becomes of a sandbox in a crash loop. */
#include "core/sandbox/crash.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/metric.h"
#include "core/sandbox/sandbox_internal.h"

#include <stdio.h>

static struct metric crashes_metric = {.name = "holt_sandbox_crashes_total",
                                       .help = "Sandboxes whose init ended by itself.",
                                       .kind = METRIC_COUNTER};
static struct metric loops_metric = {.name = "holt_sandbox_crash_loops_total",
                                     .help = "Crash loops that were detected.",
                                     .kind = METRIC_COUNTER};
static struct metric rebuilds_metric = {.name = "holt_sandbox_rebuilds_total",
                                        .help = "Sandboxes that were rebuilt after a crash loop.",
                                        .kind = METRIC_COUNTER};
static struct metric looping_metric = {.name = "holt_sandboxes_crash_loop",
                                       .help = "Sandboxes that are in a crash loop.",
                                       .kind = METRIC_GAUGE};

/* --- counting --- */

const char *crash_state_name(enum crash_state s)
{
    static const char *const names[CRASH_STATES] = {"healthy", "recovering", "crash_loop",
                                                    "failed"};

    return names[s];
}

int64_t crash_recent(const struct sandbox_crashes *c, const struct crash_rules *r, int64_t now_ms)
{
    int64_t from = i64_max(now_ms - r->crash_window_ms, c->counted_ms), n = 0;

    for (int64_t i = 0; i < c->n; i++)
        n += c->v[i].at_ms > from;
    return n;
}

bool crash_add(struct sandbox_crashes *c, const struct crash_rules *r,
               const struct sandbox_crash *now)
{
    if (c->n == CRASHES_KEPT) {
        memmove(c->v, c->v + 1, (CRASHES_KEPT - 1) * sizeof *c->v);
        c->n--;
    }
    c->v[c->n++] = *now;
    c->total++;
    if (r->crash_count == 0 || c->loop_ms > 0 || now->uptime_ms >= r->crash_uptime_ms ||
        crash_recent(c, r, now->at_ms) < i64_min(r->crash_count, CRASHES_KEPT))
        return false;
    c->loop_ms = now->at_ms;
    if (c->rebuilds < r->crash_rebuilds)
        c->rebuild_at_ms = now->at_ms + r->crash_cooldown_ms;
    else
        c->given_up = r->crash_rebuilds > 0;
    return true;
}

void crash_forgive(struct sandbox_crashes *c, int64_t now_ms)
{
    c->counted_ms = now_ms;
    c->loop_ms = c->rebuild_at_ms = c->rebuilds = 0;
    c->given_up = false;
}

enum crash_state crash_state(const struct sandbox_crashes *c)
{
    if (c->given_up)
        return CRASH_FAILED;
    if (c->loop_ms > 0)
        return CRASH_LOOP;
    return c->n > 0 && c->v[c->n - 1].at_ms > c->counted_ms ? CRASH_RECOVERING : CRASH_HEALTHY;
}

/* --- of a sandbox --- */

void sandboxes_set_crashes(struct sandboxes *all, const struct crash_rules *r)
{
    all->crash_rules = *r;
    metric_add(&crashes_metric);
    metric_add(&loops_metric);
    metric_add(&rebuilds_metric);
    metric_add(&looping_metric);
}

void sandbox_crashes(const struct sandbox *s, struct sandbox_crashes *ret)
{
    *ret = s->crashes;
}

/* Before the save that stores the failure. */
void sandbox_crashed(struct sandbox *s, const char *why)
{
    const struct crash_rules *r = &s->all->crash_rules;
    struct sandbox_crash c = {.at_ms = clock_wall_ms(), .uptime_ms = -1};

    if (s->traits.one_shot || (s->driver && (s->driver->ops->caps & DRIVER_JOINS)))
        return;
    if (s->started_ms > 0)
        c.uptime_ms = i64_max(c.at_ms - s->started_ms, 0);
    (void)snprintf(c.why, sizeof c.why, "%s", why);
    metric_inc(&crashes_metric, 1);
    if (!crash_add(&s->crashes, r, &c))
        return;
    metric_inc(&loops_metric, 1);
    log_warn("a sandbox is in a crash loop", LOG_C("id", s->id),
             LOG_N("crashes", crash_recent(&s->crashes, r, c.at_ms)),
             LOG_C("state", crash_state_name(crash_state(&s->crashes))));
    sandbox_owe(s, s->crashes.given_up ? "sandbox.crash_loop_failed" : "sandbox.crash_loop");
}

int sandbox_may_start(const struct sandbox *s, struct err *e)
{
    const struct sandbox_crashes *c = &s->crashes;

    if (c->loop_ms == 0)
        return 0;
    (void)err_set(e, ERR_CONFLICT, 0, "start sandbox '%s': it is in a crash loop (%s)", s->id,
                  c->v[c->n - 1].why);
    (void)err_hint(e, "holt crashes %s; then holt crash-reset or holt reprovision", s->id);
    return err_object(e, "sandbox", s->id);
}

void sandbox_crash_reset(struct sandbox *s, const struct principal *by, sandbox_cb done, void *arg)
{
    crash_forgive(&s->crashes, clock_wall_ms());
    sandbox_owe(s, "sandbox.crash_reset");
    sandbox_changed(s, by, done, arg);
}

/* --- time --- */

static void rebuilt(void *arg, struct sandbox *made, const struct err *e)
{
    AUTO(sandbox_unref) struct sandbox *s = arg;
    const struct crash_rules *r = &s->all->crash_rules;
    struct sandbox_crashes *c = &s->crashes;

    if (s->all->closed)
        return;
    if (made) {
        metric_inc(&rebuilds_metric, 1);
        sandbox_owe(s, "sandbox.rebuilt");
    } else { /* it is in the loop again */
        log_warn("a sandbox could not be rebuilt", LOG_C("id", s->id), LOG_E(e));
        c->loop_ms = clock_wall_ms();
        c->given_up = c->rebuilds >= r->crash_rebuilds;
        c->rebuild_at_ms = c->given_up ? 0 : c->loop_ms + r->crash_cooldown_ms;
        if (c->given_up)
            sandbox_owe(s, "sandbox.crash_loop_failed");
    }
    sandbox_save(s, NULL);
}

/* The number of rebuilds stays: it ends with health, or with a person. */
static void rebuild(struct sandbox *s)
{
    struct sandbox_crashes *c = &s->crashes;
    int64_t done = c->rebuilds + 1;

    crash_forgive(c, clock_wall_ms());
    c->rebuilds = done;
    log_info("a sandbox is rebuilt after a crash loop", LOG_C("id", s->id), LOG_N("rebuild", done));
    sandbox_reprovision(s, NULL, rebuilt, sandbox_ref(s));
}

static bool is_due(const struct sandbox *s, int64_t now)
{
    return s->crashes.rebuild_at_ms > 0 && now >= s->crashes.rebuild_at_ms &&
           s->sm.state == SANDBOX_FAILED && step_is(s, STEP_NONE) && !sandbox_is_leaving(s);
}

static void tick_one(struct sandbox *s, int64_t now)
{
    const struct crash_rules *r = &s->all->crash_rules;
    struct sandbox_crashes *c = &s->crashes;

    if (is_due(s, now)) {
        rebuild(s);
        return;
    }
    if (s->sm.state != SANDBOX_RUNNING || crash_state(c) == CRASH_HEALTHY ||
        now - s->started_ms < r->crash_healthy_ms)
        return;
    crash_forgive(c, now);
    sandbox_save(s, NULL);
}

void sandboxes_crash_tick(struct sandboxes *all, int64_t now)
{
    int64_t looping = 0;

    for (size_t i = all->count; i > 0; i--)
        if (i <= all->count) {
            looping += all->sorted[i - 1]->crashes.loop_ms > 0;
            if (all->sorted[i - 1]->crashes.total > 0)
                tick_one(all->sorted[i - 1], now);
        }
    metric_set(&looping_metric, looping);
}

/* --- the row --- */

void sandbox_put_crashes(struct jw *w, const struct sandbox *s)
{
    const struct sandbox_crashes *c = &s->crashes;

    jw_key(w, "crashes");
    jw_object(w);
    jw_kint(w, "total", c->total);
    jw_kint(w, "counted_ms", c->counted_ms);
    jw_kint(w, "loop_ms", c->loop_ms);
    jw_kint(w, "rebuild_at_ms", c->rebuild_at_ms);
    jw_kint(w, "rebuilds", c->rebuilds);
    jw_kbool(w, "given_up", c->given_up);
    jw_key(w, "last");
    jw_array(w);
    for (int64_t i = 0; i < c->n; i++) {
        jw_object(w);
        jw_kint(w, "at_ms", c->v[i].at_ms);
        jw_kint(w, "uptime_ms", c->v[i].uptime_ms);
        jw_kc(w, "why", c->v[i].why);
        jw_object_end(w);
    }
    jw_array_end(w);
    jw_object_end(w);
}

static int64_t number(const json_t *o, const char *key)
{
    return json_integer_value(json_object_get(o, key));
}

void sandbox_get_crashes(struct sandbox *s, const json_t *o)
{
    struct sandbox_crashes *c = &s->crashes;
    const json_t *last = json_object_get(o, "last"), *v;
    const char *why;
    size_t i;

    c->total = number(o, "total");
    c->counted_ms = number(o, "counted_ms");
    c->loop_ms = number(o, "loop_ms");
    c->rebuild_at_ms = number(o, "rebuild_at_ms");
    c->rebuilds = number(o, "rebuilds");
    c->given_up = json_is_true(json_object_get(o, "given_up"));
    json_array_foreach(last, i, v)
    {
        if (c->n == CRASHES_KEPT)
            break;
        why = json_string_value(json_object_get(v, "why"));
        c->v[c->n] = (struct sandbox_crash){.at_ms = number(v, "at_ms"),
                                            .uptime_ms = number(v, "uptime_ms")};
        (void)snprintf(c->v[c->n++].why, CRASH_WHY, "%s", why ? why : "");
    }
    if (c->n == 0) /* a loop has its crashes */
        c->loop_ms = 0;
}
