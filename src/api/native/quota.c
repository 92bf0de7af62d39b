/* quota: what the caller, its tenant and all use of their quotas. */
#include "api/native/handlers.h"
#include "core/sandbox/commands.h"
#include "core/task/task.h"

struct whose {
    enum ceiling_scope scope;
    const char *who; /* NULL: all */
};

static int64_t limit_of(const struct request *r, enum ceiling_scope scope, enum ceiling_sum sum)
{
    const struct ceilings *c = sandboxes_ceilings(r->api->c.sandboxes);
    const struct config *conf = r->api->c.conf;

    if (sum == CEILING_SUM_SANDBOXES && scope == CEILING_ALL)
        return conf->sandboxes_max;
    if (sum == CEILING_SUM_SANDBOXES && scope == CEILING_OWNER)
        return ceiling_binds(&r->who) ? conf->agent_sandboxes : conf->owner_sandboxes;
    return c->sums[scope][sum];
}

static void write_rows(struct jw *w, const struct request *r, const struct whose *o)
{
    static const char *const scopes[] = {"owner", "tenant", "all"};
    const char *who = o->who ? o->who : "";
    int64_t used[CEILING_SUMS];

    sandboxes_used(r->api->c.sandboxes, o->scope, who, used);
    if (r->api->c.tasks)
        used[CEILING_SUM_TASKS] = tasks_used(r->api->c.tasks, o->scope, who);
    for (enum ceiling_sum k = 0; k < CEILING_SUMS; k++) {
        int64_t limit = limit_of(r, o->scope, k);

        jw_object(w);
        jw_kc(w, "scope", scopes[o->scope]);
        jw_kc(w, "who", o->who);
        jw_kc(w, "resource", ceiling_sum_name(k));
        jw_kint(w, "used", used[k]);
        jw_kint_if(w, "limit", limit > 0, limit);
        jw_kc(w, "setting", ceiling_sum_setting(o->scope, k));
        jw_object_end(w);
    }
}

/* What all use together is nothing for tenants and agents. */
void quota_list_run(struct request *r)
{
    struct jw w = request_json(r);

    jw_object(&w);
    jw_key(&w, "quotas");
    jw_array(&w);
    write_rows(&w, r, &(struct whose){CEILING_OWNER, principal_owner(&r->who)});
    if (r->who.tenant[0])
        write_rows(&w, r, &(struct whose){CEILING_TENANT, r->who.tenant});
    else if (!ceiling_binds(&r->who))
        write_rows(&w, r, &(struct whose){CEILING_ALL, NULL});
    jw_array_end(&w);
    jw_kc(&w, "cursor", NULL); /* always one page */
    jw_object_end(&w);
    request_send_json(r, 0);
}
