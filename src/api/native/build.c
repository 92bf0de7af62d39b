/* build: builds of images, and loadouts: list, resolve, build. */
#include "ops/build.h"
#include "api/native/handlers.h"
#include "api/native/loadout.h"
#include "api/reply_list.h"
#include "api/share/sandbox.h"
#include "base/mem.h"
#include "core/imagebuild/dockerfile.h"
#include "core/loadout/loadout.h"

/* --- builds --- */

static void write_steps(struct jw *w, const struct build *b, const struct build_info *i)
{
    jw_key(w, "steps");
    jw_array(w);
    for (size_t k = 0; k < i->step_count; k++) {
        struct build_step_info s;

        build_step_info(b, k, &s);
        jw_object(w);
        jw_kstr(w, "name", s.name);
        jw_kc(w, "state", build_mark_names[s.mark]);
        jw_kint(w, "ms", s.took_ms);
        jw_object_end(w);
    }
    jw_array_end(w);
}

static void write_build(struct jw *w, const struct build *b)
{
    struct build_info i;

    build_info(b, &i);
    jw_object(w);
    jw_kc(w, "id", i.id);
    jw_kstr(w, "what", i.what);
    jw_kstr(w, "name", i.name);
    jw_kc(w, "state", build_state_names[i.state]);
    jw_ktext(w, "image", i.image);
    jw_kstr(w, "from", i.from);
    write_steps(w, b, &i);
    jw_kint(w, "step", (int64_t)i.at);
    jw_kint(w, "step_count", (int64_t)i.step_count);
    jw_ktext(w, "failure", i.failure);
    jw_kstr(w, "owner", i.owner);
    jw_ktime(w, "created_at", i.created_ms);
    jw_ktime(w, "ended_at", i.ended_ms);
    jw_object_end(w);
}

static void send_build(struct request *r, const struct build *b, int status)
{
    struct jw w = request_json(r);

    write_build(&w, b);
    request_send_json(r, status);
}

void build_list_run(struct request *r)
{
    const struct build_list_in *in = r->in;
    struct builds *all = r->api->c.builds;
    struct jw w = request_json(r);
    struct build_info i;
    struct reply_list l;

    reply_list_begin(&l, &w, "builds", STR(""), in->limit);
    for (struct build *b = build_next(all, &r->who, in->cursor); b && !l.more;
         b = build_next(all, &r->who, str_of(i.id))) {
        build_info(b, &i);
        if (reply_list_take(&l, str_of(i.id)))
            write_build(&w, b);
    }
    reply_list_end(&l);
    request_send_json(r, 0);
}

static struct build *request_build(struct request *r, bool change)
{
    const struct build_id_in *in = r->in;
    struct err e = {0};
    struct build *b = build_find(r->api->c.builds, &r->who, change, in->id, &e);

    if (!b)
        request_fail(r, &e);
    return b;
}

void build_get_run(struct request *r)
{
    struct build *b = request_build(r, false);

    if (b)
        send_build(r, b, 0);
}

void build_log_run(struct request *r)
{
    struct build *b = request_build(r, false);
    struct build_info i;

    if (!b)
        return;
    build_info(b, &i);
    request_send(r, 200, "text/plain; charset=utf-8", i.log);
}

void build_cancel_run(struct request *r)
{
    struct build *b = request_build(r, true);
    struct err e = {0};

    if (!b)
        return;
    if (build_cancel(b, &e) < 0)
        request_fail(r, &e);
    else
        send_build(r, b, 0);
}

struct build_job {
    struct waiter waiter;
};

static void build_ended(void *arg, struct build *b, const struct err *e)
{
    AUTO(mem_free) struct build_job *j = arg;
    struct request *r = waiter_end(&j->waiter);

    if (r && e->code != ERR_NONE)
        request_fail(r, e);
    else if (r)
        send_build(r, b, 0);
}

static void reply_build(struct request *r, struct build *b, bool wait)
{
    struct build_job *j;

    if (!wait) {
        send_build(r, b, 202);
        return;
    }
    j = xzalloc(sizeof *j);
    request_wait(r, &j->waiter);
    (void)build_wait(b, build_ended, j);
}

static struct str image_defaults(void *arg, struct str image)
{
    struct request *r = arg;
    struct image_info i;
    struct err e = {0};
    struct image *found = image_find(r->api->c.images, &r->who, IMAGE_SEE, image, &e);

    if (!found)
        return STR("{}"); /* the build says so */
    image_info(found, &i);
    return i.defaults.n > 0 ? i.defaults : STR("{}");
}

void image_build_run(struct request *r)
{
    const struct image_build_in *in = r->in;
    struct arena *a = xchg_arena(r->x);
    struct dockerfile_in file = {.text = in->dockerfile,
                                 .args = spec_pairs(&in->args, a),
                                 .arg_count = in->args.n,
                                 .has_context = in->context.n > 0,
                                 .defaults = image_defaults,
                                 .arg = r};
    struct build_spec *spec = arena_zalloc(a, sizeof *spec);
    struct err e = {0};
    struct build *b;

    if (dockerfile_read(&file, a, spec, &e) < 0 ||
        spec_read_network(in->network, &in->allow, a, &spec->network, &e) < 0) {
        request_fail(r, &e);
        return;
    }
    spec->name = in->name;
    spec->what = str_of(arena_printf(a, "image " STR_FMT, STR_ARG(in->name)));
    spec->context = in->context;
    spec->runtime = in->runtime;
    spec->fresh = in->fresh;
    if (build_start(r->api->c.builds, spec, &r->who, &b, &e) < 0)
        request_fail(r, &e);
    else
        reply_build(r, b, in->wait);
}

/* --- loadouts --- */

static struct str text_at(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);

    return json_is_string(v) ? str_make(json_string_value(v), json_string_length(v)) : STR("");
}

static void write_loadout(struct jw *w, const struct loadout_info *i, bool whole)
{
    const json_t *meta = json_object_get(i->manifest, "metadata");
    const json_t *labels = json_object_get(meta, "labels");
    const json_t *extends = json_object_get(i->manifest, "extends");

    jw_object(w);
    jw_kc(w, "name", i->name);
    jw_kc(w, "path", i->path);
    jw_kc(w, "kind", i->layer ? "layer" : "loadout");
    jw_kstr(w, "description", text_at(meta, "description"));
    jw_ktext(w, "category", text_at(labels, "category"));
    jw_ktext(w, "complexity", text_at(labels, "complexity"));
    jw_key(w, "extends");
    if (extends)
        jw_json(w, extends);
    else
        jw_raw(w, STR("[]"));
    if (whole) {
        jw_key(w, "manifest");
        jw_json(w, i->manifest);
    }
    jw_object_end(w);
}

static bool is_label(const struct loadout_info *i, const char *key, struct str wanted)
{
    const json_t *labels = json_object_get(json_object_get(i->manifest, "metadata"), "labels");

    return wanted.n == 0 || str_eq(text_at(labels, key), wanted);
}

void loadout_list_run(struct request *r)
{
    const struct loadout_list_in *in = r->in;
    struct jw w = request_json(r);
    struct loadout_info i;

    jw_object(&w);
    jw_key(&w, "loadouts");
    jw_array(&w);
    for (size_t k = 0; loadout_at(r->api->c.loadouts, k, &i); k++)
        if ((in->all || !i.layer) && is_label(&i, "category", in->category) &&
            is_label(&i, "complexity", in->complexity))
            write_loadout(&w, &i, false);
    jw_array_end(&w);
    jw_key(&w, "cursor");
    jw_null(&w);
    jw_object_end(&w);
    request_send_json(r, 0);
}

void loadout_get_run(struct request *r)
{
    const struct loadout_get_in *in = r->in;
    struct loadout_info i;
    struct str name;
    struct err e = {0};
    struct jw w;

    if (request_decode(r, in->name, &name, &e) < 0 ||
        loadout_find(r->api->c.loadouts, name, &i, &e) < 0) {
        request_fail(r, &e);
        return;
    }
    w = request_json(r);
    write_loadout(&w, &i, true);
    request_send_json(r, 0);
}

void loadout_registry_run(struct request *r)
{
    struct jw w = request_json(r);

    jw_json(&w, loadouts_registry(r->api->c.loadouts));
    request_send_json(r, 0);
}

static int plan_of(const struct request *r, const struct loadout_ref_in *in, json_t **ret_resolved,
                   struct loadout_plan *ret, struct err *e)
{
    const struct loadout_ref ref = {in->loadout, in->manifest, in->composition};

    if (loadout_resolve(r->api->c.loadouts, &ref, ret_resolved, e) < 0)
        return -1;
    return loadout_plan_make(r->api->c.loadouts, *ret_resolved, in->base, &r->who, ret, e);
}

void loadout_resolve_run(struct request *r)
{
    AUTO(loadout_plan_done) struct loadout_plan p = {0};
    AUTO(json_decref) json_t *resolved = NULL;
    struct image_info info = {.id = ""};
    struct image *image;
    struct err e = {0};
    struct jw w;

    if (plan_of(r, r->in, &resolved, &p, &e) < 0) {
        request_fail(r, &e);
        return;
    }
    image = loadout_image(r->api->c.loadouts, &r->who, &p);
    if (image)
        image_info(image, &info);
    w = request_json(r);
    jw_object(&w);
    jw_kstr(&w, "name", p.name);
    jw_kstr(&w, "base", p.base);
    jw_kstr(&w, "image_name", p.image);
    jw_ktext(&w, "image", str_of(info.id));
    jw_key(&w, "steps");
    jw_array(&w);
    for (size_t i = 0; i < p.step_count; i++)
        jw_str(&w, p.steps[i].name);
    jw_array_end(&w);
    jw_key(&w, "manifest");
    jw_json(&w, resolved);
    jw_object_end(&w);
    request_send_json(r, 0);
}

void loadout_build_run(struct request *r)
{
    const struct loadout_ref_in *in = r->in;
    AUTO(loadout_plan_done) struct loadout_plan p = {0};
    AUTO(json_decref) json_t *resolved = NULL;
    struct err e = {0};
    struct build *b;

    if (plan_of(r, in, &resolved, &p, &e) < 0 ||
        loadout_build(r->api->c.loadouts, &p, in->runtime, in->fresh, &r->who, &b, &e) < 0)
        request_fail(r, &e);
    else
        reply_build(r, b, in->wait);
}

void loadout_apply_run(struct request *r)
{
    const struct loadout_apply_in *in = r->in;
    const struct loadout_ref_in ref = {
        .loadout = in->loadout, .manifest = in->manifest, .composition = in->composition};
    struct sandbox *s = request_sandbox(r, in->id);
    AUTO(loadout_plan_done) struct loadout_plan p = {0};
    AUTO(json_decref) json_t *resolved = NULL;
    struct err e = {0};
    struct build *b;

    if (!s)
        return;
    if (plan_of(r, &ref, &resolved, &p, &e) < 0 ||
        loadout_install(r->api->c.loadouts, &p, s, &r->who, &b, &e) < 0)
        request_fail(r, &e);
    else
        reply_build(r, b, in->wait);
}

/* --- use --- */

static void preset(json_t *body, const char *key, int64_t value)
{
    if (value > 0 && !json_object_get(body, key))
        json_object_set_new(body, key, json_integer(value));
}

/* What the request says itself is stronger. */
static void fill_in(json_t *body, const struct loadout_plan *p, const char *image)
{
    struct err e;
    json_t *network = NULL;

    json_object_set_new(body, "image", json_string(image));
    preset(body, "cpu_millis", p->cpu_millis);
    preset(body, "memory_bytes", p->memory_bytes);
    preset(body, "disk_bytes", p->disk_bytes);
    if (p->network.n == 0 || json_object_get(body, "network") || json_object_get(body, "allow"))
        return;
    if (p->network.p[0] == '{' && json_read(p->network, &network, &e) == 0)
        json_object_set_new(body, "network", network);
    else
        json_object_set_new(body, "network", json_stringn(p->network.p, p->network.n));
}

int loadout_apply(const struct request *r, const struct op *op, json_t *body, struct err *e)
{
    const json_t *name = json_object_get(body, "loadout");
    AUTO(loadout_plan_done) struct loadout_plan p = {0};
    AUTO(json_decref) json_t *resolved = NULL;
    struct loadout_ref_in in = {0};
    struct image_info info;
    struct image *image;

    if (!json_is_string(name) || !op_input(op, STR("loadout")) || !op_input(op, STR("image")))
        return 0;
    in.loadout = str_make(json_string_value(name), json_string_length(name));
    in.base = text_at(body, "image");
    if (plan_of(r, &in, &resolved, &p, e) < 0)
        return err_wrap(e, "field 'loadout'");
    image = loadout_image(r->api->c.loadouts, &r->who, &p);
    if (!image) {
        err_set(e, ERR_CONFLICT, 0,
                "field 'loadout': '" STR_FMT "' is not built on the image '" STR_FMT "'",
                (int)size_min(in.loadout.n, 60), in.loadout.p, (int)size_min(p.base.n, 60),
                p.base.p);
        return err_hint(e, "`holt loadout build " STR_FMT "` builds it",
                        (int)size_min(in.loadout.n, 60), in.loadout.p);
    }
    image_info(image, &info);
    fill_in(body, &p, info.id);
    return 0;
}
