/* template: templates: create, list, get, remove; and what a request takes from one. */
#include "api/native/template.h"

#include "api/native/handlers.h"
#include "api/native/loadout.h"
#include "api/reply_list.h"
#include "api/share/named.h"
#include "api/share/sandbox.h"
#include "base/mem.h"
#include "core/template/template.h"
#include "ops/template.h"
#include "proto/json.h"

/* An environment may hold what only its owner knows, and the template may be shared. */
static void write_fields(struct jw *w, struct str text)
{
    AUTO(json_decref) json_t *fields = json_loadb(text.p, text.n, 0, NULL);
    json_t *env = json_object_get(fields, "env"), *value;
    const char *name;

    json_object_foreach(env, name, value) json_object_set_new(env, name, json_null());
    jw_key(w, "fields");
    jw_json(w, fields);
}

static void write_warnings(struct jw *w, const struct template_info *i)
{
    jw_key(w, "warnings");
    jw_array(w);
    if (i->pool > 0 && !i->pooled) {
        AUTO(buf_done) struct buf text = {0};

        buf_printf(&text, "%s" STR_FMT "%s makes no sandboxes ahead: none are kept ready",
                   i->runtime.n ? "runtime '" : "the default runtime", STR_ARG(i->runtime),
                   i->runtime.n ? "'" : "");
        jw_str(w, buf_str(&text));
    }
    jw_array_end(w);
}

static void write_template(struct jw *w, const struct template *t)
{
    struct template_info i;

    template_info(t, &i);
    jw_object(w);
    jw_kc(w, "id", i.id);
    jw_kstr(w, "name", i.name);
    jw_ktext(w, "tenant", i.tenant);
    jw_kstr(w, "owner", i.owner);
    jw_kbool(w, "shared", i.shared);
    jw_kint(w, "pool", i.pool);
    write_fields(w, i.fields);
    write_warnings(w, &i);
    jw_ktime(w, "created_at", i.created_ms);
    jw_object_end(w);
}

static void write_named(struct jw *w, struct named *n)
{
    write_template(w, template_of(n));
}

/* --- create --- */

/* As they were given: the decoded ones have presets too, and would be stronger than a later
 * template's or request's nothing. */
static char *given_fields(const json_t *body)
{
    AUTO(json_decref) json_t *fields = json_deep_copy(body);

    for (size_t i = 0; op_template_own[i]; i++)
        json_object_del(fields, op_template_own[i]);
    return json_dumps(fields, JSON_COMPACT);
}

void template_create_run(struct request *r)
{
    const struct template_create_in *in = r->in;
    const struct named_call c = named_wait(r, write_named);
    char *fields = given_fields(r->body);
    struct err e = {0};
    int done = template_create(r->api->c.templates,
                               &(struct template_spec){.name = in->name,
                                                       .tenant = in->sandbox.tenant,
                                                       .fields = str_of(fields),
                                                       .runtime = in->sandbox.runtime,
                                                       .pool = in->pool,
                                                       .shared = in->shared},
                               &c, &e);

    free(fields); /* jansson's */
    named_reply_later(r, &c, done, &e);
}

/* --- list, get --- */

void template_list_run(struct request *r)
{
    const struct template_list_in *in = r->in;
    struct templates *all = r->api->c.templates;
    struct jw w = request_json(r);
    struct template_info i;
    struct reply_list l;

    reply_list_begin(&l, &w, "templates", STR(""), in->limit);
    for (struct template *t = template_next(all, &r->who, in->cursor); t && !l.more;
         t = template_next(all, &r->who, str_of(i.id))) {
        template_info(t, &i);
        if ((!in->tenant.p || str_eq(in->tenant, i.tenant)) && reply_list_take(&l, str_of(i.id)))
            write_template(&w, t);
    }
    reply_list_end(&l);
    request_send_json(r, 0);
}

static struct template *request_template(struct request *r, enum template_want want)
{
    const struct template_id_in *in = r->in;
    struct err e = {0};
    struct template *t = template_find(r->api->c.templates, &r->who, want, in->tenant, in->id, &e);

    if (!t)
        named_refuse(r, &e);
    return t;
}

void template_get_run(struct request *r)
{
    struct template *t = request_template(r, TEMPLATE_SEE);
    struct jw w;

    if (!t)
        return;
    w = request_json(r);
    write_template(&w, t);
    request_send_json(r, 0);
}

/* --- remove --- */

void template_remove_run(struct request *r)
{
    struct template *t = request_template(r, TEMPLATE_CHANGE);
    struct named_call c;
    struct err e = {0};

    if (!t)
        return;
    c = named_wait(r, NULL);
    named_reply_later(r, &c, template_remove(t, &c, &e), &e);
}

/* --- use --- */

/* A request that names its network means all of it. */
static bool request_decides(const json_t *body, const char *name)
{
    return json_object_get(body, name) ||
           (strcmp(name, "allow") == 0 && json_object_get(body, "network"));
}

static int apply_template(const struct request *r, const struct op *op, json_t *body, struct err *e)
{
    const json_t *ref = json_object_get(body, "template");
    const char *name;
    AUTO(json_decref) json_t *fields = NULL;
    struct template_info i;
    struct template *t;
    json_t *value;

    if (!json_is_string(ref) || !op_input(op, STR("template")))
        return 0; /* a wrong type is for op_decode to say */
    t = template_find(r->api->c.templates, &r->who, TEMPLATE_USE, STR(""),
                      str_make(json_string_value(ref), json_string_length(ref)), e);
    if (!t)
        return err_wrap(e, "field 'template'");
    template_info(t, &i);
    fields = json_loadb(i.fields.p, i.fields.n, 0, NULL);
    json_object_foreach(fields, name, value)
    {
        const struct op_field *f = op_input(op, str_of(name));
        json_t *own = json_object_get(body, name);

        if (f && f->type == OP_MAP && json_is_object(own))
            json_object_update_missing(own, value);
        else if (f && !request_decides(body, name))
            json_object_set(body, name, value);
    }
    return 0;
}

int template_apply(const struct request *r, const struct op *op, json_t *body, struct err *e)
{
    if (apply_template(r, op, body, e) < 0)
        return -1;
    return op == &op_template_create ? 0 : loadout_apply(r, op, body, e); /* it is kept by name */
}
