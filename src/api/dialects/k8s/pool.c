/* pool: SandboxTemplates and SandboxWarmPools: a template of ours is both. */
#include "api/dialects/k8s/k8s.h"

#include "base/mem.h"
#include "core/sandbox/pool.h"
#include "ops/sandbox.h"
#include "ops/template.h"
#include "proto/quantity.h"

#define REPLICAS_MAX 256

/* --- as objects: both have the template's name, in every namespace; its pool is the replicas ---
 */

static json_t *fields_of(const struct template_info *i)
{
    json_t *fields = json_loadb(i->fields.p, i->fields.n, 0, NULL);

    return fields ? fields : json_object();
}

/* An environment may hold what only its owner knows, and a template may be shared. */
static json_t *env_names(const json_t *env)
{
    json_t *all = json_array(), *v;
    const char *name;

    json_object_foreach((json_t *)(uintptr_t)env, name, v)
        json_array_append_new(all, json_pack("{s:s}", "name", name));
    return all;
}

static json_t *pod_of(const struct template_info *i)
{
    AUTO(json_decref) json_t *fields = fields_of(i);
    const json_t *memory = json_object_get(fields, "memory_bytes"),
                 *cpu = json_object_get(fields, "cpu_millis");
    json_t *box = json_object(), *limits = json_object(), *pod;

    json_object_set_new(box, "name", json_string("sandbox"));
    json_object_set_new(box, "image",
                        json_is_string(json_object_get(fields, "image"))
                            ? json_incref(json_object_get(fields, "image"))
                            : json_string("host"));
    if (json_object_size(json_object_get(fields, "env")) > 0)
        json_object_set_new(box, "env", env_names(json_object_get(fields, "env")));
    if (json_is_integer(memory))
        json_object_set_new(limits, "memory",
                            json_sprintf("%lld", (long long)json_integer_value(memory)));
    if (json_is_integer(cpu))
        json_object_set_new(limits, "cpu",
                            json_sprintf("%lldm", (long long)json_integer_value(cpu)));
    if (json_object_size(limits) > 0)
        json_object_set_new(box, "resources", json_pack("{s:O}", "limits", limits));
    json_decref(limits);
    pod = json_pack("{s:{s:[o]}}", "spec", "containers", box);
    if (json_object_size(json_object_get(fields, "labels")) > 0)
        json_object_set_new(pod, "metadata",
                            json_pack("{s:O}", "labels", json_object_get(fields, "labels")));
    if (i->runtime.n > 0)
        json_object_set_new(json_object_get(pod, "spec"), "runtimeClassName", k8s_str(i->runtime));
    return pod;
}

static json_t *object_of(struct api *a, const struct k8s_kind *kind, const struct template_info *i,
                         struct str space)
{
    const struct k8s_identity id = {.kind = kind,
                                    .name = i->name,
                                    .space = space.n > 0 ? space : STR(K8S_SPACE),
                                    .id = i->id,
                                    .created_ms = i->created_ms};
    json_t *o = k8s_object(a, &id);
    struct pool_counts all;
    int64_t ready;

    if (kind == &k8s_templates) {
        json_object_set_new(o, "spec", json_pack("{s:o}", "podTemplate", pod_of(i)));
        return o;
    }
    sandboxes_pool(a->c.sandboxes, &all);
    ready = i->pooled ? i64_min(i->pool, all.ready) : 0;
    json_object_set_new(o, "spec",
                        json_pack("{s:I,s:{s:o}}", "replicas", (json_int_t)i->pool,
                                  "sandboxTemplateRef", "name", k8s_str(i->name)));
    json_object_set_new(o, "status",
                        json_pack("{s:I,s:I}", "replicas", (json_int_t)i->pool, "readyReplicas",
                                  (json_int_t)ready));
    return o;
}

static json_t *list_of(struct api *a, const struct k8s_kind *kind, const struct principal *by,
                       struct str space)
{
    json_t *all = json_array();
    struct template_info i;

    for (struct template *t = template_next(a->c.templates, by, STR("")); t;
         t = template_next(a->c.templates, by, str_of(i.id))) {
        template_info(t, &i);
        json_array_append_new(all, object_of(a, kind, &i, space));
    }
    return all;
}

static json_t *templates_list(struct api *a, const struct principal *by, struct str space)
{
    return list_of(a, &k8s_templates, by, space);
}

static json_t *pools_list(struct api *a, const struct principal *by, struct str space)
{
    return list_of(a, &k8s_pools, by, space);
}

static json_t *find_one(struct api *a, const struct k8s_kind *kind, const struct principal *by,
                        struct str space, struct str name, struct err *e)
{
    struct template *t = template_find(a->c.templates, by, TEMPLATE_SEE, STR(""), name, e);
    struct template_info i;

    if (!t)
        return NULL;
    template_info(t, &i);
    return object_of(a, kind, &i, space);
}

static json_t *templates_find(struct api *a, const struct principal *by, struct str space,
                              struct str name, struct err *e)
{
    return find_one(a, &k8s_templates, by, space, name, e);
}

static json_t *pools_find(struct api *a, const struct principal *by, struct str space,
                          struct str name, struct err *e)
{
    return find_one(a, &k8s_pools, by, space, name, e);
}

/* The log has a template's name and number, not its fields: they are those of now. */
static json_t *at_event(struct api *a, const struct k8s_kind *kind, const struct principal *by,
                        const struct event *ev, bool *ret_gone, bool *ret_new)
{
    AUTO(json_decref) json_t *data = json_loadb(ev->data.p, ev->data.n, 0, NULL);
    const char *id = json_string_value(json_object_get(data, "id"));
    struct template_info i = {.id = id, .name = k8s_text(data, "name")};
    struct template *t;
    json_t *o;

    *ret_gone = str_eq_c(ev->type, "template.removed");
    *ret_new = str_eq_c(ev->type, "template.created");
    if (!id || !k8s_may_see(by, data, STR("")))
        return NULL;
    t = template_find(a->c.templates, by, TEMPLATE_SEE, STR(""), str_of(id), &(struct err){0});
    if (t)
        template_info(t, &i);
    else
        i.pool = json_integer_value(json_object_get(data, "pool"));
    o = object_of(a, kind, &i, STR(""));
    json_object_set_new(json_object_get(o, "metadata"), "resourceVersion",
                        json_sprintf("%lld", (long long)ev->seq));
    return o;
}

static json_t *templates_at_event(struct api *a, const struct principal *by, const struct event *ev,
                                  bool *ret_gone, bool *ret_new)
{
    return at_event(a, &k8s_templates, by, ev, ret_gone, ret_new);
}

static json_t *pools_at_event(struct api *a, const struct principal *by, const struct event *ev,
                              bool *ret_gone, bool *ret_new)
{
    return at_event(a, &k8s_pools, by, ev, ret_gone, ret_new);
}

/* --- writing --- */

struct template_job {
    struct waiter waiter;
    const struct k8s_kind *kind;
    struct str space; /* in the request's arena */
    int status;
};

static void job_ended(void *arg, struct named *n, const struct err *e)
{
    AUTO(mem_free) struct template_job *j = arg;
    struct request *r = waiter_end(&j->waiter);
    struct template_info i;

    if (!r)
        return;
    if (e->code != ERR_NONE) {
        k8s_refuse(r, e);
        return;
    }
    template_info(template_of(n), &i);
    k8s_send(r, j->status, object_of(r->api, j->kind, &i, j->space));
}

static struct named_call wait_for(struct request *r, const struct k8s_kind *kind, struct str space,
                                  int status, const struct principal *by)
{
    struct template_job *j = xzalloc(sizeof *j);

    *j = (struct template_job){.kind = kind, .space = space, .status = status};
    request_wait(r, &j->waiter);
    return (struct named_call){by, job_ended, j};
}

static void begun(struct request *r, const struct named_call *c, int result, struct str name,
                  const struct err *e)
{
    struct template_job *j = c->arg;
    const struct k8s_kind *kind = j->kind;

    if (result == 0)
        return;
    (void)waiter_end(&j->waiter);
    mem_free(j);
    if (e->code == ERR_CONFLICT)
        k8s_error(r, 409, kind, name, "%s.%s \"" STR_FMT "\" already exists", kind->plural,
                  kind->group, STR_ARG(name));
    else
        k8s_refuse(r, e);
}

static void create_template(struct request *r, struct template_spec *spec,
                            const struct k8s_kind *kind, struct str space)
{
    const struct principal by = request_who(r);
    const struct named_call c = wait_for(r, kind, space, 201, &by);
    struct err e = {0};

    begun(r, &c, template_create(r->api->c.templates, spec, &c, &e), spec->name, &e);
}

/* --- templates --- */

static const char *read_limits(const json_t *box, json_t *fields)
{
    const json_t *limits = json_object_get(json_object_get(box, "resources"), "limits");
    struct str memory = k8s_text(limits, "memory"), cpu = k8s_text(limits, "cpu");
    struct err e = {0};
    int64_t n;

    if (memory.n > 0) {
        if (quantity_parse(memory, 1, &n, &e) < 0)
            return "spec.podTemplate.spec.containers[0].resources.limits.memory: not a quantity";
        json_object_set_new(fields, "memory_bytes", json_integer(n));
    }
    if (cpu.n > 0) {
        if (quantity_parse(cpu, 1000, &n, &e) < 0)
            return "spec.podTemplate.spec.containers[0].resources.limits.cpu: not a quantity";
        json_object_set_new(fields, "cpu_millis", json_integer(n));
    }
    return NULL;
}

static const char *read_env(const json_t *box, json_t *fields)
{
    json_t *env = json_object(), *v;
    size_t i;

    json_object_set_new(fields, "env", env);
    json_array_foreach(json_object_get(box, "env"), i, v)
    {
        if (k8s_text(v, "name").n == 0 || json_object_get(v, "valueFrom"))
            return "spec.podTemplate.spec.containers[0].env: a name, and a value that is a text";
        json_object_setn_new(env, k8s_text(v, "name").p, k8s_text(v, "name").n,
                             k8s_str(k8s_text(v, "value")));
    }
    return NULL;
}

/* The fields of one of ours; NULL: *wrong says why not. */
static json_t *read_fields(const json_t *spec, const char **wrong)
{
    const json_t *template = json_object_get(spec, "podTemplate");
    const json_t *pod = json_object_get(template, "spec");
    const json_t *boxes = json_object_get(pod, "containers"), *box = json_array_get(boxes, 0);
    json_t *labels = json_object_get(json_object_get(template, "metadata"), "labels");
    json_t *fields = json_object();

    *wrong = NULL;
    if (json_array_size(boxes) != 1 || json_array_size(json_object_get(pod, "initContainers")) > 0)
        *wrong = "spec.podTemplate.spec.containers: a sandbox is one container here";
    else if (json_array_size(json_object_get(spec, "volumeClaimTemplates")) > 0)
        *wrong = "spec.volumeClaimTemplates: there are no claims of volumes here";
    else if (json_is_true(json_object_get(spec, "service")))
        *wrong = "spec.service: there are no Services here: ports are reached by the router";
    else if (k8s_text(box, "image").n == 0)
        *wrong = "spec.podTemplate.spec.containers[0].image: Required value";
    if (!*wrong)
        *wrong = read_limits(box, fields);
    if (!*wrong)
        *wrong = read_env(box, fields);
    json_object_set_new(fields, "image", k8s_str(k8s_text(box, "image")));
    if (json_object_size(labels) > 0)
        json_object_set(fields, "labels", labels);
    if (k8s_text(pod, "runtimeClassName").n > 0)
        json_object_set_new(fields, "runtime", k8s_str(k8s_text(pod, "runtimeClassName")));
    if (!*wrong)
        return fields;
    json_decref(fields);
    return NULL;
}

static void refuse_field(struct request *r, const struct k8s_kind *kind, struct str name,
                         const char *wrong)
{
    const char *colon = strstr(wrong, ": ");

    k8s_invalid(r, kind, name,
                arena_cstr(xchg_arena(r->x), str_make(wrong, (size_t)(colon - wrong))), colon + 2);
}

static void template_make(struct request *r, struct str space, struct str name, bool dry)
{
    const char *wrong;
    AUTO(json_decref) json_t *fields = read_fields(json_object_get(r->body, "spec"), &wrong);
    struct template_spec spec = {.name = name};
    void *decoded;
    struct err e = {0};
    char *text;

    if (!fields) {
        refuse_field(r, &k8s_templates, name, wrong);
    } else if (op_decode(&op_sandbox_create, &(struct op_params){0}, STR(""), fields,
                         xchg_arena(r->x), &decoded, &e) < 0) {
        k8s_invalid(r, &k8s_templates, name, "spec.podTemplate", e.msg);
    } else if (dry) {
        k8s_send(r, 201, json_incref(r->body));
    } else {
        if (json_object_get(json_object_get(r->body, "spec"), "networkPolicy"))
            xchg_add_header(r->x, "warning",
                            STR("299 - \"spec.networkPolicy has no effect: a sandbox without a "
                                "network policy of holt has no network\""));
        text = json_dumps(fields, JSON_COMPACT);
        spec.fields = str_of(text);
        spec.runtime = k8s_text(fields, "runtime");
        create_template(r, &spec, &k8s_templates, space);
        free(text);
    }
}

/* --- pools --- */

static bool read_replicas(struct request *r, const json_t *object, struct str name, int64_t *ret)
{
    const json_t *n = json_object_get(json_object_get(object, "spec"), "replicas");

    *ret = !n || json_is_null(n) ? 1 : json_integer_value(n);
    if ((!n || json_is_null(n) || json_is_integer(n)) && *ret >= 0 && *ret <= REPLICAS_MAX)
        return true;
    k8s_invalid(r, &k8s_pools, name, "spec.replicas", "must be a whole number from 0 to 256");
    return false;
}

static void set_pool(struct request *r, struct template *t, int64_t n, struct str space, int status)
{
    const struct principal by = request_who(r);
    const struct named_call c = wait_for(r, &k8s_pools, space, status, &by);
    struct template_info i;
    struct err e = {0};

    template_info(t, &i);
    begun(r, &c, template_set_pool(t, n, &c, &e), i.name, &e);
}

/* A pool of the template's own name is its number; one of another name is a template of that name
 * with the same fields. */
static void pool_make(struct request *r, struct str space, struct str name, bool dry)
{
    struct str ref =
        k8s_text(json_object_get(json_object_get(r->body, "spec"), "sandboxTemplateRef"), "name");
    bool same = str_eq(ref, name);
    struct template_spec spec = {.name = name};
    struct template_info i;
    struct template *t;
    struct err e = {0};
    char *fields, *runtime;

    if (!read_replicas(r, r->body, name, &spec.pool))
        return;
    t = template_find(r->api->c.templates, &r->who, same ? TEMPLATE_CHANGE : TEMPLATE_USE, STR(""),
                      ref, &e);
    if (!t) {
        k8s_invalid(r, &k8s_pools, name, "spec.sandboxTemplateRef.name", e.msg);
        return;
    }
    template_info(t, &i);
    if (dry) {
        k8s_send(r, 201, json_incref(r->body));
    } else if (same && i.pool > 0) {
        k8s_error(r, 409, &k8s_pools, name,
                  "sandboxwarmpools." K8S_EXTENSIONS " \"" STR_FMT "\" already exists",
                  STR_ARG(name));
    } else if (same) {
        set_pool(r, t, spec.pool, space, 201);
    } else {
        fields = str_dup(i.fields);
        runtime = str_dup(i.runtime);
        spec.fields = str_of(fields);
        spec.runtime = str_of(runtime);
        create_template(r, &spec, &k8s_pools, space);
        mem_free(fields);
        mem_free(runtime);
    }
}

static void pool_alter(struct request *r, const json_t *now, json_t *wanted, bool dry)
{
    struct err e = {0};
    struct template *t;
    int64_t n;

    if (!str_eq(
            k8s_text(json_object_get(json_object_get(now, "spec"), "sandboxTemplateRef"), "name"),
            k8s_text(json_object_get(json_object_get(wanted, "spec"), "sandboxTemplateRef"),
                     "name"))) {
        k8s_invalid(r, &k8s_pools, k8s_name(now), "spec.sandboxTemplateRef",
                    "Forbidden: it cannot be changed after creation");
        return;
    }
    if (!read_replicas(r, wanted, k8s_name(now), &n))
        return;
    t = template_find(r->api->c.templates, &r->who, TEMPLATE_CHANGE, STR(""), k8s_name(now), &e);
    if (!t)
        k8s_refuse(r, &e);
    else if (dry)
        k8s_send(r, 200, json_incref(wanted));
    else
        set_pool(r, t, n, arena_str(xchg_arena(r->x), k8s_space(now)), 200);
}

/* --- remove --- */

struct removal {
    k8s_removed done;
    void *arg;
};

static void template_gone(void *arg, struct named *n, const struct err *e)
{
    AUTO(mem_free) struct removal *j = arg;

    (void)n;
    j->done(j->arg, e);
}

static int template_delete(struct api *a, const struct principal *by, const json_t *object,
                           k8s_removed done, void *arg, struct err *e)
{
    struct template *t =
        template_find(a->c.templates, by, TEMPLATE_CHANGE, STR(""), k8s_name(object), e);
    struct removal *j;
    int made;

    if (!t)
        return -1;
    j = xzalloc(sizeof *j);
    *j = (struct removal){done, arg};
    made = template_remove(t, &(struct named_call){by, template_gone, j}, e);
    if (made < 0)
        mem_free(j);
    return made;
}

/* --- the kinds --- */

static void cell_ready(const json_t *object, struct buf *to)
{
    buf_printf(to, "%lld",
               (long long)json_integer_value(
                   json_object_get(json_object_get(object, "status"), "readyReplicas")));
}

static void cell_desired(const json_t *object, struct buf *to)
{
    buf_printf(to, "%lld",
               (long long)json_integer_value(
                   json_object_get(json_object_get(object, "spec"), "replicas")));
}

static const struct k8s_column template_columns[] = {
    {"Age", "date", "", "The time since its creation.", 0, k8s_cell_age},
};
static const struct k8s_column pool_columns[] = {
    {"Ready", "integer", "", "Sandboxes that are ready.", 0, cell_ready},
    {"Desired", "integer", "", "Sandboxes that are wanted.", 0, cell_desired},
    {"Age", "date", "", "The time since its creation.", 0, k8s_cell_age},
};

const struct k8s_kind k8s_templates = {
    .group = K8S_EXTENSIONS,
    .kind = "SandboxTemplate",
    .plural = "sandboxtemplates",
    .singular = "sandboxtemplate",
    .event = "template/",
    .everywhere = true,
    .columns = template_columns,
    .column_count = ARRAY_LEN(template_columns),
    .list = templates_list,
    .find = templates_find,
    .at_event = templates_at_event,
    .create = template_make,
    .remove = template_delete,
};

const struct k8s_kind k8s_pools = {
    .group = K8S_EXTENSIONS,
    .kind = "SandboxWarmPool",
    .plural = "sandboxwarmpools",
    .singular = "sandboxwarmpool",
    .short_name = "swp",
    .event = "template/",
    .status = true,
    .everywhere = true,
    .columns = pool_columns,
    .column_count = ARRAY_LEN(pool_columns),
    .list = pools_list,
    .find = pools_find,
    .at_event = pools_at_event,
    .create = pool_make,
    .change = pool_alter,
    .remove = template_delete,
};
