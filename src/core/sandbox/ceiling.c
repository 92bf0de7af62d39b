/* ceiling: limits of what an agent may have. */
#include "core/sandbox/ceiling.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

bool ceiling_binds(const struct principal *by)
{
    return by->role == ROLE_AGENT || principal_is_inside(by);
}

struct row {
    const char *field, *setting;
    size_t limit, preset, max;
};
#define ROW(member, name)                                                                          \
    {"limits." #member, #name "_max", offsetof(struct sandbox_limits, member),                     \
     offsetof(struct ceilings, name), offsetof(struct ceilings, name##_max)}

/* clang-format off */
static const struct row rows[] = {
    ROW(memory_bytes, agent_memory),
    ROW(cpu_millis,   agent_cpu),
    ROW(pids,         agent_pids),
    ROW(disk_bytes,   agent_disk),
};
/* clang-format on */

static int64_t get(const void *from, size_t at)
{
    int64_t v;

    memcpy(&v, (const char *)from + at, sizeof v);
    return v;
}

static int too_much(const char *field, int64_t asked, int64_t max, const char *setting,
                    struct err *e)
{
    err_set(e, ERR_FORBIDDEN, 0, "field '%s': %lld is more than the %lld that an agent may have",
            field, (long long)asked, (long long)max);
    return err_limit(e, setting, max, "request less, or ask an operator for more");
}

int ceiling_limits(const struct ceilings *c, const struct principal *by, struct sandbox_limits *l,
                   struct err *e)
{
    for (size_t i = 0; ceiling_binds(by) && i < ARRAY_LEN(rows); i++) {
        int64_t max = get(c, rows[i].max), preset = get(c, rows[i].preset);
        int64_t v = get(l, rows[i].limit);

        if (max > 0 && v > max)
            return too_much(rows[i].field, v, max, rows[i].setting, e);
        if (v == 0)
            v = preset == 0 || (max > 0 && preset > max) ? max : preset;
        memcpy((char *)l + rows[i].limit, &v, sizeof v);
    }
    return 0;
}

int ceiling_disk(const struct ceilings *c, const struct principal *by, const char *field,
                 int64_t bytes, struct err *e)
{
    if (!ceiling_binds(by) || c->agent_disk_max == 0 || bytes <= c->agent_disk_max)
        return 0;
    return too_much(field, bytes, c->agent_disk_max, "agent_disk_max", e);
}

int ceiling_memory(const struct ceilings *c, const struct principal *by, const char *field,
                   int64_t bytes, struct err *e)
{
    if (!ceiling_binds(by) || c->agent_memory_max == 0 || bytes <= c->agent_memory_max)
        return 0;
    return too_much(field, bytes, c->agent_memory_max, "agent_memory_max", e);
}

/* --- counts --- */

static const struct {
    const char *what, *agents, *others;
    size_t agent, other; /* SIZE_MAX: no limit for others */
} counts[] = {
    [CEILING_SANDBOXES] = {"sandboxes", "agent_sandboxes", "owner_sandboxes",
                           offsetof(struct ceilings, agent_sandboxes),
                           offsetof(struct ceilings, owner_sandboxes)},
    [CEILING_COMMANDS] = {"commands at a time", "agent_commands", "",
                          offsetof(struct ceilings, agent_commands), SIZE_MAX},
    [CEILING_VOLUMES] = {"volumes", "agent_volumes", "owner_volumes",
                         offsetof(struct ceilings, agent_volumes),
                         offsetof(struct ceilings, owner_volumes)},
};

static int64_t count_max(const struct ceilings *c, const struct principal *by,
                         enum ceiling_kind kind)
{
    size_t at = ceiling_binds(by) ? counts[kind].agent : counts[kind].other;

    return at == SIZE_MAX ? 0 : get(c, at);
}

bool ceiling_counts(const struct ceilings *c, const struct principal *by, enum ceiling_kind kind)
{
    return count_max(c, by, kind) > 0;
}

int ceiling_count(const struct ceilings *c, const struct principal *by, enum ceiling_kind kind,
                  size_t has, struct err *e)
{
    int64_t max = count_max(c, by, kind);

    if (max == 0 || (int64_t)has < max)
        return 0;
    err_set(e, ERR_LIMIT, 0, "%s has %zu %s already, which is the limit", principal_owner(by), has,
            counts[kind].what);
    return err_limit(e, ceiling_binds(by) ? counts[kind].agents : counts[kind].others, max,
                     "remove some, or ask an operator for more");
}

/* --- sums --- */

/* clang-format off */
static const struct {
    const char *name, *what, *field; /* field: of a create, which this counts */
    const char *settings[CEILING_SCOPES];
} sums[CEILING_SUMS] = {
    [CEILING_SUM_SANDBOXES] = {"sandboxes", "sandboxes", NULL, {"owner_sandboxes", "tenant_sandboxes", "sandboxes_max"}},
    [CEILING_SUM_RUNNING] = {"running", "running sandboxes", NULL, {"owner_running", "tenant_running", "total_running"}},
    [CEILING_SUM_CPU] = {"cpu", "thousandths of a core", "cpu_millis", {"owner_cpu", "tenant_cpu", "total_cpu"}},
    [CEILING_SUM_MEMORY] = {"memory", "bytes of memory", "memory_bytes", {"owner_memory", "tenant_memory", "total_memory"}},
    [CEILING_SUM_DISK] = {"disk", "bytes of disk", "disk_bytes", {"owner_disk", "tenant_disk", "total_disk"}},
    [CEILING_SUM_TASKS] = {"tasks", "tasks that have not ended", NULL, {"owner_tasks", "tenant_tasks", NULL}},
};
/* clang-format on */

const char *ceiling_sum_name(enum ceiling_sum s)
{
    return sums[s].name;
}

const char *ceiling_sum_setting(enum ceiling_scope scope, enum ceiling_sum s)
{
    return sums[s].settings[scope];
}

bool ceiling_sums(const struct ceilings *c, enum ceiling_scope scope)
{
    for (size_t i = 0; i < CEILING_SUMS; i++)
        if (c->sums[scope][i] > 0)
            return true;
    return false;
}

int ceiling_sum(const struct ceilings *c, const struct ceiling_asked *a, struct err *e)
{
    static const char *const scopes[] = {"", "tenant ", ""};
    int64_t max = c->sums[a->scope][a->sum];
    const char *setting = sums[a->sum].settings[a->scope];

    if (max == 0 || a->asked == 0)
        return 0;
    if (a->asked == CEILING_UNLIMITED) {
        err_set(e, ERR_INVALID, 0, "field '%s' is missing: the quota '%s' counts it",
                sums[a->sum].field, setting);
        return err_hint(e, "request a limit; of %" PRId64 ", %" PRId64 " are in use", max, a->used);
    }
    if (a->used <= max && a->asked <= max - a->used)
        return 0;
    err_set(e, ERR_LIMIT, 0,
            "%s%s uses %" PRId64 " of %" PRId64 " %s, and %" PRId64 " more were requested",
            scopes[a->scope], a->who, a->used, max, sums[a->sum].what, a->asked);
    return err_limit(e, setting, max, "remove or stop some, or ask an operator for more");
}
