/* task_clean: after a task's end: removes the sandbox and the volume that were made for it. */
#include "core/task/task_internal.h"

#include "base/log.h"
#include "core/sandbox/commands.h"
#include "core/sandbox/volume.h"

static void cleaned(struct task *t)
{
    t->cleaning = false;
}

static void volume_gone(void *arg, struct named *n, const struct err *e)
{
    struct task *t = arg;

    (void)n;
    t->busy = false;
    if (t->all->closed)
        return;
    if (e->code != ERR_NONE) { /* the next tick tries again */
        log_debug("the volume of a task is not removed yet", LOG_C("id", t->id), LOG_E(e));
        t->cleaning = false;
        return;
    }
    t->has_volume = false;
    task_save(t, "cleaned", "system", cleaned);
}

static void clean_volume(struct task *t)
{
    struct principal by = task_principal(t);
    struct err e = {0};
    struct volume *v = t->has_volume ? volume_find(t->all->c.volumes, &by, VOLUME_CHANGE, STR(""),
                                                   str_of(t->key), &e)
                                     : NULL;

    t->busy = true;
    if (v &&
        volume_remove(v, &(struct named_call){.by = &by, .done = volume_gone, .arg = t}, &e) == 0)
        return;
    volume_gone(t, NULL, v ? &e : &(struct err){0});
}

static void sandbox_gone(void *arg, struct sandbox *s, const struct err *e)
{
    struct task *t = arg;

    (void)s;
    t->busy = false;
    if (t->all->closed)
        return;
    if (e->code != ERR_NONE && e->code != ERR_NOT_FOUND && e->code != ERR_GONE) {
        log_warn("the sandbox of a task is not removed yet", LOG_C("id", t->id), LOG_E(e));
        t->cleaning = false;
        return;
    }
    clean_volume(t);
}

void clean_begin(struct task *t)
{
    struct principal by = task_principal(t);
    struct sandbox *s;

    t->s = sandbox_unref(t->s);
    if (t->cleaning || t->busy || t->sm.state == TASK_FAILED_PRESERVED)
        return;
    s = t->borrowed ? NULL : place_made(t);
    if (!s && !t->has_volume)
        return;
    t->cleaning = true;
    if (!s) {
        clean_volume(t);
        return;
    }
    t->busy = true;
    sandbox_destroy(s, &by, sandbox_gone, t);
}
