/* The state machines of a sandbox: its life, the step under way, its connection. */
#include "core/sandbox/sandbox_internal.h"

#include "base/thread.h"

/* creating ─▶ running ⇄ paused;  running, paused ─▶ stopping ─▶ stopped ─▶ starting ─▶ running
 * all but destroyed ─▶ failed, and all ─▶ stopping ─▶ destroyed.  The edges that skip a state are
 * of what is found after a restart. */
const struct sm_state sandbox_states[] = {
    [SANDBOX_CREATING] = {"creating",
                          SM_TO(SANDBOX_RUNNING) | SM_TO(SANDBOX_FAILED) | SM_TO(SANDBOX_STOPPING)},
    [SANDBOX_RUNNING] = {"running", SM_TO(SANDBOX_PAUSED) | SM_TO(SANDBOX_STOPPING) |
                                        SM_TO(SANDBOX_STOPPED) | SM_TO(SANDBOX_FAILED)},
    [SANDBOX_PAUSED] = {"paused", SM_TO(SANDBOX_RUNNING) | SM_TO(SANDBOX_STOPPING) |
                                      SM_TO(SANDBOX_STOPPED) | SM_TO(SANDBOX_FAILED)},
    [SANDBOX_STOPPING] = {"stopping", SM_TO(SANDBOX_STOPPED) | SM_TO(SANDBOX_FAILED) |
                                          SM_TO(SANDBOX_DESTROYED)},
    [SANDBOX_STOPPED] = {"stopped", SM_TO(SANDBOX_STARTING) | SM_TO(SANDBOX_STOPPING) |
                                        SM_TO(SANDBOX_DESTROYED)},
    [SANDBOX_STARTING] = {"starting",
                          SM_TO(SANDBOX_RUNNING) | SM_TO(SANDBOX_STOPPING) | SM_TO(SANDBOX_FAILED)},
    [SANDBOX_FAILED] = {"failed", SM_TO(SANDBOX_STARTING) | SM_TO(SANDBOX_STOPPING) |
                                      SM_TO(SANDBOX_DESTROYED)},
    [SANDBOX_DESTROYED] = {"destroyed", 0},
};
_Static_assert(ARRAY_LEN(sandbox_states) == SANDBOX_STATE_COUNT, "a state without a row");

/* none ─▶ any of the others ─▶ none: a step begins at rest, so that no two are under way. */
static const struct sm_state step_states[] = {
    [STEP_NONE] = {"none", SM_TO(STEP_CREATE) | SM_TO(STEP_START) | SM_TO(STEP_PAUSE) |
                               SM_TO(STEP_RESUME) | SM_TO(STEP_STOP) | SM_TO(STEP_SNAPSHOT) |
                               SM_TO(STEP_DESTROY)},
    [STEP_CREATE] = {"create", SM_TO(STEP_NONE)},
    [STEP_START] = {"start", SM_TO(STEP_NONE)},
    [STEP_PAUSE] = {"pause", SM_TO(STEP_NONE)},
    [STEP_RESUME] = {"resume", SM_TO(STEP_NONE)},
    [STEP_STOP] = {"stop", SM_TO(STEP_NONE)},
    [STEP_SNAPSHOT] = {"snapshot", SM_TO(STEP_NONE)},
    [STEP_DESTROY] = {"destroy", SM_TO(STEP_NONE)},
};
_Static_assert(ARRAY_LEN(step_states) == STEP_COUNT, "a step without a row");

/* down ─▶ connecting ─▶ open ─▶ ready, and from each back down. */
static const struct sm_state link_states[] = {
    [LINK_DOWN] = {"down", SM_TO(LINK_CONNECTING)},
    [LINK_CONNECTING] = {"connecting", SM_TO(LINK_OPEN) | SM_TO(LINK_DOWN)},
    [LINK_OPEN] = {"open", SM_TO(LINK_READY) | SM_TO(LINK_DOWN)},
    [LINK_READY] = {"ready", SM_TO(LINK_DOWN)},
};
_Static_assert(ARRAY_LEN(link_states) == LINK_COUNT, "a state of the connection without a row");

/* new ─▶ listed ─▶ leaving ─▶ gone; also gone at once when holtd ends or a create fails, and listed
 * as leaving when the row says so. */
static const struct sm_state presence_states[] = {
    [PRESENCE_NEW] = {"new", SM_TO(PRESENCE_LISTED)},
    [PRESENCE_LISTED] = {"listed", SM_TO(PRESENCE_LEAVING) | SM_TO(PRESENCE_GONE)},
    [PRESENCE_LEAVING] = {"leaving", SM_TO(PRESENCE_GONE)},
    [PRESENCE_GONE] = {"gone", 0},
};
_Static_assert(ARRAY_LEN(presence_states) == PRESENCE_COUNT, "a place without a row");

static bool is_up(const struct sandbox *s)
{
    return s->sm.state == SANDBOX_RUNNING || s->sm.state == SANDBOX_PAUSED;
}

/* --- what must hold --- */

void sandbox_verify(const struct sandbox *s)
{
    assert(s->refs > 0 && thread_is_loop());
    assert((s->link.state >= LINK_OPEN) == (s->guest != NULL));
    assert(s->commands->standing <= s->commands->live);
    assert(step_is(s, STEP_NONE) || s->driver);
    assert(!step_is(s, STEP_DESTROY) || sandbox_is_leaving(s));
    assert(sandbox_is_listed(s) == (map_get(&s->all->by_id, str_of(s->id)) == s));
    if (is_up(s) || s->sm.state == SANDBOX_STARTING)
        assert(!s->orphan);
    if (s->sm.state == SANDBOX_DESTROYED)
        assert(!s->guest && (step_is(s, STEP_DESTROY) || step_is(s, STEP_CREATE)));
}

static void step_moved(struct sm *m, int from)
{
    const struct sandbox *s = CONTAINER_OF(m, struct sandbox, step);

    (void)from;
    switch ((enum sandbox_step)m->state) {
    case STEP_CREATE:
        assert(s->sm.state == SANDBOX_CREATING);
        break;
    case STEP_START:
        assert(s->sm.state == SANDBOX_STARTING);
        break;
    case STEP_PAUSE:
        assert(s->sm.state == SANDBOX_RUNNING);
        break;
    case STEP_RESUME:
        assert(s->sm.state == SANDBOX_PAUSED);
        break;
    case STEP_STOP:
        assert(is_up(s) || s->sm.state == SANDBOX_STOPPED || s->sm.state == SANDBOX_FAILED);
        break;
    case STEP_SNAPSHOT:
        assert(is_up(s) || s->sm.state == SANDBOX_STOPPED || s->sm.state == SANDBOX_FAILED);
        break;
    case STEP_NONE:
    case STEP_DESTROY:
    case STEP_COUNT:
        break;
    }
    sandbox_verify(s);
}

static void link_moved(struct sm *m, int from)
{
    (void)from;
    sandbox_verify(CONTAINER_OF(m, struct sandbox, link));
}

static void presence_moved(struct sm *m, int from)
{
    (void)from;
    sandbox_verify(CONTAINER_OF(m, struct sandbox, presence));
}

void sandbox_leave(struct sandbox *s)
{
    if (s->presence.state == PRESENCE_LISTED)
        sm_move(&s->presence, PRESENCE_LEAVING);
}

void sandbox_init_states(struct sandbox *s)
{
    s->sm = (struct sm){.table = sandbox_states, .on_move = sandbox_moved};
    s->step = (struct sm){.table = step_states, .on_move = step_moved};
    s->presence = (struct sm){.table = presence_states, .on_move = presence_moved};
    s->link = (struct sm){.table = link_states, .on_move = link_moved};
}
