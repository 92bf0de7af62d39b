/* guest_join: copies bytes between a connection from inside a guest and a socket. */
#include "link/guest_join.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"

#include <errno.h>
#include <sys/socket.h>

#define PIECE (32 * 1024)

struct join {
    struct guest_pipe *p; /* NULL: ended */
    uv_poll_t poll;
    int fd;
    struct buf up, down; /* for the socket; for the guest */
    size_t owed;         /* bytes from inside that the socket has not taken */
    bool up_eof, up_shut, down_eof, down_told;
};

static void on_closed(uv_handle_t *h)
{
    struct join *j = h->data;

    buf_done(&j->up);
    buf_done(&j->down);
    mem_free(j);
}

/* The last call. */
static void end(struct join *j)
{
    struct guest_pipe *p = TAKE(j->p);

    if (p)
        guest_pipe_cancel(p);
    uv_close((uv_handle_t *)&j->poll, on_closed);
    fd_close(TAKE_FD(j->fd));
}

static void on_ready(uv_poll_t *h, int status, int events);

static void want(struct join *j)
{
    int events = (!j->down_eof && buf_len(&j->down) == 0 ? UV_READABLE : 0) |
                 (buf_len(&j->up) > 0 ? UV_WRITABLE : 0);

    if (events)
        (void)uv_poll_start(&j->poll, events, on_ready);
    else
        (void)uv_poll_stop(&j->poll);
}

/* False: the socket is gone. */
static bool push_up(struct join *j)
{
    while (buf_len(&j->up) > 0) {
        ssize_t n = send(j->fd, buf_data(&j->up), buf_len(&j->up), MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN;
        buf_take(&j->up, (size_t)n);
    }
    guest_pipe_consume(j->p, j->owed);
    j->owed = 0;
    if (j->up_eof && !j->up_shut) {
        j->up_shut = true;
        (void)shutdown(j->fd, SHUT_WR);
    }
    return true;
}

static void push_down(struct join *j)
{
    if (buf_len(&j->down) > 0)
        buf_take(&j->down, guest_pipe_write(j->p, buf_str(&j->down)));
    if (j->down_eof && buf_len(&j->down) == 0 && !j->down_told) {
        j->down_told = true;
        guest_pipe_eof(j->p);
    }
}

/* False: the socket is gone. */
static bool read_down(struct join *j)
{
    char *room;
    ssize_t n;

    if (j->down_eof || buf_len(&j->down) > 0 || buf_reserve(&j->down, PIECE, &room) < 0)
        return true;
    n = recv(j->fd, room, PIECE, 0);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    j->down_eof = n == 0;
    buf_added(&j->down, (size_t)n);
    push_down(j);
    return true;
}

static void on_ready(uv_poll_t *h, int status, int events)
{
    struct join *j = h->data;

    if (status < 0 || ((events & UV_WRITABLE) && !push_up(j)) ||
        ((events & UV_READABLE) && !read_down(j)))
        end(j);
    else
        want(j);
}

/* ---- from the guest ---- */

static void on_data(struct guest_pipe *p, struct str bytes)
{
    struct join *j = guest_pipe_arg(p);

    j->owed += bytes.n;
    buf_add_str(&j->up, bytes);
    if (push_up(j))
        want(j);
    else
        end(j);
}

static void on_eof(struct guest_pipe *p)
{
    struct join *j = guest_pipe_arg(p);

    j->up_eof = true;
    if (!push_up(j))
        end(j);
}

static void on_room(struct guest_pipe *p)
{
    struct join *j = guest_pipe_arg(p);

    push_down(j);
    want(j);
}

static void on_done(struct guest_pipe *p, const struct guest_file_done *info, const struct err *e)
{
    struct join *j = guest_pipe_arg(p);

    (void)info;
    (void)e;
    j->p = NULL;
    end(j);
}

int guest_join(uv_loop_t *loop, struct guest_pipe *p, int fd, struct err *e)
{
    static const struct guest_pipe_ops ops = {
        .data = on_data, .eof = on_eof, .room = on_room, .done = on_done};
    struct join *j = xzalloc(sizeof *j);
    int r = uv_poll_init_socket(loop, &j->poll, fd);

    if (r < 0) {
        fd_close(fd);
        mem_free(j);
        return err_set(e, ERR_INTERNAL, -r, "watch a connection from inside");
    }
    j->p = p;
    j->fd = fd;
    j->poll.data = j;
    guest_pipe_serve(p, &ops, j);
    want(j);
    return 0;
}
