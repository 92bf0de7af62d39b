/* connect: looks up the server and connects to it, on a thread. */
#include "agent/connect.h"

#include "base/fd.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECT_MS 10000
#define WHY_MAX 160

struct attempt {
    int to; /* a pipe to the loop */
    char *host, *port;
};

struct outcome { /* as written to the pipe */
    int fd;
    char why[WHY_MAX];
};

static void watch_peer(int fd)
{
    const int on = 1, idle = 15, every = 5, times = 3;
    const unsigned unread_ms = 30000;

    /* tcp(7): a server that has gone without a word is noticed within half a minute */
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof every);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof times);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unread_ms, sizeof unread_ms);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/* 0, or the errno. */
static int connect_one(const struct addrinfo *a, int *ret)
{
    AUTO(fd_close)
    int fd = socket(a->ai_family, a->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, a->ai_protocol);
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    int err = 0;
    socklen_t size = sizeof err;

    if (fd < 0)
        return errno;
    if (connect(fd, a->ai_addr, a->ai_addrlen) < 0 && errno != EINPROGRESS)
        return errno;
    if (poll(&p, 1, CONNECT_MS) <= 0)
        return ETIMEDOUT;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &size) < 0 || err != 0)
        return err ? err : errno;
    watch_peer(fd);
    *ret = TAKE_FD(fd);
    return 0;
}

static void try_all(const struct attempt *t, struct outcome *o)
{
    const struct addrinfo want = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int r = getaddrinfo(t->host, t->port, &want, &found), err = EHOSTUNREACH;

    o->fd = -1;
    if (r != 0) {
        (void)snprintf(o->why, sizeof o->why, "look up '%s': %s", t->host, gai_strerror(r));
        return;
    }
    for (const struct addrinfo *a = found; a && o->fd < 0; a = a->ai_next)
        err = connect_one(a, &o->fd);
    freeaddrinfo(found);
    if (o->fd < 0) {
        errno = err;
        (void)snprintf(o->why, sizeof o->why, "connect to %s:%s: %m", t->host, t->port);
    }
}

static void *work(void *arg)
{
    struct attempt *t = arg;
    struct outcome o = {.fd = -1};

    try_all(t, &o);
    if (write(t->to, &o, sizeof o) != (ssize_t)sizeof o && o.fd >= 0)
        fd_close(o.fd); /* pipe(7): less than PIPE_BUF is written whole, or not at all */
    fd_close(t->to);
    mem_free(t->host);
    mem_free(t->port);
    mem_free(t);
    return NULL;
}

int connect_begin(const char *host, const char *port)
{
    struct attempt *t;
    pthread_attr_t attr;
    pthread_t thread;
    int ends[2], r;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    t = xzalloc(sizeof *t);
    t->to = ends[1];
    t->host = xstrdup(host);
    t->port = xstrdup(port);
    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    r = pthread_create(&thread, &attr, work, t);
    (void)pthread_attr_destroy(&attr);
    if (r == 0)
        return ends[0];
    fd_close(ends[0]);
    fd_close(ends[1]);
    mem_free(t->host);
    mem_free(t->port);
    mem_free(t);
    return -1;
}

int connect_take(int watched, char *why, unsigned long size)
{
    struct outcome o = {.fd = -1, .why = "the attempt failed"};

    if (read(watched, &o, sizeof o) != (ssize_t)sizeof o)
        o.fd = -1;
    (void)snprintf(why, size, "%s", o.why);
    return o.fd;
}
