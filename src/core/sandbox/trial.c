/* trial: finds out whether a runtime works on this host, by a sandbox that it makes and removes. */
#include "core/sandbox/sandbox_internal.h"

#include "base/log.h"

static void trial_end(struct driver_slot *slot)
{
    slot->trial = TRIAL_OVER;
    if (slot->trial_err.code == ERR_NONE)
        log_info("a runtime works on this host", LOG_C("runtime", slot->ops->name));
    else
        log_warn("a runtime does not work on this host", LOG_C("runtime", slot->ops->name),
                 LOG_E(&slot->trial_err), LOG_C("hint", slot->trial_err.hint));
    wait_tell(&slot->trial_waits, NULL, &slot->trial_err);
}

/* What is left of it is removed at the next start, since it was never confirmed. */
static void on_removed(void *arg, const struct err *e)
{
    struct driver_slot *slot = arg;

    if (e->code != ERR_NONE)
        log_warn("the sandbox of a trial could not be removed", LOG_C("runtime", slot->ops->name),
                 LOG_E(e));
    trial_end(slot);
}

static void on_made(void *arg, const struct driver_made *m, const struct err *e)
{
    struct driver_slot *slot = arg;

    (void)m;
    slot->trial_err = *e;
    if (e->code == ERR_NONE)
        slot->driver->ops->remove(slot->driver, slot->trial_id, false, on_removed, slot);
    else
        trial_end(slot);
}

static void trial_begin(struct driver_slot *slot)
{
    const struct driver_spec spec = {.id = slot->trial_id, .hostname = "trial"};

    slot->trial = TRIAL_RUNS;
    id_make("sb", slot->trial_id);
    slot->driver->ops->create(slot->driver, &spec, on_made, slot);
}

void sandboxes_try(struct sandboxes *all, struct str runtime, sandbox_cb done, void *arg)
{
    struct driver_slot *slot = all->drivers, *end = all->drivers + all->driver_count;
    struct err e = {0};

    while (slot < end && !str_eq_c(runtime, slot->ops->name))
        slot++;
    if (slot == end)
        (void)err_set(&e, ERR_INVALID, 0, "there is no runtime '" STR_FMT "'", STR_ARG(runtime));
    else if (!slot->driver)
        e = slot->why;
    else if (slot->trial == TRIAL_OVER)
        e = slot->trial_err;
    if (slot == end || !slot->driver || slot->trial == TRIAL_OVER) {
        sandbox_tell(all, NULL, done, arg, &e);
        return;
    }
    wait_add(&slot->trial_waits, done, arg);
    if (slot->trial == TRIAL_NONE)
        trial_begin(slot);
}

void driver_slot_try(struct driver_slot *slot)
{
    trial_begin(slot);
    while (slot->trial != TRIAL_OVER) /* drivers have deadlines of their own */
        (void)uv_run(slot->all->loop, UV_RUN_ONCE);
    if (slot->trial_err.code == ERR_NONE)
        return;
    slot->why = slot->trial_err;
    slot->driver->ops->close(slot->driver);
    slot->driver = NULL;
}
