/* sink: non-blocking writes to standard output and error. */
#include "cli/sink.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* open(2): a new description of the same pipe or terminal has flags of its own. */
static int open_anew(int fd)
{
    char path[32];

    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

void sink_init(struct sink *s, uv_loop_t *loop, int fd)
{
    struct stat st;

    s->loop = loop;
    s->fd = fd;
    if (fstat(fd, &st) < 0) {
        s->error = errno;
    } else if (S_ISSOCK(st.st_mode)) {
        s->socket = true;
    } else if (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode)) {
        int anew = open_anew(fd);

        s->own = anew >= 0;
        s->ask = anew < 0;
        s->fd = anew >= 0 ? anew : fd;
    }
}

bool sink_is_full(const struct sink *s)
{
    return buf_len(&s->wait) > 0;
}

/* A pipe that poll() calls writable has room for PIPE_BUF bytes (pipe(7)). */
static ssize_t write_asking(int fd, struct str bytes)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};

    if (poll(&p, 1, 0) == 0) {
        errno = EAGAIN;
        return -1;
    }
    return write(fd, bytes.p, size_min(bytes.n, PIPE_BUF));
}

static ssize_t write_some(const struct sink *s, struct str bytes)
{
    if (s->socket)
        return send(s->fd, bytes.p, bytes.n, MSG_DONTWAIT | MSG_NOSIGNAL);
    return s->ask ? write_asking(s->fd, bytes) : write(s->fd, bytes.p, bytes.n);
}

/* Returns the bytes that have to wait. */
static struct str write_now(struct sink *s, struct str bytes)
{
    while (bytes.n > 0) {
        ssize_t n = write_some(s, bytes);

        if (n >= 0) {
            bytes = str_skip(bytes, (size_t)n);
            continue;
        }
        if (errno == EAGAIN)
            return bytes;
        if (errno != EINTR) {
            s->error = errno;
            return (struct str){0};
        }
    }
    return bytes;
}

static void on_writable(uv_poll_t *poll, int status, int events)
{
    struct sink *s = poll->data;
    struct str rest;

    (void)status;
    (void)events;
    rest = write_now(s, buf_str(&s->wait));
    buf_take(&s->wait, buf_len(&s->wait) - rest.n);
    if (rest.n > 0)
        return;
    (void)uv_poll_stop(&s->poll);
    if (s->turn)
        s->turn(s);
}

static void wait_writable(struct sink *s)
{
    int r = 0;

    if (!s->polls) {
        r = uv_poll_init(s->loop, &s->poll, s->fd);
        s->poll.data = s;
        s->polls = r == 0;
    }
    if (r == 0)
        r = uv_poll_start(&s->poll, UV_WRITABLE, on_writable);
    if (r < 0) {
        s->error = -r;
        buf_clear(&s->wait);
    }
}

void sink_write(struct sink *s, struct str bytes)
{
    bool failed = s->error != 0;

    if (failed)
        return;
    if (!sink_is_full(s)) {
        bytes = write_now(s, bytes);
        if (bytes.n > 0 && !s->error)
            wait_writable(s);
    }
    if (s->error) {
        buf_clear(&s->wait);
        if (s->turn)
            s->turn(s);
        return;
    }
    buf_add_str(&s->wait, bytes);
}

void sink_drop(struct sink *s)
{
    s->error = s->error ? s->error : ECANCELED;
    buf_clear(&s->wait);
    if (s->polls)
        (void)uv_poll_stop(&s->poll);
}

void sink_close(struct sink *s)
{
    if (s->polls)
        uv_close((uv_handle_t *)&s->poll, NULL);
    if (s->own)
        fd_close(s->fd);
    s->polls = s->own = false;
    buf_done(&s->wait);
}
