/* volume: volumes: create, list, get, update, remove. */
#include "core/sandbox/volume.h"
#include "api/native/handlers.h"
#include "api/reply_list.h"
#include "api/share/named.h"
#include "api/share/sandbox.h"
#include "base/mem.h"
#include "ops/volume.h"

#define UNKNOWN (-1)

static void write_volume(struct jw *w, const struct volume *v, int64_t used_bytes)
{
    struct volume_info i;

    volume_info(v, &i);
    jw_object(w);
    jw_kc(w, "id", i.id);
    jw_kstr(w, "name", i.name);
    jw_ktext(w, "tenant", i.tenant);
    jw_kc(w, "kind", op_volume_kinds[i.kind]);
    jw_kstr(w, "owner", i.owner);
    jw_kbool(w, "shared", i.shared);
    jw_kint_if(w, "size_bytes", i.size_bytes != 0, i.size_bytes);
    jw_kint_if(w, "used_bytes", used_bytes != UNKNOWN, used_bytes);
    jw_kint(w, "used_by", (int64_t)i.used_by);
    jw_ktime(w, "created_at", i.created_ms);
    jw_object_end(w);
}

static void write_new(struct jw *w, struct named *n)
{
    write_volume(w, volume_of(n), 0);
}

static void write_unmeasured(struct jw *w, struct named *n)
{
    write_volume(w, volume_of(n), UNKNOWN);
}

/* --- create --- */

void volume_create_run(struct request *r)
{
    const struct volume_create_in *in = r->in;
    const struct volume_spec spec = {
        .name = in->name,
        .tenant = in->tenant,
        .kind = (enum volume_kind)in->kind,
        .size_bytes = in->size_bytes == OP_ABSENT ? 0 : in->size_bytes,
        .shared = in->shared,
    };
    const struct named_call c = named_wait(r, write_new);
    struct err e = {0};

    named_reply_later(r, &c, volume_create(r->api->c.volumes, &spec, &c, &e), &e);
}

/* --- list, get --- */

void volume_list_run(struct request *r)
{
    const struct volume_list_in *in = r->in;
    struct volumes *all = r->api->c.volumes;
    struct jw w = request_json(r);
    struct volume_info i;
    struct reply_list l;

    reply_list_begin(&l, &w, "volumes", STR(""), in->limit);
    for (struct volume *v = volume_next(all, &r->who, in->cursor); v && !l.more;
         v = volume_next(all, &r->who, str_of(i.id))) {
        volume_info(v, &i);
        if ((!in->tenant.p || str_eq(in->tenant, i.tenant)) && reply_list_take(&l, str_of(i.id)))
            write_volume(&w, v, UNKNOWN);
    }
    reply_list_end(&l);
    request_send_json(r, 0);
}

/* The volume of the request if the caller may use it; otherwise the reply is sent. */
static struct volume *request_volume(struct request *r, enum volume_want want, struct str tenant,
                                     struct str id)
{
    struct err e = {0};
    struct volume *v = volume_find(r->api->c.volumes, &r->who, want, tenant, id, &e);

    if (!v)
        named_refuse(r, &e);
    return v;
}

struct measure_job {
    struct waiter waiter;
    struct api *api;
    struct principal by;
    char id[ID_SIZE];
};

/* It may have been removed meanwhile. */
static void volume_measured(void *arg, int64_t bytes, const struct err *e)
{
    struct measure_job *j = arg;
    struct request *r = waiter_end(&j->waiter);
    struct err gone = {0};
    struct volume *v =
        r ? volume_find(j->api->c.volumes, &j->by, VOLUME_SEE, STR(""), str_of(j->id), &gone)
          : NULL;

    if (v) {
        struct jw w = request_json(r);

        write_volume(&w, v, e->code == ERR_NONE ? bytes : UNKNOWN);
        request_send_json(r, 0);
    } else if (r) {
        request_fail(r, &gone);
    }
    mem_free(j);
}

void volume_get_run(struct request *r)
{
    const struct volume_id_in *in = r->in;
    struct volume *v = request_volume(r, VOLUME_SEE, in->tenant, in->id);
    struct volume_info i;
    struct measure_job *j;
    struct jw w;

    if (!v)
        return;
    j = xzalloc(sizeof *j);
    j->api = r->api;
    j->by = request_who(r);
    volume_info(v, &i);
    (void)snprintf(j->id, sizeof j->id, "%s", i.id);
    if (volume_measure(v, volume_measured, j)) {
        request_wait(r, &j->waiter);
        return;
    }
    mem_free(j);
    w = request_json(r);
    write_volume(&w, v, UNKNOWN);
    request_send_json(r, 0);
}

/* --- update --- */

void volume_update_run(struct request *r)
{
    const struct volume_update_in *in = r->in;
    struct volume *v = request_volume(r, VOLUME_CHANGE, in->tenant, in->id);
    struct named_call c;
    struct err e = {0};

    if (!v)
        return;
    c = named_wait(r, write_unmeasured);
    named_reply_later(r, &c, volume_share(v, in->shared, &c, &e), &e);
}

/* --- remove --- */

void volume_remove_run(struct request *r)
{
    const struct volume_id_in *in = r->in;
    struct volume *v = request_volume(r, VOLUME_CHANGE, in->tenant, in->id);
    struct named_call c;
    struct err e = {0};

    if (!v)
        return;
    c = named_wait(r, NULL);
    named_reply_later(r, &c, volume_remove(v, &c, &e), &e);
}
