/* What a proxy adds: one server, and a client that reaches it directly or through proxies, in
 * turns; each turn begins with another of them, and none before the last one's connection is gone.
 *
 * bench_egress serve           prints its port, serves until it is killed
 * bench_egress floor SERVER    the least proxy that knows CONNECT, and that server only: the same
 * bench_egress byte TURNS SERVER NAME=KIND:PORT...        microseconds to the first byte back
 * bench_egress get TURNS SERVER NAME=KIND:PORT...         the same of a GET of a whole URL
 * bench_egress bulk TURNS MIB SERVER NAME=KIND:PORT...    MB/s of a download
 *
 * KIND: direct; tcp (what is said to the proxy is for the server); connect (it is asked by HTTP
 * CONNECT first, and the client waits for its reply: a round trip more).
 * Prints "NAME<tab>value" of each turn. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCK (256 * 1024)
#define WARM 20 /* turns that are not counted */

static char block[BLOCK];

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static struct sockaddr_in loopback(unsigned port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* Its length, 0 when it did not come. */
static size_t read_head(int fd, char *head, size_t size)
{
    size_t n = 0;

    while (!memmem(head, n, "\r\n\r\n", 4)) {
        ssize_t r = read(fd, head + n, size - n);

        if (r <= 0)
            return 0;
        n += (size_t)r;
    }
    return n;
}

static int listen_somewhere(int flags)
{
    struct sockaddr_in at = loopback(0);
    socklen_t size = sizeof at;
    int l = socket(AF_INET, SOCK_STREAM | flags, 0), on = 1;

    if (l < 0 || bind(l, (struct sockaddr *)&at, size) < 0 || listen(l, 1024) < 0 ||
        getsockname(l, (struct sockaddr *)&at, &size) < 0)
        die("listen");
    (void)setsockopt(l, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* what it accepts has it too */
    (void)printf("%u\n", ntohs(at.sin_port));
    (void)fflush(stdout);
    return l;
}

/* ---- the server ---- */

static void answer_get(int fd)
{
    static const char reply[] =
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\nconnection: close\r\n\r\ne";
    char head[1024];

    if (read_head(fd, head, sizeof head) > 0)
        (void)!write(fd, reply, sizeof reply - 1);
}

/* "e": the byte comes back; "d" and eight bytes: so many bytes come; "G": a GET's reply. */
static void serve_one(int fd)
{
    uint64_t want;
    char kind;

    if (recv(fd, &kind, 1, MSG_WAITALL) != 1)
        return;
    if (kind == 'G') {
        answer_get(fd);
        return;
    }
    if (kind == 'e') {
        (void)!write(fd, &kind, 1);
        (void)!read(fd, &kind, 1);
        return;
    }
    if (recv(fd, &want, sizeof want, MSG_WAITALL) != sizeof want)
        return;
    while (want > 0) {
        ssize_t n = write(fd, block, want < BLOCK ? want : BLOCK);

        if (n <= 0)
            return;
        want -= (uint64_t)n;
    }
}

static NORETURN void serve(void)
{
    int l = listen_somewhere(0);

    for (;;) {
        int fd = accept(l, NULL, NULL);

        if (fd < 0)
            continue;
        serve_one(fd);
        (void)close(fd);
    }
}

/* ---- the floor ---- */

#define NONE (-1)
#define GONE (-2)
#define DESCRIPTORS 1024

static struct {
    int set, to[DESCRIPTORS]; /* to: where its bytes go, NONE: it has not asked yet */
    bool ended[DESCRIPTORS];
    struct sockaddr_in server;
} proxy;

static void watch(int fd, int to)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};

    if (fd < 0 || fd >= DESCRIPTORS || epoll_ctl(proxy.set, EPOLL_CTL_ADD, fd, &ev) < 0)
        die("watch");
    proxy.to[fd] = to;
    proxy.ended[fd] = false;
}

static void lead_on(int client)
{
    static const char ok[] = "HTTP/1.1 200 OK\r\n\r\n";
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

    if (connect(fd, (struct sockaddr *)&proxy.server, sizeof proxy.server) < 0)
        die("connect to the server");
    (void)!write(client, ok, sizeof ok - 1);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    watch(fd, client);
    proxy.to[client] = fd;
}

static void move(int fd)
{
    int to = proxy.to[fd];
    ssize_t n;

    if (to == GONE)
        return;
    n = recv(fd, block, sizeof block, MSG_DONTWAIT);
    if (n < 0)
        return;
    if (n > 0 && to == NONE) {
        lead_on(fd);
    } else if (n > 0) {
        (void)!write(to, block, (size_t)n);
    } else if (to == NONE || proxy.ended[to]) {
        (void)close(fd);
        (void)(to == NONE ? 0 : close(to));
        proxy.to[fd] = proxy.to[to == NONE ? fd : to] = GONE;
    } else {
        (void)shutdown(to, SHUT_WR);
        (void)epoll_ctl(proxy.set, EPOLL_CTL_DEL, fd, NULL);
        proxy.ended[fd] = true;
    }
}

static NORETURN void serve_floor(unsigned server)
{
    struct epoll_event ready[16];
    int l = listen_somewhere(SOCK_NONBLOCK);

    proxy.server = loopback(server);
    proxy.set = epoll_create1(0);
    watch(l, NONE);
    for (;;) {
        int n = epoll_wait(proxy.set, ready, ARRAY_LEN(ready), -1);

        for (int i = 0; i < n; i++) {
            int fd = ready[i].data.fd;

            if (fd == l) {
                fd = accept(l, NULL, NULL);
                if (fd < 0)
                    continue;
                watch(fd, NONE);
            }
            move(fd);
        }
    }
}

/* ---- the client ---- */

struct way {
    const char *name;
    enum { DIRECT, TCP, CONNECT } kind;
    unsigned port;
};

static int reach(const struct way *w, unsigned server)
{
    struct sockaddr_in at = loopback(w->kind == DIRECT ? server : w->port);
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    char head[512];
    size_t n = 0;

    if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at) < 0)
        die(w->name);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (w->kind != CONNECT)
        return fd;
    n = (size_t)snprintf(head, sizeof head,
                         "CONNECT 127.0.0.1:%u HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n\r\n", server,
                         server);
    if (write(fd, head, n) != (ssize_t)n)
        die("ask the proxy");
    n = read_head(fd, head, sizeof head);
    if (n < 12)
        die("the proxy's reply");
    if (memcmp(head, "HTTP/1.1 200", 12) != 0) {
        (void)fprintf(stderr, "%.*s\n", (int)n, head);
        exit(1);
    }
    return fd;
}

/* Both ends have seen the other's: what is left of it is not counted to the next one. */
static void part(int fd)
{
    (void)shutdown(fd, SHUT_WR);
    while (read(fd, block, sizeof block) > 0)
        ;
    (void)close(fd);
}

static double once_us(const struct way *w, unsigned server, bool get)
{
    char say[256] = "e", byte;
    size_t n = 1;
    int64_t begun, took;
    int fd;

    if (get)
        n = (size_t)snprintf(say, sizeof say,
                             "GET http://127.0.0.1:%u/ HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n\r\n",
                             server, server);
    begun = clock_mono_ns();
    fd = reach(w, server);
    if (write(fd, say, n) != (ssize_t)n || read(fd, &byte, 1) != 1)
        die(w->name);
    took = clock_mono_ns() - begun;
    part(fd);
    return (double)took / 1000;
}

static double bulk_rate(const struct way *w, unsigned server, uint64_t bytes)
{
    int fd = reach(w, server);
    int64_t begun = clock_mono_ns();
    uint64_t got = 0;

    if (write(fd, "d", 1) != 1 || write(fd, &bytes, sizeof bytes) != sizeof bytes)
        die(w->name);
    while (got < bytes) {
        ssize_t n = read(fd, block, sizeof block);

        if (n <= 0)
            die(w->name);
        got += (uint64_t)n;
    }
    (void)close(fd);
    return (double)bytes * 1000 / (double)(clock_mono_ns() - begun);
}

static struct way way_of(char *text)
{
    static const char *const kinds[] = {"direct", "tcp", "connect"};
    char *kind = strchr(text, '='), *port = kind ? strchr(kind, ':') : NULL;
    struct way w = {.name = text};

    if (!port) {
        (void)fprintf(stderr, "'%s' is not NAME=KIND:PORT\n", text);
        exit(64);
    }
    *kind++ = *port++ = '\0';
    while (strcmp(kinds[w.kind], kind) != 0)
        if (++w.kind > CONNECT)
            exit(64);
    w.port = (unsigned)strtoul(port, NULL, 10);
    return w;
}

static double measure(const char *what, const struct way *w, unsigned server, uint64_t bytes)
{
    if (strcmp(what, "bulk") == 0)
        return bulk_rate(w, server, bytes);
    return once_us(w, server, strcmp(what, "get") == 0);
}

int main(int argc, char **argv)
{
    bool bulk = argc > 1 && strcmp(argv[1], "bulk") == 0;
    int first = bulk ? 5 : 4;
    struct way ways[8];
    size_t n = 0;
    unsigned server;
    uint64_t bytes;

    (void)signal(SIGPIPE, SIG_IGN);
    if (argc == 2 && strcmp(argv[1], "serve") == 0)
        serve();
    if (argc == 3 && strcmp(argv[1], "floor") == 0)
        serve_floor((unsigned)strtoul(argv[2], NULL, 10));
    if (argc <= first || argc - first > 8)
        return 64;
    server = (unsigned)strtoul(argv[first - 1], NULL, 10);
    bytes = bulk ? strtoull(argv[3], NULL, 10) << 20 : 0;
    for (int i = first; i < argc; i++)
        ways[n++] = way_of(argv[i]);
    for (long turn = bulk ? 0 : -WARM; turn < strtol(argv[2], NULL, 10); turn++) {
        for (size_t i = 0; i < n; i++) {
            const struct way *w = &ways[(i + (size_t)(turn + WARM)) % n];
            double v = measure(argv[1], w, server, bytes);

            if (turn >= 0)
                (void)printf("%s\t%.2f\n", w->name, v);
        }
    }
    return 0;
}
