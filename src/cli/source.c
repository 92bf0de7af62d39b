/* source: reads standard input in parts. */
#include "cli/source.h"

#include <errno.h>
#include <unistd.h>

static void take(struct source *s)
{
    ssize_t n = read(s->fd, s->room + 1, SOURCE_PART);

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) {
        source_read(s, false);
        s->ended = true;
        n = 0;
    }
    s->part(s, str_make(s->room + 1, (size_t)n));
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    take(poll->data);
}

static void on_idle(uv_idle_t *idle)
{
    take(idle->data);
}

int source_init(struct source *s, uv_loop_t *loop, int fd)
{
    int r = uv_poll_init(loop, &s->poll, fd);

    s->fd = fd;
    s->polls = r == 0;
    if (r == UV_EPERM || r == UV_EBADF) /* EBADF: read it at once and see its end */
        r = uv_idle_init(loop, &s->idle);
    s->poll.data = s->idle.data = s;
    s->made = r == 0;
    return r;
}

void source_read(struct source *s, bool on)
{
    if (!s->made || s->ended || on == s->on)
        return;
    s->on = on;
    if (s->polls)
        (void)(on ? uv_poll_start(&s->poll, UV_READABLE, on_readable) : uv_poll_stop(&s->poll));
    else
        (void)(on ? uv_idle_start(&s->idle, on_idle) : uv_idle_stop(&s->idle));
}

void source_close(struct source *s)
{
    if (!s->made)
        return;
    source_read(s, false);
    uv_close(s->polls ? (uv_handle_t *)&s->poll : (uv_handle_t *)&s->idle, NULL);
    s->made = false;
}
