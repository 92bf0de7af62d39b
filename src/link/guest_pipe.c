/* guest_pipe: file calls, dials and relays. */
#include "base/mem.h"
#include "link/guest_internal.h"

struct guest_pipe {
    struct guest_channel ch;
    const struct guest_pipe_ops *ops;
    void *arg;
    bool dial; /* otherwise a file call */
    bool opened;
    bool wants;   /* call room when there is room */
    bool in_eof;  /* we have sent eof */
    bool out_eof; /* init has sent eof */
    struct flow_out in;
    struct flow_in out;
    uint64_t consumed;
};
_Static_assert(offsetof(struct guest_pipe, ch) == 0, "freed by its channel");

static struct guest_pipe *pipe_of(struct guest_channel *c)
{
    return CONTAINER_OF(c, struct guest_pipe, ch);
}

static void end(struct guest_pipe *p, const struct guest_file_done *info)
{
    struct err none = {0};

    if (!guest_channel_kill(&p->ch))
        return;
    p->ops->done(p, info, &none);
    guest_channel_unref(&p->ch);
}

static void tell_room(struct guest_pipe *p)
{
    if (!p->wants || p->ch.dead || flow_room(&p->in) == 0)
        return;
    if (!guest_has_room(p->ch.g)) {
        guest_wait_room(&p->ch);
        return;
    }
    p->wants = false;
    if (p->ops->room)
        p->ops->room(p);
}

/* ---- from init ---- */

static int on_data(struct guest_pipe *p, const struct guest_msg *m, struct err *e)
{
    struct str fresh;

    if (m->stream != GUEST_OUT)
        return err_set(e, ERR_INVALID, 0, "data on stream %u of a transfer", m->stream);
    if (p->dial && !p->opened)
        return err_set(e, ERR_INVALID, 0, "data before the connection is open");
    if (p->out_eof)
        return err_set(e, ERR_INVALID, 0, "data after the stream's end");
    if (flow_on_data(&p->out, &m->u.data, &fresh, e) < 0)
        return -1;
    p->out_eof = m->flags & GUEST_EOF;
    if (fresh.n > 0 && p->ops->data)
        p->ops->data(p, fresh);
    if (p->out_eof && !p->ch.dead && p->ops->eof)
        p->ops->eof(p);
    return 0;
}

static int on_opened(struct guest_pipe *p, struct err *e)
{
    if (!p->dial || p->opened)
        return err_set(e, ERR_INVALID, 0, "unexpected 'opened'");
    p->opened = true;
    if (p->ops->opened)
        p->ops->opened(p);
    return 0;
}

static void on_close(struct guest_pipe *p)
{
    struct err early = {0};

    if (p->dial && p->out_eof && p->in_eof) {
        end(p, NULL);
        return;
    }
    (void)err_set(&early, ERR_UNAVAILABLE, 0, "the guest closed the %s early",
                  p->dial ? "connection" : "transfer");
    guest_channel_end(&p->ch, &early);
}

static int pipe_msg(struct guest_channel *c, const struct guest_msg *m, struct err *e)
{
    struct guest_pipe *p = pipe_of(c);

    if (m->type == GUEST_DATA)
        return on_data(p, m, e);
    if (m->type == GUEST_OPENED)
        return on_opened(p, e);
    if (m->type == GUEST_ACK) {
        if (flow_on_ack(&p->in, &m->u.ack, e) < 0)
            return -1;
        tell_room(p);
    } else if (m->type == GUEST_FILE_DONE && !p->dial) {
        end(p, &m->u.done);
    } else if (m->type == GUEST_CLOSE) {
        on_close(p);
    } else {
        return err_set(e, ERR_INVALID, 0, "%s on a transfer's channel", guest_types[m->type].name);
    }
    return 0;
}

static void pipe_room(struct guest_channel *c)
{
    tell_room(pipe_of(c));
}

static void pipe_gone(struct guest_channel *c, const struct err *e)
{
    struct guest_pipe *p = pipe_of(c);

    p->ops->done(p, NULL, e);
}

static const struct guest_channel_ops pipe_channel = {pipe_msg, pipe_room, pipe_gone};

/* ---- calls ---- */

static struct guest_pipe *pipe_new(const struct guest_pipe_ops *ops, void *arg, bool dial)
{
    struct guest_pipe *p = xzalloc(sizeof *p);

    p->ops = ops;
    p->arg = arg;
    p->dial = dial;
    flow_out_init(&p->in, 0, GUEST_WINDOW_DOWN);
    flow_in_init(&p->out, 0, GUEST_WINDOW_UP);
    return p;
}

static int open_pipe(struct guest *g, struct guest_msg *m, struct guest_pipe *p,
                     struct guest_pipe **ret, struct err *e)
{
    if (guest_channel_open(g, &p->ch, &pipe_channel, m, e) < 0) {
        mem_free(p);
        return -1;
    }
    *ret = p;
    return 0;
}

int guest_file(struct guest *g, const struct guest_file_call *c, const struct guest_pipe_ops *ops,
               void *arg, struct guest_pipe **ret, struct err *e)
{
    struct guest_msg m = {.type = GUEST_FILE_CALL, .u.file = *c};

    return open_pipe(g, &m, pipe_new(ops, arg, false), ret, e) < 0
               ? err_wrap(e, "file '%.*s'", (int)size_min(c->path.n, 200), c->path.p)
               : 0;
}

int guest_dial(struct guest *g, const struct guest_dial *d, const struct guest_pipe_ops *ops,
               void *arg, struct guest_pipe **ret, struct err *e)
{
    struct guest_msg m = {.type = GUEST_DIAL, .u.dial = *d};

    return open_pipe(g, &m, pipe_new(ops, arg, true), ret, e) < 0
               ? err_wrap(e, "connect to '%.*s' port %u inside", (int)size_min(d->address.n, 200),
                          d->address.p, d->port)
               : 0;
}

int guest_pipe_take(struct guest *g, const struct guest_msg *m, struct err *e)
{
    struct guest_pipe *p = pipe_new(NULL, NULL, true);

    guest_channel_take(g, &p->ch, &pipe_channel, m->channel,
                       guest_relay_leads_out(&m->u.relay) ? &g->led_count : &g->relay_count);
    if (g->ops->relay(g, p, &m->u.relay, e) == 0) {
        assert(p->opened || p->ch.dead);
        return 0;
    }
    if (guest_channel_kill(&p->ch))
        guest_channel_unref(&p->ch);
    return -1;
}

void guest_pipe_serve(struct guest_pipe *p, const struct guest_pipe_ops *ops, void *arg)
{
    assert(!p->ops);
    p->ops = ops;
    p->arg = arg;
    p->opened = true;
    guest_say(&p->ch, GUEST_OPENED);
}

void *guest_pipe_arg(const struct guest_pipe *p)
{
    return p->arg;
}

size_t guest_pipe_write(struct guest_pipe *p, struct str bytes)
{
    size_t n = guest_has_room(p->ch.g) ? size_min(bytes.n, flow_room(&p->in)) : 0;

    assert(!p->in_eof);
    if (n > 0) {
        guest_send_data(&p->ch, p->in.sent, str_make(bytes.p, n), false);
        flow_sent(&p->in, n);
    }
    if (n < bytes.n) {
        p->wants = true;
        if (!guest_has_room(p->ch.g))
            guest_wait_room(&p->ch);
    }
    return n;
}

void guest_pipe_eof(struct guest_pipe *p)
{
    if (p->in_eof)
        return;
    p->in_eof = true;
    guest_send_data(&p->ch, p->in.sent, STR(""), true);
}

void guest_pipe_consume(struct guest_pipe *p, size_t n)
{
    struct guest_ack a;

    assert(n <= p->out.got - p->consumed);
    p->consumed += n;
    if (!p->out_eof && flow_ack(&p->out, p->consumed, false, &a))
        guest_say_ack(&p->ch, GUEST_OUT, &a);
}

void guest_pipe_cancel(struct guest_pipe *p)
{
    guest_say(&p->ch, GUEST_CLOSE);
    if (guest_channel_kill(&p->ch))
        guest_channel_unref(&p->ch);
}
