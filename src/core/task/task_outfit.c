/* task_outfit: the image of a task's loadout, built first if it is not there. */
#include "core/task/task_internal.h"

/* What the manifest says itself is stronger. */
static void take_plan(struct task *t, const struct loadout_plan *p, struct str image)
{
    t->m.image = arena_str(&t->a, image);
    t->outfitted = true;
    if (t->m.cpu_millis == 0)
        t->m.cpu_millis = p->cpu_millis;
    if (t->m.memory_bytes == 0)
        t->m.memory_bytes = p->memory_bytes;
    if (t->m.disk_bytes == 0)
        t->m.disk_bytes = p->disk_bytes;
}

static void outfit_built(void *arg, struct build *b, const struct err *e)
{
    struct task *t = arg;
    struct err why = *e;
    struct build_info i;

    t->busy = false;
    t->build = NULL;
    if (task_stops(t))
        return;
    if (why.code != ERR_NONE) {
        (void)err_wrap(&why, "loadout '" STR_FMT "'", STR_ARG(t->m.loadout));
        task_fail(t, &why);
        return;
    }
    build_info(b, &i);
    t->m.image = arena_str(&t->a, i.image);
    t->outfitted = true;
    t->outfit_then(t);
}

static int plan_of(struct task *t, const struct principal *by, struct loadout_plan *ret,
                   struct err *e)
{
    const struct loadouts *all = t->all->c.loadouts;
    AUTO(json_decref) json_t *resolved = NULL;

    if (loadout_resolve(all, &(struct loadout_ref){.name = t->m.loadout}, &resolved, e) < 0)
        return -1;
    return loadout_plan_make(all, resolved, t->m.image, by, ret, e);
}

static int build_for(struct task *t, const struct loadout_plan *p, const struct principal *by,
                     task_then then, struct err *e)
{
    struct build *b;

    if (!role_may(by->role, PERM_IMAGE_WRITE)) {
        err_set(e, ERR_FORBIDDEN, 0, "loadout '" STR_FMT "' is not built", STR_ARG(t->m.loadout));
        return err_hint(e, "ask an operator: holt loadout build " STR_FMT, STR_ARG(t->m.loadout));
    }
    if (loadout_build(t->all->c.loadouts, p, t->m.runtime, false, by, &b, e) < 0)
        return -1;
    take_plan(t, p, t->m.image);
    t->outfitted = false;
    t->outfit_then = then;
    t->busy = true;
    t->build = build_wait(b, outfit_built, t);
    return 0;
}

void outfit_begin(struct task *t, task_then then)
{
    AUTO(loadout_plan_done) struct loadout_plan p = {0};
    struct principal by = task_principal(t);
    struct image_info info;
    struct image *image;
    struct err e = {0};

    if (plan_of(t, &by, &p, &e) < 0) {
        task_fail(t, &e);
        return;
    }
    image = loadout_image(t->all->c.loadouts, &by, &p);
    if (image) {
        image_info(image, &info);
        take_plan(t, &p, str_of(info.id));
        then(t);
    } else if (build_for(t, &p, &by, then, &e) < 0) {
        task_fail(t, &e);
    }
}

void outfit_stop(struct task *t)
{
    build_wait_cancel(TAKE(t->build));
}
