/* guest_io: the guest's descriptor on the loop. */

/* Writes are tried at once; errors found outside the loop's calls (a failed write, a guest that
 * does not read) are reported on its next turn. */
#include "base/fd.h"
#include "base/mem.h"
#include "link/guest_internal.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#define HELLO_MS 5000
#define PING_MS 15000
#define READS_PER_TURN 16 /* before others get their turn */

struct guest_io {
    struct guest *g;
    int fd;
    int events; /* asked of the poll handle */
    bool broken;
    bool watched; /* poll was initialised */
    uv_poll_t poll;
    uv_timer_t timer;
};

static void on_poll(uv_poll_t *h, int status, int events);

/* ---- output ---- */

static void flush(struct guest *g)
{
    struct guest_io *io = g->io;

    while (buf_len(&g->out) > 0 && !io->broken) {
        ssize_t n = send(io->fd, buf_data(&g->out), buf_len(&g->out), MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            break;
        if (n < 0) {
            (void)err_set(&g->doom, ERR_UNAVAILABLE, errno, "write to the guest");
            io->broken = true;
            break;
        }
        buf_take(&g->out, (size_t)n);
    }
    if (buf_len(&g->out) == 0)
        buf_shrink(&g->out, 4096);
}

static void want(struct guest *g)
{
    struct guest_io *io = g->io;
    bool write = buf_len(&g->out) > 0 || !list_is_empty(&g->waiting) || g->doom.code != ERR_NONE;
    int events = UV_READABLE | (write ? UV_WRITABLE : 0);

    if (g->state == GUEST_OVER || events == io->events)
        return;
    io->events = events;
    if (uv_poll_start(&io->poll, events, on_poll) < 0)
        io->events = 0; /* the timer finds it silent */
}

static void kick_io(struct guest *g)
{
    flush(g);
    want(g);
}

/* ---- input ---- */

static void lose(struct guest *g, int sys, const char *what)
{
    struct err e = {0};

    (void)err_set(&e, ERR_UNAVAILABLE, sys, "%s", what);
    guest_fail(g, &e);
}

static void read_some(struct guest *g)
{
    for (int i = 0; i < READS_PER_TURN && g->state != GUEST_OVER; i++) {
        char *to;
        size_t room = guest_reader_room(&g->in, &to);
        ssize_t n = read(g->io->fd, to, room);

        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
            break;
        if (n < 0)
            lose(g, errno, "read from the guest");
        else if (n == 0)
            lose(g, 0, "the guest's init closed the connection");
        else if (!guest_added(g, (size_t)n) || (size_t)n < room)
            break;
    }
    if (g->state != GUEST_OVER)
        guest_reader_shrink(&g->in); /* most guests are idle most of the time */
}

static void settle(struct guest *g)
{
    if (g->state != GUEST_OVER && g->doom.code != ERR_NONE)
        guest_fail(g, &g->doom);
    if (g->state == GUEST_OVER)
        return;
    flush(g);
    want(g);
}

static void on_poll(uv_poll_t *h, int status, int events)
{
    AUTO(guest_unref) struct guest *g = guest_ref(((struct guest_io *)h->data)->g);

    if (status < 0) {
        lose(g, -status, "wait for the guest");
        return;
    }
    if (events & UV_READABLE)
        read_some(g);
    if (g->state == GUEST_OVER)
        return;
    flush(g);
    g->corked = true;
    guest_took(g);
    g->corked = false;
    settle(g);
}

static void on_timer(uv_timer_t *t)
{
    AUTO(guest_unref) struct guest *g = guest_ref(((struct guest_io *)t->data)->g);

    if (g->doom.code == ERR_NONE)
        guest_tick(g);
    settle(g);
}

/* ---- life ---- */

static void timer_closed(uv_handle_t *h)
{
    struct guest_io *io = h->data;

    (void)guest_unref(io->g);
    mem_free(io);
}

static void poll_closed(uv_handle_t *h)
{
    struct guest_io *io = h->data;

    uv_close((uv_handle_t *)&io->timer, timer_closed);
}

static void io_close(struct guest_io *io)
{
    (void)uv_timer_stop(&io->timer);
    if (io->watched)
        uv_close((uv_handle_t *)&io->poll, poll_closed);
    else
        uv_close((uv_handle_t *)&io->timer, timer_closed);
    fd_close(io->fd); /* after uv_close: libuv has released it */
}

struct guest *guest_open(uv_loop_t *loop, int fd, const struct guest_ops *ops, void *arg)
{
    struct guest *g = guest_make(ops, arg);
    struct guest_io *io = xzalloc(sizeof *io);
    int r = uv_poll_init(loop, &io->poll, fd);

    io->g = guest_ref(g);
    io->fd = fd;
    g->io = io;
    (void)uv_timer_init(loop, &io->timer);
    io->poll.data = io->timer.data = io;
    if (r < 0) { /* not a socket: reported on the next turn */
        (void)err_set(&g->doom, ERR_INTERNAL, -r, "watch the guest's connection");
        (void)uv_timer_start(&io->timer, on_timer, 0, 0);
        return g;
    }
    io->watched = true;
    (void)uv_timer_start(&io->timer, on_timer, HELLO_MS, PING_MS);
    g->kick = kick_io;
    kick_io(g);
    return g;
}

void guest_close(struct guest *g)
{
    struct err e = {0};

    if (!g || g->closed)
        return;
    g->closed = true;
    (void)err_set(&e, ERR_CANCELLED, 0, "the connection to the guest was closed");
    if (g->state == GUEST_READY && g->io)
        flush(g); /* pending output, as far as it fits */
    guest_fail(g, &e);
    g->kick = NULL;
    if (g->io)
        io_close(g->io);
    (void)guest_unref(g);
}
