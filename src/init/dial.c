/* dial: connections from holtd into the sandbox, and relays from inside to holtd. */
#include "init/dial.h"

#include "base/fd.h"
#include "base/loop.h"
#include "base/mem.h"
#include "init/conn.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG                                                                                    \
    1024 /* gVisor refuses a connection for which there is no room; Linux lets it wait */
#define STEP (32 * 1024)
/* concurrent: a command must not use up all channels and descriptors */
#define RELAYS_MAX 64
#define LED_MAX 512

struct dial {
    struct channel ch;
    struct watch w;
    struct flow_out out;
    struct flow_in in;
    struct buf kept;       /* from the server, not acknowledged: covered by holtd's window */
    struct buf in_pending; /* to the server */
    bool connected;
    bool relay;           /* from inside: read nothing before holtd's reply */
    uint32_t *counted;    /* of a relay: its count */
    bool in_eof, in_shut; /* holtd has ended its side; we have passed that on */
    bool out_eof, out_eof_sent;
};

static uint32_t relays, led;

static void dial_gone(struct channel *ch)
{
    struct dial *d = CONTAINER_OF(ch, struct dial, ch);

    loop_remove(&d->w);
    if (d->counted)
        --*d->counted;
    buf_done(&d->kept);
    buf_done(&d->in_pending);
    mem_free(d);
}

static void want(struct dial *d)
{
    bool in = d->connected && !d->out_eof && buf_len(&d->kept) < STEP;
    bool out = (!d->connected && !d->relay) || buf_len(&d->in_pending) > 0;

    loop_want(&d->w, (in ? (uint32_t)EPOLLIN : 0) | (out ? (uint32_t)EPOLLOUT : 0) |
                         (in || out ? 0 : (uint32_t)EPOLLET));
}

static bool dial_fill(struct channel *ch)
{
    struct dial *d = CONTAINER_OF(ch, struct dial, ch);
    struct str bytes = buf_str(&d->kept);
    size_t n;

    bytes.n = size_min(bytes.n, flow_room(&d->out));
    if (d->out_eof_sent || (bytes.n == 0 && !(d->out_eof && buf_len(&d->kept) == 0)))
        return false;
    n = conn_data(ch, GUEST_OUT, d->out.sent, bytes, d->out_eof && bytes.n == buf_len(&d->kept));
    flow_sent(&d->out, n);
    buf_take(&d->kept, n);
    d->out_eof_sent = d->out_eof && buf_len(&d->kept) == 0;
    if (d->out_eof_sent && d->in_shut)
        channel_close(ch, NULL);
    else
        want(d);
    return true;
}

/* False: the channel is closed. */
static bool write_pending(struct dial *d)
{
    struct guest_msg ack = {.type = GUEST_ACK, .channel = d->ch.number, .stream = GUEST_IN};
    struct err e;
    ssize_t n = 0;

    if (buf_len(&d->in_pending) > 0)
        n = send(d->w.fd, buf_data(&d->in_pending), buf_len(&d->in_pending), MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        (void)err_set(&e, err_code_from_errno(errno), errno, "write to the server");
        channel_close(&d->ch, &e);
        return false;
    }
    buf_take(&d->in_pending, n > 0 ? (size_t)n : 0);
    if (flow_ack(&d->in, d->in.got - buf_len(&d->in_pending), false, &ack.u.ack))
        (void)conn_send(&ack);
    if (d->in_eof && !d->in_shut && buf_len(&d->in_pending) == 0) {
        (void)shutdown(d->w.fd, SHUT_WR);
        d->in_shut = true;
        if (d->out_eof_sent) {
            channel_close(&d->ch, NULL);
            return false;
        }
    }
    return true;
}

/* False: the channel is closed. */
static bool read_more(struct dial *d)
{
    struct err e;
    ssize_t n;
    char *room;

    if (d->out_eof || buf_len(&d->kept) >= STEP || buf_reserve(&d->kept, STEP, &room) < 0)
        return true;
    n = read(d->w.fd, room, STEP);
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        (void)err_set(&e, err_code_from_errno(errno), errno, "read from the server");
        channel_close(&d->ch, &e);
        return false;
    }
    if (n == 0)
        d->out_eof = true;
    buf_added(&d->kept, n > 0 ? (size_t)n : 0);
    return true;
}

/* False: the channel is closed. */
static bool finish_connect(struct dial *d)
{
    struct guest_msg m = {.type = GUEST_OPENED, .channel = d->ch.number};
    socklen_t size = sizeof(int);
    struct err e;
    int sys = 0;

    if (getsockopt(d->w.fd, SOL_SOCKET, SO_ERROR, &sys, &size) < 0)
        sys = errno;
    if (sys != 0) {
        (void)err_set(&e, err_code_from_errno(sys), sys, "connect to the server");
        channel_close(&d->ch, &e);
        return false;
    }
    d->connected = true;
    (void)conn_send(&m);
    return true;
}

static void on_socket(struct watch *w, uint32_t events)
{
    struct dial *d = CONTAINER_OF(w, struct dial, w);

    if (d->relay && !d->connected) { /* here only if the client inside has disconnected */
        channel_close(&d->ch, NULL);
        return;
    }
    if (!d->connected && !finish_connect(d))
        return;
    if (!write_pending(d))
        return;
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) && !read_more(d))
        return;
    want(d);
}

static void dial_on_msg(struct channel *ch, const struct guest_msg *m)
{
    struct dial *d = CONTAINER_OF(ch, struct dial, ch);
    struct str fresh;
    struct err e;

    if (m->type == GUEST_ACK) {
        if (flow_on_ack(&d->out, &m->u.ack, &e) < 0)
            channel_close(ch, &e);
        return;
    }
    if (m->type == GUEST_OPENED && d->relay) {
        d->connected = true;
        want(d);
        return;
    }
    if (m->type != GUEST_DATA)
        return;
    if (flow_on_data(&d->in, &m->u.data, &fresh, &e) < 0) {
        channel_close(ch, &e);
        return;
    }
    buf_add_str(&d->in_pending, fresh);
    d->in_eof = d->in_eof || (m->flags & GUEST_EOF);
    if (d->connected && write_pending(d))
        want(d);
}

static const struct channel_ops dial_channel = {dial_on_msg, dial_fill, dial_gone};

static int make_address(const struct guest_dial *m, struct sockaddr_storage *to, socklen_t *size,
                        struct err *e)
{
    struct sockaddr_in *v4 = (void *)to;
    struct sockaddr_in6 *v6 = (void *)to;
    struct sockaddr_un *un = (void *)to;
    char text[256];

    (void)snprintf(text, sizeof text, STR_FMT, STR_ARG(m->address));
    *to = (struct sockaddr_storage){0};
    if (m->family == GUEST_UNIX) {
        if (m->address.n >= sizeof un->sun_path)
            return err_set(e, ERR_INVALID, 0, "the socket's path is too long");
        un->sun_family = AF_UNIX;
        memcpy(un->sun_path, m->address.p, m->address.n);
        *size = sizeof *un;
        return 0;
    }
    if (strcmp(text, "localhost") == 0)
        (void)snprintf(text, sizeof text, "127.0.0.1");
    if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(m->port);
        *size = sizeof *v4;
    } else if (inet_pton(AF_INET6, text, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(m->port);
        *size = sizeof *v6;
    } else {
        return err_set(e, ERR_INVALID, 0, "'%s' is not an address", text);
    }
    return 0;
}

static int begin(const struct guest_dial *m, struct err *e)
{
    struct sockaddr_storage to;
    socklen_t size = 0;
    AUTO(fd_close) int fd = -1;

    if (make_address(m, &to, &size, e) < 0)
        return -1;
    fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_set(e, err_code_from_errno(errno), errno, "make a socket");
    if (connect(fd, (struct sockaddr *)&to, size) < 0 && errno != EINPROGRESS)
        return err_set(e, err_code_from_errno(errno), errno, "connect to '%.*s' port %u",
                       STR_ARG(m->address), m->port);
    return TAKE_FD(fd);
}

void dial_open(const struct guest_msg *m)
{
    struct err e = {0};
    int fd = begin(&m->u.dial, &e), r = 0;
    struct guest_msg no = {.type = GUEST_RESET, .channel = m->channel};
    struct dial *d = xzalloc(sizeof *d);

    if (fd >= 0)
        r = loop_try_add(&d->w, fd, on_socket);
    if (r < 0)
        (void)err_set(&e, err_code_from_errno(-r), -r, "watch the connection");
    if (fd < 0 || r < 0) {
        mem_free(d);
        no.u.reset.err = e;
        (void)conn_send(&no);
        return;
    }
    flow_out_init(&d->out, 0, GUEST_WINDOW_UP);
    flow_in_init(&d->in, 0, GUEST_WINDOW_DOWN);
    channel_open(&d->ch, m->channel, &dial_channel);
    want(d);
}

/* ---- relay ---- */

void relay_to(int fd, const struct guest_relay *to)
{
    bool out = to->service == GUEST_EGRESS || to->service == GUEST_DNS;
    uint32_t *count = out ? &led : &relays;
    struct guest_msg m = {.type = GUEST_RELAY, .u.relay = *to};
    struct dial *d;

    if (*count >= (out ? LED_MAX : RELAYS_MAX)) {
        fd_close(fd);
        return;
    }
    d = xzalloc(sizeof *d);
    if (loop_try_add(&d->w, fd, on_socket) == 0)
        m.channel = channel_number();
    if (m.channel == 0) {
        loop_remove(&d->w);
        mem_free(d);
        return;
    }
    d->relay = true;
    d->counted = count;
    ++*count;
    flow_out_init(&d->out, 0, GUEST_WINDOW_UP);
    flow_in_init(&d->in, 0, GUEST_WINDOW_DOWN);
    channel_open(&d->ch, m.channel, &dial_channel);
    want(d);
    (void)conn_send(&m);
}

static void relay_open(int fd, enum guest_service service, uint32_t uid)
{
    const struct guest_relay to = {.service = (uint8_t)service, .uid = uid, .host = STR("")};

    relay_to(fd, &to);
}

/* Closes connections that may not or cannot be served. */
static void on_relay(struct watch *w, uint32_t events)
{
    AUTO(fd_close) int fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct ucred who;
    socklen_t size = sizeof who;

    (void)events;
    if (fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0)
        relay_open(TAKE_FD(fd), GUEST_API, who.uid);
    else if (fd < 0 && (errno == EMFILE || errno == ENFILE))
        conn_spare_accept(w->fd);
}

/* A TCP socket does not identify the client. */
static void accept_tcp(struct watch *w, enum guest_service service)
{
    AUTO(fd_close) int fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd >= 0)
        relay_open(TAKE_FD(fd), service, GUEST_NO_ID);
    else if (fd < 0 && (errno == EMFILE || errno == ENFILE))
        conn_spare_accept(w->fd);
}

static void on_process(struct watch *w, uint32_t events)
{
    (void)events;
    accept_tcp(w, GUEST_PROCESS_API);
}

static void on_hub(struct watch *w, uint32_t events)
{
    (void)events;
    accept_tcp(w, GUEST_API);
}

static int listen_at(int family, const struct sockaddr *at, socklen_t size, struct watch *w,
                     void (*ready)(struct watch *w, uint32_t events))
{
    AUTO(fd_close) int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0 || bind(fd, at, size) < 0 || listen(fd, BACKLOG) < 0)
        return -errno;
    loop_add(w, TAKE_FD(fd), ready);
    loop_want(w, EPOLLIN);
    return 0;
}

int relay_listen(const char *path)
{
    static struct watch listener;
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int r;

    if (strlen(path) >= sizeof at.sun_path)
        return -ENAMETOOLONG;
    memcpy(at.sun_path, path, strlen(path) + 1);
    (void)unlink(path); /* left by an earlier run of this sandbox; no command runs yet */
    r = listen_at(AF_UNIX, (struct sockaddr *)&at, sizeof at, &listener, on_relay);
    /* Any user inside may connect: holtd is told the uid. */
    return r < 0 ? r : chmod(path, 0666) < 0 ? -errno : 0;
}

/* Not on other addresses: in a sandbox with a network, every address is local. */
int process_listen(uint16_t port)
{
    static struct watch listeners[2];
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 v6 = {
        .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int r;

    v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    r = listen_at(AF_INET, (struct sockaddr *)&v4, sizeof v4, &listeners[0], on_process);
    /* A kernel without IPv6 has only the IPv4 address. */
    (void)listen_at(AF_INET6, (struct sockaddr *)&v6, sizeof v6, &listeners[1], on_process);
    return r;
}

int hub_listen(const char *at)
{
    static struct watch listener;
    struct sockaddr_in to = {.sin_family = AF_INET};
    struct str port, host = str_cut(str_of(at), ':', &port);
    char text[INET_ADDRSTRLEN];
    uint64_t n;

    if (host.n >= sizeof text || str_parse_u64(port, &n) < 0 || n > UINT16_MAX)
        return -EINVAL;
    memcpy(text, host.p, host.n);
    text[host.n] = '\0';
    to.sin_port = htons((uint16_t)n);
    if (inet_pton(AF_INET, text, &to.sin_addr) != 1)
        return -EINVAL;
    return listen_at(AF_INET, (struct sockaddr *)&to, sizeof to, &listener, on_hub);
}
