/* conn: the connection to holtd: frames, channels, reconnects. */
#include "init/conn.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/loop.h"
#include "base/mem.h"
#include "base/rnd.h"
#include "init/builder.h"
#include "init/dial.h"
#include "init/exec.h"
#include "init/fence.h"
#include "init/file.h"
#include "init/stats.h"
#include "wire/init_order.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define OUT_LOW (64 * 1024)   /* below: queue more data frames */
#define DIRECT (8 * 1024)     /* content of a frame from which on it is sent without a copy */
#define OUT_HIGH (256 * 1024) /* above: stop reading from holtd */
#define HELLO_MS 5000
#define PORT_RETRY_MS 50
#define QUIET_MS 20 /* idle time before memory is given back (that costs page faults) */
#define SMALL 4096  /* a buffer of at most this size is kept */
#define LISTEN_RETRY_MS 20

struct conn {
    struct watch w;
    struct guest_reader in;
    struct buf out;
    int64_t hello_by_ms;
    int64_t retry_ms; /* of a port: when to try again; 0: now */
    bool greeted;
    bool blocked; /* the peer has to read before it takes more */
};

static struct watch listener = {.fd = -1};
static void (*receive_order)(char what); /* where connections are handed in */
static int64_t listen_ms;                /* when to listen again; 0: listening */
static int reserve = -1;                 /* a descriptor held back for the next connection */
static struct conn *current;             /* after its hello, or NULL */
static struct conn *pending;             /* accepted, waiting for its hello */
static struct list channels = {&channels, &channels};
static uint32_t channel_count;
static uint32_t last_opened; /* by holtd, on the current connection */
static uint32_t last_number; /* the last channel number that init used on it; even */
static uint8_t epoch[16];
static int64_t born_ms;

static void on_io(struct watch *w, uint32_t events);

static void conn_free(struct conn *c)
{
    loop_remove(&c->w);
    guest_reader_done(&c->in);
    buf_done(&c->out);
    mem_free(c);
}

static void channel_gone(struct channel *ch)
{
    list_unlink(&ch->node);
    channel_count--;
    ch->number = 0;
    ch->ops->on_gone(ch);
}

static void close_channels(void)
{
    while (!list_is_empty(&channels))
        channel_gone(LIST_ENTRY(channels.next, struct channel, node));
}

/* A port stays open and waits for the next mark.  Without a peer it reads end of file and polls as
 * hung up without pause (virtio_console), so leave it alone for a while. */
static void port_restart(struct conn *c)
{
    guest_reader_done(&c->in);
    guest_reader_init(&c->in, GUEST_HOST, true);
    buf_done(&c->out);
    c->greeted = c->blocked = false;
    c->retry_ms = clock_mono_ms() + PORT_RETRY_MS;
    loop_want(&c->w, EPOLLET);
    pending = c;
}

static void drop(struct conn *c)
{
    if (c == pending)
        pending = NULL;
    if (c == current) {
        current = NULL;
        close_channels();
    }
    if (c->in.scan)
        port_restart(c);
    else
        conn_free(c);
}

/* ---- output ---- */

static void want_events(struct conn *c)
{
    size_t queued = buf_len(&c->out);
    uint32_t in = queued < OUT_HIGH ? EPOLLIN : 0, out = queued > 0 || c->blocked ? EPOLLOUT : 0;

    loop_want(&c->w, in | out);
}

static void queue(struct conn *c, const struct guest_msg *m)
{
    uint8_t bytes[8192];
    struct wire_out o = {.p = bytes, .size = sizeof bytes};
    struct err e;
    char *room;

    if (m->type != GUEST_HELLO_INIT) {
        if (guest_encode(m, GUEST_INIT, &o, &e) == 0)
            buf_add(&c->out, bytes, o.n);
        return;
    }
    o.size = GUEST_HEAD + GUEST_PAYLOAD_MAX; /* it lists all commands */
    if (buf_reserve(&c->out, o.size, &room) < 0)
        return;
    o.p = (uint8_t *)room;
    if (guest_encode(m, GUEST_INIT, &o, &e) == 0)
        buf_added(&c->out, o.n);
}

bool conn_send(const struct guest_msg *m)
{
    if (!current)
        return false;
    queue(current, m);
    return true;
}

/* Sends the queue and then v, as far as the peer takes it; the number of bytes taken, or -1. */
static ssize_t send_parts(struct conn *c, struct iovec *v, size_t n)
{
    struct msghdr h = {.msg_iov = v, .msg_iovlen = n};
    ssize_t sent = sendmsg(c->w.fd, &h, MSG_NOSIGNAL | MSG_DONTWAIT);

    if (sent < 0 && errno == ENOTSOCK)
        sent = writev(c->w.fd, v, (int)n);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) {
        c->blocked = errno == EAGAIN;
        return 0;
    }
    return sent;
}

/* Queues what is left of v after its first n bytes. */
static void queue_rest(struct conn *c, const struct iovec *v, size_t parts, size_t n)
{
    for (size_t i = 0; i < parts; i++) {
        size_t skip = size_min(n, v[i].iov_len);

        buf_add(&c->out, (const char *)v[i].iov_base + skip, v[i].iov_len - skip);
        n -= skip;
    }
}

/* A large frame goes out from where it lies.  An error is found again by flush. */
static void send_frame(struct conn *c, struct iovec v[static 3])
{
    size_t queued = buf_len(&c->out);
    struct iovec all[4] = {{buf_data(&c->out), queued}, v[0], v[1], v[2]};
    ssize_t n = v[1].iov_len < DIRECT || c->blocked ? 0 : send_parts(c, all, ARRAY_LEN(all));
    size_t sent = n > 0 ? (size_t)n : 0;

    buf_take(&c->out, size_min(sent, queued));
    queue_rest(c, v, 3, sent > queued ? sent - queued : 0);
}

size_t conn_data(struct channel *ch, enum guest_stream stream, uint64_t offset, struct str bytes,
                 bool eof)
{
    struct guest_msg m = {.type = GUEST_DATA, .channel = ch->number, .stream = stream};
    uint8_t head[GUEST_DATA_HEAD];
    size_t n;

    m.u.data = (struct guest_data){offset, bytes};
    n = guest_data_head(head, &m, eof);
    send_frame(current,
               (struct iovec[]){{head, sizeof head}, {(void *)(uintptr_t)bytes.p, n}, {"", 1}});
    return n;
}

/* One frame of each channel in turn, so that no stream starves another. */
static void fill(struct conn *c)
{
    bool some = true;

    while (some && !c->blocked && buf_len(&c->out) < OUT_LOW) {
        some = false;
        LIST_EACH (&channels, node) {
            struct channel *ch = LIST_ENTRY(node, struct channel, node);

            if (!c->blocked && buf_len(&c->out) < OUT_LOW && ch->ops->fill && ch->ops->fill(ch))
                some = true;
        }
    }
}

/* False: the connection is closed. */
static bool flush(struct conn *c)
{
    for (;;) {
        ssize_t n;

        if (c == current)
            fill(c);
        if (buf_len(&c->out) == 0)
            break;
        n = send_parts(c, &(struct iovec){buf_data(&c->out), buf_len(&c->out)}, 1);
        if (n < 0) {
            drop(c);
            return false;
        }
        if (n == 0)
            break;
        buf_take(&c->out, (size_t)n);
    }
    want_events(c);
    return true;
}

void conn_flush(void)
{
    if (current)
        (void)flush(current);
}

/* ---- input ---- */

static void hold_reserve(void)
{
    if (reserve < 0)
        reserve = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
}

static void greet(struct conn *c, const struct guest_hello_host *h)
{
    static struct guest_exec_row rows[GUEST_EXECS_MAX];
    struct guest_msg m = {.type = GUEST_HELLO_INIT};
    struct guest_hello_init *hi = &m.u.hello_init;

    if (h->version_min <= GUEST_VERSION && h->version_max >= GUEST_VERSION)
        hi->version = GUEST_VERSION;
    memcpy(hi->nonce, h->nonce, sizeof hi->nonce);
    memcpy(hi->epoch, epoch, sizeof hi->epoch);
    hi->uptime_ms = (uint64_t)(clock_mono_ms() - born_ms);
    if (current && current != c)
        drop(current);
    close_channels(); /* the same port: a new hello after a mark */
    hold_reserve();   /* before any new descriptor is opened */
    if (c == pending)
        pending = NULL;
    current = c;
    c->greeted = true;
    last_opened = last_number = 0;
    hi->execs = (struct wire_rows){.count = exec_rows(rows), .items = rows};
    buf_add(&c->out, guest_mark, GUEST_MARK);
    queue(c, &m);
}

static struct channel *find_channel(uint32_t number)
{
    LIST_EACH (&channels, node) {
        struct channel *ch = LIST_ENTRY(node, struct channel, node);

        if (ch->number == number)
            return ch;
    }
    return NULL;
}

static void send_reset(uint32_t number, const struct err *e)
{
    struct guest_msg m = {.type = GUEST_RESET, .channel = number};

    m.u.reset.err = *e;
    (void)conn_send(&m);
}

static bool open_channel(const struct guest_msg *m, struct err *e)
{
    if (m->channel <= last_opened)
        return err_set(e, ERR_INVALID, 0, "channel %u was used before", m->channel) == 0;
    last_opened = m->channel;
    if (channel_count >= GUEST_CHANNELS_MAX) {
        (void)err_set(e, ERR_LIMIT, 0, "%d channels are open", GUEST_CHANNELS_MAX);
        (void)err_limit_fixed(e, GUEST_CHANNELS_MAX, "wait for one to end");
        send_reset(m->channel, e);
    } else if (m->type == GUEST_EXEC_START) {
        exec_start(m);
    } else if (m->type == GUEST_EXEC_ATTACH) {
        exec_attach(m);
    } else if (m->type == GUEST_FILE_CALL) {
        file_call(m);
    } else {
        dial_open(m);
    }
    return true;
}

static bool on_channel_msg(const struct guest_msg *m, struct err *e)
{
    struct channel *ch = find_channel(m->channel);

    if (!ch && m->channel > (m->channel % 2 ? last_opened : last_number))
        return err_set(e, ERR_INVALID, 0, "channel %u was never opened", m->channel) == 0;
    if (!ch)
        return true; /* it crossed our close */
    if (m->type == GUEST_CLOSE || m->type == GUEST_RESET)
        channel_gone(ch);
    else
        ch->ops->on_msg(ch, m);
    return true;
}

/* False: a protocol violation, described by *e. */
static bool dispatch(struct conn *c, const struct guest_msg *m, struct err *e)
{
    struct guest_msg reply = {.type = GUEST_PONG};

    if (m->type == GUEST_HELLO_HOST && !c->greeted) {
        greet(c, &m->u.hello_host);
        return true;
    }
    if (m->type == GUEST_HELLO_HOST || !c->greeted)
        return err_set(e, ERR_INVALID, 0, "hello is the first message, and the only one") == 0;
    builder_await(); /* only the hello works without the root */
    if (guest_types[m->type].opens)
        return open_channel(m, e);
    if (m->channel != 0)
        return on_channel_msg(m, e);
    if (m->type == GUEST_PING) {
        reply.u.ping = m->u.ping;
        (void)conn_send(&reply);
    } else if (m->type == GUEST_STATS_GET) {
        reply.type = GUEST_STATS;
        stats_fill(&reply.u.stats);
        reply.u.stats.uptime_ms = (uint64_t)(clock_mono_ms() - born_ms);
        (void)conn_send(&reply);
    } else if (m->type == GUEST_RULES) {
        rules_set(&m->u.rules);
        reply.type = GUEST_RULED;
        reply.u.ruled.landlock = (uint32_t)fence_version();
        (void)conn_send(&reply);
    }
    return true;
}

/* False: the connection is closed. */
static bool take_frames(struct conn *c)
{
    struct guest_frame f;
    struct guest_msg m;
    struct err e = {0};
    int r;

    while ((r = guest_reader_next(&c->in, &f, &e)) > GUEST_READ_MORE) {
        if (r == GUEST_READ_MARK) {
            c->greeted = false;
            buf_clear(&c->out);
            continue;
        }
        if (guest_decode(&f, GUEST_HOST, &m, &e) < 0 || !dispatch(c, &m, &e)) {
            r = -1;
            break;
        }
        if (c != current && c != pending)
            return false; /* a callback closed it */
    }
    if (r < 0) {
        drop(c);
        return false;
    }
    return true;
}

static void on_io(struct watch *w, uint32_t events)
{
    struct conn *c = CONTAINER_OF(w, struct conn, w);
    char *room;
    ssize_t n;

    if (c->retry_ms != 0)
        return; /* conn_tick tries again */
    if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
        c->blocked = false;
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
        size_t size = guest_reader_room(&c->in, &room);

        n = read(w->fd, room, size);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
            drop(c);
            return;
        }
        if (n > 0) {
            guest_reader_added(&c->in, (size_t)n);
            if (!take_frames(c))
                return;
        }
    }
    (void)flush(c);
}

void conn_spare_accept(int fd)
{
    fd_close(reserve);
    reserve = -1;
    fd_close(accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
    hold_reserve();
}

/* Without a descriptor for accept the socket stays readable: try again later instead of
 * spinning. */
static void listen_pause(void)
{
    loop_want(&listener, EPOLLET);
    listen_ms = clock_mono_ms() + LISTEN_RETRY_MS;
}

/* When all descriptors are in use (commands, dials), the reserved one accepts the next holtd; that
 * ends the channels of the last one, which frees descriptors. */
static void on_accept(struct watch *w, uint32_t events)
{
    int fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    (void)events;
    if (fd < 0 && (errno == EMFILE || errno == ENFILE) && reserve >= 0) {
        fd_close(reserve);
        reserve = -1;
        fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    }
    if (fd >= 0)
        conn_serve(fd, false);
    else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
        listen_pause();
    hold_reserve();
}

/* Its end is the keeper's, and with it everything ends. */
static void on_receive(struct watch *w, uint32_t events)
{
    char what = 0;
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec iov = {&what, 1};
    struct msghdr h = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof control.bytes};
    ssize_t n = recvmsg(w->fd, &h, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    int fd;

    (void)events;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0)
        _exit(1);
    if (what != INIT_HAND_CONNECTION) {
        receive_order(what);
    } else if (CMSG_FIRSTHDR(&h) && CMSG_FIRSTHDR(&h)->cmsg_len == CMSG_LEN(sizeof fd)) {
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&h)), sizeof fd);
        (void)fcntl(fd, F_SETFL, O_NONBLOCK);
        conn_serve(fd, false);
    }
}

static void once(void)
{
    if (born_ms != 0)
        return;
    born_ms = clock_mono_ms();
    rnd_bytes(epoch, sizeof epoch);
}

void conn_listen(int fd)
{
    once();
    loop_add(&listener, fd, on_accept);
    loop_want(&listener, EPOLLIN);
    hold_reserve();
}

void conn_receive(int fd, void (*on_order)(char what))
{
    once();
    receive_order = on_order;
    loop_add(&listener, fd, on_receive);
    loop_want(&listener, EPOLLIN);
}

void conn_serve(int fd, bool scan)
{
    struct conn *c = xzalloc(sizeof *c);

    once();
    if (pending)
        drop(pending);
    pending = c;
    c->hello_by_ms = clock_mono_ms() + HELLO_MS;
    guest_reader_init(&c->in, GUEST_HOST, scan);
    if (loop_try_add(&c->w, fd, on_io) < 0) {
        pending = NULL;
        conn_free(c);
        return;
    }
    want_events(c);
}

int conn_timeout_ms(void)
{
    int64_t due = !pending ? 0 : pending->in.scan ? pending->retry_ms : pending->hello_by_ms;

    if (listen_ms != 0)
        due = due == 0 ? listen_ms : i64_min(due, listen_ms);
    if (due != 0)
        return (int)i64_max(0, due - clock_mono_ms());
    return current && buf_len(&current->out) == 0 && current->out.size > SMALL ? QUIET_MS : -1;
}

void conn_tick(void)
{
    if (loop_was_idle() && current)
        buf_shrink(&current->out, SMALL);
    if (listen_ms != 0 && clock_mono_ms() >= listen_ms) {
        listen_ms = 0;
        loop_want(&listener, EPOLLIN);
    }
    if (!pending)
        return;
    if (!pending->in.scan && clock_mono_ms() >= pending->hello_by_ms)
        drop(pending);
    else if (pending->retry_ms != 0 && clock_mono_ms() >= pending->retry_ms) {
        pending->retry_ms = 0;
        want_events(pending);
    }
}

/* ---- channels ---- */

void channel_open(struct channel *c, uint32_t number, const struct channel_ops *ops)
{
    *c = (struct channel){.ops = ops, .number = number};
    list_push(&channels, &c->node);
    channel_count++;
}

uint32_t channel_number(void)
{
    if (!current || channel_count >= GUEST_CHANNELS_MAX || last_number >= INT32_MAX - 2)
        return 0;
    return last_number += 2;
}

void channel_end(struct channel *c)
{
    if (c->number != 0)
        channel_gone(c);
}

void channel_close(struct channel *c, const struct err *e)
{
    struct guest_msg m = {.type = GUEST_CLOSE, .channel = c->number};

    if (c->number == 0)
        return;
    if (e)
        send_reset(c->number, e);
    else
        (void)conn_send(&m);
    channel_gone(c);
}
