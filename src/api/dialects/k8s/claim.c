/* claim: SandboxClaims: core/claim in Kubernetes' form. */
#include "api/dialects/k8s/k8s.h"

#include "base/clock.h"
#include "base/mem.h"

#include <inttypes.h>

#define ENV_MAX 512

/* --- as an object: from a claim, or from an event about it --- */

struct view {
    const char *id;
    struct str name, space, reason, message, sandbox;
    json_t *spec, *meta; /* owned */
    bool ready, leaving;
    int64_t created_ms, moved_ms, version, generation;
};

static json_t *status_of(const struct view *v)
{
    json_t *s = json_object(), *all = json_array();

    if (v->sandbox.n > 0)
        json_object_set_new(s, "sandbox", json_pack("{s:o}", "name", k8s_str(v->name)));
    if (v->reason.n > 0)
        json_array_append_new(all,
                              k8s_condition("Ready", v->ready, v->reason, v->message, v->moved_ms));
    if (str_eq_c(v->reason, "PodFailed") || str_eq_c(v->reason, "PodSucceeded"))
        json_array_append_new(all,
                              k8s_condition("Finished", true, v->reason, v->message, v->moved_ms));
    json_object_set_new(s, "conditions", all);
    return s;
}

/* Takes spec and meta of v. */
static json_t *object_of(struct api *a, const struct view *v)
{
    const struct k8s_identity i = {.kind = &k8s_claims,
                                   .name = v->name,
                                   .space = v->space,
                                   .id = v->id,
                                   .created_ms = v->created_ms,
                                   .version = v->version,
                                   .generation = v->generation};
    json_t *o = k8s_object(a, &i);

    k8s_set_meta(o, "labels", json_incref(json_object_get(v->meta, "labels")));
    k8s_set_meta(o, "annotations", json_incref(json_object_get(v->meta, "annotations")));
    if (v->leaving)
        json_object_set_new(json_object_get(o, "metadata"), "deletionTimestamp",
                            k8s_time(clock_wall_ms()));
    json_object_set_new(o, "spec", v->spec);
    json_object_set_new(o, "status", status_of(v));
    json_decref(v->meta);
    return o;
}

static json_t *read_json(struct str text)
{
    json_t *o = json_loadb(text.p, text.n, 0, NULL);

    return o ? o : json_object();
}

static bool is_owner(const struct principal *by, struct str owner)
{
    return str_eq_c(owner, principal_owner(by));
}

static json_t *claim_object(struct api *a, const struct principal *by, const struct claim *c)
{
    struct claim_info i;
    struct view v;

    claim_info(c, &i);
    v = (struct view){.id = i.id,
                      .name = i.name,
                      .space = i.space,
                      .reason = i.state.reason,
                      .message = i.state.message,
                      .sandbox = i.state.sandbox,
                      .spec = read_json(i.spec),
                      .meta = read_json(i.meta),
                      .ready = i.state.ready,
                      .leaving = k8s_claim_is_leaving(a, i.id),
                      .created_ms = i.created_ms,
                      .moved_ms = i.moved_ms,
                      .generation = i.generation};
    if (!is_owner(by, i.owner))
        claim_hide(v.spec, v.meta);
    return object_of(a, &v);
}

static int64_t time_of(const json_t *data, const char *key)
{
    int64_t ms = 0;

    return clock_parse(k8s_text(data, key), &ms) == 0 ? ms : 0;
}

static json_t *claim_at_event(struct api *a, const struct principal *by, const struct event *ev,
                              bool *ret_gone, bool *ret_new)
{
    AUTO(json_decref) json_t *data = read_json(ev->data);
    const struct claim *c = claim_get(a->c.claims, k8s_text(data, "id"));
    struct claim_info now;
    struct view v;

    *ret_gone = str_eq_c(ev->type, "claim.removed");
    *ret_new = str_eq_c(ev->type, "claim.created");
    if (!str_starts(ev->type, STR("claim.")) || !k8s_may_see(by, data, STR("")))
        return NULL;
    v = (struct view){
        .id = json_string_value(json_object_get(data, "id")),
        .name = k8s_text(data, "name"),
        .space = k8s_text(data, "space"),
        .reason = k8s_text(data, "reason"),
        .message = k8s_text(data, "message"),
        .sandbox = k8s_text(data, "sandbox"),
        .spec = json_incref(json_object_get(data, "spec")),
        .meta = json_incref(json_object_get(data, "meta")),
        .ready = json_is_true(json_object_get(data, "ready")),
        .created_ms = time_of(data, "created_at"),
        .moved_ms = time_of(data, "moved_at"),
        .version = ev->seq,
        .generation = json_integer_value(json_object_get(data, "generation")),
    };
    /* the log has no values of environments, its owner may have them */
    if (c && is_owner(by, k8s_text(data, "owner"))) {
        claim_info(c, &now);
        json_decref(v.spec);
        v.spec = read_json(now.spec);
    }
    return v.id ? object_of(a, &v) : (json_decref(v.spec), json_decref(v.meta), NULL);
}

static json_t *claim_list(struct api *a, const struct principal *by, struct str space)
{
    json_t *all = json_array();
    struct claim_info i;

    for (struct claim *c = claim_next(a->c.claims, by, STR("")); c;
         c = claim_next(a->c.claims, by, str_of(i.id))) {
        claim_info(c, &i);
        if (space.n == 0 || str_eq(space, i.space))
            json_array_append_new(all, claim_object(a, by, c));
    }
    return all;
}

static json_t *claim_lookup(struct api *a, const struct principal *by, struct str space,
                            struct str name, struct err *e)
{
    struct claim *c = claim_find(a->c.claims, by, OWNER_SEE, space, name, e);

    return c ? claim_object(a, by, c) : NULL;
}

/* --- reading --- */

/* A time, or nothing: 0. */
static int read_time(const json_t *in, const char *key, int64_t *ret)
{
    const json_t *v = json_object_get(in, key);

    *ret = 0;
    if (!v || json_is_null(v))
        return 0;
    return json_is_string(v) && clock_parse(k8s_text(in, key), ret) == 0 && *ret > 0 ? 0 : -1;
}

static const char *read_lifecycle(const json_t *spec, struct claim_times *ret)
{
    const json_t *life = json_object_get(spec, "lifecycle");
    const json_t *ttl = json_object_get(life, "ttlSecondsAfterFinished");
    struct str policy = k8s_text(life, "shutdownPolicy");

    *ret = (struct claim_times){.removes = str_starts(policy, STR("Delete"))};
    if (life && !json_is_null(life) && !json_is_object(life))
        return "spec.lifecycle: must be an object";
    if (read_time(life, "shutdownTime", &ret->shutdown_ms) < 0)
        return "spec.lifecycle.shutdownTime: must be a time of RFC 3339";
    if (policy.n > 0 && !str_eq_c(policy, "Retain") && !str_eq_c(policy, "Delete") &&
        !str_eq_c(policy, "DeleteForeground"))
        return "spec.lifecycle.shutdownPolicy: supported values: \"Delete\", "
               "\"DeleteForeground\", \"Retain\"";
    if (!ttl || json_is_null(ttl))
        return NULL;
    if (!json_is_integer(ttl) || json_integer_value(ttl) < 0 || json_integer_value(ttl) > INT32_MAX)
        return "spec.lifecycle.ttlSecondsAfterFinished: must be a whole number from 0";
    ret->forget = true;
    ret->keep_ms = json_integer_value(ttl) * 1000;
    return NULL;
}

static const char *check_env(const json_t *spec)
{
    const json_t *env = json_object_get(spec, "env"), *v;
    size_t i;

    if (!env || json_is_null(env))
        return NULL;
    if (!json_is_array(env) || json_array_size(env) > ENV_MAX)
        return "spec.env: must be a list of at most 512 variables";
    json_array_foreach(env, i, v)
    {
        if (!json_is_object(v) || k8s_text(v, "name").n == 0)
            return "spec.env: each variable has a name";
        if (json_object_get(v, "valueFrom"))
            return "spec.env: valueFrom is not supported here: use the secrets of a template";
        if (json_object_get(v, "value") && !json_is_string(json_object_get(v, "value")))
            return "spec.env: a value is a string";
    }
    return NULL;
}

/* NULL: it is as it must be. */
static const char *read_spec(const json_t *object, struct claim_spec *ret)
{
    const json_t *spec = json_object_get(object, "spec"), *pod;
    const char *wrong;

    if (!json_is_object(spec))
        return "spec: Required value";
    ret->template = k8s_text(json_object_get(spec, "warmPoolRef"), "name");
    if (ret->template.n == 0 || ret->template.n > 255)
        return "spec.warmPoolRef.name: Required value";
    pod = json_object_get(spec, "additionalPodMetadata");
    if (pod && !json_is_null(pod) && !json_is_object(pod))
        return "spec.additionalPodMetadata: must be an object";
    wrong = check_env(spec);
    return wrong ? wrong : read_lifecycle(spec, &ret->times);
}

static void refuse_spec(struct request *r, struct str name, const char *wrong)
{
    const char *colon = strstr(wrong, ": ");
    char *field = arena_cstr(xchg_arena(r->x), str_make(wrong, (size_t)(colon - wrong)));

    k8s_invalid(r, &k8s_claims, name, field, colon + 2);
}

/* old: what its owner alone sees stays when another changes the rest; or empty. */
static char *meta_text(const json_t *object, struct str old)
{
    const json_t *meta = k8s_meta(object);
    AUTO(json_decref) json_t *before = read_json(old);
    json_t *applied = json_object_get(json_object_get(before, "annotations"), CLAIM_APPLIED);
    json_t *kept = json_object(),
           *annotations = json_deep_copy(json_object_get(meta, "annotations"));
    char *text;

    if (applied && !json_is_object(annotations)) {
        json_decref(annotations);
        annotations = json_object();
    }
    if (applied && !json_object_get(annotations, CLAIM_APPLIED))
        json_object_set(annotations, CLAIM_APPLIED, applied);
    json_object_set(kept, "labels", json_object_get(meta, "labels"));
    json_object_set_new(kept, "annotations", annotations);
    text = json_dumps(kept, JSON_COMPACT);
    json_decref(kept);
    return text;
}

/* --- create --- */

struct claim_job {
    struct waiter waiter;
    struct k8s *k;
    int status;
    char id[ID_SIZE];
};

static void job_ended(void *arg, struct named *n, const struct err *e)
{
    AUTO(mem_free) struct claim_job *j = arg;
    struct request *r = waiter_end(&j->waiter);
    struct claim *c = claim_of(n);

    if (r && e->code != ERR_NONE)
        k8s_refuse(r, e);
    else if (r)
        k8s_send(r, j->status, claim_object(r->api, &r->who, c));
    if (e->code == ERR_NONE)
        k8s_claim_begin(j->k, c);
}

/* jansson's texts are released with free. */
static void begin(struct request *r, struct claim *old, struct claim_spec *spec, bool relabelled)
{
    struct claim_job *j = xzalloc(sizeof *j);
    const struct principal by = request_who(r);
    const struct named_call call = {&by, job_ended, j};
    struct err e = {0};
    int made;

    j->k = k8s_of(r->api);
    j->status = old ? 200 : 201;
    made = old ? claim_change(old, spec, relabelled, &call, &e)
               : claim_create(r->api->c.claims, spec, &call, &e);
    if (made == 0) {
        request_wait(r, &j->waiter);
        return;
    }
    mem_free(j);
    if (e.code == ERR_CONFLICT && !old)
        k8s_error(r, 409, &k8s_claims, spec->name,
                  "sandboxclaims." K8S_EXTENSIONS " \"" STR_FMT "\" already exists",
                  STR_ARG(spec->name));
    else
        k8s_refuse(r, &e);
}

static void claim_make(struct request *r, struct str space, struct str name, bool dry)
{
    struct claim_spec spec = {.space = space, .name = name};
    const char *wrong = read_spec(r->body, &spec);
    char *text, *meta;

    if (wrong) {
        refuse_spec(r, name, wrong);
        return;
    }
    if (dry) {
        k8s_send(r, 201, json_incref(r->body));
        return;
    }
    text = json_dumps(json_object_get(r->body, "spec"), JSON_COMPACT);
    meta = meta_text(r->body, STR(""));
    spec.spec = str_of(text);
    spec.meta = str_of(meta);
    begin(r, NULL, &spec, false);
    free(text);
    free(meta);
}

/* --- change --- */

/* Everything but its lifecycle is for its creation. */
static bool is_settled(const json_t *now, const json_t *wanted)
{
    AUTO(json_decref) json_t *a = json_deep_copy(json_object_get(now, "spec"));
    AUTO(json_decref) json_t *b = json_deep_copy(json_object_get(wanted, "spec"));

    json_object_del(a, "lifecycle");
    json_object_del(b, "lifecycle");
    return json_equal(a, b);
}

static void tell_ttl(void *arg, struct sandbox *s, const struct err *e)
{
    (void)arg, (void)s, (void)e; /* the claim ends it too */
}

/* Its sandbox's own lifetime is the claim's. */
static void change_ttl(struct request *r, const struct claim_info *i, const struct claim_times *t)
{
    const struct principal by = request_who(r);
    struct sandbox *s =
        sandbox_find(r->api->c.sandboxes, &r->who, i->state.sandbox, &(struct err){0});
    struct sandbox_change change = {.given = {.ttl_ms = 1}};
    struct sandbox_info info;

    if (!s || t->shutdown_ms == i->times.shutdown_ms)
        return;
    sandbox_info(s, &info);
    change.traits.ttl_ms = t->shutdown_ms ? i64_max(t->shutdown_ms - info.created_ms, 1) : 0;
    sandbox_update(s, &change, &by, tell_ttl, NULL);
}

static void claim_alter(struct request *r, const json_t *now, json_t *wanted, bool dry)
{
    struct claim_spec spec = {.space = k8s_space(now), .name = k8s_name(now)};
    const char *wrong = read_spec(wanted, &spec);
    struct claim_info i;
    char *text, *meta;
    struct claim *c;
    struct err e = {0};

    if (!wrong && !is_settled(now, wanted))
        wrong = "spec: Forbidden: only lifecycle can be changed after creation";
    if (wrong) {
        refuse_spec(r, spec.name, wrong);
        return;
    }
    c = claim_find(r->api->c.claims, &r->who, OWNER_CHANGE, spec.space, spec.name, &e);
    if (!c || dry) {
        if (c)
            k8s_send(r, 200, json_incref(wanted));
        else
            k8s_refuse(r, &e);
        return;
    }
    claim_info(c, &i);
    text = is_owner(&r->who, i.owner) ? json_dumps(json_object_get(wanted, "spec"), JSON_COMPACT)
                                      : NULL;
    meta = meta_text(wanted, text ? STR("") : i.meta);
    if (!text) { /* without the values that this caller does not see */
        AUTO(json_decref) json_t *own = read_json(i.spec);

        json_object_set(own, "lifecycle",
                        json_object_get(json_object_get(wanted, "spec"), "lifecycle"));
        text = json_dumps(own, JSON_COMPACT);
    }
    spec.spec = str_of(text);
    spec.meta = str_of(meta);
    change_ttl(r, &i, &spec.times);
    begin(r, c, &spec,
          !json_equal(json_object_get(k8s_meta(now), "labels"),
                      json_object_get(k8s_meta(wanted), "labels")));
    free(text);
    free(meta);
}

/* --- remove --- */

static int claim_delete(struct api *a, const struct principal *by, const json_t *object,
                        k8s_removed done, void *arg, struct err *e)
{
    struct claim *c =
        claim_find(a->c.claims, by, OWNER_CHANGE, k8s_space(object), k8s_name(object), e);

    if (!c)
        return -1;
    k8s_claim_remove(k8s_of(a), c, by, done, arg);
    return 0;
}

/* --- the kind --- */

static void cell_sandbox(const json_t *object, struct buf *to)
{
    buf_add_str(to,
                k8s_text(json_object_get(json_object_get(object, "status"), "sandbox"), "name"));
}

static void cell_pool(const json_t *object, struct buf *to)
{
    buf_add_str(to,
                k8s_text(json_object_get(json_object_get(object, "spec"), "warmPoolRef"), "name"));
}

static const struct k8s_column columns[] = {
    {"Ready", "string", "", "Whether the sandbox of the claim is ready.", 0, k8s_cell_ready},
    {"Sandbox", "string", "", "The sandbox of the claim.", 0, cell_sandbox},
    {"Reason", "string", "", "The reason of the Ready condition.", 0, k8s_cell_reason},
    {"Age", "date", "", "The time since its creation.", 0, k8s_cell_age},
    {"WarmPool", "string", "", "What it is made from.", 1, cell_pool},
};

const struct k8s_kind k8s_claims = {
    .group = K8S_EXTENSIONS,
    .kind = "SandboxClaim",
    .plural = "sandboxclaims",
    .singular = "sandboxclaim",
    .short_name = NULL,
    .event = "claim/",
    .status = true,
    .columns = columns,
    .column_count = ARRAY_LEN(columns),
    .list = claim_list,
    .find = claim_lookup,
    .at_event = claim_at_event,
    .create = claim_make,
    .change = claim_alter,
    .remove = claim_delete,
};
