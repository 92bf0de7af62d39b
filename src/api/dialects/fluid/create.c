/* create: makes fluid's sandboxes, from images, templates, snapshots and other sandboxes. */
#include "api/dialects/fluid/fluid.h"

#include "base/mem.h"
#include "core/image/image.h"
#include "core/snapshot/snapshot.h"
#include "core/template/template.h"
#include "ops/sandbox.h"

#define CPUS_MAX 1024
#define MEMORY_MB_MAX (1 << 24)
#define TTL_MAX (366LL * 24 * 3600)
#define AGENT_MAX 255

struct create_in {
    struct str source, agent, name;
    int64_t cpu, memory_mb, ttl;
    bool auto_start, wait_for_ip;
};
static const struct fluid_field create_fields[] = {
    {"source_vm_name", FLUID_STR, offsetof(struct create_in, source), true},
    {"agent_id", FLUID_STR, offsetof(struct create_in, agent), true},
    {"vm_name", FLUID_STR, offsetof(struct create_in, name), false},
    {"cpu", FLUID_INT, offsetof(struct create_in, cpu), false},
    {"memory_mb", FLUID_INT, offsetof(struct create_in, memory_mb), false},
    {"ttl_seconds", FLUID_INT, offsetof(struct create_in, ttl), false},
    {"auto_start", FLUID_BOOL, offsetof(struct create_in, auto_start), false},
    {"wait_for_ip", FLUID_BOOL, offsetof(struct create_in, wait_for_ip), false},
};
const struct fluid_form fluid_create_form = {FLUID_FORM(create_fields, struct create_in)};

/* Texts are in the arena: the request may be gone before its source is copied. */
struct make {
    struct waiter waiter;
    struct api *api;
    struct principal by;
    struct arena a;
    struct str name, note;
    struct alias_name alias;
    struct sandbox_limits limits;
    int64_t ttl_ms;
    bool start, wait_for_ip;
    struct sandbox *s;
};

static void make_free(struct make *m)
{
    sandbox_unref(m->s);
    arena_done(&m->a);
    mem_free(m);
}
DEFINE_AUTO(struct make *, make_free)

/* --- the end --- */

static void send_made(struct request *r, const struct make *m)
{
    struct jw w = request_json(r);
    struct err e = {0};

    jw_object(&w);
    jw_key(&w, "sandbox");
    fluid_write_sandbox(&w, m->s);
    if (m->start && m->wait_for_ip && !fluid_write_address(r, m->s, &w, &e)) {
        fluid_refuse(r, &e);
        return;
    }
    jw_object_end(&w);
    fluid_send(r, 201);
}

static void make_end(struct make *m, const struct err *e)
{
    struct request *r = waiter_end(&m->waiter);

    if (r && e->code != ERR_NONE)
        fluid_refuse(r, e);
    else if (r)
        send_made(r, m);
    make_free(m);
}

static void stopped_at_once(void *arg, struct sandbox *s, const struct err *e)
{
    (void)s;
    make_end(arg, e);
}

static void sandbox_made(void *arg, struct sandbox *s, const struct err *e)
{
    struct make *m = arg;

    if (e->code == ERR_NONE)
        m->s = sandbox_ref(s);
    if (e->code == ERR_NONE && !m->start)
        sandbox_stop(s, 0, true, &m->by, stopped_at_once, m);
    else
        make_end(m, e);
}

/* --- from an image or a template --- */

static void set_limits(struct sandbox_limits *to, const struct sandbox_limits *l)
{
    to->cpu_millis = l->cpu_millis ? l->cpu_millis : to->cpu_millis;
    to->memory_bytes = l->memory_bytes ? l->memory_bytes : to->memory_bytes;
}

static void make_from(struct make *m, struct sandbox_spec *spec)
{
    set_limits(&spec->traits.limits, &m->limits);
    spec->traits.ttl_ms = m->ttl_ms ? m->ttl_ms : spec->traits.ttl_ms;
    spec->name = m->name;
    spec->dialect = STR(FLUID_DIALECT);
    spec->note = m->note;
    spec->aliases = &m->alias;
    spec->alias_count = 1;
    sandbox_create(m->api->c.sandboxes, spec, &m->by, sandbox_made, m);
}

static void make_from_image(struct make *m, struct str image)
{
    const struct fluid_settings *f = fluid_settings(m->api->c.conf);
    struct sandbox_spec spec = {
        .image = image,
        .runtime = str_of(f->runtime),
        .network = str_of(f->network),
        .house_network = true,
        .traits = {.limits = {.cpu_millis = f->cpus * 1000, .memory_bytes = f->memory_bytes}},
    };

    make_from(m, &spec);
}

static void make_from_template(struct make *m, struct request *r, const struct template *t)
{
    AUTO(json_decref) json_t *body = NULL;
    const struct sandbox_create_in *in;
    struct sandbox_spec spec;
    struct template_info i;
    void *decoded = NULL;
    struct err e = {0};

    template_info(t, &i);
    body = json_loadb(i.fields.p, i.fields.n, 0, NULL);
    if (op_decode(&op_sandbox_create, &(struct op_params){0}, STR(""), body, &m->a, &decoded, &e) <
            0 ||
        spec_read_sandbox(r, &((const struct sandbox_create_in *)decoded)->sandbox, &m->a, &spec,
                          &e) < 0) {
        err_wrap(&e, "template '%s'", i.id);
        make_end(m, &e);
        return;
    }
    in = decoded;
    spec.env = spec_pairs(&in->env, &m->a);
    spec.env_count = in->env.n;
    make_from(m, &spec);
}

/* --- from a sandbox or its snapshot --- */

static void make_from_snapshot(struct make *m, const struct snapshot *s)
{
    AUTO(mem_free) char *spec = NULL;
    struct snapshot_info i;
    char id[ID_SIZE];

    snapshot_info(s, &i);
    (void)snprintf(id, sizeof id, "%s", i.id);
    spec = str_dup(i.spec);
    sandbox_fork(m->api->c.sandboxes, str_of(spec),
                 &(struct sandbox_fork){.base = str_of(id),
                                        .runtime = arena_str(&m->a, i.runtime),
                                        .name = m->name,
                                        .limits = m->limits,
                                        .ttl_ms = m->ttl_ms,
                                        .dialect = STR(FLUID_DIALECT),
                                        .note = m->note,
                                        .aliases = &m->alias,
                                        .alias_count = 1},
                 &m->by, sandbox_made, m);
}

static void source_copied(void *arg, struct snapshot *s, const struct err *e)
{
    if (s)
        make_from_snapshot(arg, s);
    else
        make_end(arg, e);
}

/* --- the beginning --- */

static bool is_image(const struct request *r, struct str ref)
{
    struct images *all = r->api->c.images;
    struct image_use use = {0};
    struct err none = {0};

    if (images_use(all, &r->who, ref, &use, &none) < 0)
        return false;
    for (size_t i = 0; i < use.layer_count; i++)
        images_release(all, str_of(use.layers[i]));
    return true;
}

/* In this order: an image, a template, a snapshot (SANDBOX@NAME), a sandbox. */
static void make_from_source(struct make *m, struct request *r, struct str source)
{
    struct err none = {0}, e = {0};
    struct snapshot *snapshot;
    struct template *t;
    struct sandbox *of;

    if (is_image(r, source)) {
        make_from_image(m, source);
        return;
    }
    t = template_find(r->api->c.templates, &r->who, TEMPLATE_USE, STR(""), source, &none);
    if (t) {
        make_from_template(m, r, t);
        return;
    }
    snapshot = snapshot_is_ref(source)
                   ? snapshot_find(r->api->c.snapshots, &r->who, SNAPSHOT_SEE, NULL, source, &none)
                   : NULL;
    if (snapshot) {
        make_from_snapshot(m, snapshot);
        return;
    }
    of = sandbox_find_as(r->api->c.sandboxes, &r->who, STR(FLUID_DIALECT), source, &none);
    if (!of) {
        err_set(&e, ERR_NOT_FOUND, 0,
                "source VM '" STR_FMT "' not found: no image, template, snapshot or sandbox has "
                "this name",
                (int)size_min(source.n, 64), source.p);
        err_hint(&e, "GET /v1/vms lists them; the setting image_aliases gives images more names");
        make_end(m, &e);
    } else if (snapshot_create(r->api->c.snapshots, of, &(struct snapshot_spec){.automatic = true},
                               &(struct snapshot_call){&m->by, source_copied, m}, &e) < 0) {
        make_end(m, &e);
    }
}

static bool is_in_range(struct request *r, const struct create_in *in)
{
    if (in->cpu > CPUS_MAX)
        fluid_error(r, 400, "cpu must be at most %d", CPUS_MAX);
    else if (in->memory_mb > MEMORY_MB_MAX)
        fluid_error(r, 400, "memory_mb must be at most %d", MEMORY_MB_MAX);
    else if (in->ttl < 0 || in->ttl > TTL_MAX)
        fluid_error(r, 400, "ttl_seconds must be from 0 to %lld", (long long)TTL_MAX);
    else if (in->agent.n > AGENT_MAX)
        fluid_error(r, 400, "agent_id must have at most %d bytes", AGENT_MAX);
    else
        return true;
    return false;
}

void fluid_create(struct request *r)
{
    const struct create_in *in = r->in;
    AUTO(buf_done) struct buf note = {0};
    char id[FLUID_ID], job[FLUID_ID], name[FLUID_ID];
    struct make *m;

    if (!is_in_range(r, in))
        return;
    m = xzalloc(sizeof *m);
    m->api = r->api;
    m->by = request_who(r);
    m->start = in->auto_start;
    m->wait_for_ip = in->wait_for_ip;
    m->ttl_ms = in->ttl * 1000;
    m->limits.cpu_millis = i64_max(in->cpu, 0) * 1000;
    m->limits.memory_bytes = i64_max(in->memory_mb, 0) << 20;
    m->name = arena_str(&m->a, in->name.n > 0 ? in->name : str_of(fluid_new_id("sbx-", name)));
    m->alias = (struct alias_name){STR(FLUID_DIALECT),
                                   arena_str(&m->a, str_of(fluid_new_id(FLUID_SANDBOX, id)))};
    fluid_note_write(&note, &(struct fluid_note){.agent = in->agent,
                                                 .job = str_of(fluid_new_id("JOB-", job)),
                                                 .source = in->source,
                                                 .idle = !in->auto_start});
    m->note = arena_str(&m->a, buf_str(&note));
    request_wait(r, &m->waiter);
    make_from_source(m, r, in->source);
}
