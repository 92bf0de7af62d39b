/* sandbox_link: the connection to a sandbox's init. */
#include "core/sandbox/sandbox_internal.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"

#include <signal.h>

#define RETRY_FIRST_MS 10
#define RETRY_MAX_MS 2000

static void retry_due(struct timer *t)
{
    link_open(CONTAINER_OF(t, struct sandbox, retry));
}

static bool wants_link(const struct sandbox *s)
{
    return s->in_list && !s->all->closed &&
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

/* --- a command that init knows but no row has: holtd died before its row was written, or after its
 * end was committed and before init was told.  No client was promised its output. --- */

static void stray_running(struct guest_exec *x, const struct guest_exec_running *r)
{
    (void)r;
    guest_exec_signal(x, SIGKILL, GUEST_SCOPE_ALL);
}

static void stray_output(struct guest_exec *x, enum guest_stream s, uint64_t offset,
                         struct str bytes)
{
    guest_exec_ack(x, s, offset + bytes.n);
}

static void stray_room(struct guest_exec *x)
{
    (void)x;
}

static void stray_exited(struct guest_exec *x, const struct guest_exec_exit *how)
{
    (void)how;
    guest_exec_forget(x);
}

static void stray_gone(struct guest_exec *x, const struct err *e)
{
    (void)x;
    (void)e;
}

void link_forget(struct sandbox *s, const struct guest_exec_row *row)
{
    static const struct guest_exec_ops ops = {stray_running, stray_output, stray_room, stray_exited,
                                              stray_gone};
    const struct guest_exec_attach a = {
        .id = row->id, .out_from = row->out_end, .err_from = row->err_end};
    struct guest_exec *ch;
    struct err e;

    if (guest_exec_attach(s->guest, &a, &ops, NULL, &ch, &e) < 0)
        log_warn("an unknown command of a sandbox could not be ended", LOG_C("sandbox", s->id),
                 LOG_S("exec", row->id), LOG_E(&e));
}

/* --- callbacks of the guest --- */

/* One whose end is not committed counts: init must keep it. */
static struct exec *known_exec(struct sandbox *s, struct str id)
{
    LIST_EACH (&s->execs, node) {
        struct exec *x = LIST_ENTRY(node, struct exec, link);

        if (str_eq_c(id, x->id))
            return x->ended_saved ? NULL : x;
    }
    return NULL;
}

static void link_ready(struct guest *g, const struct guest_hello_init *h)
{
    AUTO(sandbox_unref) struct sandbox *s = sandbox_ref(guest_arg(g));
    struct wire_rows rows = h->execs;
    struct guest_exec_row row;
    bool other = s->known_epoch && memcmp(s->epoch, h->epoch, sizeof s->epoch) != 0;

    if (!sandbox_is_linked(s))
        sm_move(&s->link, LINK_READY);
    s->tries = 0;
    memcpy(s->epoch, h->epoch, sizeof s->epoch);
    s->known_epoch = true;
    LIST_EACH (&s->execs, node) {
        struct exec *x = LIST_ENTRY(node, struct exec, link);

        x->listed = false;
        if (other && exec_is_live(x) && !x->start)
            exec_lose(x, "another init answers in the sandbox");
    }
    while (wire_rows_next(&guest_exec_row_layout, &rows, &row)) {
        struct exec *x = known_exec(s, row.id);

        if (x && !x->listed && exec_is_live(x))
            exec_link(x, &row);
        else if (!x)
            link_forget(s, &row);
        if (x)
            x->listed = true;
    }
    LIST_EACH (&s->execs, node) {
        struct exec *x = LIST_ENTRY(node, struct exec, link);

        if (exec_is_live(x) && !x->listed)
            exec_link(x, NULL);
    }
    sandbox_made_ready(s);
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
    static const struct guest_ops ops = {link_ready, link_lost, link_relay};
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
