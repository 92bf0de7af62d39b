/* rollout_back: a sandbox's snapshot before a change, and the way back to it. */
#include "base/clock.h"
#include "base/mem.h"
#include "core/playbook/rollout_internal.h"
#include "core/playbook/target.h"
#include "core/sandbox/sandbox.h"
#include "core/snapshot/snapshot.h"

#include <stdio.h>

#define BACK_MS (10LL * 60 * 1000)

static struct rollouts *all_of(const struct rollout *ro)
{
    return CONTAINER_OF(ro->named.list, struct rollouts, list);
}

static struct sandbox *sandbox_of(struct rollout *ro, struct err *e)
{
    return sandbox_find(all_of(ro)->c.sandboxes, &principal_system, str_of(ro->at.sandbox), e);
}

/* --- before --- */

static void keep(struct rollout *ro, const struct snapshot *s)
{
    struct snapshot_info i;

    snapshot_info(s, &i);
    (void)snprintf(ro->snapshot, sizeof ro->snapshot, "%s", i.id);
}

static void snapshot_taken(void *arg, struct snapshot *s, const struct err *e)
{
    struct rollout *ro = arg;
    struct err why = *e;

    ro->busy = false;
    if (s)
        keep(ro, s);
    if (rollout_stops(ro))
        return;
    if (s || e->code == ERR_UNSUPPORTED) { /* not every runtime can: then there is no way back */
        rollout_run_begin(ro);
        return;
    }
    err_wrap(&why, "before the change");
    rollout_fail(ro, &why);
}

static void take_snapshot(struct rollout *ro)
{
    struct rollouts *l = all_of(ro);
    const struct snapshot_call call = {&principal_system, snapshot_taken, ro};
    char name[ID_SIZE + 8];
    struct err e = {0};
    struct sandbox *s = sandbox_of(ro, &e);
    struct snapshot *left;

    if (!s) {
        rollout_fail(ro, &e);
        return;
    }
    (void)snprintf(name, sizeof name, "before-%s", ro->named.id);
    left = snapshot_find(l->c.snapshots, &principal_system, SNAPSHOT_SEE, s, str_of(name), &e);
    e = (struct err){0};
    ro->busy = true;
    if (left) /* taken by a holtd that was killed */
        snapshot_taken(ro, left, &e);
    else if (snapshot_create(l->c.snapshots, s,
                             &(struct snapshot_spec){.name = str_of(name), .automatic = true},
                             &call, &e) < 0)
        snapshot_taken(ro, NULL, &e);
}

/* What was approved may be gone. */
static bool target_is_there(struct rollout *ro)
{
    struct err e = {0};

    if (!ro->target[0] ||
        target_find(all_of(ro)->c.targets, &principal_system, OWNER_SEE, str_of(ro->target), &e))
        return true;
    rollout_failed(ro, "target '%s' was removed", ro->target_name);
    return false;
}

void rollout_apply_begin(struct rollout *ro)
{
    if (!target_is_there(ro))
        return;
    if (ro->at.sandbox[0])
        take_snapshot(ro);
    else
        rollout_run_begin(ro);
}

/* --- and back --- */

/* The restore of a holtd that was killed is finished first: the tick tries again. */
static bool may_come(const struct rollout *ro, const struct err *e)
{
    return (e->code == ERR_CONFLICT || e->code == ERR_UNAVAILABLE) &&
           clock_wall_ms() - ro->changed_ms < BACK_MS;
}

static void restored(void *arg, struct snapshot *s, const struct err *e)
{
    struct rollout *ro = arg;
    struct err why = *e;

    (void)s;
    ro->busy = false;
    if (all_of(ro)->closed || may_come(ro, e))
        return;
    if (e->code == ERR_NONE) {
        rollout_go(ro, ROLLOUT_ROLLED_BACK);
        return;
    }
    err_wrap(&why, "roll back");
    rollout_fail(ro, &why);
}

void rollout_back_begin(struct rollout *ro)
{
    struct rollouts *l = all_of(ro);
    const struct snapshot_call call = {&principal_system, restored, ro};
    struct err e = {0};
    struct sandbox *s = sandbox_of(ro, &e);
    struct snapshot *to = s ? snapshot_find(l->c.snapshots, &principal_system, SNAPSHOT_SEE, NULL,
                                            str_of(ro->snapshot), &e)
                            : NULL;

    ro->busy = true;
    if (!to || snapshot_restore(to, s, &call, &e) < 0)
        restored(ro, NULL, &e);
}
