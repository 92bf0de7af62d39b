/* sandbox: the registry of sandboxes, and its start and shutdown. */
#include "core/sandbox/sandbox.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "core/sandbox/sandbox_internal.h"

#include <stdio.h>
#include <sys/wait.h>

#define SANDBOXES_MAX 4096

/* --- small things --- */

struct sandbox_mount *mounts_copy(const struct sandbox_mount *m, size_t n)
{
    size_t bytes = 0;
    struct sandbox_mount *to;
    char *texts;

    for (size_t i = 0; i < n; i++)
        bytes += m[i].kind.n + m[i].source.n + m[i].target.n + 3;
    to = texts_block(m, n, sizeof *m, bytes, &texts);
    for (size_t i = 0; i < n; i++) {
        texts_move(&to[i].kind, &texts);
        texts_move(&to[i].source, &texts);
        texts_move(&to[i].target, &texts);
    }
    return to;
}

/* --- waiting callbacks --- */

void wait_add(struct list *to, sandbox_cb done, void *arg)
{
    struct sandbox_wait *w;

    if (!done)
        return;
    w = xzalloc(sizeof *w);
    w->done = done;
    w->arg = arg;
    list_push(to, &w->link);
}

void wait_tell(struct list *waits, struct sandbox *s, const struct err *e)
{
    struct list mine;
    struct list *node;

    list_init(&mine); /* a callback may request the next step, so the list is moved first */
    while ((node = list_pop(waits)))
        list_push(&mine, node);
    while ((node = list_pop(&mine))) {
        struct sandbox_wait *w = LIST_ENTRY(node, struct sandbox_wait, link);

        w->done(w->arg, e->code == ERR_NONE ? s : NULL, e);
        mem_free(w);
    }
}

struct told_later {
    struct list link; /* in sandboxes->spares */
    struct timer timer;
    struct sandbox *s;
    sandbox_cb done;
    void *arg;
    struct err e;
};

static void tell_now(struct timer *t)
{
    struct told_later *l = CONTAINER_OF(t, struct told_later, timer);

    list_unlink(&l->link);
    l->done(l->arg, l->e.code == ERR_NONE ? l->s : NULL, &l->e);
    sandbox_unref(l->s);
    mem_free(l);
}

void sandbox_tell(struct sandboxes *all, struct sandbox *s, sandbox_cb done, void *arg,
                  const struct err *e)
{
    struct told_later *l;

    if (!done)
        return;
    l = xzalloc(sizeof *l);
    *l = (struct told_later){.s = s ? sandbox_ref(s) : NULL, .done = done, .arg = arg, .e = *e};
    list_push(&all->spares, &l->link);
    timer_set(all->timers, &l->timer, TIMER_SOON, tell_now);
}

static void spares_tell_all(struct sandboxes *all)
{
    while (!list_is_empty(&all->spares)) {
        struct told_later *l = LIST_ENTRY(all->spares.next, struct told_later, link);

        timer_stop(&l->timer);
        tell_now(&l->timer);
    }
}

/* --- one sandbox --- */

struct sandbox *sandbox_new(struct sandboxes *all, const char *id)
{
    struct sandbox *s = xzalloc(sizeof *s);

    s->refs = 1;
    s->all = all;
    all->refs++;
    sandbox_init_states(s);
    (void)snprintf(s->id, sizeof s->id, "%s", id);
    s->commands = all->commands->attach(all->execs, s);
    list_init(&s->waits);
    list_init(&s->destroy_waits);
    list_init(&s->update_waits);
    list_init(&s->owed);
    return s;
}

struct sandbox *sandbox_ref(struct sandbox *s)
{
    assert(s->refs > 0 && thread_is_loop());
    s->refs++;
    return s;
}

static void owed_drop(struct sandbox *s)
{
    struct list *node;

    while ((node = list_pop(&s->owed)))
        mem_free(node); /* the link is the first member */
}

static void texts_free(struct sandbox *s)
{
    char *const texts[] = {s->name,    s->runtime, s->image, s->tenant, s->owner, s->network,
                           s->failure, s->dialect, s->note,  s->agent,  s->host};

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        mem_free(texts[i]);
}

struct sandbox *sandbox_unref(struct sandbox *s)
{
    assert(!s || (s->refs > 0 && thread_is_loop()));
    if (!s || --s->refs > 0)
        return NULL;
    assert(s->refs == 0 && !sandbox_is_listed(s) && !s->guest);
    timer_stop(&s->timer);
    timer_stop(&s->confirm);
    timer_stop(&s->retry);
    owed_drop(s);
    if (s->tx_hook)
        s->tx_hook->free(s->tx_hook_arg);
    texts_free(s);
    mem_free(s->labels);
    mem_free(s->env);
    mem_free(s->mounts);
    mem_free(s->secrets);
    mem_free(s->policy_agent);
    mem_free(s->layers);
    mem_free(s->asked_image);
    mem_free(s->snapshot);
    mem_free(s->forked);
    sandbox_defaults_done(&s->defaults);
    commands_ops(s)->free_one(s->commands);
    sandboxes_unref(s->all);
    mem_free(s);
    return NULL;
}

/* Whether a client's command is running in it. */
bool sandbox_is_busy(const struct sandbox *s)
{
    return s->commands->live > s->commands->standing;
}

void sandbox_touch(struct sandbox *s)
{
    s->last_activity_ms = clock_wall_ms();
}

static struct str text(const char *s)
{
    return str_of(s ? s : "");
}

void sandbox_info(const struct sandbox *s, struct sandbox_info *ret)
{
    struct policy_info own = {0};

    if (s->policy)
        policy_info(s->policy, &own);
    *ret = (struct sandbox_info){
        .id = s->id,
        .name = text(s->name),
        .image = text(s->image),
        .asked_image = text(s->asked_image),
        .runtime = text(s->runtime),
        .host = text(s->host),
        .tenant = text(s->tenant),
        .owner = text(s->owner),
        .network = text(s->network),
        .failure = text(s->failure),
        .state = (enum sandbox_state)s->sm.state,
        .traits = s->traits,
        .enforced = s->enforced,
        .agent = text(s->agent),
        .policy = own.name,
        .path_rules = sandbox_has_path_rules(s),
        .created_ms = s->created_ms,
        .started_ms = s->started_ms,
        .ended_ms = s->ended_ms,
        .last_activity_ms = sandbox_is_busy(s) ? clock_wall_ms() : s->last_activity_ms,
        .labels = s->labels,
        .label_count = s->label_count,
        .mounts = s->mounts,
        .mount_count = s->mount_count,
        .secrets = s->secrets,
        .secret_count = s->secret_count,
        .snapshot = text(s->snapshot),
        .forked_from = text(s->forked),
        .execs_live = (int64_t)s->commands->live,
        .reconnecting = (s->sm.state == SANDBOX_RUNNING || s->sm.state == SANDBOX_PAUSED) &&
                        !sandbox_is_linked(s),
        .orphan = s->orphan,
        .destroying = sandbox_is_leaving(s),
        .warm = s->warm,
        .dialect = text(s->dialect),
        .note = text(s->note),
        .aliases = alias_first(s->all->aliases, str_of(s->id)),
    };
}

struct sandboxes *sandbox_registry(const struct sandbox *s)
{
    return s->all;
}

struct guest *sandbox_guest(struct sandbox *s, struct err *e)
{
    if (sandbox_policy_check(s, e) < 0)
        return NULL;
    if (s->sm.state != SANDBOX_RUNNING && s->sm.state != SANDBOX_PAUSED) {
        err_set(e, ERR_CONFLICT, 0, "sandbox '%s' is %s", s->id, sm_name(&s->sm));
        err_object(e, "sandbox", s->id);
        if (s->sm.state == SANDBOX_STOPPED)
            err_hint(e, "start it: holt start %s", s->id);
        return NULL;
    }
    if (!sandbox_is_linked(s)) {
        err_set(e, ERR_UNAVAILABLE, 0, "holtd is connecting to sandbox '%s' again", s->id);
        err_object(e, "sandbox", s->id);
        err_hint(e, "try again in a moment");
        return NULL;
    }
    sandbox_touch(s);
    return s->guest;
}

/* --- the registry --- */

void sandbox_add(struct sandboxes *all, struct sandbox *s)
{
    sorted_add(SORTED(all, id), s);
    map_set(&all->by_id, str_of(s->id), s);
    sandbox_named(s);
    if (!sandbox_is_leaving(s)) /* as its row says */
        sm_move(&s->presence, PRESENCE_LISTED);
    assert(all->count == all->by_id.count);
}

void sandbox_drop(struct sandbox *s)
{
    struct sandboxes *all = s->all;

    if (!sandbox_is_listed(s))
        return;
    sandbox_release_layers(s);
    s->policy = policy_release(s->policy);
    sorted_remove(SORTED(all, id), s);
    map_remove(&all->by_id, str_of(s->id));
    sandbox_unnamed(s);
    assert(all->count == all->by_id.count);
    sm_move(&s->presence, PRESENCE_GONE);
    timer_stop(&s->confirm);
    link_close(s);
    commands_ops(s)->drop(s->commands);
    sandbox_unref(s);
}

size_t sandboxes_count(const struct sandboxes *all)
{
    return all->count;
}

size_t sandboxes_running(const struct sandboxes *all)
{
    size_t n = 0;

    for (size_t i = 0; i < all->count; i++)
        n += all->sorted[i]->sm.state == SANDBOX_RUNNING;
    return n;
}

/* Of its runtime: one with hosts has several. */
static bool is_first(const struct sandboxes *all, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (all->drivers[k].ops == all->drivers[i].ops && all->drivers[k].driver)
            return false;
    return true;
}

const struct driver_ops *sandboxes_driver(const struct sandboxes *all, size_t n)
{
    for (size_t i = 0; i < all->driver_count; i++)
        if (all->drivers[i].driver && !(all->drivers[i].ops->caps & DRIVER_JOINS) &&
            is_first(all, i) && n-- == 0)
            return all->drivers[i].ops;
    return NULL;
}

static const struct driver_slot *slot_find(const struct sandboxes *all, struct str runtime)
{
    for (size_t i = 0; i < all->driver_count; i++)
        if (all->drivers[i].driver &&
            (runtime.n == 0 || str_eq_c(runtime, all->drivers[i].ops->name)))
            return &all->drivers[i];
    return NULL;
}

void sandboxes_reserve(struct sandboxes *all, struct str runtime, int64_t n)
{
    const struct driver_slot *slot = slot_find(all, runtime);

    if (slot && slot->pool)
        pool_reserve(slot->pool, n);
}

bool sandboxes_makes_ahead(const struct sandboxes *all, struct str runtime)
{
    const struct driver_slot *slot = slot_find(all, runtime);

    return slot && slot->ops->pool;
}

struct volumes *sandboxes_volumes(struct sandboxes *all)
{
    return all->volumes;
}

bool sandboxes_settled(const struct sandboxes *all)
{
    for (size_t i = 0; i < all->driver_count; i++)
        if (all->drivers[i].driver && !all->drivers[i].listed)
            return false;
    return true;
}

/* --- open and close --- */

static void on_init_ended(void *arg, const char *id, int status, bool known)
{
    struct sandboxes *all = arg;
    struct sandbox *s = all->closed ? NULL : map_get(&all->by_id, str_of(id));
    char why[80];

    if (!s)
        return;
    if (!known)
        (void)snprintf(why, sizeof why, "its init ended while holtd was not running");
    else if (WIFSIGNALED(status))
        (void)snprintf(why, sizeof why, "its init was killed by signal %d", WTERMSIG(status));
    else
        (void)snprintf(why, sizeof why, "its init ended with status %d", WEXITSTATUS(status));
    sandbox_init_ended(s, why);
}

static void on_oom(void *arg, const char *id)
{
    struct sandboxes *all = arg;
    struct sandbox *s = all->closed ? NULL : map_get(&all->by_id, str_of(id));

    if (!s)
        return;
    s->oom_ms = clock_wall_ms();
    sandbox_owe(s, "sandbox.oom");
    sandbox_save(s, NULL);
}

static void on_paused(void *arg, const char *id, bool on)
{
    struct sandboxes *all = arg;
    struct sandbox *s = all->closed ? NULL : map_get(&all->by_id, str_of(id));

    if (s)
        sandbox_paused_outside(s, on);
}

static void on_started(void *arg, const char *id)
{
    struct sandboxes *all = arg;
    struct sandbox *s = all->closed ? NULL : map_get(&all->by_id, str_of(id));

    if (s)
        sandbox_started_outside(s);
}

static int open_slot(struct sandboxes *all, const struct driver_ops *ops,
                     const struct driver_host *host, const struct sandboxes_config *from,
                     struct err *e)
{
    static const struct pool_config nothing;
    const struct pool_config *pool = from->pool ? from->pool : &nothing;
    struct driver_slot *slot = &all->drivers[all->driver_count];
    const struct driver_config c = {
        .ops = ops,
        .loop = all->loop,
        .state = all->state,
        .installation = all->installation,
        .bindir = all->bindir,
        .allows = from->allows ? *from->allows : (struct driver_allows){0},
        .host = host,
        .remotes = from->remotes,
        .events = {.init_ended = on_init_ended,
                   .oom = on_oom,
                   .paused = on_paused,
                   .started = on_started,
                   .arg = all},
    };

    if (all->driver_count == SLOTS_MAX)
        return err_set(e, ERR_INTERNAL, 0, "more than %d runtimes and hosts", SLOTS_MAX);
    all->driver_count++;
    *slot = (struct driver_slot){.ops = ops, .all = all, .host = host ? host_new(host) : NULL};
    list_init(&slot->trial_waits);
    if (ops->open(&c, &slot->driver, &slot->why) < 0)
        slot->driver = NULL; /* reported when it is requested */
    else if (from->try_drivers && sandboxes_driver(all, 0) == ops &&
             is_first(all, all->driver_count - 1))
        driver_slot_try(slot);
    if (slot->driver) {
        slot->pool = pool_new(pool, slot->driver, sandboxes_driver(all, 0) == ops);
        return 0;
    }
    if (!slot->why.hint[0])
        (void)err_hint(&slot->why, "holt doctor shows what is missing and how to fix it");
    if (slot->trial == TRIAL_OVER)
        return 0; /* it has said so */
    log_warn("a runtime does not work on this host", LOG_C("runtime", ops->name), LOG_E(&slot->why),
             LOG_C("hint", slot->why.hint));
    return 0;
}

static int open_driver(struct sandboxes *all, const struct driver_ops *ops,
                       const struct sandboxes_config *from, struct err *e)
{
    const struct driver_machines *m = from->allows ? &from->allows->machines : NULL;

    if (!(ops->caps & DRIVER_HAS_HOSTS))
        return open_slot(all, ops, NULL, from, e);
    for (size_t i = 0; m && i < m->host_count; i++)
        if (open_slot(all, ops, &m->hosts[i], from, e) < 0)
            return -1;
    return 0;
}

/* Creates within the last minute count, also those of an earlier holtd. */
static void pools_open(struct sandboxes *all)
{
    for (size_t i = 0; i < all->count; i++) {
        struct pool *p = sandbox_pool(all->sorted[i]);

        if (p)
            pool_seed(p, all->sorted[i]->created_ms);
    }
    for (size_t i = 0; i < all->driver_count; i++)
        if (all->drivers[i].pool)
            pool_tick(all->drivers[i].pool, clock_wall_ms());
}

struct pool *sandbox_pool(const struct sandbox *s)
{
    for (size_t i = 0; s->driver && i < s->all->driver_count; i++)
        if (s->all->drivers[i].driver == s->driver)
            return s->all->drivers[i].pool;
    return NULL;
}

void sandboxes_set_pool(struct sandboxes *all, const struct pool_config *c)
{
    for (size_t i = 0; i < all->driver_count; i++)
        if (all->drivers[i].pool)
            pool_configure(all->drivers[i].pool, c);
}

void sandboxes_set_ceilings(struct sandboxes *all, const struct ceilings *c)
{
    all->ceilings = *c;
}

void sandboxes_pool(const struct sandboxes *all, struct pool_counts *ret)
{
    *ret = (struct pool_counts){0};
    for (size_t i = 0; i < all->driver_count; i++)
        if (all->drivers[i].pool)
            pool_count(all->drivers[i].pool, ret);
}

int sandboxes_open(const struct sandboxes_config *c, struct sandboxes **ret, struct err *e)
{
    struct sandboxes *all = xzalloc(sizeof *all);
    int r = 0;

    all->refs = 1;
    all->loop = c->loop;
    all->store = c->store;
    all->space = c->space;
    all->authority = c->authority;
    all->policies = c->policies;
    all->timers = timers_new(c->loop);
    all->aliases = aliases_new();
    all->state = xstrdup(c->state);
    all->keep_strays = c->keep_strays;
    all->bindir = xstrdup(c->bindir ? c->bindir : "");
    all->installation = xstrdup(c->installation ? c->installation : c->node ? c->node : "");
    all->wide = c->wide;
    all->sandboxes_max = c->sandboxes_max > 0 ? c->sandboxes_max : SANDBOXES_MAX;
    list_init(&all->spares);
    all->commands = c->commands;
    all->execs = all->commands->open(all, all->timers, c);
    for (size_t i = 0; c->drivers[i] && r == 0; i++)
        r = open_driver(all, c->drivers[i], c, e);
    if (r == 0)
        r = sandboxes_load(all, e);
    if (r == 0)
        r = hosts_load(all, e);
    if (r < 0) {
        sandboxes_close(all);
        return err_wrap(e, "open the sandboxes");
    }
    sandboxes_open_egress(all, c);
    sandboxes_adopt(all);
    pools_open(all);
    sandboxes_follow_policies(all);
    *ret = all;
    return 0;
}

struct sandboxes *sandboxes_unref(struct sandboxes *all)
{
    assert(all->refs > 0);
    if (--all->refs > 0)
        return NULL;
    assert(all->closed && all->count == 0 && all->by_id.count == 0 && all->by_name.count == 0);
    all->commands->free(all->execs);
    map_done(&all->by_id);
    map_done(&all->by_name);
    aliases_free(all->aliases);
    mem_free(all->sorted);
    mem_free(all->state);
    mem_free(all->bindir);
    mem_free(all->installation);
    mem_free(all);
    return NULL;
}

struct sandboxes *sandboxes_close(struct sandboxes *all)
{
    struct err gone = {.code = ERR_CANCELLED, .msg = "holtd is stopping"};

    if (!all)
        return NULL;
    all->closed = true;
    if (all->policies)
        policies_on_change(all->policies, NULL, NULL);
    while (all->count > 0) {
        struct sandbox *s = sandbox_ref(all->sorted[all->count - 1]);

        wait_tell(&s->waits, s, &gone);
        wait_tell(&s->destroy_waits, s, &gone);
        wait_tell(&s->update_waits, s, &gone);
        timer_stop(&s->timer);
        sandbox_drop(s);
        sandbox_unref(s);
    }
    all->commands->close(all->execs);
    spares_tell_all(all); /* last: earlier callbacks may have requested more */
    for (size_t i = 0; i < all->driver_count; i++)
        if (all->drivers[i].driver)
            all->drivers[i].ops->close(all->drivers[i].driver);
    for (size_t i = 0; i < all->driver_count; i++) {
        timer_stop(&all->drivers[i].again);
        all->drivers[i].pool = pool_free(all->drivers[i].pool);
        all->drivers[i].host = host_free(all->drivers[i].host);
    }
    all->egress = egress_free(all->egress);
    if (all->secrets)
        secrets_set_users(all->secrets, NULL, NULL);
    all->timers = timers_free(all->timers);
    return sandboxes_unref(all);
}
