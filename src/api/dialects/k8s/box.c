/* box: Sandboxes: ours that have a name in a namespace. */
#include "api/dialects/k8s/k8s.h"

#include "base/clock.h"
#include "base/mem.h"
#include "ops/sandbox.h"
#include "proto/quantity.h"

#define ENV_MAX 512
#define ARGS_MAX 512
#define LABELS_MAX 64
#define GRACE_MS 2000

/* --- as an object: from a sandbox, or from an event about it --- */

struct view {
    const char *id, *state; /* state: its name */
    struct str alias, image, runtime, failure;
    json_t *labels, *note; /* owned */
    int64_t created_ms, since_ms, version, memory_bytes, cpu_millis;
};

/* FNV-1a, as the label that selects its pod has it. */
static uint32_t name_hash(struct str name)
{
    uint32_t h = 2166136261U;

    for (size_t i = 0; i < name.n; i++)
        h = (h ^ (unsigned char)name.p[i]) * 16777619U;
    return h;
}

struct how { /* a state in Kubernetes' words */
    const char *state, *reason, *message;
    bool ready, suspended, failed;
};
static const struct how hows[] = {
    {"running", "DependenciesReady", "Sandbox is ready", .ready = true},
    {"creating", "DependenciesNotReady", "Sandbox is starting"},
    {"starting", "DependenciesNotReady", "Sandbox is starting"},
    {"paused", "SandboxSuspended", "Sandbox is paused", .suspended = true},
    {"stopping", "SandboxSuspended", "Sandbox is stopping", .suspended = true},
    {"stopped", "SandboxSuspended", "Sandbox is stopped", .suspended = true},
    {"failed", "PodFailed", "Sandbox has failed", .failed = true},
    {"destroyed", "SandboxExpired", "Sandbox was removed", .failed = true},
};

static const struct how *how_of(const char *state)
{
    for (size_t i = 0; i < ARRAY_LEN(hows); i++)
        if (strcmp(hows[i].state, state) == 0)
            return &hows[i];
    return &hows[1];
}

static json_t *spec_of(const struct view *v)
{
    json_t *limits = json_object(), *box = json_object(), *pod, *spec = json_object();

    if (v->memory_bytes > 0)
        json_object_set_new(limits, "memory", json_sprintf("%lld", (long long)v->memory_bytes));
    if (v->cpu_millis > 0)
        json_object_set_new(limits, "cpu", json_sprintf("%lldm", (long long)v->cpu_millis));
    json_object_set_new(box, "name", json_string("sandbox"));
    json_object_set_new(box, "image", k8s_str(v->image));
    if (json_object_size(limits) > 0)
        json_object_set_new(box, "resources", json_pack("{s:O}", "limits", limits));
    json_decref(limits);
    pod = json_pack("{s:[o]}", "containers", box);
    json_object_set_new(pod, "runtimeClassName", k8s_str(v->runtime));
    json_object_set_new(spec, "podTemplate", json_pack("{s:o}", "spec", pod));
    json_object_set_new(spec, "operatingMode",
                        json_string(how_of(v->state)->suspended ? "Suspended" : "Running"));
    return spec;
}

static json_t *status_of(const struct view *v, struct str name)
{
    const struct how *h = how_of(v->state);
    struct str message = h->failed && v->failure.n > 0 ? v->failure : str_of(h->message);
    json_t *s = json_object(), *all = json_array();

    json_array_append_new(
        all, k8s_condition("Ready", h->ready, str_of(h->reason), message, v->since_ms));
    json_array_append_new(all,
                          k8s_condition("Suspended", h->suspended,
                                        h->suspended ? STR("PodTerminated") : STR("NotSuspended"),
                                        STR(""), v->since_ms));
    if (h->failed)
        json_array_append_new(
            all, k8s_condition("Finished", true, str_of(h->reason), message, v->since_ms));
    json_object_set_new(s, "conditions", all);
    json_object_set_new(s, "selector",
                        json_sprintf(K8S_GROUP "/sandbox-name-hash=%08x", name_hash(name)));
    return s;
}

static json_t *owner_reference(struct str claim, struct str name)
{
    char uid[K8S_UID], id[ID_SIZE + 16];

    (void)snprintf(id, sizeof id, "%.12s " STR_FMT, k8s_claims.kind,
                   (int)size_min(claim.n, ID_SIZE - 1), claim.p);
    return json_pack("[{s:s,s:s,s:o,s:s,s:b,s:b}]", "apiVersion", K8S_EXTENSIONS "/" K8S_VERSION,
                     "kind", k8s_claims.kind, "name", k8s_str(name), "uid", k8s_uid(id, uid),
                     "controller", true, "blockOwnerDeletion", true);
}

/* Takes labels and note of v; NULL: it has no name here. */
static json_t *object_of(struct api *a, struct view *v)
{
    struct k8s_identity i = {
        .kind = &k8s_sandboxes, .id = v->id, .created_ms = v->created_ms, .version = v->version};
    json_t *o = NULL;

    if (v->alias.n > 0) {
        i.space = str_cut(v->alias, '/', &i.name);
        o = k8s_object(a, &i);
        k8s_set_meta(o, "labels", json_incref(v->labels));
        k8s_set_meta(o, "annotations", json_incref(json_object_get(v->note, "annotations")));
        if (k8s_note_claim(v->note).n > 0)
            json_object_set_new(json_object_get(o, "metadata"), "ownerReferences",
                                owner_reference(k8s_note_claim(v->note), i.name));
        json_object_set_new(o, "spec", spec_of(v));
        json_object_set_new(o, "status", status_of(v, i.name));
    }
    json_decref(v->labels);
    json_decref(v->note);
    return o;
}

static struct str alias_of(const struct sandbox_info *i)
{
    for (const struct alias *a = i->aliases; a; a = a->next)
        if (str_eq_c(a->name.dialect, K8S_DIALECT))
            return a->name.alias;
    return STR("");
}

static json_t *labels_of(const struct sandbox_info *i)
{
    json_t *all = json_object();

    for (size_t k = 0; k < i->label_count; k++)
        json_object_setn_new(all, i->labels[k].key.p, i->labels[k].key.n,
                             k8s_str(i->labels[k].value));
    return all;
}

static json_t *box_object(struct api *a, const struct sandbox *s)
{
    struct sandbox_info i;
    struct view v;

    sandbox_info(s, &i);
    v = (struct view){.id = i.id,
                      .state = op_sandbox_states[i.state],
                      .alias = alias_of(&i),
                      .image = i.image,
                      .runtime = i.runtime,
                      .failure = i.failure,
                      .labels = labels_of(&i),
                      .note = json_loadb(i.note.p, i.note.n, 0, NULL),
                      .created_ms = i.created_ms,
                      .since_ms = i.ended_ms     ? i.ended_ms
                                  : i.started_ms ? i.started_ms
                                                 : i.created_ms,
                      .memory_bytes = i.traits.limits.memory_bytes,
                      .cpu_millis = i.traits.limits.cpu_millis};
    return object_of(a, &v);
}

static struct str alias_in(const json_t *data)
{
    json_t *all = json_object_get(data, "aliases"), *one;
    size_t i;

    json_array_foreach(all, i, one) if (str_eq_c(k8s_text(one, "dialect"),
                                                 K8S_DIALECT)) return k8s_text(one, "alias");
    return STR("");
}

static json_t *box_at_event(struct api *a, const struct principal *by, const struct event *ev,
                            bool *ret_gone, bool *ret_new)
{
    AUTO(json_decref) json_t *data = json_loadb(ev->data.p, ev->data.n, 0, NULL);
    const char *id = json_string_value(json_object_get(data, "id"));
    const char *state = json_string_value(json_object_get(data, "state"));
    int64_t created_ms = 0;
    struct str note;
    struct view v;

    *ret_gone = str_eq_c(ev->type, "sandbox.destroyed");
    *ret_new = str_eq_c(ev->type, "sandbox.created");
    if (!id || !state || !k8s_may_see(by, data, str_of(id)))
        return NULL;
    (void)!clock_parse(k8s_text(data, "created_at"), &created_ms);
    note = k8s_text(data, "note");
    v = (struct view){
        .id = id,
        .state = state,
        .alias = alias_in(data),
        .image = k8s_text(data, "image"),
        .runtime = k8s_text(data, "runtime"),
        .failure = k8s_text(data, "failure"),
        .labels = json_incref(json_object_get(data, "labels")),
        .note = json_loadb(note.p, note.n, 0, NULL),
        .created_ms = created_ms,
        .since_ms = ev->time_ms,
        .version = ev->seq,
        .memory_bytes = json_integer_value(json_object_get(data, "memory_bytes")),
        .cpu_millis = json_integer_value(json_object_get(data, "cpu_millis")),
    };
    return object_of(a, &v);
}

static json_t *box_list(struct api *a, const struct principal *by, struct str space)
{
    json_t *all = json_array(), *o;
    struct sandbox_info i;

    for (struct sandbox *s = sandbox_next(a->c.sandboxes, by, STR("")); s;
         s = sandbox_next(a->c.sandboxes, by, str_of(i.id))) {
        sandbox_info(s, &i);
        o = i.state == SANDBOX_DESTROYED ? NULL : box_object(a, s);
        if (o && (space.n == 0 || str_eq(space, k8s_space(o))))
            json_array_append(all, o);
        json_decref(o);
    }
    return all;
}

struct sandbox *k8s_sandbox(struct api *a, const struct principal *by, struct str space,
                            struct str name, struct err *e)
{
    AUTO(buf_done) struct buf alias = {0};
    struct sandbox_info i;
    struct sandbox *s;

    buf_printf(&alias, STR_FMT "/" STR_FMT, STR_ARG(space), STR_ARG(name));
    s = sandbox_find_as(a->c.sandboxes, by, STR(K8S_DIALECT), buf_str(&alias), e);
    if (!s)
        return NULL;
    sandbox_info(s, &i);
    if (str_eq(alias_of(&i), buf_str(&alias))) /* not OWNER/NAME of another */
        return s;
    (void)err_set(e, ERR_NOT_FOUND, 0, "there is no sandbox '%s'", buf_cstr(&alias));
    return NULL;
}

static json_t *box_lookup(struct api *a, const struct principal *by, struct str space,
                          struct str name, struct err *e)
{
    struct sandbox *s = k8s_sandbox(a, by, space, name, e);

    return s ? box_object(a, s) : NULL;
}

/* --- create --- */

struct box_in {
    struct sandbox_spec spec;
    struct str argv[ARGS_MAX];
    size_t argc;
    struct arena *mem;
};

static const char *read_container(struct box_in *in, const json_t *c)
{
    const json_t *limits = json_object_get(json_object_get(c, "resources"), "limits"),
                 *env = json_object_get(c, "env"), *v;
    const char *const lists[] = {"command", "args"};
    struct str memory = k8s_text(limits, "memory"), cpu = k8s_text(limits, "cpu");
    struct sandbox_limits *to = &in->spec.traits.limits;
    struct pair *p =
        arena_alloc(in->mem, (size_min(json_array_size(env), ENV_MAX) + 1) * sizeof *p);
    struct err e = {0};
    size_t i;

    in->spec.image = k8s_text(c, "image");
    if (in->spec.image.n == 0)
        return "spec.podTemplate.spec.containers[0].image: Required value";
    if ((memory.n > 0 && quantity_parse(memory, 1, &to->memory_bytes, &e) < 0) ||
        (cpu.n > 0 && quantity_parse(cpu, 1000, &to->cpu_millis, &e) < 0))
        return "spec.podTemplate.spec.containers[0].resources.limits: not a quantity";
    if (json_array_size(env) > ENV_MAX)
        return "spec.podTemplate.spec.containers[0].env: at most 512 variables";
    json_array_foreach(env, i, v)
    {
        struct str name = k8s_text(v, "name");

        if (name.n == 0 || str_index(name, '=') >= 0 || json_object_get(v, "valueFrom"))
            return "spec.podTemplate.spec.containers[0].env: a name, and a value that is a text";
        p[in->spec.env_count++] = (struct pair){name, k8s_text(v, "value")};
    }
    in->spec.env = p;
    for (size_t k = 0; k < ARRAY_LEN(lists); k++)
        json_array_foreach(json_object_get(c, lists[k]), i, v)
        {
            if (!json_is_string(v) || in->argc == ARGS_MAX)
                return "spec.podTemplate.spec.containers[0].command: a list of texts";
            in->argv[in->argc++] = str_of(json_string_value(v));
        }
    return NULL;
}

/* What a sandbox of ours cannot be, is refused; what a pod merely may have, is ignored. */
static const char *read_pod(struct box_in *in, const json_t *spec)
{
    const json_t *pod = json_object_get(json_object_get(spec, "podTemplate"), "spec");
    const json_t *boxes = json_object_get(pod, "containers");
    int64_t end_ms = 0;

    if (!json_is_object(pod))
        return "spec.podTemplate.spec: Required value";
    if (json_array_size(boxes) != 1 || json_array_size(json_object_get(pod, "initContainers")) > 0)
        return "spec.podTemplate.spec.containers: a sandbox is one container here";
    if (json_array_size(json_object_get(spec, "volumeClaimTemplates")) > 0)
        return "spec.volumeClaimTemplates: there are no claims of volumes here";
    if (json_is_true(json_object_get(spec, "service")))
        return "spec.service: there are no Services here: its ports are reached by the router";
    in->spec.runtime = k8s_text(pod, "runtimeClassName");
    if (k8s_text(spec, "shutdownTime").n > 0) {
        if (clock_parse(k8s_text(spec, "shutdownTime"), &end_ms) < 0)
            return "spec.shutdownTime: must be a time of RFC 3339";
        in->spec.traits.ttl_ms = i64_max(end_ms - clock_wall_ms(), 1000);
    }
    return read_container(in, json_array_get(boxes, 0));
}

static bool read_labels(struct box_in *in, const json_t *meta)
{
    const json_t *labels = json_object_get(meta, "labels");
    size_t n = json_object_size(labels);
    struct pair *p = arena_alloc(in->mem, (n + 1) * sizeof *p);
    const char *key;
    json_t *v;

    if (n > LABELS_MAX)
        return false;
    json_object_foreach((json_t *)(uintptr_t)labels, key, v) p[in->spec.label_count++] =
        (struct pair){str_of(key), str_of(json_string_value(v))};
    in->spec.labels = p;
    return true;
}

struct box_job {
    struct waiter waiter;
    struct api *api;
    const struct box_in *in; /* in the request's arena: for as long as it waits */
    int status;
};

static void command_started(void *arg, struct exec *x, const struct err *e)
{
    (void)arg, (void)x, (void)e; /* its record has the result */
}

static void box_done(void *arg, struct sandbox *s, const struct err *e)
{
    AUTO(mem_free) struct box_job *j = arg;
    struct request *r = waiter_end(&j->waiter);

    if (!r)
        return;
    if (e->code != ERR_NONE) {
        if (j->in && (e->code == ERR_NOT_FOUND || e->code == ERR_INVALID))
            k8s_invalid(r, &k8s_sandboxes, k8s_name(r->body), "spec.podTemplate", e->msg);
        else if (j->in && e->code == ERR_CONFLICT)
            k8s_error(r, 409, &k8s_sandboxes, k8s_name(r->body),
                      "sandboxes." K8S_GROUP " \"" STR_FMT "\" already exists",
                      STR_ARG(k8s_name(r->body)));
        else
            k8s_refuse(r, e);
        return;
    }
    if (j->in && j->in->argc > 0) {
        const struct exec_spec spec = {
            .argv = j->in->argv, .argc = j->in->argc, .cwd = STR(K8S_BASE), .standing = true};
        const struct principal by = request_who(r);

        exec_start(s, &spec, &by, command_started, NULL);
    }
    k8s_send(r, j->status, box_object(r->api, s));
}

static struct box_job *box_wait(struct request *r, int status)
{
    struct box_job *j = xzalloc(sizeof *j);

    j->api = r->api;
    j->status = status;
    request_wait(r, &j->waiter);
    return j;
}

static void box_make(struct request *r, struct str space, struct str name, bool dry)
{
    struct box_in *in = arena_zalloc(xchg_arena(r->x), sizeof *in);
    const struct principal by = request_who(r);
    AUTO(buf_done) struct buf note = {0};
    const char *wrong, *colon;
    struct alias_name alias;
    struct box_job *j;

    in->mem = xchg_arena(r->x);
    wrong = read_pod(in, json_object_get(r->body, "spec"));
    if (!wrong && !read_labels(in, k8s_meta(r->body)))
        wrong = "metadata.labels: at most 64";
    if (wrong) {
        colon = strstr(wrong, ": ");
        k8s_invalid(r, &k8s_sandboxes, name,
                    arena_cstr(in->mem, str_make(wrong, (size_t)(colon - wrong))), colon + 2);
        return;
    }
    if (dry) {
        k8s_send(r, 201, json_incref(r->body));
        return;
    }
    alias = (struct alias_name){
        STR(K8S_DIALECT),
        str_of(arena_printf(in->mem, STR_FMT "/" STR_FMT, STR_ARG(space), STR_ARG(name)))};
    if (alias.alias.n > ALIAS_MAX) {
        k8s_invalid(r, &k8s_sandboxes, name, "metadata.name", "it is too long");
        return;
    }
    k8s_note(&note, NULL, json_object_get(k8s_meta(r->body), "annotations"));
    k8s_add_base(&in->spec, in->mem);
    in->spec.note = buf_str(&note);
    in->spec.dialect = STR(K8S_DIALECT);
    in->spec.aliases = &alias;
    in->spec.alias_count = 1;
    j = box_wait(r, 201);
    j->in = in;
    sandbox_create(r->api->c.sandboxes, &in->spec, &by, box_done, j);
}

/* --- change --- */

static struct str mode_of(const json_t *object)
{
    struct str mode = k8s_text(json_object_get(object, "spec"), "operatingMode");

    return mode.n > 0 ? mode : STR("Running");
}

static bool same_but_mode(const json_t *now, const json_t *wanted)
{
    AUTO(json_decref) json_t *a = json_deep_copy(json_object_get(now, "spec"));
    AUTO(json_decref) json_t *b = json_deep_copy(json_object_get(wanted, "spec"));

    json_object_del(a, "operatingMode");
    json_object_del(b, "operatingMode");
    return json_equal(a, b);
}

static void relabel(struct request *r, struct sandbox *s, const json_t *wanted)
{
    struct box_in in = {.mem = xchg_arena(r->x)};
    const struct principal by = request_who(r);
    AUTO(json_decref) json_t *note = NULL;
    AUTO(buf_done) struct buf text = {0};
    struct sandbox_info i;

    if (!read_labels(&in, k8s_meta(wanted))) {
        k8s_invalid(r, &k8s_sandboxes, k8s_name(wanted), "metadata.labels", "at most 64");
        return;
    }
    sandbox_info(s, &i);
    note = json_loadb(i.note.p, i.note.n, 0, NULL);
    if (!note)
        note = json_object();
    json_object_set(note, "annotations", json_object_get(k8s_meta(wanted), "annotations"));
    jw_json(&(struct jw){.to = &text}, note);
    sandbox_update(s,
                   &(struct sandbox_change){.labels = in.spec.labels,
                                            .label_count = in.spec.label_count,
                                            .set_labels = true,
                                            .note = buf_str(&text)},
                   &by, box_done, box_wait(r, 200));
}

static void box_alter(struct request *r, const json_t *now, json_t *wanted, bool dry)
{
    const struct principal by = request_who(r);
    struct str mode = mode_of(wanted);
    struct err e = {0};
    struct sandbox *s = k8s_sandbox(r->api, &r->who, k8s_space(now), k8s_name(now), &e);

    if (!s)
        k8s_refuse(r, &e);
    else if (!same_but_mode(now, wanted))
        k8s_invalid(r, &k8s_sandboxes, k8s_name(now), "spec",
                    "Forbidden: only operatingMode can be changed after creation");
    else if (!str_eq_c(mode, "Running") && !str_eq_c(mode, "Suspended"))
        k8s_invalid(r, &k8s_sandboxes, k8s_name(now), "spec.operatingMode",
                    "Unsupported value: supported values: \"Running\", \"Suspended\"");
    else if (dry)
        k8s_send(r, 200, json_incref(wanted));
    else if (str_eq(mode, mode_of(now)))
        relabel(r, s, wanted);
    else if (str_eq_c(mode, "Suspended"))
        sandbox_stop(s, GRACE_MS, false, &by, box_done, box_wait(r, 200));
    else
        sandbox_start(s, &by, box_done, box_wait(r, 200));
}

/* --- remove --- */

struct box_removal {
    k8s_removed done;
    void *arg;
};

static void box_removed(void *arg, struct sandbox *s, const struct err *e)
{
    AUTO(mem_free) struct box_removal *j = arg;

    (void)s;
    j->done(j->arg, e);
}

static int box_delete(struct api *a, const struct principal *by, const json_t *object,
                      k8s_removed done, void *arg, struct err *e)
{
    struct sandbox *s = k8s_sandbox(a, by, k8s_space(object), k8s_name(object), e);
    const struct box_removal j = {done, arg};

    if (!s)
        return -1;
    sandbox_destroy(s, by, box_removed, xmemdup(&j, sizeof j));
    return 0;
}

static const struct k8s_column columns[] = {
    {"Ready", "string", "", "Whether the sandbox is ready.", 0, k8s_cell_ready},
    {"Reason", "string", "", "The reason of the Ready condition.", 0, k8s_cell_reason},
    {"Age", "date", "", "The time since its creation.", 0, k8s_cell_age},
};

const struct k8s_kind k8s_sandboxes = {
    .group = K8S_GROUP,
    .kind = "Sandbox",
    .plural = "sandboxes",
    .singular = "sandbox",
    .short_name = "sandbox",
    .event = "sandbox/",
    .status = true,
    .columns = columns,
    .column_count = ARRAY_LEN(columns),
    .list = box_list,
    .find = box_lookup,
    .at_event = box_at_event,
    .create = box_make,
    .change = box_alter,
    .remove = box_delete,
};
