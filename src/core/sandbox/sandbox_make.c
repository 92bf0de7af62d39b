/* sandbox_make: creates and starts a sandbox. */
#include "core/sandbox/sandbox_internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

#define MAKE_MS 30000  /* from the driver's reply to the guest's hello and the row's commit */
#define CONFIRM_MS 100 /* a run that ends before needs no confirm */

/* Create and start.
 *
 *   driver create ─▶ running ─▶ { row committed, guest's hello } ─▶ confirm, reply
 *   of a run: driver create ─▶ running ─▶ guest's hello ─▶ reply; confirm when the row is committed
 *   on failure: a create leaves nothing; a start leaves the files, and the sandbox is failed */

static void undo_removed(void *arg, const struct err *e)
{
    AUTO(sandbox_unref) struct sandbox *s = arg;
    AUTO(mem_free) struct err *why = TAKE(s->undo);

    if (s->all->closed)
        return;
    if (e->code != ERR_NONE)
        log_warn("leftovers of a failed create could not all be removed", LOG_C("id", s->id),
                 LOG_E(e));
    sm_move(&s->sm, SANDBOX_STOPPING);
    sm_move(&s->sm, SANDBOX_DESTROYED);
    sandbox_erase(s, NULL);
    wait_tell(&s->waits, s, why);
    sandbox_drop_and_tell(s);
}

static void start_removed(void *arg, const struct err *e)
{
    AUTO(sandbox_unref) struct sandbox *s = arg;
    AUTO(mem_free) struct err *why = TAKE(s->undo);

    (void)e;
    if (s->all->closed)
        return;
    sandbox_save(s, NULL);
    sandbox_step_end(s, why);
}

void sandbox_undo(struct sandbox *s, const struct err *why)
{
    if (s->sm.state == SANDBOX_FAILED)
        return; /* it is in progress */
    s->undo = xmemdup(why, sizeof *why);
    err_wrap(s->undo, "%s sandbox '%s'", step_is(s, STEP_START) ? "start" : "create", s->id);
    timer_stop(&s->timer);
    text_set(&s->failure, str_of(why->msg));
    sm_move(&s->sm, SANDBOX_FAILED);
    sandbox_lose_commands(s, "the sandbox could not be created");
    link_close(s);
    s->driver->ops->remove(s->driver, s->id, step_is(s, STEP_START),
                           step_is(s, STEP_START) ? start_removed : undo_removed, sandbox_ref(s));
}

static void confirm_due(struct timer *t)
{
    struct sandbox *s = CONTAINER_OF(t, struct sandbox, confirm);

    if (s->made & MADE_SAVED)
        s->driver->ops->confirm(s->driver, s->id);
    else
        timer_set(s->all->timers, &s->confirm, clock_mono_ms() + CONFIRM_MS, confirm_due);
}

/* A run is not reported before its command's row is committed, and writes are committed in order:
 * the command need not wait for the sandbox's row.  If holtd dies before, nothing was acknowledged,
 * and live sandboxes without a row and unconfirmed are destroyed. */
static void made_if_all(struct sandbox *s)
{
    const uint32_t want =
        MADE_READY | MADE_WIRED | (s->traits.one_shot ? 0U : (uint32_t)MADE_SAVED);

    if (!sandbox_is_making(s) || (s->made & want) != want || s->sm.state == SANDBOX_FAILED)
        return;
    if (s->traits.one_shot)
        timer_set(s->all->timers, &s->confirm, clock_mono_ms() + CONFIRM_MS, confirm_due);
    else
        s->driver->ops->confirm(s->driver, s->id);
    sandbox_step_end(s, &(struct err){0});
}

void sandbox_made_ready(struct sandbox *s)
{
    s->made |= MADE_READY;
    made_if_all(s);
}

static void made_saved(struct sandbox *s, const struct err *e)
{
    if (e->code == ERR_NONE)
        s->made |= MADE_SAVED;
    if (!sandbox_is_making(s) || s->sm.state == SANDBOX_FAILED)
        return; /* of a run: tried again, and its command's row fails too */
    if (e->code != ERR_NONE) {
        sandbox_undo(s, e);
        return;
    }
    made_if_all(s);
}

void sandbox_made_wired(struct sandbox *s, const struct err *e)
{
    if (s->sm.state == SANDBOX_FAILED)
        return;
    if (e->code != ERR_NONE) {
        sandbox_undo(s, e);
        return;
    }
    s->made |= MADE_WIRED;
    made_if_all(s);
}

static void make_late(struct timer *t)
{
    struct sandbox *s = CONTAINER_OF(t, struct sandbox, timer);
    struct err e = {0};

    err_set(&e, ERR_TIMEOUT, 0, "%s does not answer",
            s->made & MADE_WIRED ? "its init" : "holt-egress");
    sandbox_undo(s, &e);
}

static void note_create(struct sandbox *s, bool warm)
{
    AUTO(mem_free) struct str *layers = sandbox_layer_ids(s);
    const struct driver_kind kind = {layers, s->layer_count, s->traits.limits};

    s->warm = warm;
    if (step_is(s, STEP_CREATE))
        pool_created(sandbox_pool(s), &kind, warm, clock_wall_ms());
}

/* With require_limits: all limits, or no sandbox. */
static int check_limits(const struct sandbox *s, struct err *e)
{
    for (size_t i = 0; i < trait_count; i++) {
        const struct trait *c = &trait_table[i];

        if (c->type != TRAIT_LIMIT || trait_number(c, &s->traits) == 0 || (s->enforced & c->bit))
            continue;
        err_set(e, ERR_UNSUPPORTED, 0, "field '%s': this host cannot enforce it", c->name);
        return err_hint(e, "holt doctor shows what is missing; without require_limits the sandbox "
                           "is created anyway");
    }
    return 0;
}

static void driver_has_made(void *arg, const struct driver_made *m, const struct err *e)
{
    AUTO(sandbox_unref) struct sandbox *s = arg;
    struct err why = *e;

    if (s->all->closed)
        return;
    if (e->code != ERR_NONE || sandbox_is_leaving(s)) {

        if (e->code == ERR_NONE)
            err_set(&why, ERR_CANCELLED, 0, "it was destroyed during its creation");
        sandbox_undo(s, &why);
        return;
    }
    s->enforced = m->enforced;
    if (s->require_limits && step_is(s, STEP_CREATE) && check_limits(s, &why) < 0) {
        sandbox_undo(s, &why);
        return;
    }
    note_create(s, m->warm);
    sm_move(&s->sm, SANDBOX_RUNNING);
    sandbox_touch(s);
    timer_set(s->all->timers, &s->timer, clock_mono_ms() + MAKE_MS, make_late);
    if (s->tx_hook)
        s->tx_hook->ready(s->tx_hook_arg, s);
    sandbox_save(s, made_saved);
    link_open(s);
    sandbox_wire(s);
}

static void ask_driver(struct sandbox *s, bool restart)
{
    AUTO(mem_free) struct str *layers = sandbox_layer_ids(s);
    const bool proxied = s->traits.reach == SANDBOX_REACHES_PROXY;
    const struct driver_spec spec = {
        .id = s->id,
        .hostname = s->name && *s->name ? s->name : s->id,
        .layers = layers,
        .layer_count = s->layer_count,
        .on_host = s->on_host,
        .traits = s->traits,
        .restart = restart,
        .ca = proxied && s->all->authority ? buf_str(&s->all->authority->cert) : STR(""),
        .mounts = s->mounts,
        .mount_count = s->mount_count,
    };

    s->wire = !proxied ? WIRE_NONE : spec.ca.n > 0 ? WIRE_TRUSTS : WIRE_PLAIN;
    s->made = sandbox_is_networked(s) ? 0 : MADE_WIRED;
    s->known_epoch = false;
    s->driver->ops->create(s->driver, &spec, driver_has_made, sandbox_ref(s));
}

void sandbox_make(struct sandbox *s, bool restart)
{
    sm_move(&s->step, restart ? STEP_START : STEP_CREATE);
    ask_driver(s, restart);
}

static void old_removed(void *arg, const struct err *e)
{
    AUTO(sandbox_unref) struct sandbox *s = arg;

    if (s->all->closed)
        return;
    if (e->code != ERR_NONE)
        sandbox_undo(s, e);
    else
        ask_driver(s, false);
}

void sandbox_remake(struct sandbox *s)
{
    sm_move(&s->step, STEP_START);
    s->driver->ops->remove(s->driver, s->id, false, old_removed, sandbox_ref(s));
}
