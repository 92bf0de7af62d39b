#include "guest_client.h"

#include "base/fd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

static void NORETURN PRINTF_LIKE(1, 2) die(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vfprintf(stderr, fmt, ap);
    va_end(ap);
    (void)fputc('\n', stderr);
    exit(1);
}

void guest_client_send(struct guest_client *c, const struct guest_msg *m)
{
    static uint8_t bytes[GUEST_HEAD + GUEST_START_MAX];
    struct wire_out o = {.p = bytes, .size = sizeof bytes};
    struct err e = {0};
    int r;

    if (guest_encode(m, GUEST_HOST, &o, &e) < 0)
        die("encode: %s", e.msg);
    r = fd_write_all(c->fd, bytes, o.n);
    if (r < 0)
        die("write to init: %s", strerror(-r));
}

static int next_frame(struct guest_client *c, struct guest_frame *f)
{
    for (;;) {
        struct err e = {0};
        int r = guest_reader_next(&c->in, f, &e);
        char *room;
        ssize_t n;

        if (r < 0)
            die("read from init: %s", e.msg);
        if (r > GUEST_READ_MORE)
            return r;
        n = read(c->fd, room, guest_reader_room(&c->in, &room));
        if (n <= 0)
            die("read from init: %s", n < 0 ? strerror(errno) : "it closed the connection");
        guest_reader_added(&c->in, (size_t)n);
    }
}

struct guest_msg guest_client_next(struct guest_client *c)
{
    struct guest_frame f;
    struct guest_msg m;
    struct err e = {0};

    while (next_frame(c, &f) != GUEST_READ_FRAME)
        ;
    if (guest_decode(&f, GUEST_INIT, &m, &e) < 0)
        die("decode: %s", e.msg);
    return m;
}

static void send_hello(struct guest_client *c, bool scan, uint8_t nonce)
{
    struct guest_msg m = {.type = GUEST_HELLO_HOST};
    struct timeval limit = {.tv_sec = 120};

    (void)setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    guest_reader_init(&c->in, GUEST_INIT, scan);
    m.u.hello_host = (struct guest_hello_host){1, GUEST_VERSION, {nonce}};
    if (fd_write_all(c->fd, guest_mark, GUEST_MARK) < 0)
        die("write the mark");
    guest_client_send(c, &m);
}

static void take_hello(struct guest_client *c, uint8_t nonce)
{
    struct guest_msg m = guest_client_next(c);
    struct guest_exec_row row;

    while (c->in.scan && (m.type != GUEST_HELLO_INIT || m.u.hello_init.nonce[0] != nonce))
        m = guest_client_next(c); /* said to an earlier client */
    if (m.type != GUEST_HELLO_INIT || m.u.hello_init.version != GUEST_VERSION ||
        m.u.hello_init.nonce[0] != nonce)
        die("init does not greet as it should");
    memcpy(c->epoch, m.u.hello_init.epoch, sizeof c->epoch);
    while (c->exec_n < ARRAY_LEN(c->execs) &&
           wire_rows_next(&guest_exec_row_layout, &m.u.hello_init.execs, &row)) {
        memcpy(c->ids[c->exec_n], row.id.p, row.id.n);
        row.id.p = c->ids[c->exec_n];
        c->execs[c->exec_n++] = row;
    }
}

void guest_client_connect_fast(struct guest_client *c, const char *path)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)snprintf(to.sun_path, sizeof to.sun_path, "%s", path);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) < 0)
        die("connect to '%s': %s", path, strerror(errno));
    *c = (struct guest_client){.fd = fd, .next_channel = 1};
    send_hello(c, false, 1);
}

void guest_client_connect(struct guest_client *c, const char *path)
{
    guest_client_connect_fast(c, path);
    take_hello(c, 1);
}

void guest_client_port(struct guest_client *c, int fd, uint8_t nonce)
{
    *c = (struct guest_client){.fd = fd, .next_channel = 1};
    send_hello(c, true, nonce);
    take_hello(c, nonce);
}

void guest_client_close(struct guest_client *c)
{
    fd_close(c->fd);
    guest_reader_done(&c->in);
}

uint32_t guest_client_start(struct guest_client *c, const char *id, uint32_t flags,
                            const char *const *argv)
{
    static const struct wire_text env[] = {{{"PATH=/usr/bin:/bin", 18}}, {{"TERM=xterm", 10}}};
    struct wire_text args[16];
    struct guest_msg m = {.type = GUEST_EXEC_START, .channel = c->next_channel};
    uint32_t n = 0;

    for (; argv[n]; n++)
        args[n].text = str_of(argv[n]);
    m.u.start = (struct guest_exec_start){.id = str_of(id),
                                          .flags = flags,
                                          .cwd = STR("/"),
                                          .argv = {.count = n, .items = args},
                                          .env = {.count = 2, .items = env}};
    c->next_channel += 2;
    guest_client_send(c, &m);
    return m.channel;
}

uint32_t guest_client_attach(struct guest_client *c, const char *id, uint64_t out, uint64_t err)
{
    struct guest_msg m = {.type = GUEST_EXEC_ATTACH, .channel = c->next_channel};

    m.u.attach = (struct guest_exec_attach){str_of(id), out, err};
    c->next_channel += 2;
    guest_client_send(c, &m);
    return m.channel;
}

static void on_data(struct guest_client *c, const struct guest_msg *m, struct flow_in *flow,
                    struct guest_result *r)
{
    struct guest_msg ack = {.type = GUEST_ACK, .channel = m->channel, .stream = m->stream};
    struct err e = {0};
    struct str fresh;

    if (flow_on_data(flow, &m->u.data, &fresh, &e) < 0)
        die("stream %u: %s", m->stream, e.msg);
    if (fresh.n != m->u.data.bytes.n)
        die("stream %u: %zu bytes came twice", m->stream, m->u.data.bytes.n - fresh.n);
    buf_add_str(&r->out[m->stream - GUEST_OUT], fresh);
    if (flow_ack(flow, flow->got, false, &ack.u.ack))
        guest_client_send(c, &ack);
}

void guest_client_collect(struct guest_client *c, uint32_t channel, size_t stop_at,
                          struct guest_result *r)
{
    while (!r->ended && buf_len(&r->out[0]) < stop_at) {
        struct guest_msg m = guest_client_next(c);

        if (m.channel != channel)
            continue;
        if (m.type == GUEST_EXEC_RUNNING) {
            flow_in_init(&r->flow[0], m.u.running.out_from, GUEST_WINDOW_UP);
            flow_in_init(&r->flow[1], m.u.running.err_from, GUEST_WINDOW_UP);
            r->from[0] = m.u.running.out_from;
            r->from[1] = m.u.running.err_from;
        } else if (m.type == GUEST_DATA) {
            on_data(c, &m, &r->flow[m.stream - GUEST_OUT], r);
        } else if (m.type == GUEST_EXEC_EXIT) {
            r->exit = m.u.exit;
            r->ended = true;
        } else if (m.type == GUEST_RESET) {
            die("channel %u was reset: %s", channel, m.u.reset.err.msg);
        }
    }
}

void guest_client_forget(struct guest_client *c, uint32_t channel)
{
    struct guest_msg m = {.type = GUEST_EXEC_FORGET, .channel = channel};

    guest_client_send(c, &m);
    do
        m = guest_client_next(c);
    while (m.type != GUEST_CLOSE || m.channel != channel);
}

void guest_result_done(struct guest_result *r)
{
    buf_done(&r->out[0]);
    buf_done(&r->out[1]);
}
