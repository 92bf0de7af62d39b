/* remote_bridge: answers the guest protocol towards core, as an init would, for an agent. */

/* The agent's contract has neither offsets nor credit.  What core's window does not take yet is
 * kept here, at most REMOTE_KEEP_MAX per stream; then the whole link is held. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "core/remote/remote_internal.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#define OUT_LOW (64 * 1024)   /* below: queue more data frames */
#define OUT_HIGH (256 * 1024) /* above: read nothing more from core */
#define READS_PER_TURN 16
#define STORED_STEP (64 * 1024) /* bytes after which the agent is told that they are stored */

static void conv_pump(struct remote *r);

/* --- commands --- */

struct remote_cmd *remote_cmd_find(const struct remote *r, struct str id)
{
    LIST_EACH (&r->commands, node) {
        struct remote_cmd *c = LIST_ENTRY(node, struct remote_cmd, node);

        if (str_eq_c(id, c->id))
            return c;
    }
    return NULL;
}

struct remote_cmd *remote_cmd_new(struct remote *r, struct str id)
{
    struct remote_cmd *c;

    if (id.n == 0 || id.n > GUEST_EXEC_ID_MAX || r->command_count >= REMOTE_COMMANDS_MAX)
        return NULL;
    c = xzalloc(sizeof *c);
    memcpy(c->id, id.p, id.n);
    list_push(&r->commands, &c->node);
    r->command_count++;
    return c;
}

static void release_hold(struct remote *r)
{
    if (!r->held)
        return;
    LIST_EACH (&r->commands, node) {
        const struct remote_cmd *c = LIST_ENTRY(node, struct remote_cmd, node);

        if (buf_len(&c->out[0].kept) + buf_len(&c->out[1].kept) >= REMOTE_KEEP_MAX)
            return;
    }
    r->held = false;
    if (r->ops)
        r->ops->hold(r->arg, false);
}

void remote_cmd_free(struct remote *r, struct remote_cmd *c)
{
    list_unlink(&c->node);
    r->command_count--;
    buf_done(&c->out[0].kept);
    buf_done(&c->out[1].kept);
    mem_free(c);
    release_hold(r);
}

static struct remote_cmd *on_channel(struct remote *r, uint32_t channel)
{
    LIST_EACH (&r->commands, node) {
        struct remote_cmd *c = LIST_ENTRY(node, struct remote_cmd, node);

        if (c->channel == channel && channel != 0)
            return c;
    }
    return NULL;
}

void remote_signal(struct remote *r, struct remote_cmd *c, int signal)
{
    c->signals |= 1ULL << (signal - 1);
    r->congested |= r->ops->signal(r->arg, str_of(c->id), signal) > 0;
}

/* --- towards core --- */

static void send_msg(struct remote_conv *v, const struct guest_msg *m)
{
    AUTO(buf_done) struct buf room = {0};
    struct wire_out o = {.size = GUEST_HEAD + GUEST_PAYLOAD_MAX};
    struct err e;
    char *p;

    if (buf_reserve(&room, o.size, &p) < 0)
        return;
    o.p = (uint8_t *)p;
    if (guest_encode(m, GUEST_INIT, &o, &e) == 0)
        buf_add(&v->out, p, o.n);
}

static void send_reset(struct remote_conv *v, uint32_t channel, const struct err *e)
{
    struct guest_msg m = {.type = GUEST_RESET, .channel = channel};

    m.u.reset.err = *e;
    send_msg(v, &m);
}

static void send_bare(struct remote_conv *v, enum guest_type type, uint32_t channel)
{
    const struct guest_msg m = {.type = type, .channel = channel};

    send_msg(v, &m);
}

/* One frame of a stream; false: there is nothing that may be sent. */
static bool send_piece(struct remote_conv *v, struct remote_cmd *c, int i)
{
    struct guest_msg m = {
        .type = GUEST_DATA, .channel = c->channel, .stream = i ? GUEST_ERR : GUEST_OUT};
    struct remote_stream *s = &c->out[i];
    uint8_t head[GUEST_DATA_HEAD];
    struct str rest;
    size_t n;

    rest = str_skip(buf_str(&s->kept), (size_t)(s->flow.sent - s->from));
    rest.n = size_min(rest.n, flow_room(&s->flow));
    if (rest.n == 0)
        return false;
    m.u.data = (struct guest_data){s->flow.sent, rest};
    n = guest_data_head(head, &m, false);
    buf_add(&v->out, head, sizeof head);
    buf_add(&v->out, rest.p, n);
    buf_add_char(&v->out, '\0');
    flow_sent(&s->flow, n);
    return true;
}

static void send_end(struct remote_conv *v, struct remote_cmd *c)
{
    struct guest_msg m = {.type = GUEST_EXEC_EXIT, .channel = c->channel};

    if (!c->ended || c->exit_sent || c->out[0].flow.sent < c->out[0].end ||
        c->out[1].flow.sent < c->out[1].end)
        return;
    m.u.exit = c->exit;
    m.u.exit.out_end = c->out[0].end;
    m.u.exit.err_end = c->out[1].end;
    c->exit_sent = true;
    send_msg(v, &m);
}

static void send_outputs(struct remote_conv *v)
{
    bool some = true;

    while (some && buf_len(&v->out) < OUT_LOW) {
        some = false;
        LIST_EACH (&v->r->commands, node) {
            struct remote_cmd *c = LIST_ENTRY(node, struct remote_cmd, node);

            if (c->channel == 0)
                continue;
            some |= send_piece(v, c, 0);
            some |= send_piece(v, c, 1);
            send_end(v, c);
        }
    }
}

/* --- from core --- */

static void tell_stored(struct remote *r, struct remote_cmd *c, bool always)
{
    struct remote_stream *o = &c->out[0], *e = &c->out[1];

    if (!r->keeps_output || !r->ops ||
        (!always && o->from - o->told < STORED_STEP && e->from - e->told < STORED_STEP))
        return;
    o->told = o->from;
    e->told = e->from;
    r->congested |= r->ops->stored(r->arg, str_of(c->id), o->from, e->from, false) > 0;
}

static void begin_stream(struct remote_stream *s, uint64_t wanted)
{
    if (s->unknown) {
        s->from = s->told = wanted;
        s->end = wanted + buf_len(&s->kept);
        s->unknown = false;
    } else if (wanted > s->from) {
        buf_take(&s->kept, (size_t)(wanted - s->from));
        s->from = wanted;
    }
    flow_out_init(&s->flow, s->from, GUEST_WINDOW_UP);
}

static void channel_begin(struct remote_conv *v, struct remote_cmd *c, uint32_t channel, bool known)
{
    struct guest_msg m = {.type = GUEST_EXEC_RUNNING, .channel = channel};

    c->channel = channel;
    c->exit_sent = false;
    flow_in_init(&c->in, c->in.got, GUEST_WINDOW_DOWN);
    m.u.running = (struct guest_exec_running){.pid = 1, /* where it runs, only the agent knows */
                                              .known = known,
                                              .in_at = c->in.got,
                                              .out_from = c->out[0].from,
                                              .err_from = c->out[1].from};
    send_msg(v, &m);
}

static void on_attach(struct remote_conv *v, uint32_t channel, struct str id, uint64_t out,
                      uint64_t err)
{
    struct remote_cmd *c = remote_cmd_find(v->r, id);
    struct err e = {0};

    if (!c)
        (void)err_set(&e, ERR_NOT_FOUND, 0, "the agent has no such command");
    else if (c->channel != 0)
        (void)err_set(&e, ERR_CONFLICT, 0, "it is attached already");
    else if ((!c->out[0].unknown && out > c->out[0].end) ||
             (!c->out[1].unknown && err > c->out[1].end))
        (void)err_set(&e, ERR_RANGE, 0, "the agent has not sent that much output");
    if (e.code != ERR_NONE) {
        send_reset(v, channel, &e);
        return;
    }
    begin_stream(&c->out[0], out);
    begin_stream(&c->out[1], err);
    channel_begin(v, c, channel, true);
    tell_stored(v->r, c, true);
}

static size_t texts_of(struct wire_rows rows, struct str **ret)
{
    struct wire_text t;
    size_t n = 0;

    *ret = xzalloc((rows.count + 1) * sizeof **ret);
    while (wire_rows_next(&wire_text_row, &rows, &t))
        (*ret)[n++] = t.text;
    return n;
}

static void on_start(struct remote_conv *v, uint32_t channel, const struct guest_exec_start *s)
{
    AUTO(mem_free) struct str *argv = NULL;
    AUTO(mem_free) struct str *env = NULL;
    struct remote *r = v->r;
    struct remote_command k = {.id = s->id,
                               .cwd = s->cwd,
                               .user = s->user,
                               .pty = s->flags & GUEST_EXEC_PTY,
                               .rows = s->rows,
                               .cols = s->cols};
    struct remote_cmd *c;
    struct err e = {0};

    if (remote_cmd_find(r, s->id)) {
        on_attach(v, channel, s->id, 0, 0);
        return;
    }
    c = remote_cmd_new(r, s->id);
    if (!c) {
        (void)err_set(&e, ERR_LIMIT, 0, "the agent has %d commands", REMOTE_COMMANDS_MAX);
        (void)err_limit_fixed(&e, REMOTE_COMMANDS_MAX, "wait until one has ended");
        send_reset(v, channel, &e);
        return;
    }
    k.argc = texts_of(s->argv, &argv);
    k.env_count = texts_of(s->env, &env);
    k.argv = argv;
    k.env = env;
    flow_out_init(&c->out[0].flow, 0, GUEST_WINDOW_UP);
    flow_out_init(&c->out[1].flow, 0, GUEST_WINDOW_UP);
    channel_begin(v, c, channel, false);
    r->congested |= r->ops->start(r->arg, &k) > 0;
}

static int on_input(struct remote_conv *v, struct remote_cmd *c, const struct guest_msg *m,
                    struct err *e)
{
    struct remote *r = v->r;
    bool eof = m->flags & GUEST_EOF;
    struct guest_msg back = {.type = GUEST_ACK, .channel = c->channel, .stream = GUEST_IN};
    struct str fresh;

    if (m->stream != GUEST_IN)
        return err_set(e, ERR_INVALID, 0, "data on stream %u", m->stream);
    if (flow_on_data(&c->in, &m->u.data, &fresh, e) < 0)
        return -1;
    if ((fresh.n > 0 || eof) && !c->ended)
        r->congested |= r->ops->input(r->arg, str_of(c->id), fresh, eof) > 0;
    if (flow_ack(&c->in, c->in.got, false, &back.u.ack))
        send_msg(v, &back);
    return 0;
}

static int on_ack(struct remote_conv *v, struct remote_cmd *c, const struct guest_msg *m,
                  struct err *e)
{
    struct remote_stream *s = &c->out[m->stream == GUEST_ERR];

    if (m->stream == GUEST_IN)
        return err_set(e, ERR_INVALID, 0, "an ack of input");
    if (flow_on_ack(&s->flow, &m->u.ack, e) < 0)
        return -1;
    if (s->flow.acked > s->from) {
        buf_take(&s->kept, (size_t)(s->flow.acked - s->from));
        s->from = s->flow.acked;
        tell_stored(v->r, c, false);
        release_hold(v->r);
    }
    return 0;
}

static void on_forget(struct remote_conv *v, struct remote_cmd *c)
{
    struct remote *r = v->r;

    if (r->keeps_output)
        r->congested |=
            r->ops->stored(r->arg, str_of(c->id), c->out[0].end, c->out[1].end, true) > 0;
    send_bare(v, GUEST_CLOSE, c->channel);
    remote_cmd_free(r, c);
}

static int on_command(struct remote_conv *v, const struct guest_msg *m, struct err *e)
{
    struct remote *r = v->r;
    struct remote_cmd *c = on_channel(r, m->channel);
    struct str id;

    if (!c)
        return 0; /* it crossed our close */
    id = str_of(c->id);
    if (m->type == GUEST_DATA)
        return on_input(v, c, m, e);
    if (m->type == GUEST_ACK)
        return on_ack(v, c, m, e);
    if (m->type == GUEST_EXEC_RESIZE && !c->ended)
        r->congested |= r->ops->resize(r->arg, id, m->u.resize.rows, m->u.resize.cols) > 0;
    else if (m->type == GUEST_EXEC_SIGNAL && !c->ended)
        remote_signal(r, c, m->u.signal.signal);
    else if (m->type == GUEST_EXEC_FORGET)
        on_forget(v, c);
    else if (m->type == GUEST_CLOSE || m->type == GUEST_RESET)
        c->channel = 0;
    return 0;
}

static void send_hello(struct remote_conv *v, const struct guest_hello_host *h)
{
    static const uint8_t life[16] = {'r', 'e', 'm', 'o', 't', 'e'};
    struct remote *r = v->r;
    AUTO(mem_free)
    struct guest_exec_row *rows = xzalloc((r->command_count + 1) * sizeof *rows);
    struct guest_msg m = {.type = GUEST_HELLO_INIT};
    uint32_t n = 0;

    LIST_EACH (&r->commands, node) {
        struct remote_cmd *c = LIST_ENTRY(node, struct remote_cmd, node);

        c->channel = 0;
        rows[n++] = (struct guest_exec_row){
            .id = str_of(c->id),
            .state = c->ended ? GUEST_EXEC_ENDED : GUEST_EXEC_LIVE,
            .in_at = c->in.got,
            .out_from = c->out[0].from,
            .out_end = c->out[0].end,
            .err_from = c->out[1].from,
            .err_end = c->out[1].end,
        };
    }
    m.u.hello_init = (struct guest_hello_init){.version = GUEST_VERSION};
    memcpy(m.u.hello_init.nonce, h->nonce, sizeof h->nonce);
    memcpy(m.u.hello_init.epoch, life, sizeof life); /* what it does not list is lost */
    m.u.hello_init.execs = (struct wire_rows){.count = n, .items = rows};
    buf_add(&v->out, guest_mark, GUEST_MARK);
    send_msg(v, &m);
    v->greeted = true;
}

static void send_stats(struct remote_conv *v)
{
    const struct remote *r = v->r;
    const struct remote_numbers *n = &r->numbers;
    struct guest_msg m = {.type = GUEST_STATS};

    m.u.stats = (struct guest_stats){
        .uptime_ms = (uint64_t)i64_max(n->uptime_s, 0) * 1000,
        .execs_live = (uint32_t)r->command_count,
        .memory_total = (uint64_t)i64_max(n->memory_total, 0),
        .memory_available = (uint64_t)i64_max(n->memory_total - n->memory_used, 0),
        .disk_total = (uint64_t)i64_max(n->disk_total, 0),
        .disk_free = (uint64_t)i64_max(n->disk_total - n->disk_used, 0),
    };
    send_msg(v, &m);
}

static void refuse_channel(struct remote_conv *v, uint32_t channel, const char *what)
{
    struct err e = {0};

    (void)err_set(&e, ERR_UNSUPPORTED, 0, "%s of a remote agent", what);
    (void)err_hint(&e, "run a command there instead");
    send_reset(v, channel, &e);
}

/* A message of the connection itself: pings, rules, stats.  None holds a rule there. */
static void on_own(struct remote_conv *v, const struct guest_msg *m)
{
    struct guest_msg back = {.type = m->type == GUEST_PING ? GUEST_PONG : GUEST_RULED};

    if (m->type == GUEST_PING)
        back.u.ping = m->u.ping;
    if (m->type == GUEST_PING || m->type == GUEST_RULES)
        send_msg(v, &back);
    else if (m->type == GUEST_STATS_GET)
        send_stats(v);
}

static void on_open(struct remote_conv *v, const struct guest_msg *m)
{
    if (m->type == GUEST_EXEC_START)
        on_start(v, m->channel, &m->u.start);
    else if (m->type == GUEST_EXEC_ATTACH)
        on_attach(v, m->channel, m->u.attach.id, m->u.attach.out_from, m->u.attach.err_from);
    else
        refuse_channel(v, m->channel,
                       m->type == GUEST_DIAL ? "holt cannot reach the ports"
                                             : "holt cannot reach the files");
}

static int on_msg(struct remote_conv *v, const struct guest_msg *m, struct err *e)
{
    if (m->type == GUEST_HELLO_HOST) {
        if (v->greeted)
            return err_set(e, ERR_INVALID, 0, "a second hello");
        send_hello(v, &m->u.hello_host);
        return 0;
    }
    if (m->channel == 0)
        on_own(v, m);
    else if (guest_types[m->type].opens)
        on_open(v, m);
    else
        return on_command(v, m, e);
    return 0;
}

/* Whether the conversation goes on. */
static bool take_frames(struct remote_conv *v)
{
    struct guest_frame f;
    struct guest_msg m;
    struct err e = {0};
    int n;

    while ((n = guest_reader_next(&v->in, &f, &e)) > GUEST_READ_MORE) {
        if (n == GUEST_READ_MARK)
            continue;
        if (guest_decode(&f, GUEST_HOST, &m, &e) < 0 || on_msg(v, &m, &e) < 0)
            return false;
        if (v->closed || !v->r->ops)
            return false;
    }
    return n >= 0;
}

/* --- its end of the socket pair --- */

static void on_poll(uv_poll_t *h, int status, int events);

static void conv_want(struct remote_conv *v)
{
    size_t queued = buf_len(&v->out);
    int events =
        (queued < OUT_HIGH && !v->r->congested ? UV_READABLE : 0) | (queued > 0 ? UV_WRITABLE : 0);

    if (events == v->events || v->closed)
        return;
    v->events = events;
    if (events)
        (void)uv_poll_start(&v->poll, events, on_poll);
    else
        (void)uv_poll_stop(&v->poll);
}

static bool conv_flush(struct remote_conv *v)
{
    while (buf_len(&v->out) > 0) {
        ssize_t n = send(v->fd, buf_data(&v->out), buf_len(&v->out), MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN;
        buf_take(&v->out, (size_t)n);
    }
    buf_shrink(&v->out, 4096);
    return true;
}

static void conv_pump(struct remote *r)
{
    struct remote_conv *v = r->conv;

    if (!v)
        return;
    if (v->greeted)
        send_outputs(v);
    if (!conv_flush(v))
        remote_conv_close(r);
    else
        conv_want(v);
}

static bool read_some(struct remote_conv *v)
{
    for (int i = 0; i < READS_PER_TURN && !v->r->congested; i++) {
        char *to;
        size_t room = guest_reader_room(&v->in, &to);
        ssize_t n = read(v->fd, to, room);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return true;
        if (n <= 0)
            return false;
        guest_reader_added(&v->in, (size_t)n);
        if (!take_frames(v))
            return false;
        if ((size_t)n < room)
            break;
    }
    return true;
}

static void on_poll(uv_poll_t *h, int status, int events)
{
    struct remote_conv *v = h->data;
    struct remote *r = v->r;

    if (v->closed)
        return;
    if (status < 0 || ((events & UV_READABLE) && !read_some(v))) {
        if (!v->closed) /* core reconnects */
            remote_conv_close(r);
        return;
    }
    if (!v->closed)
        conv_pump(r);
}

static void conv_freed(uv_handle_t *h)
{
    struct remote_conv *v = h->data;

    fd_close(v->fd);
    guest_reader_done(&v->in);
    buf_done(&v->out);
    mem_free(v);
}

void remote_conv_close(struct remote *r)
{
    struct remote_conv *v = TAKE(r->conv);

    LIST_EACH (&r->commands, node)
        LIST_ENTRY(node, struct remote_cmd, node)->channel = 0;
    if (!v)
        return;
    v->closed = true;
    (void)shutdown(v->fd, SHUT_RDWR); /* core notices at once */
    uv_close((uv_handle_t *)&v->poll, conv_freed);
}

void remote_conv_open(struct remote *r, int fd)
{
    struct remote_conv *v = xzalloc(sizeof *v);

    remote_conv_close(r);
    v->r = r;
    v->fd = fd;
    v->poll.data = v;
    guest_reader_init(&v->in, GUEST_HOST, false);
    (void)uv_poll_init(r->all->loop, &v->poll, fd); /* a socket: it cannot fail */
    r->conv = v;
    conv_want(v);
}

void remote_conv_wake(struct remote *r)
{
    conv_pump(r);
}

/* --- from the agent --- */

int remote_output(struct remote *r, struct str command, bool err, int64_t offset, struct str bytes,
                  struct err *e)
{
    struct remote_cmd *c = remote_cmd_find(r, command);
    struct remote_stream *s = c ? &c->out[err] : NULL;

    if (!c || c->ended)
        return 0; /* of an unknown command: dropped */
    if (offset >= 0 && s->unknown)
        return err_set(e, ERR_INVALID, 0, "output of '%s' before OutputStored", c->id);
    if (offset > (int64_t)s->end)
        return err_set(e, ERR_INVALID, 0, "the output of '%s' has a gap", c->id);
    if (offset >= 0)
        bytes = str_skip(bytes, size_min((size_t)((int64_t)s->end - offset), bytes.n));
    buf_add_str(&s->kept, bytes);
    s->end += s->unknown ? 0 : bytes.n; /* else it belongs behind what core has */
    if (buf_len(&s->kept) >= REMOTE_KEEP_MAX && !r->held && r->ops) {
        r->held = true;
        r->ops->hold(r->arg, true);
    }
    conv_pump(r);
    return 0;
}

/* As a shell would say it. */
static enum err_code failure_code(int exit_code)
{
    return exit_code == 127 ? ERR_NOT_FOUND : exit_code == 126 ? ERR_FORBIDDEN : ERR_INTERNAL;
}

void remote_result(struct remote *r, struct str command, const struct remote_result *result)
{
    struct remote_cmd *c = remote_cmd_find(r, command);
    int code = result->exit_code;

    if (!c || c->ended)
        return;
    c->ended = true;
    c->exit = (struct guest_exec_exit){.how = GUEST_EXITED,
                                       .code = (uint8_t)(code & 0xff),
                                       .wall_us = (uint64_t)i64_max(result->duration_ms, 0) * 1000};
    if (code > 128 && code <= 128 + 64 && (c->signals & 1ULL << (code - 129))) {
        c->exit.how = GUEST_SIGNALLED; /* the contract has no other word for it */
        c->exit.code = (uint8_t)(code - 128);
    }
    if (result->failure.n > 0) {
        c->exit.how = GUEST_FAILED;
        (void)err_set(&c->exit.err, failure_code(result->exit_code), 0, "%.*s",
                      (int)size_min(result->failure.n, 200), result->failure.p);
    }
    conv_pump(r);
}
