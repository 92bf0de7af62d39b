/* guest_exec: a command's channel: input, output, exit. */
#include "base/mem.h"
#include "link/guest_internal.h"

#include <inttypes.h>

struct guest_exec {
    struct guest_channel ch;
    const struct guest_exec_ops *ops;
    void *arg;
    bool attached; /* otherwise started */
    bool running, exited;
    bool wants; /* call stdin_room when there is room */
    bool eof_waits;
    uint64_t eof_at;           /* end of stdin, requested before it ran */
    struct flow_out in;        /* stdin */
    struct flow_in out[2];     /* stdout, stderr */
    uint64_t expected_from[2]; /* of an attach: what holtd has */
    bool ended[2];             /* the stream's EOF has arrived */
};
_Static_assert(offsetof(struct guest_exec, ch) == 0, "freed by its channel");

static struct guest_exec *exec_of(struct guest_channel *c)
{
    return CONTAINER_OF(c, struct guest_exec, ch);
}

/* ---- stdin ---- */

static size_t stdin_room(const struct guest_exec *x)
{
    return guest_has_room(x->ch.g) ? flow_room(&x->in) : 0;
}

/* The callback may end x: callers check ch.dead after it. */
static void tell_room(struct guest_exec *x)
{
    if (!x->wants || !x->running || x->ch.dead)
        return;
    if (flow_room(&x->in) == 0)
        return; /* an ack will come */
    if (!guest_has_room(x->ch.g)) {
        guest_wait_room(&x->ch);
        return;
    }
    x->wants = false;
    if (x->ops->stdin_room)
        x->ops->stdin_room(x);
}

size_t guest_exec_stdin(struct guest_exec *x, uint64_t at, struct str bytes, bool eof)
{
    size_t seen, n;

    if (x->exited)
        return bytes.n; /* the command has closed it */
    if (!x->running) {
        x->wants = true;
        x->eof_waits = bytes.n == 0 && eof;
        x->eof_at = at;
        return 0;
    }
    if (at > x->in.sent) {
        guest_doom(x->ch.g, ERR_INVALID, "the guest lost input that it had acknowledged");
        return 0;
    }
    seen = (size_t)(x->in.sent - at);
    if (seen > bytes.n)
        return bytes.n; /* init already has more */
    bytes = str_skip(bytes, seen);
    n = size_min(bytes.n, stdin_room(x));
    eof = eof && n == bytes.n;
    if (n > 0 || eof) {
        guest_send_data(&x->ch, x->in.sent, str_make(bytes.p, n), eof);
        flow_sent(&x->in, n);
    }
    if (n < bytes.n) {
        x->wants = true;
        if (!guest_has_room(x->ch.g))
            guest_wait_room(&x->ch);
    }
    return seen + n;
}

uint64_t guest_exec_stdin_at(const struct guest_exec *x)
{
    return x->in.acked;
}

static int on_ack(struct guest_exec *x, const struct guest_ack *a, struct err *e)
{
    if (!x->running)
        return err_set(e, ERR_INVALID, 0, "ack before the command runs");
    if (flow_on_ack(&x->in, a, e) < 0)
        return -1;
    tell_room(x);
    return 0;
}

/* ---- from init ---- */

static int check_running(const struct guest_exec *x, const struct guest_exec_running *r,
                         struct err *e)
{
    bool fresh = !x->attached && !r->known;

    if (x->running || x->exited)
        return err_set(e, ERR_INVALID, 0, "exec_running twice");
    if (fresh && (r->in_at != 0 || r->out_from != 0 || r->err_from != 0))
        return err_set(e, ERR_INVALID, 0, "a new command whose streams do not begin at 0");
    if (r->out_from < x->expected_from[0] || r->err_from < x->expected_from[1])
        return err_set(e, ERR_INVALID, 0,
                       "output continues at %" PRIu64 " and %" PRIu64 ", before the end of the log",
                       r->out_from, r->err_from);
    return 0;
}

static int on_running(struct guest_exec *x, const struct guest_exec_running *r, struct err *e)
{
    if (check_running(x, r, e) < 0)
        return -1;
    x->running = true;
    flow_out_init(&x->in, r->in_at, GUEST_WINDOW_DOWN);
    flow_in_init(&x->out[0], r->out_from, GUEST_WINDOW_UP);
    flow_in_init(&x->out[1], r->err_from, GUEST_WINDOW_UP);
    if (x->ops->running)
        x->ops->running(x, r);
    if (x->ch.dead)
        return 0;
    if (x->eof_waits && x->eof_at == x->in.sent) {
        x->eof_waits = x->wants = false;
        guest_send_data(&x->ch, x->in.sent, STR(""), true);
    }
    tell_room(x);
    return 0;
}

static int on_data(struct guest_exec *x, const struct guest_msg *m, struct err *e)
{
    size_t i = m->stream - GUEST_OUT;
    uint64_t at;
    struct str fresh;

    if (!x->running || x->exited)
        return err_set(e, ERR_INVALID, 0, "output of a command that does not run");
    if (x->ended[i])
        return err_set(e, ERR_INVALID, 0, "output after the stream's end");
    if (flow_on_data(&x->out[i], &m->u.data, &fresh, e) < 0)
        return -1;
    x->ended[i] = m->flags & GUEST_EOF;
    at = x->out[i].got - fresh.n;
    if (fresh.n > 0)
        x->ops->output(x, (enum guest_stream)m->stream, at, fresh);
    return 0;
}

static int on_ended(struct guest_exec *x, const struct guest_exec_exit *how, struct err *e)
{
    bool never_ran = how->how == GUEST_FAILED && !x->running;

    if (x->exited)
        return err_set(e, ERR_INVALID, 0, "exec_exit twice");
    if (!x->running && !never_ran)
        return err_set(e, ERR_INVALID, 0, "exec_exit of a command that does not run");
    if (never_ran ? how->out_end != 0 || how->err_end != 0
                  : how->out_end != x->out[0].got || how->err_end != x->out[1].got)
        return err_set(e, ERR_INVALID, 0,
                       "exec_exit tells of %" PRIu64 " and %" PRIu64 " bytes of output, %" PRIu64
                       " and %" PRIu64 " came",
                       how->out_end, how->err_end, x->out[0].got, x->out[1].got);
    x->exited = true;
    x->ops->exited(x, how);
    return 0;
}

static int exec_msg(struct guest_channel *c, const struct guest_msg *m, struct err *e)
{
    struct guest_exec *x = exec_of(c);
    struct err gone = {0};

    if (m->type == GUEST_DATA)
        return on_data(x, m, e);
    if (m->type == GUEST_ACK)
        return on_ack(x, &m->u.ack, e);
    if (m->type == GUEST_EXEC_RUNNING)
        return on_running(x, &m->u.running, e);
    if (m->type == GUEST_EXEC_EXIT)
        return on_ended(x, &m->u.exit, e);
    if (m->type != GUEST_CLOSE)
        return err_set(e, ERR_INVALID, 0, "%s on a command's channel", guest_types[m->type].name);
    (void)err_set(&gone, ERR_UNAVAILABLE, 0, "the guest closed the command's channel");
    guest_channel_end(c, &gone);
    return 0;
}

static void exec_room(struct guest_channel *c)
{
    tell_room(exec_of(c));
}

static void exec_gone(struct guest_channel *c, const struct err *e)
{
    struct guest_exec *x = exec_of(c);

    x->ops->gone(x, e);
}

static const struct guest_channel_ops exec_channel = {exec_msg, exec_room, exec_gone};

/* ---- calls ---- */

static int open_exec(struct guest *g, struct guest_msg *m, struct guest_exec *x,
                     struct guest_exec **ret, struct err *e)
{
    if (guest_channel_open(g, &x->ch, &exec_channel, m, e) < 0) {
        mem_free(x);
        return -1;
    }
    *ret = x;
    return 0;
}

int guest_exec_start(struct guest *g, const struct guest_exec_start *s,
                     const struct guest_exec_ops *ops, void *arg, struct guest_exec **ret,
                     struct err *e)
{
    struct guest_msg m = {.type = GUEST_EXEC_START, .u.start = *s};
    struct guest_exec *x = xzalloc(sizeof *x);

    x->ops = ops;
    x->arg = arg;
    return open_exec(g, &m, x, ret, e) < 0
               ? err_wrap(e, "start command '" STR_FMT "'", STR_ARG(s->id))
               : 0;
}

int guest_exec_attach(struct guest *g, const struct guest_exec_attach *s,
                      const struct guest_exec_ops *ops, void *arg, struct guest_exec **ret,
                      struct err *e)
{
    struct guest_msg m = {.type = GUEST_EXEC_ATTACH, .u.attach = *s};
    struct guest_exec *x = xzalloc(sizeof *x);

    x->ops = ops;
    x->arg = arg;
    x->attached = true;
    x->expected_from[0] = s->out_from;
    x->expected_from[1] = s->err_from;
    return open_exec(g, &m, x, ret, e) < 0
               ? err_wrap(e, "attach to command '" STR_FMT "'", STR_ARG(s->id))
               : 0;
}

void *guest_exec_arg(const struct guest_exec *x)
{
    return x->arg;
}

void guest_exec_ack(struct guest_exec *x, enum guest_stream s, uint64_t upto)
{
    struct flow_in *f = &x->out[s - GUEST_OUT];
    struct guest_ack a;

    assert(s == GUEST_OUT || s == GUEST_ERR);
    assert(upto <= f->got);
    if (f->got >= GUEST_WINDOW_UP)
        f->window = GUEST_WINDOW_WIDE; /* long output: let init run further ahead */
    if (upto > f->told && flow_ack(f, upto, false, &a))
        guest_say_ack(&x->ch, s, &a);
}

void guest_exec_resize(struct guest_exec *x, uint16_t rows, uint16_t cols)
{
    struct guest_msg m = {.type = GUEST_EXEC_RESIZE, .channel = x->ch.number};
    struct err e;

    m.u.resize = (struct guest_exec_resize){rows, cols};
    (void)!guest_send(x->ch.g, &m, &e); /* out of range: checked where it came in */
}

void guest_exec_signal(struct guest_exec *x, int signal, enum guest_scope scope)
{
    struct guest_msg m = {.type = GUEST_EXEC_SIGNAL, .channel = x->ch.number};
    struct err e;

    m.u.signal = (struct guest_exec_signal){(uint8_t)signal, (uint8_t)scope};
    (void)!guest_send(x->ch.g, &m, &e);
}

void guest_exec_forget(struct guest_exec *x)
{
    guest_say(&x->ch, GUEST_EXEC_FORGET);
    if (guest_channel_kill(&x->ch))
        guest_channel_unref(&x->ch);
}

void guest_exec_drop(struct guest_exec *x)
{
    guest_say(&x->ch, GUEST_CLOSE);
    if (guest_channel_kill(&x->ch))
        guest_channel_unref(&x->ch);
}
