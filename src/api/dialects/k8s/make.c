/* make: what a claim's sandbox is made of: its template, and what the claim itself asks for. */
#include "api/dialects/k8s/k8s.h"

#include "base/clock.h"
#include "core/sandbox/volume.h"
#include "ops/sandbox.h"

#define LABELS_MAX 64
#define TTL_MIN_MS 1000

static int refuse(struct claim_state *why, const char *reason, bool ended, struct arena *mem,
                  const char *message)
{
    why->reason = str_of(reason);
    why->ended = ended;
    why->message = arena_str(mem, str_of(message));
    return -1;
}

/* --- the template --- */

/* spec_read_sandbox asks about the caller and the settings: work that goes on after its request has
 * both, but no exchange. */
static int read_template(struct api *a, const struct principal *by, const struct template *t,
                         struct k8s_wish *w, struct err *e)
{
    struct request r = {.api = a, .who = *by};
    const struct sandbox_create_in *in;
    struct template_info i;
    void *decoded = NULL;

    template_info(t, &i);
    w->body = json_loadb(i.fields.p, i.fields.n, 0, NULL);
    if (op_decode(&op_sandbox_create, &(struct op_params){0}, STR(""), w->body, &w->mem, &decoded,
                  e) < 0)
        return -1;
    in = decoded;
    if (spec_read_sandbox(&r, &in->sandbox, &w->mem, &w->spec, e) < 0)
        return -1;
    w->spec.env = spec_pairs(&in->env, &w->mem);
    w->spec.env_count = in->env.n;
    return 0;
}

/* --- its own wishes --- */

static bool is_restricted(struct str key)
{
    struct str prefix = str_cut(key, '/', &(struct str){0});

    return str_index(key, '/') >= 0 &&
           (str_eq_c(prefix, K8S_GROUP) || str_ends(prefix, STR("." K8S_GROUP)) ||
            str_eq_c(prefix, "kubernetes.io") || str_ends(prefix, STR(".kubernetes.io")) ||
            str_eq_c(prefix, "k8s.io") || str_ends(prefix, STR(".k8s.io")));
}

static int check_pod_map(const json_t *map, const char *field, bool labels, struct err *e)
{
    const char *key;
    json_t *v;

    if (k8s_check_map(map, field, labels, e) < 0)
        return -1;
    json_object_foreach(
        (json_t *)(uintptr_t)map, key,
        v) if (is_restricted(str_of(key))) return err_set(e, ERR_INVALID, 0,
                                                          "%s: the domain of \"%.80s\" is reserved",
                                                          field, key);
    return 0;
}

static int add_labels(struct sandbox_spec *spec, const json_t *labels, struct arena *mem)
{
    size_t n = spec->label_count, all = n + json_object_size(labels);
    struct pair *p = arena_alloc(mem, (all + 1) * sizeof *p);
    const char *key;
    json_t *v;

    if (all > LABELS_MAX)
        return -1;
    if (n > 0)
        memcpy(p, spec->labels, n * sizeof *p);
    json_object_foreach((json_t *)(uintptr_t)labels, key, v)
    {
        bool taken = false;

        for (size_t i = 0; i < spec->label_count && !taken; i++)
            taken = str_eq_c(spec->labels[i].key, key); /* the template's win */
        if (!taken)
            p[n++] = (struct pair){arena_str(mem, str_of(key)),
                                   arena_str(mem, str_of(json_string_value(v)))};
    }
    spec->labels = p;
    spec->label_count = n;
    return 0;
}

/* A variable of the claim replaces the template's of that name. */
static int add_env(struct sandbox_spec *spec, const json_t *env, struct arena *mem)
{
    struct pair *p = arena_alloc(mem, (spec->env_count + json_array_size(env) + 1) * sizeof *p);
    size_t n = 0, i;
    json_t *v;

    json_array_foreach(env, i, v)
    {
        struct str name = k8s_text(v, "name");

        if (str_index(name, '=') >= 0 || memchr(name.p, '\0', name.n))
            return -1;
        p[n++] = (struct pair){arena_str(mem, name), arena_str(mem, k8s_text(v, "value"))};
    }
    for (size_t k = 0; k < spec->env_count; k++) {
        bool replaced = false;

        json_array_foreach(env, i, v) replaced =
            replaced || str_eq(k8s_text(v, "name"), spec->env[k].key);
        if (!replaced)
            p[n++] = spec->env[k];
    }
    spec->env = p;
    spec->env_count = n;
    return 0;
}

void k8s_add_base(struct sandbox_spec *spec, struct arena *mem)
{
    struct sandbox_mount *m = arena_alloc(mem, (spec->mount_count + 1) * sizeof *m);

    for (size_t i = 0; i < spec->mount_count; i++)
        if (str_eq_c(spec->mounts[i].target, K8S_BASE))
            return;
    for (size_t i = 0; i < spec->volume_count; i++)
        if (str_eq_c(spec->volumes[i].path, K8S_BASE))
            return;
    if (spec->mount_count > 0)
        memcpy(m, spec->mounts, spec->mount_count * sizeof *m);
    m[spec->mount_count++] = (struct sandbox_mount){.kind = STR("own"), .target = STR(K8S_BASE)};
    spec->mounts = m;
}

void k8s_note(struct buf *to, const char *claim, const json_t *annotations)
{
    struct jw w = {.to = to};

    jw_object(&w);
    if (claim)
        jw_kc(&w, "claim", claim);
    if (json_object_size(annotations) > 0) {
        jw_key(&w, "annotations");
        jw_json(&w, annotations);
    }
    jw_object_end(&w);
}

struct str k8s_note_claim(const json_t *note)
{
    return k8s_text(note, "claim");
}

static void set_ttl(struct sandbox_spec *spec, const struct claim_info *i)
{
    int64_t left = i->times.shutdown_ms - clock_wall_ms();

    if (i->times.shutdown_ms == 0)
        return;
    left = i64_max(left, TTL_MIN_MS);
    spec->traits.ttl_ms = spec->traits.ttl_ms ? i64_min(spec->traits.ttl_ms, left) : left;
}

void k8s_wish_done(struct k8s_wish *w)
{
    json_decref(w->body);
    arena_done(&w->mem);
}

int k8s_claim_spec(struct api *a, const struct principal *by, const struct claim_info *i,
                   struct k8s_wish *w, struct claim_state *why)
{
    struct arena *mem = &w->mem;
    struct sandbox_spec *ret = &w->spec;
    AUTO(json_decref) json_t *spec = json_loadb(i->spec.p, i->spec.n, 0, NULL);
    const json_t *pod = json_object_get(spec, "additionalPodMetadata");
    const json_t *labels = json_object_get(pod, "labels"),
                 *annotations = json_object_get(pod, "annotations");
    AUTO(buf_done) struct buf note = {0};
    struct err e = {0};
    struct template *t;

    if (check_pod_map(labels, "additionalPodMetadata.labels", true, &e) < 0 ||
        check_pod_map(annotations, "additionalPodMetadata.annotations", false, &e) < 0)
        return refuse(why, "InvalidMetadata", true, mem, e.msg);
    if (json_array_size(json_object_get(spec, "volumeClaimTemplates")) > 0)
        return refuse(why, "VolumeClaimTemplatesError", true, mem,
                      "holt takes no volumeClaimTemplates from claims: its templates name volumes");
    t = template_find(a->c.templates, by, TEMPLATE_USE, STR(""), i->template, &e);
    if (!t)
        return refuse(why, "WarmPoolNotFound", false, mem,
                      arena_printf(mem, "SandboxWarmPool \"" STR_FMT "\" not found: %s",
                                   STR_ARG(i->template), e.msg));
    if (read_template(a, by, t, w, &e) < 0)
        return refuse(why, "InvalidConfiguration", true, mem, e.msg);
    if (add_labels(ret, labels, mem) < 0)
        return refuse(why, "InvalidMetadata", true, mem, "a sandbox has at most 64 labels");
    if (add_env(ret, json_object_get(spec, "env"), mem) < 0)
        return refuse(why, "EnvVarsInjectionRejected", true, mem, "the name of a variable has '='");
    set_ttl(ret, i);
    k8s_add_base(ret, mem);
    k8s_note(&note, i->id, annotations);
    ret->note = arena_str(mem, buf_str(&note));
    ret->dialect = STR(K8S_DIALECT);
    return 0;
}
