/* commands: what a sandbox lets its commands know and do. */
#include "core/sandbox/commands.h"

#include "core/sandbox/sandbox_internal.h"

/* --- the registry --- */

struct execs *sandboxes_execs(const struct sandboxes *all)
{
    return all->execs;
}

struct sandbox *sandboxes_get(const struct sandboxes *all, struct str id)
{
    return map_get(&all->by_id, id);
}

bool sandboxes_is_closed(const struct sandboxes *all)
{
    return all->closed;
}

const struct ceilings *sandboxes_ceilings(const struct sandboxes *all)
{
    return &all->ceilings;
}

size_t sandboxes_live_of(const struct sandboxes *all, const char *owner)
{
    size_t n = 0;

    for (size_t i = 0; i < all->count; i++)
        if (all->sorted[i]->owner && owner && strcmp(all->sorted[i]->owner, owner) == 0)
            n += all->sorted[i]->commands->live;
    return n;
}

/* --- one sandbox --- */

const char *sandbox_id(const struct sandbox *s)
{
    return s->id;
}

const char *sandbox_owner(const struct sandbox *s)
{
    return s->owner;
}

struct sandbox_commands *sandbox_commands(const struct sandbox *s)
{
    return s->commands;
}

const struct sandbox_defaults *sandbox_defaults(const struct sandbox *s)
{
    return &s->defaults;
}

const struct sandbox_traits *sandbox_traits(const struct sandbox *s)
{
    return &s->traits;
}

bool sandbox_is_listed(const struct sandbox *s)
{
    return s->presence.state == PRESENCE_LISTED || s->presence.state == PRESENCE_LEAVING;
}

int sandbox_takes_commands(const struct sandbox *s, struct err *e)
{
    if (sandbox_policy_check(s, e) < 0)
        return -1;
    if (s->sm.state == SANDBOX_RUNNING && s->presence.state == PRESENCE_LISTED)
        return 0;
    err_set(e, ERR_CONFLICT, 0, "run a command in sandbox '%s': it is %s", s->id,
            sandbox_is_leaving(s) ? "being destroyed" : sm_name(&s->sm));
    err_object(e, "sandbox", s->id);
    if (s->sm.state == SANDBOX_PAUSED)
        err_hint(e, "resume it: holt resume %s", s->id);
    else if (s->sm.state == SANDBOX_STOPPED)
        err_hint(e, "start it: holt start %s", s->id);
    return -1;
}

static void add(struct pair *to, size_t *n, const struct pair *from, size_t count)
{
    if (count > 0)
        memcpy(to + *n, from, count * sizeof *from);
    *n += count;
}

const struct pair *sandbox_env(const struct sandbox *s, struct arena *a, size_t *ret_n)
{
    size_t most = s->env_count + s->secret_count + sandbox_net_env_count + sandbox_trust_env_count +
                  s->defaults.env_count;
    struct pair *env = arena_zalloc(a, most * sizeof *env);
    size_t n = 0;

    add(env, &n, s->env, s->env_count);
    for (size_t i = 0; i < s->secret_count; i++)
        env[n++] = (struct pair){str_of(s->secrets[i].env), str_of(s->secrets[i].placeholder)};
    if (sandbox_is_networked(s))
        add(env, &n, sandbox_net_env, sandbox_net_env_count);
    if (s->wire == WIRE_TRUSTS)
        add(env, &n, sandbox_trust_env, sandbox_trust_env_count);
    add(env, &n, s->defaults.env, s->defaults.env_count);
    assert(n <= most);
    *ret_n = n;
    return env;
}

const uint8_t *sandbox_epoch(const struct sandbox *s)
{
    return s->known_epoch ? s->epoch : NULL;
}

struct guest *sandbox_link(const struct sandbox *s)
{
    return sandbox_is_linked(s) ? s->guest : NULL;
}

int64_t sandbox_oom_ms(const struct sandbox *s)
{
    return s->oom_ms;
}

bool sandbox_ooms(struct sandbox *s, driver_done done, void *arg)
{
    if (s->traits.limits.memory_bytes <= 0 || !(s->enforced & LIMIT_MEMORY) || !s->driver ||
        !s->driver->ops->ooms)
        return false;
    s->driver->ops->ooms(s->driver, s->id, done, arg);
    return true;
}

bool sandbox_kill(struct sandbox *s, enum driver_scope scope, driver_done done, void *arg)
{
    if (!s->driver)
        return false;
    s->driver->ops->kill(s->driver, s->id, scope, done, arg);
    return true;
}
