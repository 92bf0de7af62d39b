/* sandbox_policy: the policies of a sandbox, and their path rules for its init. */
#include "core/sandbox/sandbox_internal.h"

#include "base/log.h"
#include "base/mem.h"

void sandbox_policies(const struct sandbox *s, struct policy_force *ret)
{
    policies_in_force(s->all->policies,
                      &(struct policy_subject){.own = s->policy,
                                               .agent = str_of(s->policy_agent),
                                               .by_agent = s->by_agent},
                      ret);
}

static void policies_of(const struct sandboxes *all, const struct principal *by,
                        struct policy_force *ret)
{
    policies_in_force(
        all->policies,
        &(struct policy_subject){.agent = str_of(by->agent), .by_agent = by->role == ROLE_AGENT},
        ret);
}

void sandbox_policies_of(const struct sandbox *s, const struct principal *by,
                         struct policy_force *ret)
{
    policies_of(s->all, by, ret);
}

static int each_denied(const struct policy_force *f, void (*each)(void *arg, struct str path),
                       void *arg, struct err *e)
{
    struct policy_info i;

    for (size_t k = 0; k < f->n; k++) {
        const struct policy_texts *paths;

        policy_info(f->v[k], &i);
        paths = &i.rules->list[POLICY_PATHS_DENY];
        if (i.rules->list[POLICY_PATHS_ALLOW].n > 0)
            return policy_refuse(f->v[k], e, "files would be read outside of the paths allowed");
        for (size_t n = 0; n < paths->n; n++)
            each(arg, paths->v[n]);
    }
    return 0;
}

int sandbox_denied(const struct sandboxes *all, const struct sandbox *s, const struct principal *by,
                   void (*each)(void *arg, struct str path), void *arg, struct err *e)
{
    struct policy_force f = {0};

    if (by->role != ROLE_AGENT || !all->policies)
        return 0;
    policies_of(all, by, &f);
    if (each_denied(&f, each, arg, e) < 0)
        return -1;
    f = (struct policy_force){0};
    if (s)
        sandbox_policies(s, &f);
    return each_denied(&f, each, arg, e);
}

bool sandbox_has_path_rules(const struct sandbox *s)
{
    struct policy_force f;

    sandbox_policies(s, &f);
    return policy_has_paths(&f);
}

/* A database that lost a policy must not set its sandboxes free. */
int sandbox_policy_check(const struct sandbox *s, struct err *e)
{
    if (!s->policy_lost)
        return 0;
    err_set(e, ERR_CONFLICT, 0, "the policy of sandbox '%s' no longer exists", s->id);
    err_object(e, "sandbox", s->id);
    return err_hint(e, "give it another: holt update %s --policy NAME", s->id);
}

/* --- choosing --- */

int sandbox_policy_choose(struct sandboxes *all, const struct sandbox_spec *spec,
                          const struct principal *by, struct policy **ret, struct err *e)
{
    struct policy_subject subject = {
        .agent = spec->agent.n > 0 ? spec->agent : str_of(by->agent),
        .by_agent = by->role == ROLE_AGENT,
    };
    struct policy_force f;

    *ret = NULL;
    if (spec->policy.n > 0 && !all->policies)
        return err_set(e, ERR_UNSUPPORTED, 0, "field 'policy': this installation has no policies");
    if (spec->policy.n > 0) {
        *ret = subject.own = policy_find(all->policies, spec->policy, e);
        if (!*ret)
            return err_wrap(e, "field 'policy'");
    }
    policies_in_force(all->policies, &subject, &f);
    if (!spec->traits.nesting || !policy_has_paths(&f))
        return 0;
    err_set(e, ERR_INVALID, 0, "field 'nesting': not with the path rules of a policy");
    return err_hint(e, "a process that is held to paths cannot mount; leave out one of the two");
}

void sandbox_policy_take(struct sandbox *s, const struct sandbox_spec *spec,
                         const struct principal *by, struct policy *own)
{
    s->policy = policy_hold(own);
    text_set(&s->policy_agent, spec->agent.n > 0 ? spec->agent : str_of(by->agent));
    s->by_agent = by->role == ROLE_AGENT;
    s->require_paths = spec->require_paths;
    s->ruled = sandbox_has_path_rules(s);
}

int sandbox_policy_change(struct sandbox *s, struct str name, const struct principal *by,
                          struct err *e)
{
    struct policy *p = NULL;

    if (by->role == ROLE_AGENT) {
        err_set(e, ERR_FORBIDDEN, 0, "field 'policy': not for an agent");
        return err_hint(e, "ask a person to change it");
    }
    if (name.n > 0 && !s->all->policies)
        return err_set(e, ERR_UNSUPPORTED, 0, "this installation has no policies");
    if (name.n > 0 && !(p = policy_find(s->all->policies, name, e)))
        return err_wrap(e, "field 'policy'");
    if (p && s->traits.nesting && policy_has_paths(&(struct policy_force){.v = {p}, .n = 1}))
        return err_set(e, ERR_CONFLICT, 0, "sandbox '%s' has nesting: path rules cannot hold it",
                       s->id);
    policy_release(s->policy);
    s->policy = policy_hold(p);
    s->policy_lost = false;
    return 0;
}

/* --- to its init --- */

static size_t put_layer(struct guest_rule_row *to, uint8_t layer, const struct policy *p)
{
    static const enum guest_rule kinds[] = {
        [POLICY_PATHS_ALLOW] = GUEST_RULE_PATH_ALLOW,
        [POLICY_PATHS_DENY] = GUEST_RULE_PATH_DENY,
        [POLICY_WRITE_ALLOW] = GUEST_RULE_WRITE_ALLOW,
        [POLICY_WRITE_DENY] = GUEST_RULE_WRITE_DENY,
    };
    struct policy_info i;
    size_t n = 0;

    policy_info(p, &i);
    to[n++] = (struct guest_rule_row){layer, GUEST_RULE_NAME, i.name};
    for (size_t l = POLICY_PATHS_ALLOW; l <= POLICY_WRITE_DENY; l++)
        for (size_t k = 0; k < i.rules->list[l].n; k++)
            to[n++] = (struct guest_rule_row){layer, (uint8_t)kinds[l], i.rules->list[l].v[k]};
    return n;
}

void sandbox_send_rules(struct sandbox *s)
{
    AUTO(mem_free) struct guest_rule_row *rows = xmalloc(GUEST_RULES_MAX * sizeof *rows);
    struct policy_force f;
    struct err e = {0};
    uint8_t layers = 0;
    size_t n = 0;

    sandbox_policies(s, &f);
    for (size_t i = 0; i < f.n; i++)
        if (policy_has_paths(&(struct policy_force){.v = {f.v[i]}, .n = 1}))
            n += put_layer(rows + n, layers++, f.v[i]);
    if (n > 0 && !s->ruled) {
        s->ruled = true; /* from now on each connection says which hold, even if none do */
        sandbox_save(s, NULL);
    }
    if (!s->guest || !s->ruled)
        return;
    /* The limits of a policy make them fit; a connection without its rules must not stay. */
    if (guest_rules(s->guest, &(struct guest_rules){{.count = (uint32_t)n, .items = rows}}, &e) <
        0) {
        log_error("the path rules of a sandbox could not be sent", LOG_C("id", s->id), LOG_E(&e));
        link_close(s);
    }
}

/* Whether the kernel inside holds commands to the rules, all of them. */
int sandbox_ruled(struct sandbox *s, struct err *e)
{
    uint32_t version = guest_landlock(s->guest);

    s->enforced &= ~(uint32_t)LIMIT_PATHS;
    if (version >= SANDBOX_LANDLOCK)
        s->enforced |= LIMIT_PATHS;
    if (!s->require_paths || (s->enforced & LIMIT_PATHS) || !sandbox_has_path_rules(s))
        return 0;
    if (version == 0)
        err_set(e, ERR_UNSUPPORTED, 0,
                "field 'require_paths': the kernel inside has no Landlock: commands are not held "
                "to path rules");
    else
        err_set(e, ERR_UNSUPPORTED, 0,
                "field 'require_paths': Landlock %u of the kernel inside does not hold truncate",
                version);
    return err_hint(e, "take another runtime or kernel (Linux 6.2); without require_paths the "
                       "sandbox is created anyway");
}

static void policies_changed(void *arg)
{
    struct sandboxes *all = arg;

    for (size_t i = 0; i < all->count; i++)
        sandbox_send_rules(all->sorted[i]);
}

void sandboxes_follow_policies(struct sandboxes *all)
{
    if (all->policies)
        policies_on_change(all->policies, policies_changed, all);
}
