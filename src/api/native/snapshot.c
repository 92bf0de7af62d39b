/* snapshot: snapshots: create, list, get, remove, restore. */
#include "api/native/snapshot.h"

#include "api/native/handlers.h"
#include "api/native/write.h"
#include "api/reply_list.h"
#include "api/share/sandbox.h"
#include "base/mem.h"
#include "ops/image.h"
#include "ops/snapshot.h"
#include "proto/json.h"

static void write_snapshot(struct jw *w, const struct snapshot *s)
{
    struct snapshot_info i;

    snapshot_info(s, &i);
    jw_object(w);
    jw_kc(w, "id", i.id);
    jw_kstr(w, "name", i.name);
    jw_kstr(w, "sandbox", i.sandbox);
    jw_ktext(w, "sandbox_name", i.sandbox_name);
    jw_ktext(w, "parent", i.parent);
    jw_kstr(w, "owner", i.owner);
    jw_ktext(w, "tenant", i.tenant);
    jw_kstr(w, "image", i.image);
    jw_ktext(w, "host", i.host);
    jw_kstr(w, "runtime", i.runtime);
    jw_key(w, "labels");
    jw_raw(w, i.labels);
    jw_kbool(w, "automatic", i.automatic);
    jw_kstr(w, "digest", i.digest);
    jw_kint(w, "size_bytes", i.bytes);
    jw_kint(w, "entries", i.entries);
    jw_kint(w, "frozen_us", i.frozen_us);
    jw_ktime(w, "created_at", i.created_ms);
    jw_object_end(w);
}

struct snapshot *request_snapshot(struct request *r, enum snapshot_want want,
                                  const struct sandbox *of, struct str ref)
{
    struct err e = {0};
    struct snapshot *s = snapshot_find(r->api->c.snapshots, &r->who, want, of, ref, &e);

    if (!s && e.code == ERR_FORBIDDEN)
        request_refuse(r, &e);
    else if (!s)
        request_fail(r, &e);
    return s;
}

struct snapshot_job {
    struct waiter waiter;
    struct api *api;
    struct principal by;
    struct sandbox *sandbox;
    int64_t execs;
    char snapshot[ID_SIZE];
    struct buf image; /* of a commit: its name */
};

static struct snapshot_job *snapshot_job_new(const struct request *r)
{
    struct snapshot_job *j = xzalloc(sizeof *j);

    j->api = r->api;
    j->by = request_who(r);
    return j;
}

static void snapshot_job_free(struct snapshot_job *j)
{
    sandbox_unref(j->sandbox);
    buf_done(&j->image);
    mem_free(j);
}
DEFINE_AUTO(struct snapshot_job *, snapshot_job_free)

/* --- create --- */

static void snapshot_created(void *arg, struct snapshot *s, const struct err *e)
{
    AUTO(snapshot_job_free) struct snapshot_job *j = arg;
    struct request *r = waiter_end(&j->waiter);
    struct jw w;

    if (r && !s)
        request_fail(r, e);
    if (!r || !s)
        return;
    w = request_json(r);
    write_snapshot(&w, s);
    request_send_json(r, 0);
}

static void put_labels(struct buf *to, const struct op_map *labels)
{
    struct jw w = {.to = to};

    jw_object(&w);
    for (size_t i = 0; i < labels->n; i++)
        jw_kstr(&w, labels->v[i].key.p, labels->v[i].value);
    jw_object_end(&w);
}

void snapshot_create_run(struct request *r)
{
    const struct snapshot_create_in *in = r->in;
    struct sandbox *s = request_sandbox(r, in->id);
    AUTO(buf_done) struct buf labels = {0};
    struct snapshot_job *j;
    struct err e = {0};

    if (!s)
        return;
    put_labels(&labels, &in->labels);
    j = snapshot_job_new(r);
    if (snapshot_create(r->api->c.snapshots, s,
                        &(struct snapshot_spec){.name = in->name, .labels = buf_str(&labels)},
                        &(struct snapshot_call){&j->by, snapshot_created, j}, &e) < 0) {
        snapshot_job_free(j);
        request_fail(r, &e);
        return;
    }
    request_wait(r, &j->waiter);
}

/* --- list, get --- */

static bool has_labels(struct str text, const struct op_map *want)
{
    AUTO(json_decref) json_t *labels = want->n > 0 ? json_loadb(text.p, text.n, 0, NULL) : NULL;

    for (size_t i = 0; i < want->n; i++) {
        const char *v = json_string_value(json_object_get(labels, want->v[i].key.p));

        if (!v || !str_eq_c(want->v[i].value, v))
            return false;
    }
    return true;
}

/* A sandbox that is gone is looked for by its text. */
static bool is_of(const struct snapshot_info *i, struct str sandbox)
{
    return sandbox.n == 0 || str_eq(sandbox, i->sandbox) || str_eq(sandbox, i->sandbox_name);
}

void snapshot_list_run(struct request *r)
{
    const struct snapshot_list_in *in = r->in;
    struct snapshots *all = r->api->c.snapshots;
    struct err none = {0};
    const struct sandbox *of =
        in->sandbox.n > 0 ? sandbox_find(r->api->c.sandboxes, &r->who, in->sandbox, &none) : NULL;
    struct sandbox_info sandbox = {.id = ""};
    struct jw w = request_json(r);
    struct snapshot_info i;
    struct reply_list l;

    if (of)
        sandbox_info(of, &sandbox);
    reply_list_begin(&l, &w, "snapshots", STR(""), in->limit);
    for (struct snapshot *s = snapshot_next(all, &r->who, in->cursor); s && !l.more;
         s = snapshot_next(all, &r->who, str_of(i.id))) {
        snapshot_info(s, &i);
        if ((in->all || !i.automatic) && is_of(&i, of ? str_of(sandbox.id) : in->sandbox) &&
            has_labels(i.labels, &in->label) && reply_list_take(&l, str_of(i.id)))
            write_snapshot(&w, s);
    }
    reply_list_end(&l);
    request_send_json(r, 0);
}

void snapshot_get_run(struct request *r)
{
    const struct snapshot_id_in *in = r->in;
    struct snapshot *s = request_snapshot(r, SNAPSHOT_SEE, NULL, in->id);
    struct jw w;

    if (!s)
        return;
    w = request_json(r);
    write_snapshot(&w, s);
    request_send_json(r, 0);
}

/* --- remove --- */

static void snapshot_removed(void *arg, struct snapshot *s, const struct err *e)
{
    AUTO(snapshot_job_free) struct snapshot_job *j = arg;
    struct request *r = waiter_end(&j->waiter);

    (void)s;
    if (r && e->code == ERR_NONE)
        request_send_empty(r);
    else if (r)
        request_fail(r, e);
}

void snapshot_remove_run(struct request *r)
{
    const struct snapshot_id_in *in = r->in;
    struct snapshot *s = request_snapshot(r, SNAPSHOT_CHANGE, NULL, in->id);
    struct snapshot_job *j;
    struct err e = {0};

    if (!s)
        return;
    j = snapshot_job_new(r);
    if (snapshot_remove(s, &(struct snapshot_call){&j->by, snapshot_removed, j}, &e) < 0) {
        snapshot_job_free(j);
        request_fail(r, &e);
        return;
    }
    request_wait(r, &j->waiter);
}

/* --- restore --- */

static void sandbox_restored(void *arg, struct snapshot *undo, const struct err *e)
{
    AUTO(snapshot_job_free) struct snapshot_job *j = arg;
    struct request *r = waiter_end(&j->waiter);
    struct snapshot_info i;
    struct jw w;

    if (r && !undo)
        request_fail(r, e);
    if (!r || !undo)
        return;
    snapshot_info(undo, &i);
    w = request_json(r);
    jw_object(&w);
    jw_kstr(&w, "sandbox", i.sandbox);
    jw_kc(&w, "snapshot", j->snapshot);
    jw_kc(&w, "undo", i.id);
    jw_kint(&w, "execs_ended", j->execs);
    jw_object_end(&w);
    request_send_json(r, 0);
}

void snapshot_restore_run(struct request *r)
{
    const struct snapshot_restore_in *in = r->in;
    struct sandbox *s = request_sandbox(r, in->id);
    struct snapshot *to = s ? request_snapshot(r, SNAPSHOT_SEE, s, in->snapshot) : NULL;
    struct snapshot_info info;
    struct sandbox_info i;
    struct snapshot_job *j;
    struct err e = {0};

    if (!to)
        return;
    sandbox_info(s, &i);
    snapshot_info(to, &info);
    j = snapshot_job_new(r);
    j->execs = i.execs_live;
    (void)snprintf(j->snapshot, sizeof j->snapshot, "%s", info.id);
    if (snapshot_restore(to, s, &(struct snapshot_call){&j->by, sandbox_restored, j}, &e) < 0) {
        snapshot_job_free(j);
        request_fail(r, &e);
        return;
    }
    request_wait(r, &j->waiter);
}

/* --- commit: an automatic snapshot, an image of its layers, and the snapshot goes --- */

static void nobody_waits(void *arg, struct snapshot *s, const struct err *e)
{
    (void)arg, (void)s, (void)e;
}

static void image_made(void *arg, struct image *i, const struct err *e)
{
    AUTO(snapshot_job_free) struct snapshot_job *j = arg;
    struct request *r = waiter_end(&j->waiter);
    struct err none = {0};
    struct snapshot *s = snapshot_find(j->api->c.snapshots, &principal_system, SNAPSHOT_CHANGE,
                                       NULL, str_of(j->snapshot), &none);

    if (s)
        (void)!snapshot_remove(s, &(struct snapshot_call){&j->by, nobody_waits, NULL}, &none);
    if (r && e->code == ERR_NONE)
        image_send(r, i, 0);
    else if (r)
        request_fail(r, e);
}

static void commit_snapshot(void *arg, struct snapshot *s, const struct err *e)
{
    struct snapshot_job *j = arg;
    struct snapshot_info i;
    struct err why = *e;

    if (s) {
        snapshot_info(s, &i);
        (void)snprintf(j->snapshot, sizeof j->snapshot, "%s", i.id);
        if (image_from_layers(
                j->api->c.images,
                &(struct image_commit_spec){.name = buf_str(&j->image),
                                            .layers = i.layers,
                                            .layer_count = i.layer_count,
                                            .on_host = i.on_host,
                                            .defaults = sandbox_defaults_of(j->sandbox)},
                &j->by, image_made, j, &why) == 0)
            return;
    }
    image_made(j, NULL, &why);
}

void image_commit_run(struct request *r)
{
    const struct image_commit_in *in = r->in;
    struct sandbox *s = request_sandbox(r, in->id);
    struct snapshot_job *j;
    struct err e = {0};

    if (!s)
        return;
    j = snapshot_job_new(r);
    j->sandbox = sandbox_ref(s);
    buf_add_str(&j->image, in->image);
    if (snapshot_create(r->api->c.snapshots, s, &(struct snapshot_spec){.automatic = true},
                        &(struct snapshot_call){&j->by, commit_snapshot, j}, &e) < 0) {
        snapshot_job_free(j);
        request_fail(r, &e);
        return;
    }
    request_wait(r, &j->waiter);
}
