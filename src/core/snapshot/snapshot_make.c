/* snapshot_make: takes and removes snapshots. */
#include "base/clock.h"
#include "base/mem.h"
#include "base/point.h"
#include "core/snapshot/snapshot_internal.h"
#include "core/space.h"

#define LAYERS_MAX 60 /* of one sandbox: src/wire/spawn.h */
#define AUTOMATIC_KEPT 8
#define NAME_MAX_LEN 63

/* Create.
 *
 *   directory ─▶ copy ─▶ layer (synced, its row) ─▶ row of the snapshot, event ─▶ done
 *
 * Before the last step nothing lists it; a crash leaves a directory "tmp_…", or a layer that
 * nothing needs, and the next start removes both. */
struct make {
    struct snapshots *l;
    struct snapshot *s;
    struct sandbox *of;
    struct principal by;
    snapshot_cb done;
    void *arg;
    char dir[ID_SIZE];
};

static void make_free(struct make *m)
{
    sandbox_unref(m->of);
    mem_free(m);
}

static void make_failed(struct make *m, const struct err *e)
{
    snapshot_drop(m->s);
    m->done(m->arg, NULL, e);
    make_free(m);
}

static void row_inserted(void *arg, const struct err *e)
{
    struct make *m = arg;

    if (e->code != ERR_NONE) {
        make_failed(m, e);
        return;
    }
    m->s->state = SNAPSHOT_READY;
    sandbox_is_at(m->of, m->s->id);
    snapshot_retain(m->l, m->s->sandbox);
    m->done(m->arg, m->s, e);
    make_free(m);
}

static void layer_added(void *arg, const char *id, const struct err *e)
{
    struct make *m = arg;

    point_reached("snapshot layer added");
    if (e->code != ERR_NONE) {
        make_failed(m, e);
        return;
    }
    snapshot_set_top(m->s, id);
    images_release(m->l->c.images, str_of(id));
    snapshot_insert(m->s, m->by.actor, row_inserted, m);
}

static void files_copied(void *arg, struct sandbox *of, const struct driver_snapped *d,
                         const struct err *e)
{
    struct make *m = arg;

    (void)of;
    if (e->code != ERR_NONE) {
        images_drop_dir(m->l->c.images, m->dir);
        make_failed(m, e);
        return;
    }
    point_reached("snapshot files copied");
    m->s->bytes = d->bytes;
    m->s->entries = d->entries;
    m->s->frozen_us = d->frozen_us;
    mem_free(m->s->digest);
    m->s->digest = xasprintf("sha256:%s", d->digest);
    images_add_layer(
        m->l->c.images,
        &(struct image_layer){
            .dir = m->dir, .digest = d->digest, .bytes = d->bytes, .entries = d->entries},
        layer_added, m);
}

void snapshot_set_top(struct snapshot *s, const char *layer)
{
    size_t n = s->layer_count + 1;
    const char **to = xzalloc((n + 1) * sizeof *to + n * ID_SIZE);
    char *text = (char *)(to + n + 1);

    for (size_t i = 0; i < n; i++, text += ID_SIZE) {
        (void)snprintf(text, ID_SIZE, "%s", i + 1 < n ? s->layers[i] : layer);
        to[i] = text;
    }
    mem_free(s->layers);
    s->layers = to;
    s->layer_count = n;
    images_hold(s->all->c.images, str_of(layer));
}

static const struct snapshot *namesake(const struct snapshots *l, const char *sandbox,
                                       struct str name)
{
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->sorted[i]->sandbox, sandbox) == 0 && str_eq_c(name, l->sorted[i]->name))
            return l->sorted[i];
    return NULL;
}

static char *free_name(const struct snapshots *l, const char *sandbox, bool automatic)
{
    for (int n = 1;; n++) {
        char *name = xasprintf("%s%d", automatic ? "auto" : "s", n);

        if (!namesake(l, sandbox, str_of(name)))
            return name;
        mem_free(name);
    }
}

struct snapshot *snapshot_of(struct snapshots *l, struct sandbox *of, const char *id,
                             const struct snapshot_spec *spec)
{
    AUTO(buf_done) struct buf text = {0};
    struct snapshot *s = xzalloc(sizeof *s);
    struct sandbox_info i;

    sandbox_info(of, &i);
    sandbox_spec_of(of, &text);
    if (id)
        (void)snprintf(s->id, sizeof s->id, "%s", id);
    else
        id_make("sn", s->id);
    (void)snprintf(s->sandbox, sizeof s->sandbox, "%s", i.id);
    (void)snprintf(s->parent, sizeof s->parent, STR_FMT, STR_ARG(i.snapshot));
    (void)snprintf(s->owner, sizeof s->owner, STR_FMT, STR_ARG(i.owner));
    s->name = spec->name.n > 0 ? str_dup(spec->name) : free_name(l, i.id, spec->automatic);
    s->sandbox_name = str_dup(i.name);
    s->tenant = str_dup(i.tenant);
    s->image = str_dup(i.image);
    s->runtime = str_dup(i.runtime);
    s->spec = str_dup(buf_str(&text));
    s->labels = str_dup(spec->labels.n > 0 ? spec->labels : STR("{}"));
    s->digest = xstrdup("");
    s->layers = sandbox_layers(of, &s->layer_count, &s->on_host);
    s->host = xstrdup(s->on_host ? l->host : "");
    s->automatic = spec->automatic;
    s->created_ms = clock_wall_ms();
    snapshot_read_defaults(s);
    snapshot_list(l, s);
    s->held = true;
    for (size_t k = 0; k < s->layer_count; k++)
        images_hold(l->c.images, str_of(s->layers[k]));
    return s;
}

static int check_spec(const struct snapshots *l, const struct sandbox *of,
                      const struct snapshot_spec *spec, struct err *e)
{
    struct sandbox_info i;
    int64_t has = 0;

    sandbox_info(of, &i);
    if (spec->name.n > NAME_MAX_LEN ||
        (spec->name.n > 0 && memchr(spec->name.p, '@', spec->name.n)))
        return err_set(e, ERR_INVALID, 0, "field 'name': at most %d characters, without '@'",
                       NAME_MAX_LEN);
    if (spec->name.n > 0 && namesake(l, i.id, spec->name)) {
        err_set(e, ERR_CONFLICT, 0, "sandbox '%s' has a snapshot '" STR_FMT "' already", i.id,
                STR_ARG(spec->name));
        return err_hint(e, "choose another name, or remove it: holt snapshot rm %s@" STR_FMT, i.id,
                        STR_ARG(spec->name));
    }
    for (size_t k = 0; k < l->count; k++)
        has += strcmp(l->sorted[k]->sandbox, i.id) == 0 && !l->sorted[k]->automatic;
    if (has >= *l->c.count_max && !spec->automatic) {
        err_set(e, ERR_LIMIT, 0, "sandbox '%s' has %lld snapshots already", i.id, (long long)has);
        return err_limit(e, "snapshots_max", *l->c.count_max, "remove some (holt snapshot rm)");
    }
    return space_ask(l->c.space, 0, e);
}

static int check_depth(const struct snapshot *s, struct err *e)
{
    if (s->layer_count < LAYERS_MAX)
        return 0;
    err_set(e, ERR_LIMIT, 0, "sandbox '%s' lies on %zu layers already", s->sandbox, s->layer_count);
    return err_limit_fixed(e, LAYERS_MAX, "create it from an image that has its files");
}

int snapshot_create(struct snapshots *l, struct sandbox *of, const struct snapshot_spec *spec,
                    const struct snapshot_call *c, struct err *e)
{
    struct make *m;
    char dir[ID_SIZE];

    if (check_spec(l, of, spec, e) < 0 || images_make_dir(l->c.images, "tmp", dir, e) < 0)
        return err_wrap(e, "take a snapshot");
    m = xzalloc(sizeof *m);
    *m = (struct make){.l = l, .of = sandbox_ref(of), .by = *c->by, .done = c->done, .arg = c->arg};
    m->by.token = NULL;
    memcpy(m->dir, dir, sizeof m->dir);
    m->s = snapshot_of(l, of, NULL, spec);
    if (check_depth(m->s, e) < 0) {
        images_drop_dir(l->c.images, dir);
        snapshot_drop(m->s);
        make_free(m);
        return -1;
    }
    sandbox_snapshot(of, m->dir, space_room(l->c.space), &m->by, files_copied, m);
    return 0;
}

/* --- remove: what was made from it has its layers still --- */

struct remove_call {
    struct snapshot *s;
    snapshot_cb done;
    void *arg;
};

/* Its children hang on its parent now: in memory at once; a row with a parent that is gone reads as
 * one without. */
static void row_deleted(void *arg, const struct err *e)
{
    struct remove_call *r = arg;

    if (e->code == ERR_NONE)
        snapshot_drop(r->s);
    else
        r->s->state = SNAPSHOT_READY;
    r->done(r->arg, NULL, e);
    mem_free(r);
}

int snapshot_remove(struct snapshot *s, const struct snapshot_call *c, struct err *e)
{
    struct remove_call *r;

    if (restore_uses(s->all, s->id)) {
        err_set(e, ERR_CONFLICT, 0, "snapshot '%s' is in use by a restore", s->id);
        return err_hint(e, "try again when that is done");
    }
    if (s->state != SNAPSHOT_READY)
        return err_set(e, ERR_CONFLICT, 0, "snapshot '%s' is being removed", s->id);
    s->state = SNAPSHOT_REMOVING;
    r = xzalloc(sizeof *r);
    *r = (struct remove_call){s, c->done, c->arg};
    snapshot_delete(s, c->by->actor, row_deleted, r);
    return 0;
}

static void dropped(void *arg, struct snapshot *s, const struct err *e)
{
    (void)arg;
    (void)s;
    (void)e;
}

/* A merge of a fork needs what it began as. */
static bool has_forks(const struct snapshots *l, const struct snapshot *s)
{
    struct sandbox_info i;

    for (struct sandbox *f = sandbox_next(l->c.sandboxes, &principal_system, STR("")); f;
         f = sandbox_next(l->c.sandboxes, &principal_system, str_of(i.id))) {
        sandbox_info(f, &i);
        if (str_eq_c(i.forked_from, s->id))
            return true;
    }
    return false;
}

void snapshot_retain(struct snapshots *l, const char *sandbox)
{
    const struct snapshot_call call = {&principal_system, dropped, NULL};
    size_t automatic = 0;
    struct err e = {0};

    for (size_t i = l->count; i > 0; i--) { /* the newest first */
        struct snapshot *s = l->sorted[i - 1];

        if (s->automatic && s->state == SNAPSHOT_READY && strcmp(s->sandbox, sandbox) == 0 &&
            ++automatic > AUTOMATIC_KEPT && !has_forks(l, s))
            (void)!snapshot_remove(s, &call, &e);
    }
}
