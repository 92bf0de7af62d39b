/* sandbox_layers: copies and replaces the files of a sandbox. */
#include "core/sandbox/sandbox_layers.h"

#include "base/mem.h"
#include "core/image/image.h"
#include "core/sandbox/sandbox_internal.h"

const char **sandbox_layers(const struct sandbox *s, size_t *ret_n, bool *ret_on_host)
{
    const char **to = xzalloc((s->layer_count + 1) * sizeof *to + s->layer_count * ID_SIZE);
    char *text = (char *)(to + s->layer_count + 1);

    for (size_t i = 0; i < s->layer_count; i++, text += ID_SIZE) {
        (void)snprintf(text, ID_SIZE, "%s", s->layers[i].id);
        to[i] = text;
    }
    *ret_n = s->layer_count;
    *ret_on_host = s->on_host || s->layer_count == 0;
    return to;
}

void sandbox_spec_of(const struct sandbox *s, struct buf *to)
{
    sandbox_spec_text(s, to);
}

struct str sandbox_defaults_of(const struct sandbox *s)
{
    return s->defaults.json ? str_of(s->defaults.json) : STR("");
}

void sandbox_is_at(struct sandbox *s, const char *snapshot)
{
    text_set(&s->snapshot, str_of(snapshot));
    if (!sandbox_is_leaving(s))
        sandbox_save(s, NULL);
}

/* --- copy --- */

struct snap_call {
    struct sandbox *s;
    sandbox_snapped_cb done;
    void *arg;
    char layer[ID_SIZE];
    struct driver_snapped made;
    /* of a rebase */
    struct sandbox_layer *layers;
    size_t layer_count;
    bool on_host;
    char snapshot[ID_SIZE];
    sandbox_cb rebased;
};

static void snap_free(struct snap_call *c)
{
    sandbox_unref(c->s);
    mem_free(c->layers);
    mem_free(c);
}

static void refused(void *arg, struct sandbox *s, const struct err *e)
{
    struct snap_call *c = arg;

    c->done(c->arg, s, &c->made, e);
    snap_free(c);
}

static int check_snapshot(const struct sandbox *s, bool live, struct err *e)
{
    bool up = s->sm.state == SANDBOX_RUNNING || s->sm.state == SANDBOX_PAUSED;
    uint32_t caps;

    if (sandbox_must_be_free(s, "snapshot", e) < 0)
        return -1;
    caps = s->driver->ops->caps;
    if (!(caps & DRIVER_CAN_SNAPSHOT))
        err_set(e, ERR_UNSUPPORTED, 0, "runtime '%s' has no snapshots", s->runtime);
    else if (s->traits.memory_upper) {
        err_set(e, ERR_UNSUPPORTED, 0, "sandbox '%s' has its files in memory", s->id);
        err_hint(e, "create it with its files on disk (upper: disk)");
    } else if (up && live && !(caps & DRIVER_SNAPSHOTS_LIVE)) {
        err_set(e, ERR_UNSUPPORTED, 0, "runtime '%s' has no snapshots of a running sandbox",
                s->runtime);
        err_hint(e, "stop it first: holt stop %s", s->id);
    } else if ((up && !live) ||
               (!up && s->sm.state != SANDBOX_STOPPED && s->sm.state != SANDBOX_FAILED)) {
        err_set(e, ERR_CONFLICT, 0, "sandbox '%s' is %s", s->id, sm_name(&s->sm));
        err_hint(e, up ? "stop it first" : "try again when that is done");
    } else {
        return 0;
    }
    return err_object(e, "sandbox", s->id);
}

static void copied(void *arg, const struct driver_snapped *m, const struct err *e)
{
    struct snap_call *c = arg;
    struct sandbox *s = c->s;
    struct err why = *e;

    if (why.code != ERR_NONE)
        err_wrap(&why, "snapshot sandbox '%s'", s->id);
    if (!s->all->closed && step_is(s, STEP_SNAPSHOT))
        sandbox_step_end(s, &why);
    c->done(c->arg, s, m, &why);
    snap_free(c);
}

static struct snap_call *call_of(struct sandbox *s, const char *layer, void *arg)
{
    struct snap_call *c = xzalloc(sizeof *c);

    c->s = sandbox_ref(s);
    c->arg = arg;
    (void)snprintf(c->layer, sizeof c->layer, "%s", layer);
    return c;
}

void sandbox_snapshot(struct sandbox *s, const char *layer, int64_t bytes_max,
                      const struct principal *by, sandbox_snapped_cb done, void *arg)
{
    struct snap_call *c = call_of(s, layer, arg);
    struct err e = {0};

    c->done = done;
    if (check_snapshot(s, true, &e) < 0) {
        sandbox_tell(s->all, s, refused, c, &e);
        return;
    }
    (void)snprintf(s->actor, sizeof s->actor, "%s", by->actor);
    sm_move(&s->step, STEP_SNAPSHOT);
    s->driver->ops->snapshot(
        s->driver,
        &(struct driver_snapshot){
            .id = s->id, .layer = c->layer, .how = DRIVER_COPY, .bytes_max = bytes_max},
        copied, c);
}

/* --- another base --- */

static void take_layers(struct snap_call *c)
{
    struct sandbox *s = c->s;

    for (size_t i = 0; s->all->images && i < c->layer_count; i++)
        images_hold(s->all->images, str_of(c->layers[i].id));
    sandbox_release_layers(s);
    s->layers = TAKE(c->layers);
    s->layer_count = c->layer_count;
    s->on_host = c->on_host;
    text_set(&s->snapshot, str_of(c->snapshot));
}

static void moved(void *arg, const struct driver_snapped *m, const struct err *e)
{
    struct snap_call *c = arg;
    struct sandbox *s = c->s;
    struct err why = *e;

    (void)m;
    if (s->all->closed) {
        snap_free(c);
        return;
    }
    if (why.code == ERR_NONE) {
        take_layers(c);
        sandbox_owe(s, "sandbox.restored");
        sandbox_save(s, NULL);
    } else {
        err_wrap(&why, "restore sandbox '%s'", s->id);
    }
    sandbox_step_end(s, &why);
    c->rebased(c->arg, s, &why);
    snap_free(c);
}

void sandbox_rebase(struct sandbox *s, const char *layer, const struct sandbox_base *on,
                    const struct principal *by, sandbox_cb done, void *arg)
{
    struct snap_call *c = call_of(s, layer, arg);
    struct err e = {0};

    if (check_snapshot(s, false, &e) < 0) {
        sandbox_tell(s->all, s, done, arg, &e);
        snap_free(c);
        return;
    }
    c->rebased = done;
    c->layers = xzalloc((on->layer_count + 1) * sizeof *c->layers);
    c->layer_count = on->layer_count;
    for (size_t i = 0; i < on->layer_count; i++)
        (void)snprintf(c->layers[i].id, sizeof c->layers[i].id, "%s", on->layers[i]);
    c->on_host = on->on_host && on->layer_count > 0;
    (void)snprintf(c->snapshot, sizeof c->snapshot, "%s", on->snapshot);
    (void)snprintf(s->actor, sizeof s->actor, "%s", by->actor);
    sm_move(&s->step, STEP_SNAPSHOT);
    s->driver->ops->snapshot(
        s->driver, &(struct driver_snapshot){.id = s->id, .layer = c->layer, .how = DRIVER_MOVE},
        moved, c);
}

void sandbox_hash_layer(struct sandbox *s, const char *layer, driver_snapped_cb done, void *arg)
{
    s->driver->ops->snapshot(
        s->driver, &(struct driver_snapshot){.id = s->id, .layer = layer, .how = DRIVER_HASH}, done,
        arg);
}

bool sandboxes_remove_layer(void *sandboxes, const char *layer, driver_done done, void *arg)
{
    struct sandboxes *all = sandboxes;

    for (size_t i = 0; i < all->driver_count; i++) {
        struct driver *d = all->drivers[i].driver;

        if (!d || !d->ops->layer_remove)
            continue;
        d->ops->layer_remove(d, layer, done, arg);
        return true;
    }
    return false;
}
