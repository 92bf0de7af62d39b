/* sandbox_adopt: finds live sandboxes after a restart. */
#include "core/sandbox/sandbox_internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

#define LIST_AGAIN_MS 1000

/* --- a live sandbox --- */

static void sandbox_adopted(void *arg, const struct driver_made *m, const struct err *e)
{
    AUTO(sandbox_unref) struct sandbox *s = arg;

    (void)m;
    if (s->all->closed || !sandbox_is_listed(s))
        return;
    if (e->code != ERR_NONE) {
        sandbox_init_ended(s, e->msg);
        return;
    }
    if (s->sm.state == SANDBOX_STARTING) { /* holtd died before it could report that it runs */
        sm_move(&s->sm, SANDBOX_RUNNING);
        sandbox_save(s, NULL);
    }
    s->driver->ops->confirm(s->driver, s->id);
    link_open(s);
    if (sandbox_is_networked(s)) { /* known or not: ready puts all that are adopted by then */
        egress_start(s->all->egress);
        if (egress_is_up(s->all->egress))
            sandbox_wire(s);
    }
}

static void leftovers_removed(void *arg, const struct err *e)
{
    struct sandboxes *all = arg;

    if (e->code != ERR_NONE && !all->closed)
        log_warn("leftovers of a crash could not all be removed", LOG_E(e));
    sandboxes_unref(all);
}

/* Confirmed, but without a row: a restored or wrong database.  Its files are kept until a person
 * decides. */
static void orphan(struct sandboxes *all, struct driver_slot *slot, const char *id)
{
    struct sandbox *s = sandbox_new(all, id);
    bool can = (slot->ops->caps & DRIVER_CAN_STOP) != 0;

    s->driver = slot->driver;
    s->orphan = true;
    s->created_ms = s->last_activity_ms = s->ended_ms = clock_wall_ms();
    s->sm.state = SANDBOX_STOPPED;
    text_set(&s->name, STR(""));
    text_set(&s->runtime, str_of(slot->ops->name));
    text_set(&s->host, str_of(host_name(slot)));
    text_set(&s->image, STR("unknown"));
    text_set(&s->owner, STR("system"));
    text_set(&s->network, STR(NETWORK_NONE));
    text_set(&s->failure, STR("an orphan: it was running, but is not in this database"));
    sandbox_add(all, s);
    sandbox_owe(s, "sandbox.orphan");
    sandbox_save(s, NULL);
    if (can) {
        all->refs++;
        slot->ops->remove(slot->driver, id, true, leftovers_removed, all);
    }
}

static void found_one(struct sandboxes *all, struct driver_slot *slot, const struct driver_found *f)
{
    struct sandbox *s = map_get(&all->by_id, str_of(f->id));

    if (!s && f->confirmed) {
        orphan(all, slot, f->id);
    } else if (!s) {
        sandbox_note(all, "sandbox.destroyed", f->id, "holtd ended while the sandbox was created");
        all->refs++;
        slot->ops->remove(slot->driver, f->id, false, leftovers_removed, all);
    } else if (s->origin != ORIGIN_SETTLED && s->driver == slot->driver) {
        s->origin = f->running ? ORIGIN_ROW_ALIVE : ORIGIN_ROW;
    }
}

static const char *after_crash(struct sandbox *s)
{
    switch ((enum sandbox_state)s->sm.state) {
    case SANDBOX_RUNNING:
    case SANDBOX_PAUSED:
    case SANDBOX_STARTING:
        return "its init ended while holtd was not running";
    case SANDBOX_STOPPING:
        return "holtd ended while the sandbox was stopped";
    case SANDBOX_CREATING:
    case SANDBOX_STOPPED:
    case SANDBOX_FAILED:
    case SANDBOX_DESTROYED:
    case SANDBOX_STATE_COUNT:
        break;
    }
    return NULL;
}

static void stop_finished(void *arg, const struct err *e)
{
    AUTO(sandbox_unref) struct sandbox *s = arg;

    (void)e;
    if (!s->all->closed && step_is(s, STEP_STOP))
        sandbox_step_end(s, &(struct err){0});
}

/* One of the rows, now that its driver has said what lives. */
static void settle_row(struct sandbox *s, bool alive)
{
    const char *why = after_crash(s);

    if (!step_is(s, STEP_NONE))
        return; /* a client was faster: it is being destroyed, or started */
    if (sandbox_is_leaving(s) || s->sm.state == SANDBOX_CREATING ||
        s->sm.state == SANDBOX_DESTROYED || (s->traits.one_shot && sandbox_is_idle(s))) {
        sandbox_destroy_now(s);
        return;
    }
    if (alive && why && s->sm.state != SANDBOX_STOPPING) {
        s->driver->ops->adopt(s->driver, s->id, sandbox_adopted, sandbox_ref(s));
        return;
    }
    sandbox_lose_commands(s, why ? why : "its sandbox is no longer running");
    if (!why)
        return; /* nothing to do */
    if (s->sm.state != SANDBOX_STOPPING)
        text_set(&s->failure, str_of(why));
    sm_move(&s->sm, s->sm.state == SANDBOX_STOPPING ? SANDBOX_STOPPED : SANDBOX_FAILED);
    sandbox_save(s, NULL);
    sm_move(&s->step, STEP_STOP);
    s->killed = KILLED_ALL;
    s->driver->ops->remove(s->driver, s->id, true, stop_finished, sandbox_ref(s));
    if (s->traits.one_shot)
        sandbox_destroy(s, NULL, NULL, NULL);
}

static void request_list(struct timer *t);

static void list_came(void *arg, const struct driver_found *f, size_t n, const struct err *e)
{
    struct driver_slot *slot = arg;
    struct sandboxes *all = slot->all;

    if (!all->closed && e->code != ERR_NONE) {
        if (!slot->silent)
            log_warn("a runtime cannot list its sandboxes; it is asked again",
                     LOG_C("runtime", slot->ops->name), LOG_C("host", host_name(slot)), LOG_E(e));
        slot->silent = true;
        timer_set(all->timers, &slot->again, clock_mono_ms() + LIST_AGAIN_MS, request_list);
    } else if (!all->closed) {
        for (size_t i = 0; i < n; i++)
            found_one(all, slot, &f[i]);
        for (size_t i = all->count; i > 0; i--) {
            struct sandbox *s = all->sorted[i - 1];

            bool alive = s->origin == ORIGIN_ROW_ALIVE;

            if (s->origin == ORIGIN_SETTLED || s->driver != slot->driver)
                continue;
            s->origin = ORIGIN_SETTLED;
            if (step_is(s, STEP_NONE)) /* else it was started or destroyed meanwhile */
                settle_row(s, alive);
        }
        slot->listed = true;
        if (sandboxes_settled(all) && !all->keep_strays)
            all->commands->remove_stray_logs(all->execs);
    }
    sandboxes_unref(all);
}

static void request_list(struct timer *t)
{
    struct driver_slot *slot = CONTAINER_OF(t, struct driver_slot, again);

    slot->all->refs++;
    slot->ops->list(slot->driver, list_came, slot);
}

void sandboxes_adopt(struct sandboxes *all)
{
    for (size_t i = 0; i < all->driver_count; i++)
        if (all->drivers[i].driver)
            request_list(&all->drivers[i].again);
}
