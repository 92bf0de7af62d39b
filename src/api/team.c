#include "api/team.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/agent.h"
#include "core/blob.h"

#define GAP_MS 5000 /* between two ticks: we were stopped, or the machine slept */

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
        .file_versions = c->file_versions,
        .project_bytes = c->project_bytes,
    };
}

static int find_asker(const struct request *r, struct arena *a, struct team_asker *ret,
                      struct err *e)
{
    struct sandbox_info i = {0};
    const struct sandbox *s;

    memcpy(ret->actor, r->who.actor, sizeof ret->actor);
    if (r->who.role != ROLE_AGENT)
        return 0;
    if (!principal_is_inside(&r->who)) {
        ret->agent = arena_str(a, str_of(r->who.agent));
        return 0;
    }
    /* Whatever the request carries, it is what its sandbox was made to be. */
    s = sandbox_find(r->api->c.sandboxes, &r->who, principal_sandbox(&r->who), e);
    if (!s)
        return -1;
    sandbox_info(s, &i);
    if (i.agent.n == 0) {
        err_set(e, ERR_FORBIDDEN, 0, "sandbox '%s' is no agent of the team", i.id);
        return err_hint(e, "make it with the field 'agent'");
    }
    ret->agent = arena_str(a, i.agent);
    return 0;
}

int team_of(const struct request *r, struct arena *a, struct team *ret, struct err *e)
{
    *ret = (struct team){.arena = a,
                         .conf = settings(r->api->c.conf),
                         .now_ms = clock_wall_ms(),
                         .since_ms = r->api->team_since_ms};
    return find_asker(r, a, &ret->who, e);
}

void team_settle(struct api *api, const struct team *t)
{
    for (size_t i = 0; i < t->unused_count; i++)
        blob_unused(api->c.blobs, t->unused[i]);
}

struct watch {
    struct api *api;
    struct arena arena;
    struct team t;
    bool due;
};

static int look(struct store_tx *tx, void *arg, struct err *e)
{
    struct watch *w = arg;

    team_enter(&w->t, tx);
    return agent_watch_due(&w->t, &w->due, e);
}

static int act(struct store_tx *tx, void *arg, struct err *e)
{
    struct watch *w = arg;

    team_enter(&w->t, tx);
    return agent_watch(&w->t, e);
}

static void acted(void *arg, const struct err *e)
{
    struct watch *w = arg;

    if (e->code != ERR_NONE) {
        log_warn("the team's agents could not be watched", LOG_E(e));
        w->api->team_since_ms = clock_wall_ms(); /* nor could their heartbeats be kept */
    }
    w->api->team_watching = false;
    arena_done(&w->arena);
    mem_free(w);
}

static void looked(void *arg, const struct err *e)
{
    struct watch *w = arg;

    if (e->code == ERR_NONE && w->due)
        store_write(w->api->c.store, STORE_DURABLE, act, acted, w);
    else
        acted(w, e);
}

void team_tick(struct api *a)
{
    int64_t now = clock_wall_ms();
    struct watch *w;

    if (now - a->team_tick_ms > GAP_MS || a->team_since_ms > now) /* the first is one, too */
        a->team_since_ms = now;
    a->team_tick_ms = now;
    if (a->team_watching)
        return;
    a->team_watching = true;
    w = xzalloc(sizeof *w);
    w->api = a;
    w->t = (struct team){.arena = &w->arena,
                         .conf = settings(a->c.conf),
                         .who = {.actor = "system"},
                         .now_ms = now,
                         .since_ms = a->team_since_ms};
    store_read(a->c.store, look, looked, w);
}
