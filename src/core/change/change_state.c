/* change_state: finds what is compared: its layers, and how a throw-away sandbox shows them. */
#include "core/change/change_internal.h"

#include "base/mem.h"

/* --- layers --- */

static void keep_layers(struct changes *l, struct change_state *s, const char *const *layers,
                        size_t n, bool on_host)
{
    s->layers = xzalloc((n + 1) * sizeof *s->layers);
    s->on_host = on_host;
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(s->layers[i], ID_SIZE, "%s", layers[i]);
        images_hold(l->c.images, str_of(layers[i]));
    }
    s->layer_count = n;
}

void change_state_done(struct changes *l, struct change_state *s)
{
    for (size_t i = 0; i < s->layer_count; i++)
        images_release(l->c.images, str_of(s->layers[i]));
    mem_free(s->layers);
    sandbox_unref(s->live);
    *s = (struct change_state){0};
}

/* --- sandboxes --- */

static uint32_t caps_of(const struct changes *l, const struct sandbox_info *i)
{
    const struct driver_ops *d;

    for (size_t k = 0; (d = sandboxes_driver(l->c.sandboxes, k)); k++)
        if (str_eq_c(i->runtime, d->name))
            return d->caps;
    return 0;
}

static int check_files(const struct changes *l, const struct sandbox_info *i, struct err *e)
{
    uint32_t caps = caps_of(l, i);
    bool up = i->state == SANDBOX_RUNNING || i->state == SANDBOX_PAUSED;

    if (!(caps & DRIVER_CAN_SNAPSHOT)) {
        err_set(e, ERR_UNSUPPORTED, 0, "the files of runtime '" STR_FMT "' cannot be compared",
                STR_ARG(i->runtime));
        return err_hint(e, "native, runc and crun can; runsc when the sandbox is stopped");
    }
    if (i->traits.memory_upper)
        return err_set(e, ERR_UNSUPPORTED, 0,
                       "sandbox '%s' has its files in memory: they cannot be compared", i->id);
    if (i->enforced & LIMIT_DISK) { /* they lie in an image, which one mount namespace alone has */
        err_set(e, ERR_UNSUPPORTED, 0,
                "sandbox '%s' has a disk limit: its files are seen in a snapshot", i->id);
        return err_hint(e, "holt snapshot create %s, and compare that", i->id);
    }
    if (up && !(caps & DRIVER_SNAPSHOTS_LIVE)) {
        err_set(e, ERR_CONFLICT, 0, "the files of sandbox '%s' are seen when it is stopped", i->id);
        return err_hint(e, "holt stop %s", i->id);
    }
    if (!up && i->state != SANDBOX_STOPPED && i->state != SANDBOX_FAILED)
        return err_set(e, ERR_CONFLICT, 0, "sandbox '%s' is between two states", i->id);
    return 0;
}

/* Path rules hold agents, by the kernel and in init: a comparison would read past both. */
static int check_rules(struct changes *l, const struct principal *by, const char *sandbox,
                       struct err *e)
{
    struct err none = {0};
    const struct sandbox *s =
        sandbox_find(l->c.sandboxes, &principal_system, str_of(sandbox), &none);
    struct sandbox_info i;

    if (!s || (by->role != ROLE_AGENT && !by->agent[0] && !principal_is_inside(by)))
        return 0;
    sandbox_info(s, &i);
    if (!i.path_rules)
        return 0;
    err_set(e, ERR_FORBIDDEN, 0, "path rules hold in sandbox '%s': an agent sees no differences",
            i.id);
    return err_hint(e, "a person can look: holt diff %s", i.id);
}

static int take_sandbox(struct changes *l, struct sandbox *s, bool base, struct change_state *to,
                        struct err *e)
{
    AUTO(mem_free) const char **layers = NULL;
    struct sandbox_info i;
    bool on_host;
    size_t n;

    sandbox_info(s, &i);
    if (!base && check_files(l, &i, e) < 0)
        return err_object(e, "sandbox", i.id);
    layers = sandbox_layers(s, &n, &on_host);
    keep_layers(l, to, layers, n, on_host);
    (void)snprintf(to->sandbox, sizeof to->sandbox, "%s", i.id);
    to->live = base ? NULL : sandbox_ref(s);
    to->at_ms = base ? i.created_ms : 0;
    return 0;
}

/* --- snapshots and images --- */

/* Its parent's moment: what ran since then made it. */
static int64_t begin_of(struct changes *l, const struct snapshot_info *i)
{
    struct err none = {0};
    struct snapshot *parent = i->parent.n > 0 ? snapshot_find(l->c.snapshots, &principal_system,
                                                              SNAPSHOT_SEE, NULL, i->parent, &none)
                                              : NULL;
    struct snapshot_info of;

    if (!parent)
        return 0;
    snapshot_info(parent, &of);
    return of.created_ms;
}

static void take_snapshot(struct changes *l, struct snapshot *s, bool base, struct change_state *to)
{
    struct snapshot_info i;

    snapshot_info(s, &i);
    keep_layers(l, to, i.layers, i.layer_count - (base && i.layer_count > 0), i.on_host);
    (void)snprintf(to->sandbox, sizeof to->sandbox, STR_FMT, STR_ARG(i.sandbox));
    to->at_ms = base ? begin_of(l, &i) : i.created_ms;
}

static int take_image(struct changes *l, const struct principal *by, struct str ref, bool base,
                      struct change_state *to, struct err *e)
{
    struct image_use use;

    if (images_use(l->c.images, by, ref, &use, e) < 0)
        return -1;
    keep_layers(l, to, use.layers, base ? 0 : use.layer_count,
                use.on_host || (use.layer_count == 0 && !base));
    for (size_t i = 0; i < use.layer_count; i++)
        images_release(l->c.images, str_of(use.layers[i]));
    return 0;
}

/* A name that is not a snapshot's: a sandbox's, or an image's. */
static int take_other(struct changes *l, const struct principal *by, struct str ref, bool base,
                      struct change_state *to, struct err *e)
{
    struct sandbox *s = sandbox_find(l->c.sandboxes, by, ref, e);
    struct err image = {0};

    if (s)
        return take_sandbox(l, s, base, to, e);
    if (e->code != ERR_NOT_FOUND)
        return -1;
    if (take_image(l, by, ref, base, to, &image) == 0)
        return 0;
    if (image.code != ERR_NOT_FOUND) {
        *e = image;
        return -1;
    }
    err_set(e, ERR_NOT_FOUND, 0, "there is no sandbox, snapshot or image '" STR_FMT "'",
            (int)size_min(ref.n, 100), ref.p);
    return err_hint(e, "a snapshot is SANDBOX@NAME: holt ls, holt snapshot ls, holt image ls");
}

int change_state_find(struct changes *l, const struct change_spec *spec, struct str ref, bool base,
                      struct change_state *ret, struct err *e)
{
    struct change_state s = {0};
    struct snapshot *snap = NULL;
    struct err none = {0};
    int r = 0;

    if (ref.n == 0 && !spec->of)
        return err_set(e, ERR_INVALID, 0, "it is not said what is to be compared");
    if (snapshot_is_ref(ref)) {
        snap = snapshot_find(l->c.snapshots, spec->by, SNAPSHOT_SEE, spec->of, ref, e);
        r = snap ? 0 : -1;
    } else if (ref.n > 0 && spec->of) {
        snap = snapshot_find(l->c.snapshots, spec->by, SNAPSHOT_SEE, spec->of, ref, &none);
    }
    if (snap)
        take_snapshot(l, snap, base, &s);
    else if (r == 0)
        r = ref.n == 0 ? take_sandbox(l, spec->of, base, &s, e)
                       : take_other(l, spec->by, ref, base, &s, e);
    if (r < 0)
        return -1;
    if (check_rules(l, spec->by, s.sandbox, e) < 0) {
        change_state_done(l, &s);
        return -1;
    }
    *ret = s;
    return 0;
}

/* --- mounts --- */

static int mount_one(struct change_mounts *m, struct str kind, struct str source, struct err *e)
{
    size_t i = 0;

    while (i < m->n && !(str_eq(m->v[i].kind, kind) && str_eq(m->v[i].source, source)))
        i++;
    if (i < m->n)
        return (int)i;
    if (m->n == CHANGE_LAYERS_MAX) {
        err_set(e, ERR_LIMIT, 0, "the two lie on more than %d layers", CHANGE_LAYERS_MAX);
        return err_limit_fixed(e, CHANGE_LAYERS_MAX, "compare states that are nearer");
    }
    (void)snprintf(m->targets[i], sizeof m->targets[i], "/l/%zu", i);
    m->v[i] = (struct sandbox_mount){
        .kind = kind, .source = source, .target = str_of(m->targets[i]), .readonly = true};
    m->n++;
    return (int)i;
}

static int mount_state(struct change_mounts *m, const struct change_state *s, const char *key,
                       struct err *e)
{
    AUTO(buf_done) struct buf line = {0};
    int at = mount_one(m, STR("base"), s->on_host ? STR("host") : STR("points"), e);
    struct sandbox_info i;

    if (at >= 0)
        buf_printf(&line, "%d", at);
    for (size_t k = 0; at >= 0 && k < s->layer_count + (s->live ? 1 : 0); k++) {
        AUTO(buf_done) struct buf more = {0};

        if (s->live)
            sandbox_info(s->live, &i);
        at = k < s->layer_count ? mount_one(m, STR("layer"), str_of(s->layers[k]), e)
                                : mount_one(m, STR("upper"), str_of(i.id), e);
        buf_printf(&more, "%d,%s", at, buf_cstr(&line));
        buf_clear(&line);
        buf_add_str(&line, buf_str(&more));
    }
    if (at < 0)
        return -1;
    buf_printf(&m->request, "%s=%s", key, buf_cstr(&line));
    buf_add_char(&m->request, '\0');
    return 0;
}

int change_mounts_make(const struct change_state *before, const struct change_state *after,
                       struct change_mounts *ret, struct err *e)
{
    return mount_state(ret, before, "before", e) < 0 ? -1 : mount_state(ret, after, "after", e);
}

int change_mounts_onto(const struct change_state *onto, struct change_mounts *m, struct err *e)
{
    return mount_state(m, onto, "onto", e);
}
