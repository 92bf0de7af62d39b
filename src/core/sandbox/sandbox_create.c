/* sandbox_create: checks a create request and makes the object. */
#include "core/sandbox/sandbox_internal.h"

#include "base/clock.h"
#include "base/mem.h"
#include "core/image/image.h"
#include "core/team/team.h"
#include "ops/sandbox.h"

#include <stdio.h>

#define PAIRS_MAX 256
#define PAIR_BYTES_MAX 65536
#define MOUNTS_MAX 64

/* --- checks --- */

struct limit_range {
    const char *name;
    size_t at;
    int64_t min, max;
};
#define LIMIT(member, low, high) {#member, offsetof(struct sandbox_limits, member), low, high}

/* clang-format off */
static const struct limit_range limit_ranges[] = {
    LIMIT(memory_bytes, OP_MEMORY_MIN, OP_MEMORY_MAX),
    LIMIT(cpu_millis,   OP_CPU_MIN,    OP_CPU_MAX),
    LIMIT(pids,         4,             4 << 20),
    LIMIT(disk_bytes,   1LL << 20,     1LL << 50),
    LIMIT(nofile,       16,            1 << 20),
};
/* clang-format on */

static int check_limits(const struct sandbox_limits *l, struct err *e)
{
    for (size_t i = 0; i < ARRAY_LEN(limit_ranges); i++) {
        const struct limit_range *r = &limit_ranges[i];
        int64_t v;

        memcpy(&v, (const char *)l + r->at, sizeof v);
        if (v != 0 && (v < r->min || v > r->max)) {
            err_set(e, ERR_INVALID, 0, "field 'limits.%s': %lld is out of range", r->name,
                    (long long)v);
            return err_hint(e, "%lld to %lld, or 0 for none", (long long)r->min, (long long)r->max);
        }
    }
    return 0;
}

static int check_pairs(const char *what, const struct pair *p, size_t n, struct err *e)
{
    size_t bytes = 0;

    if (n > PAIRS_MAX)
        return err_set(e, ERR_INVALID, 0, "field '%s': more than %d entries", what, PAIRS_MAX);
    for (size_t i = 0; i < n; i++) {
        bytes += p[i].key.n + p[i].value.n;
        if (p[i].key.n == 0 || memchr(p[i].key.p, '\0', p[i].key.n) ||
            (p[i].value.n > 0 && memchr(p[i].value.p, '\0', p[i].value.n)))
            return err_set(e, ERR_INVALID, 0, "field '%s': a key is empty or there is a NUL byte",
                           what);
        if (strcmp(what, "env") == 0 && memchr(p[i].key.p, '=', p[i].key.n))
            return err_set(e, ERR_INVALID, 0,
                           "field 'env': the name must not contain '=': '" STR_FMT "'",
                           (int)size_min(p[i].key.n, 64), p[i].key.p);
    }
    if (bytes > PAIR_BYTES_MAX)
        return err_set(e, ERR_INVALID, 0, "field '%s': more than %d bytes", what, PAIR_BYTES_MAX);
    return 0;
}

static int check_mounts(const struct sandbox_spec *spec, struct err *e)
{
    if (spec->mount_count > MOUNTS_MAX || spec->volume_count > MOUNTS_MAX - spec->mount_count)
        return err_set(e, ERR_INVALID, 0, "more than %d mounts and volumes", MOUNTS_MAX);
    for (size_t i = 0; i < spec->mount_count; i++)
        if (spec->mounts[i].target.n == 0 || spec->mounts[i].target.p[0] != '/')
            return err_set(e, ERR_INVALID, 0,
                           "field 'mounts': the target '" STR_FMT "' is not an absolute path",
                           (int)size_min(spec->mounts[i].target.n, 128), spec->mounts[i].target.p);
    return 0;
}

/* The requested mounts, and those of its volumes. */
static int gather_mounts(struct sandboxes *all, const struct sandbox_spec *spec, struct str tenant,
                         const struct principal *by, struct sandbox_mount *to, struct err *e)
{
    const struct volume_asker asker = {tenant, by};

    if (spec->mount_count > 0)
        memcpy(to, spec->mounts, spec->mount_count * sizeof *to);
    to += spec->mount_count;
    for (size_t i = 0; i < spec->volume_count; i++) {
        if (!all->volumes)
            return err_set(e, ERR_UNSUPPORTED, 0, "this installation has no volumes");
        if (volume_mount(all->volumes, &spec->volumes[i], &asker, &to[i], e) < 0)
            return -1;
    }
    return 0;
}

static int check_aliases(struct sandboxes *all, const struct sandbox_spec *spec, struct str owner,
                         struct err *e)
{
    if (spec->alias_count > ALIASES_PER_OBJECT)
        return err_set(e, ERR_INVALID, 0, "more than %d aliases", ALIASES_PER_OBJECT);
    for (size_t i = 0; i < spec->alias_count; i++)
        if (sandbox_alias_check(all, owner, spec->aliases[i], e) < 0)
            return -1;
    return 0;
}

static void driver_names(const struct sandboxes *all, char *to, size_t size)
{
    const struct driver_ops *d;
    size_t n = 0;

    to[0] = '\0';
    for (size_t i = 0; (d = sandboxes_driver(all, i)) && n < size; i++)
        n += (size_t)snprintf(to + n, size - n, "%s%s", i ? ", " : "", d->name);
}

/* The named one, or without a name the host's, or the first that works; if none does, the
 * first. */
static const struct driver_slot *find_driver(const struct sandboxes *all,
                                             const struct sandbox_spec *spec)
{
    struct str name = spec->runtime;

    for (size_t i = 0; name.n == 0 && spec->host.n > 0 && i < all->driver_count; i++)
        if (str_eq_c(spec->host, host_name(&all->drivers[i])))
            return &all->drivers[i];
    for (size_t i = 0; i < all->driver_count; i++)
        if (name.n == 0 ? all->drivers[i].driver && !(all->drivers[i].ops->caps & DRIVER_JOINS)
                        : str_eq_c(name, all->drivers[i].ops->name))
            return &all->drivers[i];
    return name.n == 0 && all->driver_count > 0 ? &all->drivers[0] : NULL;
}

static const struct driver_slot *pick_driver(struct sandboxes *all, const struct sandbox_spec *spec,
                                             const struct sandbox_limits *limits, struct err *e)
{
    struct str name = spec->runtime;
    const struct driver_slot *d = find_driver(all, spec);
    char names[96];

    if (d && d->driver && d->host)
        return host_place(all, d->ops, spec->host, limits, e);
    if (d && d->driver && spec->host.n > 0) {
        err_set(e, ERR_INVALID, 0, "field 'host': runtime '%s' has no hosts", d->ops->name);
        return NULL;
    }
    if (d && d->driver)
        return d;
    if (d) {
        *e = d->why;
        err_wrap(e, "runtime '%s' does not work on this host", d->ops->name);
        return NULL;
    }
    driver_names(all, names, sizeof names);
    err_set(e, ERR_INVALID, 0, "field 'runtime': there is no runtime '" STR_FMT "'",
            (int)size_min(name.n, 64), name.p);
    err_hint(e, "available: %s", *names ? names : "none");
    return NULL;
}

static int check_share(const struct sandboxes *all, const struct sandbox_spec *spec,
                       const struct principal *by, struct err *e)
{
    const struct ceilings *c = &all->ceilings;
    size_t has = 0;

    for (size_t i = 0; i < spec->mount_count; i++)
        if (ceiling_disk(c, by, "mounts", spec->mounts[i].size_bytes, e) < 0)
            return -1;
    if (!ceiling_counts(c, by, CEILING_SANDBOXES))
        return 0;
    for (size_t i = 0; i < all->count; i++)
        has += all->sorted[i]->owner && strcmp(all->sorted[i]->owner, principal_owner(by)) == 0;
    return ceiling_count(c, by, CEILING_SANDBOXES, has, e);
}

static int check_spec(struct sandboxes *all, const struct sandbox_spec *spec,
                      const struct principal *by, struct err *e)
{
    const struct str owner = str_of(principal_owner(by));

    if ((int64_t)all->count >= all->sandboxes_max) {
        err_set(e, ERR_LIMIT, 0, "there are %lld sandboxes already", (long long)all->count);
        return err_limit(e, "sandboxes_max", all->sandboxes_max, "destroy some (holt ls, holt rm)");
    }
    if (sandbox_name_check(all, NULL, owner, spec->name, e) < 0 ||
        check_aliases(all, spec, owner, e) < 0 || check_limits(&spec->traits.limits, e) < 0 ||
        check_pairs("labels", spec->labels, spec->label_count, e) < 0 ||
        check_pairs("env", spec->env, spec->env_count, e) < 0 || check_mounts(spec, e) < 0)
        return -1;
    if (space_ask(all->space, 0, e) < 0)
        return -1;
    if (spec->traits.ttl_ms < 0 || spec->traits.idle_ttl_ms < 0)
        return err_set(e, ERR_INVALID, 0, "a lifetime must not be negative");
    return check_share(all, spec, by, e);
}

/* A sandbox made by another could reach more than its maker: another network, other mounts. */
static int check_maker(const struct principal *by, struct err *e)
{
    if (!principal_is_inside(by))
        return 0;
    err_set(e, ERR_FORBIDDEN, 0, "a sandbox cannot create sandboxes");
    return err_hint(e, "ask its owner, or use a token from outside");
}

/* Processes inside act as that agent: an agent may give only its own name. */
static int check_agent(const struct sandbox_spec *spec, const struct principal *by, struct err *e)
{
    if (spec->traits.hub && spec->agent.n == 0) {
        err_set(e, ERR_INVALID, 0, "field 'hub' needs the field 'agent'");
        return err_hint(e, "name an agent of the team");
    }
    if (spec->agent.n == 0)
        return 0;
    if (team_check_name("field 'agent'", spec->agent, e) < 0)
        return -1;
    if (by->tenant[0]) {
        err_set(e, ERR_FORBIDDEN, 0, "field 'agent': a tenant has no agents");
        return err_hint(e, "use a token without a tenant to act as an agent of the team");
    }
    if (by->role == ROLE_AGENT && !str_eq_c(spec->agent, by->agent))
        return err_set(e, ERR_FORBIDDEN, 0,
                       "field 'agent': an agent can create sandboxes only for itself");
    return 0;
}

static int check_quota(const struct sandboxes *all, const struct principal *by, struct str tenant,
                       const struct driver_ops *ops, const struct sandbox_limits *l, struct err *e)
{
    AUTO(mem_free) char *of = str_dup(tenant);

    return sandbox_quota_create(all, by, of, ops, l, e);
}

/* --- making --- */

static struct sandbox *from_spec(struct sandboxes *all, const struct sandbox_spec *spec)
{
    char id[ID_SIZE];
    struct sandbox *s = sandbox_new(all, id_make("sb", id));

    text_set(&s->name, spec->name);
    text_set(&s->failure, STR(""));
    text_set(&s->dialect, spec->dialect);
    text_set(&s->note, spec->note);
    s->traits = spec->traits;
    s->traits.wide =
        spec->calls == SANDBOX_CALLS_USUAL ? all->wide : spec->calls == SANDBOX_CALLS_WIDE;
    s->traits.relay |= s->traits.hub;
    s->require_limits = spec->require_limits;
    text_set(&s->agent, spec->agent);
    s->tx_hook = spec->tx_hook;
    s->tx_hook_arg = spec->tx_hook_arg;
    s->labels = pairs_copy(spec->labels, spec->label_count);
    s->label_count = spec->label_count;
    s->env = pairs_copy(spec->env, spec->env_count);
    s->env_count = spec->env_count;
    s->created_ms = s->last_activity_ms = clock_wall_ms();
    return s;
}

void sandbox_create(struct sandboxes *all, const struct sandbox_spec *spec,
                    const struct principal *by, sandbox_cb done, void *arg)
{
    struct err e = {0};
    struct sandbox_mount mounts[MOUNTS_MAX];
    AUTO(sandbox_net_done) struct sandbox_net net = {0};
    AUTO(mem_free) struct sandbox_secret *secrets = NULL;
    const struct driver_slot *slot = NULL;
    struct driver *d = NULL;
    struct sandbox_limits limits = spec->traits.limits;
    const struct sandbox_traits *t = &spec->traits;
    struct policy *policy = NULL;
    struct image_use use;
    struct str tenant;
    struct sandbox *s;

    if (check_maker(by, &e) == 0 && check_spec(all, spec, by, &e) == 0 &&
        check_agent(spec, by, &e) == 0 && ceiling_limits(&all->ceilings, by, &limits, &e) == 0 &&
        owner_tenant(by, spec->tenant, &tenant, &e) == 0 &&
        gather_mounts(all, spec, tenant, by, mounts, &e) == 0 &&
        sandbox_policy_choose(all, spec, by, &policy, &e) == 0)
        slot = pick_driver(all, spec, &limits, &e);
    d = slot ? slot->driver : NULL;
    if (d && check_quota(all, by, tenant, d->ops, &limits, &e) < 0)
        d = NULL;
    if (d && (t->relay || t->hub || t->process_api) && !(d->ops->caps & DRIVER_CAN_RELAY)) {
        err_set(&e, ERR_UNSUPPORTED, 0, "field '%s': runtime '%s' does not support it",
                t->relay ? "relay"
                : t->hub ? "hub"
                         : "process_api",
                d->ops->name);
        d = NULL;
    }
    if (d &&
        (sandbox_net_check(all, d, spec->network, spec->house_network ? NULL : by, &net, &e) < 0 ||
         sandbox_secrets_check(all, spec, by, &secrets, &e) < 0))
        d = NULL;
    if (!d || sandbox_choose_image(all, by, spec, &use, &e) < 0) {
        if (spec->tx_hook)
            spec->tx_hook->free(spec->tx_hook_arg);
        err_wrap(&e, "create a sandbox");
        sandbox_tell(all, NULL, done, arg, &e);
        return;
    }
    s = from_spec(all, spec);
    sandbox_policy_take(s, spec, by, policy);
    text_set(&s->tenant, tenant);
    s->traits.limits = limits;
    sandbox_set_image(s, spec->image, &use);
    s->mount_count = spec->mount_count + spec->volume_count;
    s->mounts = mounts_copy(mounts, s->mount_count);
    s->driver = d;
    sandbox_net_take(s, &net);
    s->secrets = TAKE(secrets);
    s->secret_count = spec->secret_count;
    text_set(&s->runtime, str_of(d->ops->name));
    text_set(&s->host, str_of(host_name(slot)));
    text_set(&s->owner, str_of(principal_owner(by)));
    (void)snprintf(s->actor, sizeof s->actor, "%s", by->actor);
    sandbox_add(all, s);
    for (size_t i = 0; i < spec->alias_count; i++) /* checked before: it cannot fail */
        (void)!alias_add(all->aliases, spec->aliases[i], str_of(s->id), &e);
    sandbox_owe(s, "sandbox.created");
    wait_add(&s->waits, done, arg);
    sandbox_make(s, false);
}
