/* exec_policy: applies the policies in force to a command before it starts. */
#include "core/exec/exec_internal.h"

#include "base/mem.h"
#include "core/policy/policy.h"
#include "proto/json.h"

#include <stdio.h>

/* --- the record of a refusal --- */

struct refusal {
    char object[ID_SIZE + 16], actor[64];
    struct buf data;
};

static int refusal_work(struct store_tx *tx, void *arg, struct err *e)
{
    const struct refusal *r = arg;

    (void)e;
    tx_event(tx,
             &(struct event_spec){.type = "policy.refused",
                                  .object = r->object,
                                  .actor = r->actor,
                                  .data = buf_str(&r->data)},
             NULL);
    return 0;
}

static void refusal_written(void *arg, const struct err *e)
{
    struct refusal *r = arg;

    (void)e; /* the store reports its own faults */
    buf_done(&r->data);
    mem_free(r);
}

/* Without the arguments: they may hold what only the caller knows. */
static void record_refusal(const struct sandbox *s, const struct exec_spec *spec,
                           const struct policy *p, const struct principal *by, const struct err *e)
{
    struct refusal *r = xzalloc(sizeof *r);
    struct jw w = {.to = &r->data};
    struct policy_info i;

    policy_info(p, &i);
    (void)snprintf(r->object, sizeof r->object, "sandbox/%s", sandbox_id(s));
    (void)snprintf(r->actor, sizeof r->actor, "%s", by->actor);
    jw_object(&w);
    jw_kstr(&w, "policy", i.name);
    jw_kc(&w, "why", e->msg);
    jw_kstr(&w, "program", spec->argc > 0 ? spec->argv[0] : STR("/bin/sh"));
    jw_object_end(&w);
    store_write(exec_set_of(s)->all->store, STORE_RELAXED, refusal_work, refusal_written, r);
}

/* --- one policy --- */

static int check_time(const struct policy *p, const struct policy_rules *r, int64_t asked_ms,
                      struct err *e)
{
    if (r->timeout_max_ms == 0 || asked_ms <= r->timeout_max_ms)
        return 0;
    return policy_refuse(p, e, "timeout_ms %lld is above its timeout_max_ms %lld",
                         (long long)asked_ms, (long long)r->timeout_max_ms);
}

static int64_t least(int64_t a, int64_t b) /* 0: none */
{
    return a == 0 ? b : b == 0 ? a : i64_min(a, b);
}

static int apply_one(const struct policy *p, const struct policy_command *c,
                     const struct exec_spec *asked, struct exec_spec *spec, struct err *e)
{
    struct policy_info i;
    const struct policy_rules *r;

    policy_info(p, &i);
    r = i.rules;
    if (policy_check_command(p, c, e) < 0 || check_time(p, r, asked->timeout_ms, e) < 0)
        return -1;
    if (asked->timeout_ms == 0)
        spec->timeout_ms = least(spec->timeout_ms, least(r->timeout_ms, r->timeout_max_ms));
    spec->output_bytes = least(spec->output_bytes, r->output_bytes);
    return 0;
}

static int apply_all(const struct sandbox *s, const struct policy_force *f,
                     const struct policy_command *c, const struct exec_spec *asked,
                     struct exec_spec *spec, const struct principal *by, struct err *e)
{
    for (size_t i = 0; i < f->n; i++)
        if (apply_one(f->v[i], c, asked, spec, e) < 0) {
            record_refusal(s, asked, f->v[i], by, e);
            return err_wrap(e, "run a command in sandbox '%s'", sandbox_id(s));
        }
    return 0;
}

/* --- all --- */

int exec_apply_policies(const struct sandbox *s, struct exec_spec *spec, const struct principal *by,
                        struct err *e)
{
    const struct execs *all = exec_set_of(s)->all;
    const struct exec_spec asked = *spec;
    AUTO(mem_free) struct str *names = xzalloc(size_max(spec->env_count, 1) * sizeof *names);
    const struct policy_command c = {.argv = spec->argv,
                                     .argc = spec->argc,
                                     .line = spec->shell,
                                     .env = names,
                                     .env_count = spec->env_count};
    struct policy_force of_sandbox, of_caller;

    for (size_t i = 0; i < spec->env_count; i++)
        names[i] = spec->env[i].key;
    sandbox_policies(s, &of_sandbox);
    sandbox_policies_of(s, by, &of_caller);
    if (apply_all(s, &of_sandbox, &c, &asked, spec, by, e) < 0 ||
        apply_all(s, &of_caller, &c, &asked, spec, by, e) < 0)
        return -1;
    if (asked.output_bytes == 0 && spec->output_bytes >= all->output_bytes)
        spec->output_bytes = 0; /* the setting is lower */
    if (spec->timeout_ms == 0)
        spec->timeout_ms =
            spec->name.n > 0 || spec->standing ? all->session_time_ms : all->command_time_ms;
    return 0;
}
