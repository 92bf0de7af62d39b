/* vm: what fluid's sandboxes can be made from: images, templates and sandboxes, as machines. */
#include "api/dialects/fluid/fluid.h"

#include "core/image/image.h"
#include "core/sandbox/host.h"
#include "core/template/template.h"

static void write_vm(struct jw *w, struct str name, const char *id, const char *state,
                     struct str host)
{
    char uuid[FLUID_ID];

    jw_object(w);
    jw_kstr(w, "name", name);
    jw_kc(w, "uuid", fluid_uuid(id, uuid));
    jw_kc(w, "state", state);
    jw_kbool(w, "persistent", true);
    if (host.n > 0)
        jw_kstr(w, "host_name", host);
    jw_object_end(w);
}

/* The host's own files, and each name that means an image. */
static void write_names(struct jw *w, const struct config *c)
{
    write_vm(w, STR("host"), "host", "shutdown", STR(""));
    for (size_t i = 0; i < c->image_aliases.n; i++) {
        struct str image, name = str_cut(str_of(c->image_aliases.v[i]), '=', &image);

        write_vm(w, name, c->image_aliases.v[i], "shutdown", STR(""));
    }
}

static void write_images(struct jw *w, const struct request *r)
{
    struct images *all = r->api->c.images;
    struct image_info i;

    for (struct image *m = image_next(all, &r->who, STR(""), false); m;
         m = image_next(all, &r->who, str_of(i.id), false)) {
        image_info(m, &i);
        if (i.name.n > 0 && i.state == IMAGE_READY && !str_eq_c(i.name, "host"))
            write_vm(w, i.name, i.id, "shutdown", STR(""));
    }
}

static void write_templates(struct jw *w, const struct request *r)
{
    struct templates *all = r->api->c.templates;
    struct template_info i;

    for (struct template *t = template_next(all, &r->who, STR("")); t;
         t = template_next(all, &r->who, str_of(i.id))) {
        template_info(t, &i);
        write_vm(w, i.name, i.id, "shutdown", STR(""));
    }
}

static const char *vm_state(const struct sandbox_info *i)
{
    return i->state == SANDBOX_RUNNING  ? "running"
           : i->state == SANDBOX_PAUSED ? "paused"
           : i->state == SANDBOX_FAILED ? "crashed"
                                        : "stopped";
}

/* Those that this interface made itself are sandboxes, no machines to make them from. */
static void write_sandboxes(struct jw *w, const struct request *r)
{
    struct sandboxes *all = r->api->c.sandboxes;
    struct sandbox_info i;

    for (struct sandbox *s = sandbox_next(all, &r->who, STR("")); s;
         s = sandbox_next(all, &r->who, str_of(i.id))) {
        sandbox_info(s, &i);
        if (i.name.n > 0 && i.state != SANDBOX_DESTROYED && !i.destroying &&
            !str_eq_c(i.dialect, FLUID_DIALECT))
            write_vm(w, i.name, i.id, vm_state(&i), i.host);
    }
}

static void write_host_errors(struct jw *w, const struct sandboxes *all)
{
    struct host_info h;
    bool any = false;

    for (size_t n = 0; host_next(all, n, &h); n++) {
        if (h.state != HOST_DOWN)
            continue;
        if (!any) {
            jw_key(w, "host_errors");
            jw_array(w);
        }
        any = true;
        jw_object(w);
        jw_kc(w, "host_name", h.conf->name);
        jw_kc(w, "host_address", h.conf->uri);
        jw_kstr(w, "error", h.reason);
        jw_object_end(w);
    }
    if (any)
        jw_array_end(w);
}

void fluid_vms(struct request *r)
{
    struct jw w = request_json(r);

    jw_object(&w);
    jw_key(&w, "vms");
    jw_array(&w);
    write_names(&w, r->api->c.conf);
    write_images(&w, r);
    write_templates(&w, r);
    write_sandboxes(&w, r);
    jw_array_end(&w);
    write_host_errors(&w, r->api->c.sandboxes);
    jw_object_end(&w);
    fluid_send(r, 200);
}
