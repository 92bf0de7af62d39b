/* snapshot: the registry of snapshots: lookup, list, use as the base of sandboxes. */
#include "core/snapshot/snapshot.h"

#include "base/mem.h"
#include "core/snapshot/snapshot_internal.h"
#include "proto/json.h"

/* --- the list --- */

struct snapshot *snapshot_free(struct snapshot *s)
{
    if (!s)
        return NULL;
    mem_free(s->name);
    mem_free(s->sandbox_name);
    mem_free(s->tenant);
    mem_free(s->image);
    mem_free(s->runtime);
    mem_free(s->spec);
    mem_free(s->labels);
    mem_free(s->digest);
    mem_free(s->host);
    mem_free(s->defaults);
    mem_free(s->layers);
    mem_free(s);
    return NULL;
}

void snapshot_list(struct snapshots *l, struct snapshot *s)
{
    sorted_add(SORTED(l, id), s);
    s->all = l;
}

/* Its spec has them among other things. */
void snapshot_read_defaults(struct snapshot *s)
{
    AUTO(json_decref) json_t *spec = json_loadb(s->spec, strlen(s->spec), 0, NULL);
    AUTO(buf_done) struct buf text = {0};
    struct jw w = {.to = &text};
    const json_t *defaults = json_object_get(spec, "defaults");

    if (defaults)
        jw_json(&w, defaults);
    s->defaults = str_dup(buf_str(&text));
}

void snapshot_drop(struct snapshot *s)
{
    struct snapshots *l = s->all;

    for (size_t i = 0; s->held && i < s->layer_count; i++)
        images_release(l->c.images, str_of(s->layers[i]));
    sorted_remove(SORTED(l, id), s);
    snapshot_free(s);
}

struct snapshot *snapshot_by_id(struct snapshots *l, struct str id)
{
    struct snapshot *s = sorted_find(SORTED(l, id), id);

    return s && s->state == SNAPSHOT_READY ? s : NULL;
}

void snapshot_info(const struct snapshot *s, struct snapshot_info *ret)
{
    *ret = (struct snapshot_info){.id = s->id,
                                  .name = str_of(s->name),
                                  .sandbox = str_of(s->sandbox),
                                  .sandbox_name = str_of(s->sandbox_name),
                                  .owner = str_of(s->owner),
                                  .tenant = str_of(s->tenant),
                                  .parent = str_of(s->parent),
                                  .image = str_of(s->image),
                                  .runtime = str_of(s->runtime),
                                  .host = str_of(s->host),
                                  .labels = str_of(s->labels),
                                  .digest = str_of(s->digest),
                                  .spec = str_of(s->spec),
                                  .layers = s->layers,
                                  .layer_count = s->layer_count,
                                  .on_host = s->on_host,
                                  .automatic = s->automatic,
                                  .bytes = s->bytes,
                                  .entries = s->entries,
                                  .frozen_us = s->frozen_us,
                                  .created_ms = s->created_ms};
}

/* --- lookup --- */

static struct owned snapshot_owned(const struct snapshot *s)
{
    return (struct owned){
        .owner = str_of(s->owner), .tenant = str_of(s->tenant), .sandbox = str_of(s->sandbox)};
}

/* "SANDBOX@NAME", cut at the last '@'; "repo@sha256:…" is an image. */
static bool cut_ref(struct str ref, struct str *ret_sandbox, struct str *ret_name)
{
    size_t at = ref.n;

    while (at > 0 && ref.p[at - 1] != '@')
        at--;
    if (at < 2 || str_starts(str_skip(ref, at), STR("sha256:")))
        return false;
    *ret_sandbox = str_make(ref.p, at - 1);
    *ret_name = str_skip(ref, at);
    return ret_name->n > 0;
}

bool snapshot_is_ref(struct str ref)
{
    struct str sandbox, name;

    return id_is_valid("sn", ref) || cut_ref(ref, &sandbox, &name);
}

/* A sandbox that is gone is known by what it was called. */
static struct snapshot *look_up(struct snapshots *l, const struct principal *by, struct str sandbox,
                                struct str name)
{
    struct err why = {0};
    const struct sandbox *of = sandbox_find(l->c.sandboxes, by, sandbox, &why);
    struct sandbox_info i = {.id = ""};
    struct snapshot *found = NULL;

    if (of)
        sandbox_info(of, &i);
    for (size_t k = 0; k < l->count; k++) {
        struct snapshot *s = l->sorted[k];
        const struct owned o = snapshot_owned(s);
        bool is_of = of ? strcmp(s->sandbox, i.id) == 0
                        : str_eq_c(sandbox, s->sandbox) || str_eq_c(sandbox, s->sandbox_name);

        if (s->state == SNAPSHOT_READY && is_of && str_eq_c(name, s->name) &&
            owner_may(by, &o, OWNER_SEE))
            found = s; /* the newest of those called so */
    }
    return found;
}

struct snapshot *snapshot_find(struct snapshots *l, const struct principal *by,
                               enum snapshot_want want, const struct sandbox *of, struct str ref,
                               struct err *e)
{
    struct snapshot *s = snapshot_by_id(l, ref);
    struct str sandbox, name;
    struct sandbox_info i;

    if (!s && cut_ref(ref, &sandbox, &name)) {
        s = look_up(l, by, sandbox, name);
    } else if (!s && of) {
        sandbox_info(of, &i);
        s = look_up(l, by, str_of(i.id), ref);
    }
    if (s) {
        const struct owned o = snapshot_owned(s);

        return owner_check(by, &o, want == SNAPSHOT_CHANGE ? OWNER_CHANGE : OWNER_SEE, "snapshot",
                           s->id, e) == 0
                   ? s
                   : NULL;
    }
    err_set(e, ERR_NOT_FOUND, 0, "there is no snapshot '" STR_FMT "'", (int)size_min(ref.n, 100),
            ref.p ? ref.p : "");
    err_hint(e, "holt snapshot ls lists those there are; a name is SANDBOX@NAME");
    return NULL;
}

struct snapshot *snapshot_next(struct snapshots *l, const struct principal *by, struct str after)
{
    for (size_t i = sorted_after(SORTED(l, id), after); i < l->count; i++) {
        const struct owned o = snapshot_owned(l->sorted[i]);

        if (l->sorted[i]->state == SNAPSHOT_READY && owner_may(by, &o, OWNER_SEE))
            return l->sorted[i];
    }
    return NULL;
}

/* --- as the base of a sandbox --- */

static int use_snapshot(void *arg, const struct principal *by, struct str ref,
                        struct image_use *ret, struct err *e)
{
    struct snapshots *l = arg;
    struct snapshot *s;

    if (!snapshot_is_ref(ref))
        return 1;
    s = snapshot_find(l, by, SNAPSHOT_SEE, NULL, ref, e);
    if (!s)
        return -1;
    *ret = (struct image_use){.layers = s->layers,
                              .layer_count = s->layer_count,
                              .on_host = s->on_host,
                              .snapshot = s->id,
                              .base_image = s->image,
                              .defaults = str_of(s->defaults)};
    (void)snprintf(ret->id, sizeof ret->id, "%s", s->id);
    for (size_t i = 0; i < s->layer_count; i++)
        images_hold(l->c.images, str_of(s->layers[i]));
    return 0;
}

static const struct sandbox_bases bases = {.use = use_snapshot};

/* --- open and close --- */

int snapshots_open(const struct snapshots_config *c, struct snapshots **ret, struct err *e)
{
    struct snapshots *l = xzalloc(sizeof *l);

    l->c = *c;
    list_init(&l->restores);
    host_identity(l->host);
    if (snapshots_load(l, e) < 0) {
        snapshots_free(l);
        return err_wrap(e, "read the snapshots");
    }
    for (size_t i = 0; i < l->count; i++) {
        struct snapshot *s = l->sorted[i];

        s->held = true;
        for (size_t k = 0; k < s->layer_count; k++)
            images_hold(c->images, str_of(s->layers[k]));
    }
    if (restores_open(l, e) < 0) {
        snapshots_free(l);
        return err_wrap(e, "read the restores");
    }
    sandboxes_set_bases(c->sandboxes, &bases, l);
    *ret = l;
    return 0;
}

struct snapshots *snapshots_free(struct snapshots *l)
{
    if (!l)
        return NULL;
    restores_free(l);
    for (size_t i = 0; i < l->count; i++)
        snapshot_free(l->sorted[i]);
    mem_free(l->sorted);
    mem_free(l);
    return NULL;
}

static void removed_quietly(void *arg, struct snapshot *s, const struct err *e)
{
    (void)arg;
    (void)s;
    (void)e;
}

/* An automatic one is for its sandbox alone. */
static void drop_orphans(struct snapshots *l)
{
    const struct snapshot_call call = {&principal_system, removed_quietly, NULL};
    struct err e = {0};

    for (size_t i = l->count; i > 0; i--) {
        struct snapshot *s = l->sorted[i - 1];

        if (s->automatic && s->state == SNAPSHOT_READY && !restore_uses(l, s->id) &&
            !sandbox_find(l->c.sandboxes, &principal_system, str_of(s->sandbox), &e))
            (void)!snapshot_remove(s, &call, &e);
    }
}

void snapshots_tick(struct snapshots *l)
{
    if (!sandboxes_settled(l->c.sandboxes))
        return;
    if (!l->recovered)
        restores_recover(l);
    l->recovered = true;
    drop_orphans(l);
}
