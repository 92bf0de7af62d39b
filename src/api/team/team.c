/* team: callers of the team, heartbeats, and the tick. */
#include "api/team/team.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/approval/approval.h"
#include "core/blob.h"
#include "core/team/agent.h"
#include "ops/approval.h"

#define BEATS_FOLD_MS 300000 /* heartbeats of an agent within this time are one audit entry */
#define GAP_MS 5000          /* between two ticks: we were stopped, or the machine slept */

/* Bits in the order of op_approval_kinds. */
static unsigned two_people(const struct config *c)
{
    unsigned bits = 0;

    for (size_t i = 0; i < c->approval_two_people.n; i++)
        for (unsigned k = 0; op_approval_kinds[k]; k++)
            if (strcmp(op_approval_kinds[k], c->approval_two_people.v[i]) == 0)
                bits |= 1U << k;
    return bits;
}

static struct team_conf settings(const struct config *c)
{
    return (struct team_conf){
        .heartbeat_ms = c->agent_heartbeat_ms,
        .cycle = c->agent_cycle,
        .missed = c->agent_missed,
        .grace_ms = c->task_grace_ms,
        .message_rate = c->message_rate,
        .message_bytes = c->message_bytes,
        .inbox_max = c->inbox_max,
        .agent_tasks = c->agent_tasks,
        .objects_max = c->team_max,
        .proposals_max = c->proposals_max,
        .file_versions = c->file_versions,
        .project_bytes = c->project_bytes,
        .questions_max = c->questions_max,
        .two_people = two_people(c),
    };
}

/* Whatever the request carries, the sandbox decides which agent it is. */
static int find_inside(const struct request *r, struct arena *a, bool anyone,
                       struct team_asker *ret, struct err *e)
{
    struct sandbox *s = sandbox_find(r->api->c.sandboxes, &r->who, principal_sandbox(&r->who), e);
    struct sandbox_info i = {0};

    if (!s)
        return -1;
    sandbox_info(s, &i);
    if (i.agent.n == 0 && !anyone) {
        err_set(e, ERR_FORBIDDEN, 0, "sandbox '%s' is not for an agent of the team", i.id);
        return err_hint(e, "create it with the field 'agent'");
    }
    ret->tenant = arena_str(a, i.tenant);
    ret->agent = arena_str(a, i.agent.n > 0 ? i.agent : str_of(r->who.actor));
    return 0;
}

static int find_asker(const struct request *r, struct arena *a, bool anyone, struct team_asker *ret,
                      struct err *e)
{
    memcpy(ret->actor, r->who.actor, sizeof ret->actor);
    ret->owner = arena_str(a, str_of(principal_owner(&r->who)));
    ret->person = arena_str(a, str_of(r->who.person));
    ret->tenant = arena_str(a, str_of(r->who.tenant));
    ret->named = r->how == AUTH_BEARER || r->how == AUTH_COOKIE;
    if (r->who.role != ROLE_AGENT)
        return 0;
    if (principal_is_inside(&r->who))
        return find_inside(r, a, anyone, ret, e);
    ret->agent = arena_str(a, str_of(r->who.agent));
    return 0;
}

static int team_for(const struct request *r, struct arena *a, bool anyone, struct team *ret,
                    struct err *e)
{
    *ret = (struct team){.arena = a,
                         .conf = settings(r->api->c.conf),
                         .now_ms = clock_wall_ms(),
                         .since_ms = r->api->team_since_ms};
    return find_asker(r, a, anyone, &ret->who, e);
}

int team_of(const struct request *r, struct arena *a, struct team *ret, struct err *e)
{
    return team_for(r, a, false, ret, e);
}

int team_of_anyone(const struct request *r, struct arena *a, struct team *ret, struct err *e)
{
    return team_for(r, a, true, ret, e);
}

struct team team_of_system(const struct api *a, struct arena *arena)
{
    return (struct team){.arena = arena,
                         .conf = settings(a->c.conf),
                         .who = {.actor = "system"},
                         .now_ms = clock_wall_ms(),
                         .since_ms = a->team_since_ms};
}

void team_settle(struct api *api, const struct team *t)
{
    for (size_t i = 0; i < t->unused_count; i++)
        blob_unused(api->c.blobs, t->unused[i]);
}

/* --- signs of activity --- */

#define HEARD_MS 1000   /* one write per agent within this time */
#define HEARD_MAX 10000 /* agents remembered for that */

struct heard {
    struct arena arena;
    struct team t;
    struct str name;
};

static int heard_work(struct store_tx *tx, void *arg, struct err *e)
{
    struct heard *h = arg;

    team_enter(&h->t, tx);
    return agent_heard(&h->t, h->name, e);
}

static void heard_done(void *arg, const struct err *e)
{
    struct heard *h = arg;

    if (e->code != ERR_NONE)
        log_warn("the heartbeat of an agent could not be stored", LOG_S("agent", h->name),
                 LOG_E(e));
    arena_done(&h->arena);
    mem_free(h);
}

/* One write per second, so that reads stay cheap. */
static bool is_heard(struct api *a, struct str name, int64_t now)
{
    int64_t gap = i64_min(HEARD_MS, i64_max(a->c.conf->agent_heartbeat_ms / 4, 1));
    int64_t last = (int64_t)(intptr_t)map_get(&a->team_heard, name);

    if (last > now - gap && last <= now)
        return true;
    if (a->team_heard.count >= HEARD_MAX)
        map_done(&a->team_heard);
    map_set(&a->team_heard, name, (void *)(intptr_t)now);
    return false;
}

void team_heard(struct api *a, struct str name)
{
    int64_t now = clock_wall_ms();
    struct heard *h;

    if (name.n == 0 || name.n > TEAM_NAME_MAX || !a->c.store || is_heard(a, name, now))
        return;
    h = xzalloc(sizeof *h);
    h->name = arena_str(&h->arena, name);
    h->t = team_of_system(a, &h->arena);
    store_write(a->c.store, STORE_RELAXED, heard_work, heard_done, h);
}

void team_beat(struct api *a, const struct team *t)
{
    AUTO(buf_done) struct buf data = {0};
    AUTO(mem_free) char *object = xasprintf("agent/" STR_FMT, STR_ARG(t->beat));
    struct jw w = {.to = &data};

    jw_object(&w);
    jw_kstr(&w, "name", t->beat);
    jw_kint(&w, "ticks", t->beat_ticks);
    jw_object_end(&w);
    events_audit(a->c.events, &(struct event_spec){.type = "agent.heartbeat",
                                                   .object = object,
                                                   .actor = t->who.actor,
                                                   .data = buf_str(&data),
                                                   .fold_ms = BEATS_FOLD_MS});
}

struct watch {
    struct api *api;
    struct arena arena;
    struct team t;
    bool due;
};

static int watch_look(struct store_tx *tx, void *arg, struct err *e)
{
    struct watch *w = arg;

    bool agents, questions;

    team_enter(&w->t, tx);
    if (agent_watch_due(&w->t, &agents, e) < 0 || questions_due(&w->t, &questions, e) < 0)
        return -1;
    w->due = agents || questions;
    return 0;
}

static int watch_act(struct store_tx *tx, void *arg, struct err *e)
{
    struct watch *w = arg;

    team_enter(&w->t, tx);
    return agent_watch(&w->t, e) < 0 ? -1 : questions_expire(&w->t, e);
}

static void watch_acted(void *arg, const struct err *e)
{
    struct watch *w = arg;

    if (e->code != ERR_NONE) {
        log_warn("the status of agents could not be updated", LOG_E(e));
        w->api->team_since_ms = clock_wall_ms(); /* heartbeats could not be stored either */
    }
    w->api->team_watching = false;
    arena_done(&w->arena);
    mem_free(w);
}

static void watch_looked(void *arg, const struct err *e)
{
    struct watch *w = arg;

    if (e->code == ERR_NONE && w->due)
        store_write(w->api->c.store, STORE_DURABLE, watch_act, watch_acted, w);
    else
        watch_acted(w, e);
}

void team_tick(struct api *a)
{
    int64_t now = clock_wall_ms();
    struct watch *w;

    if (now - a->team_tick_ms > GAP_MS || a->team_since_ms > now) /* also true for the first tick */
        a->team_since_ms = now;
    a->team_tick_ms = now;
    if (a->team_watching)
        return;
    a->team_watching = true;
    w = xzalloc(sizeof *w);
    w->api = a;
    w->t = team_of_system(a, &w->arena);
    store_read(a->c.store, watch_look, watch_looked, w);
}
