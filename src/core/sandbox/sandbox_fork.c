/* sandbox_fork: makes a sandbox like another. */
#include "core/sandbox/sandbox_layers.h"

#include "base/mem.h"
#include "core/sandbox/sandbox_internal.h"

static void set_limits(struct sandbox_limits *to, const struct sandbox_limits *l)
{
    to->memory_bytes = l->memory_bytes ? l->memory_bytes : to->memory_bytes;
    to->cpu_millis = l->cpu_millis ? l->cpu_millis : to->cpu_millis;
    to->pids = l->pids ? l->pids : to->pids;
    to->disk_bytes = l->disk_bytes ? l->disk_bytes : to->disk_bytes;
    to->nofile = l->nofile ? l->nofile : to->nofile;
}

/* What leads out of it is not inherited: it is for somebody to give again. */
static struct sandbox_traits traits_of(const struct sandbox *was, const struct sandbox_fork *f)
{
    struct sandbox_traits t = was->traits;

    t.relay = t.process_api = t.hub = t.one_shot = t.protected = false;
    t.memory_upper = false;
    t.ttl_ms = f->ttl_ms;
    t.idle_ttl_ms = f->idle_ttl_ms;
    set_limits(&t.limits, &f->limits);
    return t;
}

static bool is_given(const struct pair *p, size_t n, struct str key)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(p[i].key, key))
            return true;
    return false;
}

/* A variable of a secret holds a placeholder that means nothing in another sandbox. */
static bool is_secret(const struct sandbox *was, struct str key)
{
    for (size_t i = 0; i < was->secret_count; i++)
        if (str_eq_c(key, was->secrets[i].env))
            return true;
    return false;
}

static struct pair *env_of(const struct sandbox *was, const struct sandbox_fork *f, size_t *ret_n)
{
    struct pair *to = xzalloc((was->env_count + f->env_count + 1) * sizeof *to);
    size_t n = 0;

    for (size_t i = 0; i < was->env_count; i++)
        if (!is_given(f->env, f->env_count, was->env[i].key) && !is_secret(was, was->env[i].key))
            to[n++] = was->env[i];
    for (size_t i = 0; i < f->env_count; i++)
        to[n++] = f->env[i];
    *ret_n = n;
    return to;
}

static struct sandbox_mount *mounts_of(const struct sandbox *was, size_t *ret_n)
{
    struct sandbox_mount *to = xzalloc((was->mount_count + 1) * sizeof *to);
    size_t n = 0;

    for (size_t i = 0; i < was->mount_count; i++)
        if (str_eq_c(was->mounts[i].kind, "tmpfs") || str_eq_c(was->mounts[i].kind, "own"))
            to[n++] = was->mounts[i];
    *ret_n = n;
    return to;
}

void sandbox_fork(struct sandboxes *l, struct str text, const struct sandbox_fork *f,
                  const struct principal *by, sandbox_cb done, void *arg)
{
    char id[ID_SIZE];
    AUTO(sandbox_unref) struct sandbox *was = sandbox_new(l, id_make("sb", id));
    AUTO(mem_free) struct pair *env = NULL;
    AUTO(mem_free) struct sandbox_mount *mounts = NULL;
    struct policy_info policy = {.id = ""};
    struct sandbox_spec spec;
    struct err e = {0};

    if (sandbox_get_spec(was, text, &e) < 0 || sandbox_policy_check(was, &e) < 0) {
        sandbox_tell(l, NULL, done, arg, &e);
        return;
    }
    if (was->policy)
        policy_info(was->policy, &policy);
    spec = (struct sandbox_spec){
        .policy = str_of(policy.id), /* rules hold for what is made from it, too */
        .name = f->name,
        .image = f->base,
        .runtime = f->runtime,
        .traits = traits_of(was, f),
        .calls = was->traits.wide ? SANDBOX_CALLS_WIDE : SANDBOX_CALLS_NARROW,
        .labels = f->labels,
        .label_count = f->label_count,
        .network = f->network.n > 0 ? f->network : str_of(was->network),
        .volumes = f->volumes,
        .volume_count = f->volume_count,
        .secrets = f->secrets,
        .secret_count = f->secret_count,
        .dialect = f->dialect,
        .note = f->note,
        .aliases = f->aliases,
        .alias_count = f->alias_count,
    };
    spec.env = env = env_of(was, f, &spec.env_count);
    spec.mounts = mounts = mounts_of(was, &spec.mount_count);
    sandbox_create(l, &spec, by, done, arg);
    was->policy = policy_release(was->policy);
}
