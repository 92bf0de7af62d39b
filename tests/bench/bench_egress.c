/* What a proxy adds: one server, and a client that reaches it directly or through proxies, in
 * turns.
 *
 * bench_egress serve                     prints its port, serves until it is killed
 * bench_egress connect TURNS SERVER NAME=KIND:PORT...   microseconds from connect to the first byte
 * back bench_egress bulk TURNS MIB SERVER NAME=KIND:PORT...  MB/s of a download KIND: direct, tcp
 * (the proxy leads to the server), connect (it is asked by HTTP CONNECT). Prints "NAME<tab>value"
 * of each turn. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
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

/* ---- the server ---- */

/* "e": the byte comes back; "d" and eight bytes: so many bytes come. */
static void serve_one(int fd)
{
    uint64_t want;
    char kind;

    if (recv(fd, &kind, 1, MSG_WAITALL) != 1)
        return;
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
    struct sockaddr_in at = loopback(0);
    socklen_t size = sizeof at;
    int l = socket(AF_INET, SOCK_STREAM, 0), on = 1;

    if (l < 0 || bind(l, (struct sockaddr *)&at, size) < 0 || listen(l, 1024) < 0 ||
        getsockname(l, (struct sockaddr *)&at, &size) < 0)
        die("listen");
    (void)printf("%u\n", ntohs(at.sin_port));
    (void)fflush(stdout);
    for (;;) {
        int fd = accept(l, NULL, NULL);

        if (fd < 0)
            continue;
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        serve_one(fd);
        (void)close(fd);
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
    for (n = 0; !memmem(head, n, "\r\n\r\n", 4);) {
        ssize_t r = read(fd, head + n, sizeof head - n);

        if (r <= 0)
            die("the proxy's reply");
        n += (size_t)r;
    }
    if (memcmp(head, "HTTP/1.1 200", 12) != 0) {
        (void)fprintf(stderr, "%.*s\n", (int)n, head);
        exit(1);
    }
    return fd;
}

static double once_us(const struct way *w, unsigned server)
{
    int64_t begun = clock_mono_ns(), took;
    int fd = reach(w, server);
    char byte = 'e';

    if (write(fd, &byte, 1) != 1 || read(fd, &byte, 1) != 1)
        die(w->name);
    took = clock_mono_ns() - begun;
    (void)close(fd);
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
    if (argc <= first || argc - first > 8)
        return 64;
    server = (unsigned)strtoul(argv[first - 1], NULL, 10);
    bytes = bulk ? strtoull(argv[3], NULL, 10) << 20 : 0;
    for (int i = first; i < argc; i++)
        ways[n++] = way_of(argv[i]);
    for (long turn = bulk ? 0 : -WARM; turn < strtol(argv[2], NULL, 10); turn++) {
        for (size_t i = 0; i < n; i++) {
            const struct way *w = &ways[i];
            double v = bulk ? bulk_rate(w, server, bytes) : once_us(w, server);

            if (turn >= 0)
                (void)printf("%s\t%.2f\n", w->name, v);
        }
    }
    return 0;
}
