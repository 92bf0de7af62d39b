/* control: what becomes of claims: their sandboxes are made, watched and destroyed. */
#include "api/dialects/k8s/k8s.h"

#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"

#define RETRY_MS 1000 /* doubled with each failure */
#define RETRY_MAX_MS 60000
#define EXPIRED "the time of the claim is over"

struct work { /* of one claim; in k8s.works */
    struct k8s *k;
    char id[ID_SIZE];
    bool making, leaving, destroying;
    int tries;
    int64_t again_ms;    /* not before; of the monotonic clock */
    struct principal by; /* who removes it */
    struct list askers;
};

struct removal_asker {
    struct list link;
    k8s_removed done;
    void *arg;
};

static struct work *work_of(struct k8s *k, const char *id)
{
    struct work *w = map_get(&k->works, str_of(id));

    if (w)
        return w;
    w = xzalloc(sizeof *w);
    w->k = k;
    (void)snprintf(w->id, sizeof w->id, "%s", id);
    list_init(&w->askers);
    map_set(&k->works, str_of(id), w);
    return w;
}

static void work_free(struct work *w)
{
    struct list *node;

    while ((node = list_pop(&w->askers)))
        mem_free(LIST_ENTRY(node, struct removal_asker, link));
    mem_free(w);
}

void k8s_claims_done(struct k8s *k)
{
    size_t at = 0;
    struct str key;
    void *w;

    while (map_next(&k->works, &at, &key, &w))
        work_free(w);
    map_done(&k->works);
}

bool k8s_claim_is_leaving(const struct api *a, const char *id)
{
    const struct work *w = map_get(&k8s_of(a)->works, str_of(id));

    return w && w->leaving;
}

static struct sandbox *sandbox_of(struct k8s *k, struct str id)
{
    return id.n > 0 ? sandbox_find(k->api->c.sandboxes, &principal_system, id, &(struct err){0})
                    : NULL;
}

/* --- how its sandbox is --- */

static void state_of(struct sandbox *s, struct claim_state *ret)
{
    struct sandbox_info i = {.state = SANDBOX_DESTROYED};

    if (s)
        sandbox_info(s, &i);
    ret->ready = false;
    ret->ended = false;
    ret->message = STR("");
    switch (i.state) {
    case SANDBOX_RUNNING:
        ret->ready = true;
        ret->reason = STR("DependenciesReady");
        ret->message = STR("Sandbox is ready");
        break;
    case SANDBOX_CREATING:
    case SANDBOX_STARTING:
        ret->reason = STR("DependenciesNotReady");
        ret->message = STR("Sandbox is starting");
        break;
    case SANDBOX_PAUSED:
    case SANDBOX_STOPPING:
    case SANDBOX_STOPPED:
        ret->reason = STR("SandboxSuspended");
        ret->message = STR("Sandbox is suspended");
        break;
    case SANDBOX_FAILED:
        ret->ended = true;
        ret->reason = STR("PodFailed");
        ret->message = i.failure;
        break;
    case SANDBOX_DESTROYED:
    case SANDBOX_STATE_COUNT:
        ret->ended = true;
        ret->reason = STR("SandboxExpired");
        ret->message = STR("Sandbox was removed");
        break;
    }
}

static void follow(struct k8s *k, struct claim *c)
{
    struct claim_info i;
    struct claim_state s;

    claim_info(c, &i);
    if (i.state.sandbox.n == 0 || i.state.ended || k8s_claim_is_leaving(k->api, i.id))
        return;
    s.sandbox = i.state.sandbox;
    state_of(sandbox_of(k, i.state.sandbox), &s);
    /* its own lifetime may have ended it a moment before the claim's time */
    if (s.ended && i.times.shutdown_ms > 0 && clock_wall_ms() + RETRY_MS >= i.times.shutdown_ms) {
        s.reason = STR("ClaimExpired");
        s.message = STR(EXPIRED);
    }
    claim_report(c, &s);
}

/* A new template may be what claims wait for. */
static void try_again(struct k8s *k)
{
    size_t at = 0;
    struct str key;
    void *w;

    while (map_next(&k->works, &at, &key, &w)) {
        ((struct work *)w)->again_ms = 0;
        ((struct work *)w)->tries = 0;
    }
}

void k8s_claim_event(struct k8s *k, const struct event *ev)
{
    struct claim *c;

    if (str_eq_c(ev->type, "template.created"))
        try_again(k);
    if (k->ending || !str_starts(ev->object, STR("sandbox/")))
        return;
    c = claim_of_sandbox(k->api->c.claims, str_skip(ev->object, strlen("sandbox/")));
    if (c)
        follow(k, c);
}

/* --- making --- */

static void remove_step(struct work *w);

struct making {
    struct work *w;
    struct k8s_wish wish;
};

static void making_free(struct making *m)
{
    k8s_wish_done(&m->wish);
    mem_free(m);
}

static void back_off(struct work *w)
{
    w->again_ms = clock_mono_ms() + i64_min(RETRY_MAX_MS, RETRY_MS << w->tries);
    w->tries += w->tries < 8;
}

static void report_failure(struct work *w, struct claim *c, const struct err *e)
{
    bool hopeless = e->code == ERR_INVALID || e->code == ERR_NOT_FOUND ||
                    e->code == ERR_FORBIDDEN || e->code == ERR_UNSUPPORTED;

    back_off(w);
    claim_report(c,
                 &(struct claim_state){.ended = hopeless,
                                       .reason = hopeless ? STR("InvalidConfiguration")
                                                 : e->code == ERR_CONFLICT ? STR("AdoptionConflict")
                                                                           : STR("ReconcilerError"),
                                       .message = str_of(e->msg)});
}

static void ignored(void *arg, struct sandbox *s, const struct err *e)
{
    (void)arg, (void)s, (void)e;
}

static void report_made(struct claim *c, struct sandbox *s)
{
    struct claim_state state;
    struct sandbox_info i;

    sandbox_info(s, &i);
    state_of(s, &state);
    state.sandbox = str_of(i.id);
    claim_report(c, &state);
}

static void sandbox_made(void *arg, struct sandbox *s, const struct err *e)
{
    struct making *m = arg;
    struct work *w = m->w;
    struct claim_info i;
    struct claim *c;

    making_free(m);
    w->making = false;
    if (w->k->ending)
        return;
    c = claim_get(w->k->api->c.claims, str_of(w->id));
    if (c)
        claim_info(c, &i);
    if (c && e->code != ERR_NONE && !i.state.ended)
        report_failure(w, c, e);
    else if (c && s && !i.state.ended)
        report_made(c, s);
    else if (s) /* it has expired, or is gone */
        sandbox_destroy(s, &principal_system, ignored, NULL);
    if (w->leaving)
        remove_step(w);
}

/* Made for this claim before holtd ended. */
static struct sandbox *made_before(struct k8s *k, const struct principal *by,
                                   const struct claim_info *i, struct alias_name n)
{
    struct sandbox *s = sandbox_own(k->api->c.sandboxes, by, n);
    struct sandbox_info info;
    AUTO(json_decref) json_t *note = NULL;

    if (!s)
        return NULL;
    sandbox_info(s, &info);
    note = json_loadb(info.note.p, info.note.n, 0, NULL);
    return !info.destroying && str_eq_c(k8s_note_claim(note), i->id) ? s : NULL;
}

/* Who asked for it may have lost the right since. */
static bool maker_is_here(struct k8s *k, const struct principal *by)
{
    struct str id, kind = str_cut(str_of(by->owner), '/', &id);

    return !str_eq_c(kind, "token") || identity_get(k->api->c.identity, id);
}

void k8s_claim_begin(struct k8s *k, struct claim *c)
{
    struct claim_state why = {0};
    struct claim_info i;
    struct alias_name name;
    struct principal by;
    struct making *m;
    struct sandbox *old;
    struct work *w;

    claim_info(c, &i);
    if (i.state.ended || i.state.sandbox.n > 0 || k->ending)
        return;
    w = work_of(k, i.id);
    by = claim_maker(c);
    if (w->making || w->leaving || clock_mono_ms() < w->again_ms || !maker_is_here(k, &by))
        return;
    m = xzalloc(sizeof *m);
    m->w = w;
    name = (struct alias_name){
        STR(K8S_DIALECT),
        str_of(arena_printf(&m->wish.mem, STR_FMT "/" STR_FMT, STR_ARG(i.space), STR_ARG(i.name)))};
    old = made_before(k, &by, &i, name);
    if (old || k8s_claim_spec(k->api, &by, &i, &m->wish, &why) < 0) {
        if (old)
            report_made(c, old);
        else
            claim_report(c, &why);
        back_off(w);
        making_free(m);
        return;
    }
    w->making = true;
    m->wish.spec.aliases = &name;
    m->wish.spec.alias_count = 1;
    sandbox_create(k->api->c.sandboxes, &m->wish.spec, &by, sandbox_made, m);
}

/* --- removing --- */

/* Frees it if nothing is left of the claim. */
static void tell_removed(struct work *w, const struct err *e, bool gone)
{
    struct list told, *node;

    list_init(&told);
    while ((node = list_pop(&w->askers)))
        list_push(&told, node);
    w->leaving = w->destroying = false;
    if (gone) {
        map_remove(&w->k->works, str_of(w->id));
        work_free(w);
    }
    while ((node = list_pop(&told))) {
        struct removal_asker *k = LIST_ENTRY(node, struct removal_asker, link);

        k->done(k->arg, e);
        mem_free(k);
    }
}

static void claim_removed(void *arg, struct named *n, const struct err *e)
{
    (void)n;
    tell_removed(arg, e, e->code == ERR_NONE);
}

static void erase(struct work *w)
{
    struct claim *c = claim_get(w->k->api->c.claims, str_of(w->id));
    const struct named_call call = {&w->by, claim_removed, w};
    struct err e = {0};

    if (!c)
        tell_removed(w, &e, true);
    else if (claim_remove(c, &call, &e) < 0)
        tell_removed(w, &e, false);
}

static void sandbox_gone(void *arg, struct sandbox *s, const struct err *e)
{
    struct work *w = arg;

    (void)s;
    w->destroying = false;
    if (w->k->ending)
        return;
    if (e->code != ERR_NONE)
        tell_removed(w, e, false);
    else
        erase(w);
}

static void remove_step(struct work *w)
{
    struct claim *c = claim_get(w->k->api->c.claims, str_of(w->id));
    struct claim_info i = {0};
    struct sandbox *s;

    if (w->making || w->destroying)
        return; /* its end continues */
    if (c)
        claim_info(c, &i);
    s = sandbox_of(w->k, i.state.sandbox);
    if (!s) {
        erase(w);
        return;
    }
    w->destroying = true;
    sandbox_destroy(s, &w->by, sandbox_gone, w);
}

void k8s_claim_remove(struct k8s *k, struct claim *c, const struct principal *by, k8s_removed done,
                      void *arg)
{
    struct removal_asker *asker = xzalloc(sizeof *asker);
    struct claim_info i;
    struct work *w;
    bool begun;

    claim_info(c, &i);
    w = work_of(k, i.id);
    begun = w->leaving;
    *asker = (struct removal_asker){.done = done, .arg = arg};
    list_push(&w->askers, &asker->link);
    w->leaving = true;
    w->by = *by;
    if (!begun)
        remove_step(w);
}

/* --- time --- */

static void removed_by_time(void *arg, const struct err *e)
{
    (void)arg;
    if (e->code != ERR_NONE)
        log_warn("an expired claim could not be removed; it is tried again", LOG_E(e));
}

static void expire(struct k8s *k, struct claim *c)
{
    struct claim_info i;
    struct sandbox *s;

    claim_info(c, &i);
    s = sandbox_of(k, i.state.sandbox);
    claim_report(c, &(struct claim_state){.ended = true,
                                          .reason = STR("ClaimExpired"),
                                          .message = STR(EXPIRED),
                                          .sandbox = i.state.sandbox});
    if (s)
        sandbox_destroy(s, &principal_system, ignored, NULL);
}

void k8s_claims_tick(struct k8s *k)
{
    struct claims *all = k->api->c.claims;
    int64_t now = clock_wall_ms();
    char id[ID_SIZE] = "";
    struct claim_info i;
    struct claim *c;

    if (k->ending || !sandboxes_settled(k->api->c.sandboxes))
        return;
    while ((c = claim_next(all, &principal_system, str_of(id)))) {
        claim_info(c, &i);
        (void)snprintf(id, sizeof id, "%s", i.id);
        switch (claim_due(c, now)) {
        case CLAIM_DUE_REMOVAL:
            if (!k8s_claim_is_leaving(k->api, id))
                k8s_claim_remove(k, c, &principal_system, removed_by_time, NULL);
            break;
        case CLAIM_DUE_EXPIRY:
            expire(k, c);
            break;
        case CLAIM_DUE_NOTHING:
            if (!k->looked) /* what has happened while holtd was down */
                follow(k, c);
            k8s_claim_begin(k, c);
            break;
        }
    }
    k->looked = true;
}
