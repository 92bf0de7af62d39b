/* pollset: readiness of many descriptors through one epoll instance. */
#include "egress/pollset.h"

#include "base/fd.h"

#include <errno.h>

static struct {
    int fd;
    uv_poll_t poll;
    uv_prepare_t prepare;
    struct list changed;
    struct epoll_event batch[64];
    int batch_n;
} set = {.fd = -1};

static void tell(struct polled *p)
{
    struct epoll_event ev = {.events = p->wanted, .data.ptr = p};
    int op = p->wanted == 0 ? EPOLL_CTL_DEL : p->told == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;

    if (p->wanted == p->told)
        return;
    p->told = p->wanted;
    if (epoll_ctl(set.fd, op, p->fd, &ev) == 0)
        return;
    p->told = p->wanted = 0; /* epoll(7): max_user_watches, or no memory */
    p->on(p, 0);
}

static void tell_all(uv_prepare_t *h)
{
    struct list *link;

    (void)h;
    while ((link = list_pop(&set.changed)))
        tell(LIST_ENTRY(link, struct polled, changed));
}

/* epoll always reports EPOLLERR: the owner's next read or write finds the error. */
static void on_ready(uv_poll_t *h, int status, int events)
{
    (void)h;
    (void)status;
    (void)events;
    set.batch_n = epoll_wait(set.fd, set.batch, ARRAY_LEN(set.batch), 0);
    for (int i = 0; i < set.batch_n; i++) {
        struct polled *p = set.batch[i].data.ptr;
        uint32_t got = set.batch[i].events;

        if (!p || p->wanted == 0)
            continue;
        got = got & EPOLLERR ? EPOLLIN | EPOLLOUT : got & EPOLLHUP ? p->wanted : got & p->wanted;
        if (got)
            p->on(p, got);
    }
    set.batch_n = 0;
}

int pollset_open(uv_loop_t *loop, struct err *e)
{
    int r;

    list_init(&set.changed);
    set.fd = epoll_create1(EPOLL_CLOEXEC);
    if (set.fd < 0)
        return err_set(e, ERR_INTERNAL, errno, "make an epoll instance");
    r = uv_poll_init(loop, &set.poll, set.fd);
    if (r < 0)
        return err_set(e, ERR_INTERNAL, -r, "watch an epoll instance");
    (void)uv_poll_start(&set.poll, UV_READABLE, on_ready);
    (void)uv_prepare_init(loop, &set.prepare);
    (void)uv_prepare_start(&set.prepare, tell_all);
    return 0;
}

void polled_init(struct polled *p, void (*on)(struct polled *, uint32_t))
{
    *p = (struct polled){.fd = -1, .on = on};
    list_init(&p->changed);
}

void polled_open(struct polled *p, int fd)
{
    assert(p->fd < 0 && p->wanted == 0 && p->told == 0);
    p->fd = fd;
}

void polled_want(struct polled *p, uint32_t events)
{
    if (p->fd < 0 || p->wanted == events)
        return;
    p->wanted = events;
    if (list_is_empty(&p->changed))
        list_push(&set.changed, &p->changed);
}

/* The kernel forgets it with its last descriptor (epoll(7)), and there is no other. */
void polled_close(struct polled *p)
{
    if (p->fd < 0)
        return;
    fd_close(TAKE_FD(p->fd));
    p->wanted = p->told = 0;
    list_unlink(&p->changed);
    for (int i = 0; i < set.batch_n; i++)
        if (set.batch[i].data.ptr == p)
            set.batch[i].data.ptr = NULL;
}
