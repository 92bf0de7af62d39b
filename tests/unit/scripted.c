#include "scripted.h"

#include "base/fd.h"
#include "base/list.h"
#include "base/mem.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

struct script script = {.fd = -1};
static struct guest_reader reader;
static uv_loop_t *loop;
static struct driver the_driver;
static struct list held;

/* --- calls of the driver --- */

struct call {
    uv_timer_t timer;
    struct list link;
    enum script_call what;
    driver_done done;
    driver_made_cb made;
    driver_fd_cb fd;
    driver_list_cb list;
    void *arg;
};

static void freed(uv_handle_t *h)
{
    mem_free(h->data);
}

static int connect_init(void)
{
    int pair[2];

    script_drop();
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
        return -1;
    script.fd = pair[1];
    guest_reader_init(&reader, GUEST_HOST, false);
    return pair[0];
}

static void end_call(uv_timer_t *t)
{
    struct call *c = t->data;
    struct err e = script.fail[c->what];
    const struct driver_made made = {.pid = 1, .enforced = LIMIT_PIDS};

    if (c->done)
        c->done(c->arg, &e);
    else if (c->made)
        c->made(c->arg, &made, &e);
    else if (c->fd)
        c->fd(c->arg, e.code == ERR_NONE ? connect_init() : -1, &e);
    else if (c->list)
        c->list(c->arg, script.found, script.found_count, &e);
    uv_close((uv_handle_t *)&c->timer, freed);
}

static void begin(struct call c)
{
    struct call *h = xmemdup(&c, sizeof c);

    script.calls[c.what]++;
    (void)uv_timer_init(loop, &h->timer);
    h->timer.data = h;
    if (script.hold[c.what])
        list_push(&held, &h->link);
    else
        (void)uv_timer_start(&h->timer, end_call, 0, 0);
}

void script_release(enum script_call what)
{
    script.hold[what] = false;
    LIST_EACH (&held, node) {
        struct call *c = LIST_ENTRY(node, struct call, link);

        if (c->what != what)
            continue;
        list_unlink(node);
        (void)uv_timer_start(&c->timer, end_call, 0, 0);
    }
}

static int s_open(const struct driver_config *c, struct driver **ret, struct err *e)
{
    (void)e;
    loop = c->loop;
    script.events = c->events;
    list_init(&held);
    the_driver.ops = &driver_scripted;
    *ret = &the_driver;
    return 0;
}

static void s_close(struct driver *d)
{
    (void)d;
    script_drop();
    for (int i = 0; i < CALL_COUNT; i++)
        script_release((enum script_call)i);
}

static uint32_t s_enforces(const struct driver *d)
{
    (void)d;
    return LIMIT_PIDS;
}

static void s_create(struct driver *d, const struct driver_spec *s, driver_made_cb done, void *arg)
{
    (void)d;
    (void)s;
    begin((struct call){.what = CALL_CREATE, .made = done, .arg = arg});
}

static void s_confirm(struct driver *d, const char *id)
{
    (void)d;
    (void)id;
    script.calls[CALL_CONFIRM]++;
}

static void s_connect(struct driver *d, const char *id, driver_fd_cb done, void *arg)
{
    (void)d;
    (void)id;
    begin((struct call){.what = CALL_CONNECT, .fd = done, .arg = arg});
}

static void s_kill(struct driver *d, const char *id, enum driver_scope scope, driver_done done,
                   void *arg)
{
    (void)d;
    (void)id;
    begin((struct call){
        .what = scope == DRIVER_ALL ? CALL_KILL_ALL : CALL_KILL_WORK, .done = done, .arg = arg});
}

static void s_remove(struct driver *d, const char *id, bool keep, driver_done done, void *arg)
{
    (void)d;
    (void)id;
    begin((struct call){.what = keep ? CALL_KEEP : CALL_REMOVE, .done = done, .arg = arg});
}

static void s_pause(struct driver *d, const char *id, bool on, driver_done done, void *arg)
{
    (void)d;
    (void)id;
    begin((struct call){.what = on ? CALL_PAUSE : CALL_RESUME, .done = done, .arg = arg});
}

static void s_stats(struct driver *d, const char *id, driver_stats_cb done, void *arg)
{
    (void)d;
    (void)id;
    done(arg, &(struct driver_stats){.pids = 3}, &(struct err){0});
}

static void s_list(struct driver *d, driver_list_cb done, void *arg)
{
    (void)d;
    begin((struct call){.what = CALL_LIST, .list = done, .arg = arg});
}

static void s_adopt(struct driver *d, const char *id, driver_made_cb done, void *arg)
{
    (void)d;
    (void)id;
    begin((struct call){.what = CALL_ADOPT, .made = done, .arg = arg});
}

const struct driver_ops driver_scripted = {
    .name = "scripted",
    .caps = DRIVER_CAN_PAUSE | DRIVER_CAN_STOP,
    .open = s_open,
    .close = s_close,
    .enforces = s_enforces,
    .create = s_create,
    .confirm = s_confirm,
    .connect = s_connect,
    .kill = s_kill,
    .remove = s_remove,
    .pause = s_pause,
    .stats = s_stats,
    .list = s_list,
    .adopt = s_adopt,
};

/* --- the init --- */

static void send_msg(const struct guest_msg *m)
{
    static uint8_t bytes[GUEST_HEAD + GUEST_PAYLOAD_MAX + 1];
    struct wire_out o = {.p = bytes, .size = sizeof bytes};
    struct err e;

    if (script.fd < 0)
        return;
    if (guest_encode(m, GUEST_INIT, &o, &e) < 0 || fd_write_all(script.fd, bytes, o.n) < 0)
        script_drop();
}

static struct script_exec *by_channel(uint32_t channel)
{
    for (size_t i = 0; i < script.exec_count; i++)
        if (script.execs[i].channel == channel && channel != 0)
            return &script.execs[i];
    return NULL;
}

static struct script_exec *by_id(struct str id)
{
    for (size_t i = 0; i < script.exec_count; i++)
        if (str_eq_c(id, script.execs[i].id) && !script.execs[i].forgotten)
            return &script.execs[i];
    return NULL;
}

static void hello(const struct guest_hello_host *h)
{
    struct guest_exec_row rows[SCRIPT_EXECS];
    struct guest_msg m = {.type = GUEST_HELLO_INIT};
    uint32_t n = 0;

    for (size_t i = 0; i < script.exec_count; i++)
        if (!script.execs[i].forgotten)
            rows[n++] = (struct guest_exec_row){.id = str_of(script.execs[i].id),
                                                .state = script.execs[i].ended,
                                                .out_end = buf_len(&script.execs[i].out)};
    m.u.hello_init = (struct guest_hello_init){.version = 1, .execs = {.count = n, .items = rows}};
    memcpy(m.u.hello_init.nonce, h->nonce, 16);
    memcpy(m.u.hello_init.epoch, script.epoch, 16);
    if (fd_write_all(script.fd, guest_mark, GUEST_MARK) == 0)
        send_msg(&m);
}

static void send_from(const struct script_exec *x, uint64_t from)
{
    struct str rest = str_skip(buf_str(&x->out), from);

    while (rest.n > 0 && x->channel) {
        uint8_t head[GUEST_DATA_HEAD];
        struct guest_msg m = {.type = GUEST_DATA, .channel = x->channel, .stream = GUEST_OUT};
        size_t n;

        m.u.data = (struct guest_data){from, rest};
        n = guest_data_head(head, &m, false);
        if (fd_write_all(script.fd, head, sizeof head) < 0 ||
            fd_write_all(script.fd, rest.p, n) < 0 || fd_write_all(script.fd, "", 1) < 0)
            return;
        from += n;
        rest = str_skip(rest, n);
    }
}

static void running(struct script_exec *x, uint32_t channel, bool known, uint64_t from)
{
    struct guest_msg m = {.type = GUEST_EXEC_RUNNING, .channel = channel};

    x->channel = channel;
    m.u.running = (struct guest_exec_running){.pid = 7, .known = known, .out_from = from};
    send_msg(&m);
    send_from(x, from);
    if (x->ended)
        script_exit(x, x->code);
}

static void take_attach(const struct guest_msg *m)
{
    struct script_exec *x = by_id(m->u.attach.id);
    struct guest_msg no = {.type = GUEST_RESET, .channel = m->channel};

    if (x) {
        running(x, m->channel, true, m->u.attach.out_from);
        return;
    }
    (void)err_set(&no.u.reset.err, ERR_NOT_FOUND, 0, "no such command");
    send_msg(&no);
}

static void take_start(const struct guest_msg *m)
{
    struct script_exec *x = by_id(m->u.start.id);
    bool known = x != NULL;

    if (!x) {
        x = &script.execs[script.exec_count++];
        (void)snprintf(x->id, sizeof x->id, STR_FMT, STR_ARG(m->u.start.id));
    }
    running(x, m->channel, known, 0);
}

static void take(const struct guest_msg *m)
{
    struct script_exec *x = by_channel(m->channel);

    if (m->type == GUEST_HELLO_HOST) {
        hello(&m->u.hello_host);
    } else if (m->type == GUEST_EXEC_START) {
        take_start(m);
    } else if (m->type == GUEST_EXEC_ATTACH) {
        take_attach(m);
    } else if (x && m->type == GUEST_ACK && m->stream == GUEST_OUT) {
        x->acked = m->u.ack.acked;
    } else if (x && m->type == GUEST_EXEC_SIGNAL) {
        x->killed = m->u.signal.signal;
        if (!script.deaf)
            script_exit(x, -(int)m->u.signal.signal);
    } else if (x && m->type == GUEST_EXEC_FORGET) {
        struct guest_msg closed = {.type = GUEST_CLOSE, .channel = m->channel};

        x->forgotten = true;
        x->channel = 0;
        send_msg(&closed);
    }
}

static void take_all(void)
{
    struct guest_frame f;
    struct guest_msg m;
    struct err e;
    int r;

    while (script.fd >= 0 && (r = guest_reader_next(&reader, &f, &e)) > GUEST_READ_MORE)
        if (r == GUEST_READ_FRAME && guest_decode(&f, GUEST_HOST, &m, &e) == 0)
            take(&m);
}

void script_serve(void)
{
    while (script.fd >= 0 && !script.silent) {
        char *room;
        size_t size = guest_reader_room(&reader, &room);
        ssize_t n = read(script.fd, room, size);

        if (n == 0)
            script_drop();
        if (n <= 0)
            return;
        guest_reader_added(&reader, (size_t)n);
        take_all();
    }
}

void script_drop(void)
{
    if (script.fd < 0)
        return;
    fd_close(script.fd);
    script.fd = -1;
    guest_reader_done(&reader);
    for (size_t i = 0; i < script.exec_count; i++)
        script.execs[i].channel = 0;
}

void script_output(struct script_exec *x, struct str bytes)
{
    uint64_t from = buf_len(&x->out);

    buf_add_str(&x->out, bytes);
    send_from(x, from);
}

void script_exit(struct script_exec *x, int code)
{
    struct guest_msg m = {.type = GUEST_EXEC_EXIT, .channel = x->channel};

    x->ended = true;
    x->code = code;
    m.u.exit = (struct guest_exec_exit){.how = (uint8_t)(code < 0 ? GUEST_SIGNALLED : GUEST_EXITED),
                                        .code = (uint8_t)(code < 0 ? -code : code),
                                        .out_end = buf_len(&x->out)};
    if (x->channel)
        send_msg(&m);
}

void script_took(const struct script_exec *x, uint64_t bytes)
{
    struct guest_msg m = {.type = GUEST_ACK, .channel = x->channel, .stream = GUEST_IN};

    m.u.ack = (struct guest_ack){bytes, bytes + GUEST_WINDOW_DOWN};
    send_msg(&m);
}

void script_reset(void)
{
    script_drop();
    for (size_t i = 0; i < script.exec_count; i++)
        buf_done(&script.execs[i].out);
    script = (struct script){.fd = -1};
}
