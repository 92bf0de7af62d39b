/* channel: copies bytes between libvirt streams and the sockets that holtd holds. */

/* Everything runs on the thread of events, except the opening. */
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "virt/virt.h"

#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROOM (256 * 1024) /* bytes that wait in each direction */
#define PIECE (64 * 1024)

struct channel {
    virStreamPtr st;
    int fd, watch;       /* watch: of fd, for libvirt's events */
    struct buf up, down; /* from the guest, to the guest */
    bool closed;
};

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

static void channel_free(void *arg)
{
    struct channel *c = arg;

    (void)virStreamFree(c->st);
    fd_close(c->fd);
    buf_done(&c->up);
    buf_done(&c->down);
    mem_free(c);
}

/* The socket's watch goes last: its end frees the channel, after all callbacks. */
static void channel_close(struct channel *c)
{
    if (c->closed)
        return;
    c->closed = true;
    (void)virStreamEventRemoveCallback(c->st);
    (void)virStreamAbort(c->st);
    (void)shutdown(c->fd, SHUT_RDWR);
    (void)virEventRemoveHandle(c->watch);
}

static void want(struct channel *c)
{
    int stream = VIR_STREAM_EVENT_ERROR | VIR_STREAM_EVENT_HANGUP;
    int sock = VIR_EVENT_HANDLE_ERROR | VIR_EVENT_HANDLE_HANGUP;

    if (c->closed)
        return;
    if (buf_len(&c->up) < ROOM)
        stream |= VIR_STREAM_EVENT_READABLE;
    if (buf_len(&c->down) > 0)
        stream |= VIR_STREAM_EVENT_WRITABLE;
    if (buf_len(&c->down) < ROOM)
        sock |= VIR_EVENT_HANDLE_READABLE;
    if (buf_len(&c->up) > 0)
        sock |= VIR_EVENT_HANDLE_WRITABLE;
    (void)virStreamEventUpdateCallback(c->st, stream);
    virEventUpdateHandle(c->watch, sock);
}

static void to_host(struct channel *c)
{
    while (buf_len(&c->up) > 0) {
        ssize_t n = send(c->fd, buf_data(&c->up), buf_len(&c->up), MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n < 0) {
            channel_close(c);
            return;
        }
        buf_take(&c->up, (size_t)n);
    }
}

static void to_guest(struct channel *c)
{
    while (buf_len(&c->down) > 0) {
        int n = virStreamSend(c->st, buf_data(&c->down), size_min(buf_len(&c->down), PIECE));

        if (n == -2)
            return;
        if (n < 0) {
            channel_close(c);
            return;
        }
        buf_take(&c->down, (size_t)n);
    }
}

static void from_guest(struct channel *c)
{
    char *room;
    int n = 1;

    while (n > 0 && buf_len(&c->up) < ROOM) {
        if (buf_reserve(&c->up, PIECE, &room) < 0)
            return;
        n = virStreamRecv(c->st, room, PIECE);
        if (n > 0)
            buf_added(&c->up, (size_t)n);
    }
    if (n == 0 || n == -1)
        channel_close(c);
}

static void from_host(struct channel *c)
{
    char *room;
    ssize_t n;

    if (buf_len(&c->down) >= ROOM || buf_reserve(&c->down, PIECE, &room) < 0)
        return;
    n = recv(c->fd, room, PIECE, MSG_DONTWAIT);
    if (n > 0)
        buf_added(&c->down, (size_t)n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        channel_close(c);
}

static void on_stream(virStreamPtr st, int events, void *arg)
{
    struct channel *c = arg;

    (void)st;
    (void)pthread_mutex_lock(&opening); /* it may come before the opening is over */
    (void)pthread_mutex_unlock(&opening);
    if (!c->closed && (events & VIR_STREAM_EVENT_READABLE)) {
        from_guest(c);
        if (!c->closed)
            to_host(c);
    }
    if (!c->closed && (events & VIR_STREAM_EVENT_WRITABLE))
        to_guest(c);
    if (!c->closed && (events & (VIR_STREAM_EVENT_ERROR | VIR_STREAM_EVENT_HANGUP)))
        channel_close(c);
    want(c);
}

static void on_socket(int watch, int fd, int events, void *arg)
{
    struct channel *c = arg;

    (void)watch;
    (void)fd;
    (void)pthread_mutex_lock(&opening);
    (void)pthread_mutex_unlock(&opening);
    if (!c->closed && (events & VIR_EVENT_HANDLE_WRITABLE))
        to_host(c);
    if (!c->closed && (events & (VIR_EVENT_HANDLE_READABLE | VIR_EVENT_HANDLE_HANGUP))) {
        from_host(c);
        if (!c->closed)
            to_guest(c);
    }
    if (!c->closed && (events & VIR_EVENT_HANDLE_ERROR))
        channel_close(c);
    want(c);
}

static int watch_both(struct channel *c, struct err *e)
{
    c->watch = virEventAddHandle(c->fd, 0, on_socket, c, channel_free);
    if (c->watch < 0) {
        channel_free(c);
        return host_error(e, "watch a guest channel");
    }
    if (virStreamEventAddCallback(c->st, 0, on_stream, c, NULL) < 0) {
        (void)host_error(e, "watch a guest channel");
        channel_close(c);
        return -1;
    }
    want(c);
    return 0;
}

int channel_open(virStreamPtr st, int *ret_fd, struct err *e)
{
    struct channel *c = xzalloc(sizeof *c);
    int pair[2], r;

    c->st = st;
    c->fd = -1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0) {
        (void)err_set(e, ERR_LIMIT, errno, "make a socket for a guest channel");
        r = err_hint(e, "raise the limit of holt-virt's open files (ulimit -n)");
        channel_free(c);
        return r;
    }
    c->fd = pair[0];
    (void)pthread_mutex_lock(&opening);
    r = watch_both(c, e);
    (void)pthread_mutex_unlock(&opening);
    if (r < 0)
        fd_close(pair[1]);
    else
        *ret_fd = pair[1];
    return r;
}
