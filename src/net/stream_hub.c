/* stream_hub: all streams of a loop: end of turn, write timeouts, lingering. */
#include "net/stream.h"

#include "base/mem.h"
#include "net/stream_internal.h"

#include <poll.h>

#define LINGER_MS 1000 /* how long a peer may take to reply to our FIN with its own */

/* An active idle handle keeps the loop from sleeping; the callback has nothing to do. */
static void on_idle(uv_idle_t *i)
{
    (void)i;
}

static void on_turn_end(uv_prepare_t *p)
{
    struct stream_hub *h = p->data;

    h->turn++;
    while (!list_is_empty(&h->dirty)) {
        struct stream *s = LIST_ENTRY(h->dirty.next, struct stream, dirty);

        if (s->turn == h->turn)
            break; /* marked in this pass: the others are served first */
        list_unlink(&s->dirty);
        stream_turn(s);
    }
    if (list_is_empty(&h->dirty) == (bool)uv_is_active((uv_handle_t *)&h->idle)) {
        if (list_is_empty(&h->dirty))
            (void)uv_idle_stop(&h->idle);
        else
            (void)uv_idle_start(&h->idle, on_idle);
    }
}

struct stream_hub *stream_hub_new(uv_loop_t *loop)
{
    struct stream_hub *h = xzalloc(sizeof *h);

    h->loop = loop;
    h->scratch = xmalloc(STREAM_READ);
    h->plain = xmalloc(STREAM_READ);
    h->turn = 1;
    list_init(&h->dirty);
    list_init(&h->blocked);
    list_init(&h->lingering);
    list_init(&h->deaf);
    (void)uv_prepare_init(loop, &h->prepare);
    (void)uv_idle_init(loop, &h->idle);
    h->prepare.data = h->idle.data = h;
    h->handles = 2;
    (void)uv_prepare_start(&h->prepare, on_turn_end);
    uv_unref((uv_handle_t *)&h->prepare);
    uv_unref((uv_handle_t *)&h->idle);
    return h;
}

static void on_hub_closed(uv_handle_t *handle)
{
    struct stream_hub *h = handle->data;

    if (--h->handles > 0)
        return;
    h->freed(h->freed_arg);
    free(h->scratch);
    free(h->plain);
    free(h);
}

static void close_if_empty(struct stream_hub *h)
{
    if (h->count > 0 || !h->freed || uv_is_closing((uv_handle_t *)&h->prepare))
        return;
    uv_close((uv_handle_t *)&h->prepare, on_hub_closed);
    uv_close((uv_handle_t *)&h->idle, on_hub_closed);
}

void stream_hub_left(struct stream_hub *h)
{
    h->count--;
    close_if_empty(h);
}

void stream_hub_free(struct stream_hub *h, void (*done)(void *arg), void *arg)
{
    h->freed = done;
    h->freed_arg = arg;
    close_if_empty(h);
}

/* epoll reports nothing for a descriptor that is neither read nor written. */
static void look_for_peer(struct stream *s)
{
    struct pollfd p = {.events = POLLRDHUP};

    if (uv_fileno(&s->h.any, &p.fd) < 0 || poll(&p, 1, 0) <= 0)
        return;
    if (p.revents & (POLLERR | POLLHUP))
        stream_fail_sys(s, UV_ECONNRESET, "wait for");
    else if ((p.revents & POLLRDHUP) && s->ops->hangup && s->state == STREAM_OPEN)
        s->ops->hangup(s);
}

static void give_up(struct stream *s, int64_t now)
{
    struct err e;

    if (s->state == STREAM_OPEN && s->ops->stalled && s->ops->stalled(s)) {
        s->progress_ms = now;
        return;
    }
    (void)err_set(&e, ERR_TIMEOUT, 0, "%s accepts no output", s->peer.address);
    stream_fail(s, &e);
}

void stream_hub_sweep(struct stream_hub *h, int64_t write_ms)
{
    int64_t now = (int64_t)uv_now(h->loop);

    LIST_EACH (&h->blocked, node) {
        struct stream *s = LIST_ENTRY(node, struct stream, link);
        size_t unsent = uv_stream_get_write_queue_size(&s->h.stream);

        if (unsent < s->unsent_seen) {
            s->unsent_seen = unsent;
            s->progress_ms = now;
        } else if (now - s->progress_ms > write_ms) {
            give_up(s, now);
        }
    }
    LIST_EACH (&h->lingering, node) {
        struct stream *s = LIST_ENTRY(node, struct stream, link);

        if (now - s->progress_ms < LINGER_MS)
            break;
        stream_end(s, false);
    }
    LIST_EACH (&h->deaf, node)
        look_for_peer(LIST_ENTRY(node, struct stream, deaf));
}
