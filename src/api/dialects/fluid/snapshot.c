/* snapshot: fluid's snapshots: create, list, restore. */
#include "core/snapshot/snapshot.h"

#include "api/dialects/fluid/fluid.h"
#include "base/mem.h"

#define KIND_LABEL "fluid.kind"
#define LIST_MAX 4096

struct snap_in {
    struct str name;
    bool external;
};
static const struct fluid_field snapshot_fields[] = {
    {"name", FLUID_STR, offsetof(struct snap_in, name), true},
    {"external", FLUID_BOOL, offsetof(struct snap_in, external), false},
};
const struct fluid_form fluid_snapshot_form = {FLUID_FORM(snapshot_fields, struct snap_in)};
const struct fluid_form fluid_restore_form = {.lenient = true, .optional = true};

static void write_snapshot(struct jw *w, const struct snapshot_info *i, struct str sandbox)
{
    AUTO(json_decref) json_t *labels = json_loadb(i->labels.p, i->labels.n, 0, NULL);
    const char *kind = json_string_value(json_object_get(labels, KIND_LABEL));
    AUTO(buf_done) struct buf meta = {0};
    struct jw m = {.to = &meta};
    char id[FLUID_ID];

    jw_object(&m);
    jw_kc(&m, "snapshot", i->id);
    jw_kint(&m, "size_bytes", i->bytes);
    jw_kstr(&m, "digest", i->digest);
    jw_object_end(&m);
    jw_object(w);
    jw_kc(w, "id", fluid_id("SNP-", i->id, id));
    jw_kstr(w, "sandbox_id", sandbox);
    jw_kstr(w, "name", i->name);
    jw_kc(w, "kind", kind ? kind : "INTERNAL");
    jw_kstr(w, "ref", i->name);
    jw_ktime(w, "created_at", i->created_ms);
    jw_kstr(w, "meta_json", buf_str(&meta));
    jw_object_end(w);
}

struct snap_job {
    struct waiter waiter;
    struct principal by;
    struct sandbox *s;
    struct buf snapshot; /* of a restore: as JSON */
};

static struct snap_job *snap_new(const struct request *r, struct sandbox *s)
{
    struct snap_job *j = xzalloc(sizeof *j);

    j->by = request_who(r);
    j->s = sandbox_ref(s);
    return j;
}

static void snap_free(struct snap_job *j)
{
    sandbox_unref(j->s);
    buf_done(&j->snapshot);
    mem_free(j);
}
DEFINE_AUTO(struct snap_job *, snap_free)

/* --- create --- */

static void snapshot_created(void *arg, struct snapshot *s, const struct err *e)
{
    AUTO(snap_free) struct snap_job *j = arg;
    struct request *r = waiter_end(&j->waiter);
    struct sandbox_info i;
    struct snapshot_info of;
    struct jw w;

    if (r && !s)
        fluid_refuse(r, e);
    if (!r || !s)
        return;
    sandbox_info(j->s, &i);
    snapshot_info(s, &of);
    w = request_json(r);
    jw_object(&w);
    jw_key(&w, "snapshot");
    write_snapshot(&w, &of, fluid_sandbox_id(&i));
    jw_object_end(&w);
    fluid_send(r, 201);
}

void fluid_snapshot_create(struct request *r)
{
    const struct snap_in *in = r->in;
    struct sandbox *s = fluid_find(r);
    struct snap_job *j;
    struct err e = {0};

    if (!s)
        return;
    j = snap_new(r, s);
    if (snapshot_create(
            r->api->c.snapshots, s,
            &(struct snapshot_spec){
                .name = in->name,
                .labels = in->external ? STR("{\"" KIND_LABEL "\":\"EXTERNAL\"}") : STR("")},
            &(struct snapshot_call){&j->by, snapshot_created, j}, &e) < 0) {
        snap_free(j);
        fluid_refuse(r, &e);
        return;
    }
    request_wait(r, &j->waiter);
}

/* --- list --- */

static size_t snapshots_of(struct request *r, const char *sandbox, struct snapshot **to)
{
    struct snapshots *all = r->api->c.snapshots;
    struct snapshot_info i;
    size_t n = 0;

    for (struct snapshot *s = snapshot_next(all, &r->who, STR("")); s && n < LIST_MAX;
         s = snapshot_next(all, &r->who, str_of(i.id))) {
        snapshot_info(s, &i);
        if (str_eq_c(i.sandbox, sandbox) && !i.automatic)
            to[n++] = s;
    }
    return n;
}

void fluid_snapshots(struct request *r)
{
    struct sandbox *s = fluid_find(r);
    struct snapshot **all;
    struct snapshot_info of;
    struct sandbox_info i;
    struct jw w;
    size_t n;

    if (!s)
        return;
    sandbox_info(s, &i);
    all = arena_alloc(xchg_arena(r->x), LIST_MAX * sizeof *all);
    n = snapshots_of(r, i.id, all);
    w = request_json(r);
    jw_object(&w);
    jw_key(&w, "snapshots");
    jw_array(&w);
    for (size_t k = n; k > 0; k--) { /* ids are in the order of creation */
        snapshot_info(all[k - 1], &of);
        write_snapshot(&w, &of, fluid_sandbox_id(&i));
    }
    jw_array_end(&w);
    jw_kint(&w, "total", (int64_t)n);
    jw_object_end(&w);
    fluid_send(r, 200);
}

/* --- restore --- */

/* By its name, our id, or the id of this interface. */
struct snapshot *fluid_find_snapshot(struct request *r, const struct sandbox *s, struct str ref)
{
    struct err none = {0};
    struct snapshot *found =
        snapshot_find(r->api->c.snapshots, &r->who, SNAPSHOT_SEE, s, ref, &none);
    struct snapshot **all;
    struct snapshot_info of;
    struct sandbox_info i;

    sandbox_info(s, &i);
    all = arena_alloc(xchg_arena(r->x), LIST_MAX * sizeof *all);
    for (size_t n = found ? 0 : snapshots_of(r, i.id, all); n > 0 && !found; n--) {
        snapshot_info(all[n - 1], &of);
        if (fluid_is(ref, "SNP-", of.id))
            found = all[n - 1];
    }
    if (!found)
        fluid_error(r, 404, "snapshot not found: " STR_FMT, (int)size_min(ref.n, 64), ref.p);
    return found;
}

static void sandbox_restored(void *arg, struct snapshot *undo, const struct err *e)
{
    AUTO(snap_free) struct snap_job *j = arg;
    struct request *r = waiter_end(&j->waiter);
    struct jw w;

    if (r && !undo)
        fluid_refuse(r, e);
    if (!r || !undo)
        return;
    w = request_json(r);
    jw_object(&w);
    jw_key(&w, "snapshot");
    jw_raw(&w, buf_str(&j->snapshot));
    jw_key(&w, "sandbox");
    fluid_write_sandbox(&w, j->s);
    jw_object_end(&w);
    fluid_send(r, 200);
}

void fluid_restore(struct request *r)
{
    struct sandbox *s = fluid_find(r);
    struct snapshot *to = s ? fluid_find_snapshot(r, s, r->params.v[1]) : NULL;
    struct snapshot_info of;
    struct sandbox_info i;
    struct snap_job *j;
    struct err e = {0};

    if (!to)
        return;
    j = snap_new(r, s);
    sandbox_info(s, &i);
    snapshot_info(to, &of);
    write_snapshot(&(struct jw){.to = &j->snapshot}, &of, fluid_sandbox_id(&i));
    if (snapshot_restore(to, s, &(struct snapshot_call){&j->by, sandbox_restored, j}, &e) < 0) {
        snap_free(j);
        fluid_refuse(r, &e);
        return;
    }
    request_wait(r, &j->waiter);
}
