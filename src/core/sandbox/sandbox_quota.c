/* sandbox_quota: what an owner, a tenant and all together use, against the ceilings for it. */
#include "core/sandbox/sandbox_internal.h"

/* One that is off uses no processor and no memory. */
static bool is_up(const struct sandbox *s)
{
    return s->sm.state == SANDBOX_CREATING || s->sm.state == SANDBOX_STARTING ||
           s->sm.state == SANDBOX_RUNNING || s->sm.state == SANDBOX_PAUSED ||
           s->sm.state == SANDBOX_STOPPING;
}

static bool counts_for(const struct sandbox *s, enum ceiling_scope scope, const char *who)
{
    const char *of = scope == CEILING_OWNER ? s->owner : s->tenant;

    return scope == CEILING_ALL || strcmp(of ? of : "", who) == 0;
}

/* A machine of somebody else is one more, and takes nothing of this host. */
static void add(const struct sandbox *s, int64_t *to)
{
    bool ours = !s->driver || !(s->driver->ops->caps & DRIVER_JOINS);

    to[CEILING_SUM_SANDBOXES]++;
    to[CEILING_SUM_RUNNING] += is_up(s);
    to[CEILING_SUM_CPU] += is_up(s) && ours ? s->traits.limits.cpu_millis : 0;
    to[CEILING_SUM_MEMORY] += is_up(s) && ours ? s->traits.limits.memory_bytes : 0;
    to[CEILING_SUM_DISK] += ours ? s->traits.limits.disk_bytes : 0;
}

void sandboxes_used(const struct sandboxes *all, enum ceiling_scope scope, const char *who,
                    int64_t ret[CEILING_SUMS])
{
    memset(ret, 0, CEILING_SUMS * sizeof *ret);
    for (size_t i = 0; i < all->count; i++)
        if (!all->sorted[i]->orphan && counts_for(all->sorted[i], scope, who))
            add(all->sorted[i], ret);
}

static int check_scope(const struct sandboxes *all, enum ceiling_scope scope, const char *who,
                       const int64_t asked[CEILING_SUMS], struct err *e)
{
    int64_t used[CEILING_SUMS];

    if (!ceiling_sums(&all->ceilings, scope) || (scope == CEILING_TENANT && !*who))
        return 0;
    sandboxes_used(all, scope, who, used);
    for (enum ceiling_sum k = 0; k < CEILING_SUMS; k++)
        if (k != CEILING_SUM_TASKS &&
            ceiling_sum(&all->ceilings, &(struct ceiling_asked){scope, k, who, used[k], asked[k]},
                        e) < 0)
            return -1;
    return 0;
}

static int check_all(const struct sandboxes *all, const char *owner, const char *tenant,
                     const int64_t asked[CEILING_SUMS], struct err *e)
{
    if (check_scope(all, CEILING_OWNER, owner, asked, e) < 0 ||
        check_scope(all, CEILING_TENANT, tenant, asked, e) < 0)
        return -1;
    return check_scope(all, CEILING_ALL, "holt", asked, e);
}

int sandbox_quota_create(const struct sandboxes *all, const struct principal *by,
                         const char *tenant, const struct driver_ops *ops,
                         const struct sandbox_limits *l, struct err *e)
{
    bool ours = !(ops->caps & DRIVER_JOINS);
    const int64_t asked[CEILING_SUMS] = {
        [CEILING_SUM_SANDBOXES] = 1,
        [CEILING_SUM_RUNNING] = 1,
        [CEILING_SUM_CPU] = !ours               ? 0
                            : l->cpu_millis > 0 ? l->cpu_millis
                                                : CEILING_UNLIMITED,
        [CEILING_SUM_MEMORY] = !ours                 ? 0
                               : l->memory_bytes > 0 ? l->memory_bytes
                               : ops->memory_preset  ? ops->memory_preset
                                                     : CEILING_UNLIMITED,
        [CEILING_SUM_DISK] = !ours               ? 0
                             : l->disk_bytes > 0 ? l->disk_bytes
                                                 : CEILING_UNLIMITED,
    };

    if (by->role == ROLE_ADMIN && strcmp(principal_owner(by), principal_system.actor) == 0)
        return 0; /* holt's own tools */
    return check_all(all, principal_owner(by), tenant, asked, e);
}

/* What it is, it is counted as already: only what a start adds. */
int sandbox_quota_start(const struct sandbox *s, struct err *e)
{
    const struct sandbox_limits *l = &s->traits.limits;
    bool ours = !(s->driver->ops->caps & DRIVER_JOINS);
    const int64_t asked[CEILING_SUMS] = {
        [CEILING_SUM_RUNNING] = 1,
        [CEILING_SUM_CPU] = ours ? l->cpu_millis : 0,
        [CEILING_SUM_MEMORY] = ours ? l->memory_bytes : 0,
    };

    if (check_all(s->all, s->owner ? s->owner : "", s->tenant ? s->tenant : "", asked, e) == 0)
        return 0;
    return err_object(e, "sandbox", s->id);
}
