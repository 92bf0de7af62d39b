/* sandbox_link: the connection to a sandbox's init. */
#include "core/sandbox/sandbox_internal.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"

#define RETRY_FIRST_MS 10
#define RETRY_MAX_MS 2000

static void retry_due(struct timer *t)
{
    link_open(CONTAINER_OF(t, struct sandbox, retry));
}

static bool wants_link(const struct sandbox *s)
{
    return sandbox_is_listed(s) && !s->all->closed &&
           (s->sm.state == SANDBOX_RUNNING || s->sm.state == SANDBOX_PAUSED) &&
           !step_is(s, STEP_DESTROY);
}

static void link_again(struct sandbox *s, const struct err *e)
{
    int64_t wait = RETRY_FIRST_MS << (s->tries < 8 ? s->tries : 8);

    if (!wants_link(s))
        return;
    s->tries++;
    log_debug("no connection to a sandbox", LOG_C("id", s->id), LOG_N("try", s->tries), LOG_E(e));
    timer_set(s->all->timers, &s->retry, clock_mono_ms() + i64_min(wait, RETRY_MAX_MS), retry_due);
}

/* --- callbacks of the guest --- */

static void link_ready(struct guest *g, const struct guest_hello_init *h)
{
    AUTO(sandbox_unref) struct sandbox *s = sandbox_ref(guest_arg(g));
    bool other = s->known_epoch && memcmp(s->epoch, h->epoch, sizeof s->epoch) != 0;
    struct err e = {0};

    if (!sandbox_is_linked(s))
        sm_move(&s->link, LINK_READY);
    s->tries = 0;
    memcpy(s->epoch, h->epoch, sizeof s->epoch);
    s->known_epoch = true;
    if (sandbox_ruled(s, &e) < 0 && step_is(s, STEP_CREATE)) {
        sandbox_undo(s, &e);
        return;
    }
    commands_ops(s)->linked(s->commands, h, other);
    sandbox_made_ready(s);
}

static void link_ruled(struct guest *g)
{
    struct sandbox *s = guest_arg(g);
    struct err e;

    (void)!sandbox_ruled(s, &e); /* a requirement is of the creation */
}

static void link_lost(struct guest *g, const struct err *e)
{
    AUTO(sandbox_unref) struct sandbox *s = sandbox_ref(guest_arg(g));

    if (sandbox_is_linked(s))
        log_info("the connection to a sandbox was lost", LOG_C("id", s->id), LOG_E(e));
    link_close(s);
    link_again(s, e);
}

/* Init could ask without being allowed: the sandbox's own flags decide. */
static int link_relay(struct guest *g, struct guest_pipe *p, const struct guest_relay *from,
                      struct err *e)
{
    struct sandbox *s = guest_arg(g);
    bool process = from->service == GUEST_PROCESS_API;

    if (from->service == GUEST_EGRESS || from->service == GUEST_DNS)
        return sandbox_lead_out(s, p, from, e);
    if (!(process ? s->traits.process_api : s->traits.relay) || !s->all->relay)
        return err_set(e, ERR_FORBIDDEN, 0, "sandbox '%s' has no %s", s->id,
                       process ? "process_api" : "relay");
    sandbox_touch(s);
    return s->all->relay(s->all->relay_arg, s->id, process, p, e);
}

static void init_connected(void *arg, int fd, const struct err *e)
{
    static const struct guest_ops ops = {link_ready, link_lost, link_relay, link_ruled};
    AUTO(sandbox_unref) struct sandbox *s = arg;
    AUTO(fd_close) int owned = fd;

    if (!wants_link(s) || e->code != ERR_NONE) {
        sm_move(&s->link, LINK_DOWN);
        if (wants_link(s))
            link_again(s, e);
        return;
    }
    s->guest = guest_open(s->all->loop, TAKE_FD(owned), &ops, s);
    sm_move(&s->link, LINK_OPEN);
    sandbox_send_rules(s);
}

void link_open(struct sandbox *s)
{
    if (s->link.state != LINK_DOWN || !wants_link(s))
        return;
    sm_move(&s->link, LINK_CONNECTING);
    s->driver->ops->connect(s->driver, s->id, init_connected, sandbox_ref(s));
}

void link_close(struct sandbox *s)
{
    struct guest *g = TAKE(s->guest);

    timer_stop(&s->retry);
    if (g)
        sm_move(&s->link, LINK_DOWN); /* what the driver was asked for may still come */
    guest_close(g);
}

void sandboxes_set_relay(struct sandboxes *all, sandbox_relay serve, void *arg)
{
    all->relay = serve;
    all->relay_arg = arg;
}
