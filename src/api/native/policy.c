/* policy: policies: create, list, get, update, remove. */
#include "core/policy/policy.h"
#include "api/native/handlers.h"
#include "api/reply_list.h"
#include "api/share/sandbox.h"
#include "base/mem.h"
#include "ops/policy.h"
#include "proto/json.h"

static void write_policy(struct jw *w, const struct policy *p)
{
    struct policy_info i;

    policy_info(p, &i);
    jw_object(w);
    jw_kc(w, "id", i.id);
    jw_kstr(w, "name", i.name);
    jw_kbool(w, "shipped", i.shipped);
    policy_put_rules(w, i.rules);
    jw_kint(w, "sandboxes", (int64_t)i.sandboxes);
    jw_kstr(w, "created_by", i.created_by);
    jw_ktime(w, "created_at", i.created_ms);
    jw_ktime(w, "updated_at", i.updated_ms);
    jw_object_end(w);
}

struct policy_call_of {
    struct waiter waiter;
    struct principal by;
};

static void policy_done(void *arg, struct policy *p, const struct err *e)
{
    AUTO(mem_free) struct policy_call_of *j = arg;
    struct request *r = waiter_end(&j->waiter);
    struct jw w;

    if (!r)
        return;
    if (e->code != ERR_NONE) {
        request_fail(r, e);
    } else if (!p) {
        request_send_empty(r);
    } else {
        w = request_json(r);
        write_policy(&w, p);
        request_send_json(r, 0);
    }
}

/* Begins a change; begun < 0: it was refused. */
static void policy_wait(struct request *r, struct policy_call_of *j, int begun, const struct err *e)
{
    if (begun == 0) {
        request_wait(r, &j->waiter);
        return;
    }
    mem_free(j);
    request_fail(r, e);
}

static struct policy_call_of *call_new(const struct request *r)
{
    struct policy_call_of *j = xzalloc(sizeof *j);

    j->by = request_who(r);
    return j;
}

/* The decoded values: a duration may be given as "30s". */
static json_t *given_rules(const json_t *body, const struct policy_fields *f)
{
    json_t *rules = json_object();
    const struct {
        const char *name;
        int64_t v;
    } numbers[] = {{"timeout_ms", f->timeout_ms},
                   {"timeout_max_ms", f->timeout_max_ms},
                   {"output_bytes", f->output_bytes}};

    for (size_t i = 0; i < POLICY_LIST_COUNT; i++)
        if (json_object_get(body, policy_lists[i]))
            json_object_set(rules, policy_lists[i], json_object_get(body, policy_lists[i]));
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        if (json_object_get(body, numbers[i].name))
            json_object_set_new(rules, numbers[i].name, json_integer(numbers[i].v));
    return rules;
}

void policy_create_run(struct request *r)
{
    const struct policy_create_in *in = r->in;
    AUTO(json_decref) json_t *rules = given_rules(r->body, &in->rules);
    struct policy_call_of *j = call_new(r);
    struct err e = {0};

    policy_wait(r, j,
                policy_create(r->api->c.policies, in->name, rules,
                              &(struct policy_call){&j->by, policy_done, j}, &e),
                &e);
}

void policy_list_run(struct request *r)
{
    const struct policy_list_in *in = r->in;
    struct jw w = request_json(r);
    struct policy_info i;
    struct reply_list l;

    reply_list_begin(&l, &w, "policies", STR(""), in->limit);
    for (struct policy *p = policy_next(r->api->c.policies, in->cursor); p && !l.more;
         p = policy_next(r->api->c.policies, str_of(i.id))) {
        policy_info(p, &i);
        if (reply_list_take(&l, str_of(i.id)))
            write_policy(&w, p);
    }
    reply_list_end(&l);
    request_send_json(r, 0);
}

static struct policy *request_policy(struct request *r, struct str id)
{
    struct err e = {0};
    struct policy *p = policy_find(r->api->c.policies, id, &e);

    if (!p)
        request_fail(r, &e);
    return p;
}

void policy_get_run(struct request *r)
{
    const struct policy_id_in *in = r->in;
    const struct policy *p = request_policy(r, in->id);
    struct jw w;

    if (!p)
        return;
    w = request_json(r);
    write_policy(&w, p);
    request_send_json(r, 0);
}

void policy_update_run(struct request *r)
{
    const struct policy_update_in *in = r->in;
    AUTO(json_decref) json_t *rules = given_rules(r->body, &in->rules);
    struct policy *p = request_policy(r, in->id);
    struct policy_call_of *j;
    struct err e = {0};

    if (!p)
        return;
    j = call_new(r);
    policy_wait(r, j, policy_update(p, rules, &(struct policy_call){&j->by, policy_done, j}, &e),
                &e);
}

void policy_remove_run(struct request *r)
{
    const struct policy_id_in *in = r->in;
    struct policy *p = request_policy(r, in->id);
    struct policy_call_of *j;
    struct err e = {0};

    if (!p)
        return;
    j = call_new(r);
    policy_wait(r, j, policy_remove(p, &(struct policy_call){&j->by, policy_done, j}, &e), &e);
}
