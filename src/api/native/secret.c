/* secret: secrets: set, list, get, remove; the authority's certificate. */
#include "core/network/secret.h"
#include "api/native/handlers.h"
#include "api/reply_list.h"
#include "api/share/sandbox.h"
#include "base/mem.h"
#include "core/network/authority.h"
#include "ops/secret.h"

static void write_member(struct jw *w, const json_t *rule, const char *key)
{
    const json_t *v = json_object_get(rule, key);

    jw_key(w, key);
    if (v)
        jw_json(w, v);
    else
        jw_null(w);
}

static void write_secret(struct jw *w, const struct secret *s)
{
    static const char *const members[] = {"hosts", "methods", "path", "in", "plain"};
    struct secret_info i;

    secret_info(s, &i);
    jw_object(w);
    jw_kc(w, "id", i.id);
    jw_kstr(w, "name", i.name);
    for (size_t k = 0; k < ARRAY_LEN(members); k++)
        write_member(w, i.rule, members[k]);
    jw_kstr(w, "owner", i.owner);
    jw_ktext(w, "tenant", i.tenant);
    jw_kint(w, "used_by", (int64_t)i.used_by);
    jw_ktime(w, "created_at", i.created_ms);
    jw_ktime(w, "updated_at", i.updated_ms);
    jw_ktime(w, "rotated_at", i.rotated_ms);
    jw_object_end(w);
}

struct secret_job {
    struct waiter waiter;
    struct principal by;
};

static struct secret_job *job_new(const struct request *r)
{
    struct secret_job *j = xzalloc(sizeof *j);

    j->by = request_who(r);
    return j;
}

static void job_done(void *arg, struct secret *s, const struct err *e)
{
    struct secret_job *j = arg;
    struct request *r = waiter_end(&j->waiter);

    mem_free(j);
    if (r && e->code != ERR_NONE) {
        request_fail(r, e);
    } else if (r && !s) {
        request_send_empty(r);
    } else if (r) {
        struct jw w = request_json(r);

        write_secret(&w, s);
        request_send_json(r, 0);
    }
}

/* --- create, set --- */

/* Wipes the value in memory that we can reach; the body's text is already wiped. */
static void wipe_value(struct request *r, struct str value)
{
    const json_t *v = json_object_get(r->body, "value");

    if (value.p)
        mem_wipe((void *)(uintptr_t)value.p, value.n);
    if (json_is_string(v))
        mem_wipe((void *)(uintptr_t)json_string_value(v), json_string_length(v));
}

static void set(struct request *r, enum secret_how how)
{
    const struct secret_set_in *in = r->in;
    const struct secret_spec spec = {
        .name = in->name,
        .value = in->value,
        .hosts = in->hosts,
        .methods = json_object_get(r->body, "methods") ? &in->methods : NULL,
        .path = in->path,
        .places = in->in,
        .plain = json_object_get(r->body, "plain") ? &in->plain : NULL,
    };
    struct secret_job *j = job_new(r);
    struct err e = {0};
    int done =
        secret_set(r->api->c.secrets, &spec, how, &(struct secret_call){&j->by, job_done, j}, &e);

    wipe_value(r, in->value);
    if (done == 0) {
        request_wait(r, &j->waiter);
        return;
    }
    mem_free(j);
    request_fail(r, &e);
}

void secret_create_run(struct request *r)
{
    set(r, SECRET_MAKE);
}

void secret_set_run(struct request *r)
{
    set(r, SECRET_MAKE_OR_CHANGE);
}

/* --- list, get --- */

void secret_list_run(struct request *r)
{
    const struct secret_list_in *in = r->in;
    struct secrets *all = r->api->c.secrets;
    struct jw w = request_json(r);
    struct secret_info i;
    struct reply_list l;

    reply_list_begin(&l, &w, "secrets", STR(""), in->limit);
    for (struct secret *s = secret_next(all, &r->who, in->cursor); s && !l.more;
         s = secret_next(all, &r->who, str_of(i.id))) {
        secret_info(s, &i);
        if (reply_list_take(&l, str_of(i.id)))
            write_secret(&w, s);
    }
    reply_list_end(&l);
    request_send_json(r, 0);
}

static struct secret *request_secret(struct request *r)
{
    const struct secret_id_in *in = r->in;
    struct err e = {0};
    struct secret *s = secret_find(r->api->c.secrets, &r->who, in->name, &e);

    if (!s && e.code == ERR_FORBIDDEN)
        request_refuse(r, &e);
    else if (!s)
        request_fail(r, &e);
    return s;
}

void secret_get_run(struct request *r)
{
    struct secret *s = request_secret(r);
    struct jw w;

    if (!s)
        return;
    w = request_json(r);
    write_secret(&w, s);
    request_send_json(r, 0);
}

/* --- remove --- */

void secret_remove_run(struct request *r)
{
    struct secret *s = request_secret(r);
    struct secret_job *j;
    struct err e = {0};

    if (!s)
        return;
    j = job_new(r);
    if (secret_remove(s, &(struct secret_call){&j->by, job_done, j}, &e) == 0) {
        request_wait(r, &j->waiter);
        return;
    }
    mem_free(j);
    request_fail(r, &e);
}

/* --- the authority --- */

void ca_run(struct request *r)
{
    const struct authority *a = r->api->c.authority;
    struct err e = {0};

    if (a) {
        request_send(r, 0, "application/x-pem-file", buf_str(&a->cert));
        return;
    }
    (void)err_set(&e, ERR_NOT_FOUND, 0, "there is no authority: interception is off");
    (void)err_hint(&e, "an operator can allow it with the setting 'intercept'");
    request_fail(r, &e);
}
