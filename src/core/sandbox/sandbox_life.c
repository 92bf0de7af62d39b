/* sandbox_life: start, pause, stop, destroy, update and timeouts. */
#include "core/sandbox/sandbox_internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

#include <stdio.h>

#define KILLED_MS 1000 /* after a kill: for the reports of the commands' ends */
#define GRACE_MAX_MS (10 * 60 * 1000)

static const struct driver_ops *ops(const struct sandbox *s)
{
    return s->driver->ops;
}

static void set_actor(struct sandbox *s, const struct principal *by)
{
    (void)snprintf(s->actor, sizeof s->actor, "%s", by ? by->actor : "system");
}

static bool is_up(const struct sandbox *s)
{
    return s->sm.state == SANDBOX_RUNNING || s->sm.state == SANDBOX_PAUSED;
}

static void set_failure(struct sandbox *s, const char *why)
{
    text_set(&s->failure, str_of(why));
}

/* The current step has ended.  A destroy requested meanwhile begins now. */
void sandbox_step_end(struct sandbox *s, const struct err *e)
{
    AUTO(sandbox_unref) struct sandbox *held = sandbox_ref(s);

    sm_move(&s->step, STEP_NONE);
    timer_stop(&s->timer);
    wait_tell(&s->waits, s, e);
    if (s->presence.state == PRESENCE_LEAVING && step_is(s, STEP_NONE))
        sandbox_destroy_now(s);
}

int sandbox_must_be_free(const struct sandbox *s, const char *what, struct err *e)
{
    bool known = s->origin == ORIGIN_SETTLED || s->sm.state == SANDBOX_STOPPED ||
                 s->sm.state == SANDBOX_FAILED;

    if (step_is(s, STEP_NONE) && !sandbox_is_leaving(s) && s->driver && !s->orphan && known)
        return 0;
    if (s->driver && !known) {
        err_set(e, ERR_UNAVAILABLE, 0,
                "%s sandbox '%s': holtd was restarted and has not found it again yet", what, s->id);
        err_hint(e, "try again in a moment");
    } else if (s->orphan && s->driver) {
        err_set(e, ERR_CONFLICT, 0,
                "%s sandbox '%s': it is an orphan, which is not in this database", what, s->id);
        err_hint(e, "start holtd with the database it belongs to, or destroy it: holt rm %s",
                 s->id);
    } else if (!s->driver) {
        err_set(e, ERR_UNSUPPORTED, 0, "%s sandbox '%s': its runtime '%s' is not available", what,
                s->id, s->runtime);
    } else {
        err_set(e, ERR_CONFLICT, 0, "%s sandbox '%s': it is %s", what, s->id,
                sandbox_is_leaving(s) ? "being destroyed" : sm_name(&s->sm));
        err_hint(e, "try again when that is done");
    }
    return err_object(e, "sandbox", s->id);
}

static int wrong_state(const struct sandbox *s, const char *what, struct err *e)
{
    err_set(e, ERR_CONFLICT, 0, "%s sandbox '%s': it is %s", what, s->id, sm_name(&s->sm));
    return err_object(e, "sandbox", s->id);
}

/* A callback may still look at it; one that requests its end meanwhile is called back when its
 * names are free. */
void sandbox_drop_and_tell(struct sandbox *s)
{
    AUTO(sandbox_unref) struct sandbox *held = sandbox_ref(s);
    const struct err none = {0};

    wait_tell(&s->destroy_waits, s, &none);
    sandbox_drop(s);
    wait_tell(&held->destroy_waits, held, &none);
}

/* --- start: see sandbox_make.c --- */

/* Moves it to starting; false: it cannot, and the caller was told. */
static bool start_begin(struct sandbox *s, const char *what, const struct principal *by,
                        sandbox_cb done, void *arg)
{
    struct err e = {0};

    if (sandbox_must_be_free(s, what, &e) < 0 ||
        (s->sm.state != SANDBOX_STOPPED && s->sm.state != SANDBOX_FAILED &&
         wrong_state(s, what, &e) < 0) ||
        sandbox_quota_start(s, &e) < 0) {
        sandbox_tell(s->all, s, done, arg, &e);
        return false;
    }
    set_actor(s, by);
    wait_add(&s->waits, done, arg);
    sm_move(&s->sm, SANDBOX_STARTING);
    return true;
}

void sandbox_start(struct sandbox *s, const struct principal *by, sandbox_cb done, void *arg)
{
    struct err e = {0};

    if (step_is(s, STEP_NONE) && is_up(s))
        sandbox_tell(s->all, s, done, arg, &e);
    else if (sandbox_may_start(s, &e) < 0)
        sandbox_tell(s->all, s, done, arg, &e);
    else if (start_begin(s, "start", by, done, arg))
        sandbox_make(s, true);
}

void sandbox_reprovision(struct sandbox *s, const struct principal *by, sandbox_cb done, void *arg)
{
    if (start_begin(s, "reprovision", by, done, arg)) {
        if (by) /* a person's own decision */
            crash_forgive(&s->crashes, clock_wall_ms());
        sandbox_save(s, NULL); /* a crash from here on leaves no files that a start could use */
        sandbox_remake(s);
    }
}

/* --- pause and resume --- */

static bool is_pausing(const struct sandbox *s)
{
    return step_is(s, STEP_PAUSE) || step_is(s, STEP_RESUME);
}

static void pause_finished(void *arg, const struct err *e)
{
    AUTO(sandbox_unref) struct sandbox *s = arg;
    struct err why = *e;

    if (s->all->closed || !is_pausing(s))
        return;
    if (e->code == ERR_NONE) {
        (void)!sm_try(&s->sm, step_is(s, STEP_PAUSE) ? SANDBOX_PAUSED : SANDBOX_RUNNING);
        sandbox_touch(s);
        sandbox_save(s, sandbox_step_end); /* called back when it is stored */
        return;
    }
    err_wrap(&why, "%s sandbox '%s'", step_is(s, STEP_PAUSE) ? "pause" : "resume", s->id);
    sandbox_step_end(s, &why);
}

void sandbox_pause(struct sandbox *s, bool on, const struct principal *by, sandbox_cb done,
                   void *arg)
{
    const char *what = on ? "pause" : "resume";
    struct err e = {0};

    if (sandbox_must_be_free(s, what, &e) == 0 && !is_up(s))
        wrong_state(s, what, &e);
    else if (e.code == ERR_NONE && !(ops(s)->caps & DRIVER_CAN_PAUSE))
        err_set(&e, ERR_UNSUPPORTED, 0, "runtime '%s' cannot pause", s->runtime);
    if (e.code != ERR_NONE || (s->sm.state == SANDBOX_PAUSED) == on) {
        sandbox_tell(s->all, s, done, arg, &e);
        return;
    }
    set_actor(s, by);
    wait_add(&s->waits, done, arg);
    sm_move(&s->step, on ? STEP_PAUSE : STEP_RESUME);
    ops(s)->pause(s->driver, s->id, on, pause_finished, sandbox_ref(s));
}

/* Its row may say more than its machine: it is started as by a request. */
void sandbox_started_outside(struct sandbox *s)
{
    bool down = s->sm.state == SANDBOX_STOPPED || s->sm.state == SANDBOX_FAILED;

    if (step_is(s, STEP_NONE) && down && !sandbox_is_leaving(s) && !s->traits.one_shot)
        sandbox_start(s, NULL, NULL, NULL);
}

void sandbox_paused_outside(struct sandbox *s, bool on)
{
    if (!step_is(s, STEP_NONE) || !is_up(s) || (s->sm.state == SANDBOX_PAUSED) == on)
        return;
    s->actor[0] = '\0';
    (void)!sm_try(&s->sm, on ? SANDBOX_PAUSED : SANDBOX_RUNNING);
    sandbox_save(s, NULL);
}

/* --- stop: TERM, grace, KILL, the reports, then the driver --- */

static void stop_done(void *arg, const struct err *e)
{
    AUTO(sandbox_unref) struct sandbox *s = arg;

    if (s->all->closed || !step_is(s, STEP_STOP))
        return;
    sandbox_lose_commands(s, "the sandbox was stopped");
    if (e->code != ERR_NONE) {
        struct err why = *e;

        set_failure(s, e->msg);
        (void)!sm_try(&s->sm, SANDBOX_FAILED);
        sandbox_save(s, NULL);
        err_wrap(&why, "stop sandbox '%s'", s->id);
        sandbox_step_end(s, &why);
        return;
    }
    (void)!sm_try(&s->sm, SANDBOX_STOPPED);
    sandbox_save(s, sandbox_step_end);
}

static void stop_remove(struct sandbox *s)
{
    timer_stop(&s->timer);
    if (s->killed == KILLED_ALL)
        return;
    s->killed = KILLED_ALL;
    link_close(s);
    ops(s)->remove(s->driver, s->id, true, stop_done, sandbox_ref(s));
}

static void stop_late(struct timer *t)
{
    struct sandbox *s = CONTAINER_OF(t, struct sandbox, timer);

    if (s->killed == KILLED_NONE && sandbox_is_linked(s)) {
        s->killed = KILLED_WORK;
        commands_ops(s)->kill(s->commands);
        timer_set(s->all->timers, &s->timer, clock_mono_ms() + KILLED_MS, stop_late);
        return;
    }
    stop_remove(s);
}

static void stop_go_on(struct sandbox *s)
{
    if (step_is(s, STEP_STOP) && sandbox_is_idle(s))
        stop_remove(s);
}

static void stop_begin(struct sandbox *s)
{
    commands_ops(s)->terminate(s->commands);
    timer_set(s->all->timers, &s->timer,
              s->grace_ms > 0 ? clock_mono_ms() + s->grace_ms : TIMER_SOON, stop_late);
    stop_go_on(s);
}

static void resume_finished(void *arg, const struct err *e)
{
    AUTO(sandbox_unref) struct sandbox *s = arg;

    (void)e; /* what stays frozen is killed all the same */
    if (!s->all->closed && step_is(s, STEP_STOP))
        stop_begin(s);
}

void sandbox_stop(struct sandbox *s, int64_t grace_ms, bool force, const struct principal *by,
                  sandbox_cb done, void *arg)
{
    struct err e = {0};
    bool was_paused = s->sm.state == SANDBOX_PAUSED;

    if (step_is(s, STEP_STOP)) { /* who is in more of a hurry decides */
        wait_add(&s->waits, done, arg);
        if (force && s->killed == KILLED_NONE)
            timer_set(s->all->timers, &s->timer, TIMER_SOON, stop_late);
        return;
    }
    if (sandbox_must_be_free(s, "stop", &e) == 0 && !is_up(s) && s->sm.state != SANDBOX_STOPPED)
        wrong_state(s, "stop", &e);
    else if (e.code == ERR_NONE && !(ops(s)->caps & DRIVER_CAN_STOP)) {
        err_set(&e, ERR_UNSUPPORTED, 0, "runtime '%s' cannot keep the files of sandbox '%s'",
                s->runtime, s->id);
        err_hint(&e, "destroy it instead: holt rm %s", s->id);
    } else if (e.code == ERR_NONE &&
               s->traits.memory_upper) { /* checked before anything is ended */
        err_set(&e, ERR_UNSUPPORTED, 0,
                "sandbox '%s' has its files in memory: a stop would lose them", s->id);
        err_hint(&e, "destroy it (holt rm %s), or create it with its files on disk", s->id);
    }
    if (e.code != ERR_NONE || s->sm.state == SANDBOX_STOPPED) {
        sandbox_tell(s->all, s, done, arg, &e);
        return;
    }
    set_actor(s, by);
    wait_add(&s->waits, done, arg);
    sm_move(&s->step, STEP_STOP);
    s->killed = KILLED_NONE;
    s->grace_ms = force ? 0 : i64_min(i64_max(grace_ms, 0), GRACE_MAX_MS);
    sm_move(&s->sm, SANDBOX_STOPPING);
    sandbox_save(s, NULL);
    if (was_paused)
        ops(s)->pause(s->driver, s->id, false, resume_finished, sandbox_ref(s));
    else
        stop_begin(s);
}

/* --- its init has ended by itself --- */

static void ended_removed(void *arg, const struct err *e)
{
    AUTO(sandbox_unref) struct sandbox *s = arg;

    (void)e;
    if (!s->all->closed && step_is(s, STEP_STOP))
        sandbox_step_end(s, &(struct err){0});
}

void sandbox_init_ended(struct sandbox *s, const char *why)
{
    struct err e = {0};

    if (sandbox_is_making(s) && s->sm.state == SANDBOX_RUNNING) {
        err_set(&e, ERR_INTERNAL, 0, "%s", why);
        sandbox_undo(s, &e);
        return;
    }
    if (step_is(s, STEP_STOP) || step_is(s, STEP_DESTROY) || !is_up(s))
        return; /* that is what was wanted */
    if (is_pausing(s) ||
        step_is(s,
                STEP_SNAPSHOT)) { /* whoever waits for that hears of it below: a callback may act */
        err_set(&e, ERR_CONFLICT, 0, "sandbox '%s': %s", s->id, why);
        sm_move(&s->step, STEP_NONE);
    }
    link_close(s);
    sandbox_lose_commands(s, why);
    set_failure(s, why);
    s->actor[0] = '\0';
    sm_move(&s->sm, SANDBOX_FAILED);
    sandbox_crashed(s, why);
    sandbox_save(s, NULL);
    sm_move(&s->step, STEP_STOP); /* what is left of it goes, but for the files */
    s->killed = KILLED_ALL;
    ops(s)->remove(s->driver, s->id, true, ended_removed, sandbox_ref(s));
    if (e.code != ERR_NONE)
        wait_tell(&s->waits, s, &e);
}

/* --- destroy: from any state --- */

static void destroy_erased(struct sandbox *s, const struct err *e)
{
    struct err why = *e;

    if (e->code != ERR_NONE) { /* the row stays and is marked for removal: tick tries again */
        err_wrap(&why, "destroy sandbox '%s'", s->id);
        sm_move(&s->step, STEP_NONE);
        wait_tell(&s->destroy_waits, s, &why);
        return;
    }
    sandbox_drop_and_tell(s);
}

static void destroy_cleaned(void *arg)
{
    AUTO(sandbox_unref) struct sandbox *s = arg;

    if (s->all->closed)
        return;
    if (s->sm.state != SANDBOX_DESTROYED)
        sm_move(&s->sm, SANDBOX_DESTROYED);
    sandbox_erase(s, destroy_erased);
}

static void destroy_removed(void *arg, const struct err *e)
{
    AUTO(sandbox_unref) struct sandbox *s = arg;
    struct err why = *e;

    if (s->all->closed)
        return;
    if (e->code != ERR_NONE) {
        err_wrap(&why, "destroy sandbox '%s'", s->id);
        set_failure(s, e->msg);
        sm_move(&s->step, STEP_NONE);
        sandbox_save(s, NULL);
        wait_tell(&s->destroy_waits, s, &why);
        return;
    }
    sandbox_lose_commands(s, "the sandbox was destroyed");
    commands_ops(s)->remove_logs(s->commands, destroy_cleaned, sandbox_ref(s));
}

void sandbox_destroy_now(struct sandbox *s)
{
    sandbox_leave(s);
    sm_move(&s->step, STEP_DESTROY);
    timer_stop(&s->timer);
    timer_stop(&s->confirm);
    link_close(s);
    if (s->sm.state != SANDBOX_STOPPING && s->sm.state != SANDBOX_DESTROYED) {
        sm_move(&s->sm, SANDBOX_STOPPING);
        if (!s->traits.one_shot) /* marks it for after a restart, too */
            sandbox_save(s, NULL);
    }
    ops(s)->remove(s->driver, s->id, false, destroy_removed, sandbox_ref(s));
}

static int check_unprotected(const struct sandbox *s, struct err *e)
{
    if (!s->traits.protected || sandbox_is_leaving(s))
        return 0;
    (void)err_set(e, ERR_CONFLICT, 0, "sandbox '%s' is protected: it cannot be destroyed", s->id);
    (void)err_hint(e, "holt update %s --protected=false", s->id);
    return err_object(e, "sandbox", s->id);
}

void sandbox_destroy(struct sandbox *s, const struct principal *by, sandbox_cb done, void *arg)
{
    struct err none = {0};

    if (!sandbox_is_listed(s)) {
        sandbox_tell(s->all, s, done, arg, &none);
        return;
    }
    if (check_unprotected(s, &none) < 0) {
        sandbox_tell(s->all, s, done, arg, &none);
        return;
    }
    if (!s->driver) { /* it may be alive: without its runtime that is unknown */
        (void)!sandbox_must_be_free(s, "destroy", &none);
        sandbox_tell(s->all, s, done, arg, &none);
        return;
    }
    wait_add(&s->destroy_waits, done, arg);
    if (step_is(s, STEP_DESTROY))
        return;
    sandbox_leave(s);
    if (step_is(s, STEP_NONE)) {
        set_actor(s, by);
        sandbox_destroy_now(s);
    } else if (step_is(s, STEP_STOP) && s->killed == KILLED_NONE) {
        timer_set(s->all->timers, &s->timer, TIMER_SOON, stop_late);
    }
}

/* --- other --- */

void sandbox_exec_over(struct sandbox *s)
{
    sandbox_touch(s);
    if (step_is(s, STEP_STOP))
        stop_go_on(s);
    else if (s->traits.one_shot && sandbox_is_idle(s) && !sandbox_is_leaving(s) && !s->all->closed)
        sandbox_destroy(s, NULL, NULL, NULL);
}

static void tick_one(struct sandbox *s, int64_t now)
{
    bool over = s->traits.ttl_ms > 0 && now - s->created_ms >= s->traits.ttl_ms;

    commands_ops(s)->tick(s->commands);
    if (sandbox_is_busy(s))
        s->last_activity_ms = now;
    if (s->traits.idle_ttl_ms > 0 && step_is(s, STEP_NONE) &&
        now - s->last_activity_ms >= s->traits.idle_ttl_ms)
        over = true;
    if (s->unsaved && !sandbox_is_making(s) && !step_is(s, STEP_DESTROY))
        sandbox_save(s, NULL);
    if ((over && !s->orphan && !sandbox_is_leaving(s)) ||
        (sandbox_is_leaving(s) && step_is(s, STEP_NONE)))
        sandbox_destroy(s, NULL, NULL, NULL);
}

void sandboxes_tick(struct sandboxes *all)
{
    int64_t now = clock_wall_ms();

    timers_run(all->timers);
    for (size_t i = all->count; i > 0; i--)
        if (i <= all->count)
            tick_one(all->sorted[i - 1], now);
    for (size_t i = 0; i < all->driver_count; i++)
        if (all->drivers[i].pool)
            pool_tick(all->drivers[i].pool, now);
    sandboxes_crash_tick(all, now);
    hosts_tick(all);
}

/* Calls back when a change is stored and effective. */
void sandbox_updated(struct sandbox *s, const struct err *e)
{
    if (e->code != ERR_NONE || (s->updates == 0 && s->wiring == WIRING_NONE))
        wait_tell(&s->update_waits, s, e);
}

static void update_saved(struct sandbox *s, const struct err *e)
{
    assert(s->updates > 0);
    s->updates--;
    sandbox_updated(s, e);
}

void sandbox_changed(struct sandbox *s, const struct principal *by, sandbox_cb done, void *arg)
{
    set_actor(s, by);
    wait_add(&s->update_waits, done, arg);
    sandbox_owe(s, "sandbox.updated");
    s->updates++;
    sandbox_save(s, update_saved);
}

void sandbox_update(struct sandbox *s, const struct sandbox_change *c, const struct principal *by,
                    sandbox_cb done, void *arg)
{
    struct err e = {0};
    bool rename = c->name.n > 0 && !str_eq_c(c->name, s->name);

    if (sandbox_is_leaving(s))
        (void)!sandbox_must_be_free(s, "change", &e);
    else if (rename && sandbox_name_check(s->all, s, str_of(s->owner), c->name, &e) < 0)
        err_wrap(&e, "change sandbox '%s'", s->id);
    else if ((c->given.ttl_ms && c->traits.ttl_ms < 0) ||
             (c->given.idle_ttl_ms && c->traits.idle_ttl_ms < 0))
        err_set(&e, ERR_INVALID, 0, "a lifetime must not be negative");
    else if (principal_is_inside(by) && traits_any(&c->given))
        err_set(&e, ERR_FORBIDDEN, 0, "a sandbox cannot change its own lifetime");
    else if (c->policy.p && sandbox_policy_change(s, c->policy, by, &e) < 0)
        err_wrap(&e, "change sandbox '%s'", s->id);
    else if (c->network.n > 0 && sandbox_net_change(s, c->network, by, &e) < 0)
        err_wrap(&e, "change sandbox '%s'", s->id);
    if (e.code != ERR_NONE) {
        sandbox_tell(s->all, s, done, arg, &e);
        return;
    }
    if (rename)
        sandbox_rename(s, c->name);
    if (c->set_labels) {
        mem_free(s->labels);
        s->labels = pairs_copy(c->labels, c->label_count);
        s->label_count = c->label_count;
    }
    traits_change(&s->traits, &c->traits, &c->given);
    if (c->note.p)
        text_set(&s->note, c->note);
    if (c->policy.p)
        sandbox_send_rules(s);
    if (c->network.n > 0)
        sandbox_wire(s);
    sandbox_changed(s, by, done, arg);
}

struct stats_call {
    struct sandbox *s;
    sandbox_stats_cb done;
    void *arg;
    struct err e;
    struct timer timer;
};

static void stats_came(void *arg, const struct driver_stats *st, const struct err *e)
{
    struct stats_call *c = arg;

    c->done(c->arg, st, e);
    sandbox_unref(c->s);
    mem_free(c);
}

static void stats_refused(struct timer *t)
{
    struct stats_call *c = CONTAINER_OF(t, struct stats_call, timer);

    stats_came(c, NULL, &c->e);
}

void sandbox_stats(struct sandbox *s, sandbox_stats_cb done, void *arg)
{
    struct stats_call *c = xzalloc(sizeof *c);

    *c = (struct stats_call){.s = sandbox_ref(s), .done = done, .arg = arg};
    if (is_up(s)) {
        ops(s)->stats(s->driver, s->id, stats_came, c);
        return;
    }
    wrong_state(s, "measure", &c->e);
    timer_set(s->all->timers, &c->timer, TIMER_SOON, stats_refused);
}
