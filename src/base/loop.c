/* loop: a small epoll loop for holt-init and holt-spawn. */
#include "base/loop.h"

#include "base/fd.h"

#include <errno.h>
#include <unistd.h>

static int epoll_fd = -1;
static struct epoll_event batch[32];
static int batch_n;
static bool idle;

void loop_init(void)
{
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    assert(epoll_fd >= 0);
}

int loop_try_add(struct watch *w, int fd, void (*on)(struct watch *, uint32_t))
{
    struct epoll_event ev = {.events = 0, .data.ptr = w};
    int r;

    *w = (struct watch){.fd = fd, .on = on};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &ev) == 0)
        return 0;
    r = -errno;
    fd_close(fd);
    w->fd = -1;
    return r;
}

void loop_add(struct watch *w, int fd, void (*on)(struct watch *, uint32_t))
{
    int r = loop_try_add(w, fd, on);

    assert(r == 0);
}

void loop_want(struct watch *w, uint32_t events)
{
    struct epoll_event ev = {.events = events, .data.ptr = w};

    if (w->fd < 0 || w->events == events)
        return;
    w->events = events;
    (void)epoll_ctl(epoll_fd, EPOLL_CTL_MOD, w->fd, &ev);
}

void loop_remove(struct watch *w)
{
    if (w->fd < 0)
        return;
    (void)epoll_ctl(epoll_fd, EPOLL_CTL_DEL, w->fd, NULL);
    fd_close(w->fd);
    w->fd = -1;
    for (int i = 0; i < batch_n; i++)
        if (batch[i].data.ptr == w)
            batch[i].data.ptr = NULL;
}

/* epoll reports EPOLLHUP and EPOLLERR even for a watch that wants no events.  To avoid spinning,
 * the watch is called and must remove itself or ask for events. */
void loop_turn(int timeout_ms)
{
    batch_n = epoll_wait(epoll_fd, batch, ARRAY_LEN(batch), timeout_ms);
    idle = batch_n <= 0;
    for (int i = 0; i < batch_n; i++) {
        struct watch *w = batch[i].data.ptr;

        if (w)
            w->on(w, batch[i].events);
    }
    batch_n = 0;
}

bool loop_was_idle(void)
{
    return idle;
}
