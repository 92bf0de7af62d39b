/* relay: connects clients inside sandboxes to the API server. */
#include "api/relay.h"

#include "base/fd.h"
#include "base/mem.h"
#include "link/guest.h"

#include <errno.h>
#include <sys/socket.h>

#define ROOM (64 * 1024)

struct relay { /* on the heap: freed when both ends are closed */
    uv_pipe_t pipe;
    struct guest_pipe *g; /* NULL: ended */
    struct buf held;      /* from the server, not yet taken by the guest */
    uv_shutdown_t shutdown;
    bool pipe_closing, pipe_gone;
    bool server_eof; /* after `held` */
};

struct out { /* bytes being written to the server */
    uv_write_t req;
    struct relay *r;
    size_t n;
    char bytes[];
};

static void free_when_done(struct relay *r)
{
    if (r->g || !r->pipe_gone)
        return;
    buf_done(&r->held);
    mem_free(r);
}

static void on_pipe_closed(uv_handle_t *h)
{
    struct relay *r = h->data;

    r->pipe_gone = true;
    free_when_done(r);
}

static void close_pipe(struct relay *r)
{
    if (r->pipe_closing)
        return;
    r->pipe_closing = true;
    uv_close((uv_handle_t *)&r->pipe, on_pipe_closed);
}

/* --- from the server --- */

static void on_alloc(uv_handle_t *h, size_t size, uv_buf_t *to)
{
    static char room[ROOM]; /* input is forwarded or copied before the next read */

    (void)h, (void)size;
    *to = uv_buf_init(room, sizeof room);
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *from);

/* The server has closed: passes that on; the client's own end closes the channel. */
static void push(struct relay *r)
{
    if (!r->g)
        return;
    if (buf_len(&r->held) > 0)
        buf_take(&r->held, guest_pipe_write(r->g, buf_str(&r->held)));
    if (buf_len(&r->held) > 0)
        return;
    if (r->server_eof) {
        guest_pipe_eof(r->g);
        close_pipe(r);
    } else if (!r->pipe_closing) {
        (void)uv_read_start((uv_stream_t *)&r->pipe, on_alloc, on_read);
    }
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *from)
{
    struct relay *r = s->data;

    if (n == 0)
        return;
    if (n > 0)
        buf_add(&r->held, from->base, (size_t)n);
    else
        r->server_eof = true;
    (void)uv_read_stop(s);
    push(r);
}

/* --- from inside --- */

static void on_written(uv_write_t *req, int status)
{
    struct out *o = req->data;
    struct relay *r = o->r;

    if (r->g)
        guest_pipe_consume(r->g, o->n);
    mem_free(o);
    /* the server reads no more; its output is still forwarded */
    if (status < 0 && !r->pipe_closing) {
        r->server_eof = true;
        push(r);
    }
}

static void on_data(struct guest_pipe *g, struct str bytes)
{
    struct relay *r = guest_pipe_arg(g);
    struct out *o;
    uv_buf_t b;

    if (r->pipe_closing) {
        guest_pipe_consume(g, bytes.n);
        return;
    }
    o = xmalloc(sizeof *o + bytes.n);
    *o = (struct out){.r = r, .n = bytes.n};
    o->req.data = o;
    memcpy(o->bytes, bytes.p, bytes.n);
    b = uv_buf_init(o->bytes, (unsigned)bytes.n);
    if (uv_write(&o->req, (uv_stream_t *)&r->pipe, &b, 1, on_written) < 0)
        on_written(&o->req, UV_EPIPE);
}

static void on_shut(uv_shutdown_t *req, int status)
{
    (void)req, (void)status;
}

static void on_eof(struct guest_pipe *g)
{
    struct relay *r = guest_pipe_arg(g);

    if (!r->pipe_closing)
        (void)uv_shutdown(&r->shutdown, (uv_stream_t *)&r->pipe, on_shut);
}

static void on_room(struct guest_pipe *g)
{
    push(guest_pipe_arg(g));
}

static void on_done(struct guest_pipe *g, const struct guest_file_done *info, const struct err *e)
{
    struct relay *r = guest_pipe_arg(g);

    (void)info, (void)e;
    r->g = NULL;
    close_pipe(r);
    free_when_done(r);
}

/* --- start --- */

static int open_pipe(struct api *a, const char *sandbox, bool process_api, struct relay *r,
                     struct err *e)
{
    static char name[] = "relay";
    static const struct listener_info inside[] = {{.address = name, .role = LISTEN_RELAY},
                                                  {.address = name, .role = LISTEN_PROCESS}};
    char peer[64];
    int ends[2], u;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
        return err_set(e, err_code_from_errno(errno), errno, "make a socket");
    (void)snprintf(peer, sizeof peer, "sandbox/%s", sandbox);
    if (server_adopt(a->server, ends[0], peer, &inside[process_api], e) < 0) {
        fd_close(ends[1]);
        return -1;
    }
    u = uv_pipe_open(&r->pipe, ends[1]);
    if (u < 0) { /* the server sees end of file */
        fd_close(ends[1]);
        return err_set(e, ERR_INTERNAL, -u, "watch a socket");
    }
    return 0;
}

int relay_serve(void *api, const char *sandbox, bool process_api, struct guest_pipe *p,
                struct err *e)
{
    static const struct guest_pipe_ops ops = {
        .data = on_data, .eof = on_eof, .room = on_room, .done = on_done};
    struct api *a = api;
    struct relay *r;

    if (!a->server)
        return err_set(e, ERR_UNAVAILABLE, 0, "holtd is stopping");
    r = xzalloc(sizeof *r);
    (void)uv_pipe_init(server_loop(a->server), &r->pipe, 0);
    r->pipe.data = r;
    if (open_pipe(a, sandbox, process_api, r, e) < 0) {
        close_pipe(r);
        return -1;
    }
    r->g = p;
    guest_pipe_serve(p, &ops, r);
    push(r);
    return 0;
}
