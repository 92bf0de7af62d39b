/* listener: binds TCP and Unix addresses and reports connections. */
#include "net/listener.h"

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 1024
#define WARN_EVERY_MS 1000
#define QUIET_S 60 /* TCP keepalive: idle time, */
#define ASK_S 15   /* interval, */
#define ASKS 4     /* probes */

static void on_connection(uv_stream_t *h, int status)
{
    struct listener *l = h->data;

    int64_t now = (int64_t)uv_now(h->loop);

    /* Out of descriptors: libuv uses a reserved one to accept and close waiting connections, so the
     * loop does not spin. */
    if (status >= 0) {
        l->ready(l);
    } else if (now - l->warned_ms >= WARN_EVERY_MS) {
        l->warned_ms = now;
        log_warn("a connection could not be accepted", LOG_C("address", l->info.address),
                 LOG_C("error", uv_strerror(status)));
    }
}

static int bad_address(struct err *e, const char *address)
{
    (void)err_set(e, ERR_INVALID, 0, "'%s' is not an address to listen on", address);
    return err_hint(e,
                    "use host:port, [v6]:port or unix:/path, with tls:// before it for TLS only");
}

/* "127.0.0.1:80", "[::1]:80", "localhost:80", ":80" and "*:80" (all addresses). */
static int parse_tcp(const char *address, struct sockaddr_storage *ret)
{
    struct str s = str_of(address), host, rest;
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
    struct sockaddr_in in4 = {.sin_family = AF_INET};
    char text[INET6_ADDRSTRLEN];
    uint64_t port;
    size_t colon = s.n;

    while (colon > 0 && s.p[colon - 1] != ':')
        colon--;
    if (colon == 0 || str_parse_u64(str_skip(s, colon), &port) < 0 || port > 65535)
        return -EINVAL;
    host = str_make(s.p, colon - 1);
    if (host.n >= 2 && host.p[0] == '[' && host.p[host.n - 1] == ']') {
        rest = str_make(host.p + 1, host.n - 2);
        if (rest.n >= sizeof text)
            return -EINVAL;
        (void)snprintf(text, sizeof text, STR_FMT, STR_ARG(rest));
        in6.sin6_port = htons((uint16_t)port);
        memcpy(ret, &in6, sizeof in6);
        return inet_pton(AF_INET6, text, &((struct sockaddr_in6 *)ret)->sin6_addr) == 1 ? 0
                                                                                        : -EINVAL;
    }
    if (host.n == 0 || str_eq_c(host, "*")) {
        in6.sin6_port = htons((uint16_t)port); /* accepts IPv4 too */
        memcpy(ret, &in6, sizeof in6);
        return 0;
    }
    if (str_eq_c(host, "localhost"))
        host = STR("127.0.0.1");
    if (host.n >= sizeof text)
        return -EINVAL;
    (void)snprintf(text, sizeof text, STR_FMT, STR_ARG(host));
    in4.sin_port = htons((uint16_t)port);
    if (inet_pton(AF_INET, text, &in4.sin_addr) != 1)
        return -EINVAL;
    memcpy(ret, &in4, sizeof in4);
    return 0;
}

static bool is_loopback(const struct sockaddr_storage *a)
{
    if (a->ss_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)a)->sin_addr.s_addr) >> 24 == 127;
    return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)a)->sin6_addr);
}

/* A machine that was switched off sends no FIN: a client there that waits for a long command would
 * hold the command and its sandbox for ever.  Accepted sockets inherit this (tcp(7), Linux). */
static void notice_the_dead(const uv_tcp_t *h)
{
    static const struct {
        int level, name, value;
    } options[] = {{SOL_SOCKET, SO_KEEPALIVE, 1},
                   {IPPROTO_TCP, TCP_KEEPIDLE, QUIET_S},
                   {IPPROTO_TCP, TCP_KEEPINTVL, ASK_S},
                   {IPPROTO_TCP, TCP_KEEPCNT, ASKS}};
    uv_os_fd_t fd;

    for (size_t i = 0; i < ARRAY_LEN(options) && uv_fileno((const uv_handle_t *)h, &fd) == 0; i++)
        (void)setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(int));
}

static int open_tcp(struct listener *l, uv_loop_t *loop, const char *address, struct err *e)
{
    struct sockaddr_storage a;
    int n = sizeof a, r;

    memset(&a, 0, sizeof a);
    if (parse_tcp(address, &a) < 0)
        return bad_address(e, address);
    l->info.loopback = is_loopback(&a);
    r = uv_tcp_init(loop, &l->h.tcp);
    assert(r == 0);
    r = uv_tcp_bind(&l->h.tcp, (const struct sockaddr *)&a, 0);
    notice_the_dead(&l->h.tcp);
    if (r == 0)
        r = uv_listen(&l->h.stream, BACKLOG, on_connection);
    if (r == 0)
        r = uv_tcp_getsockname(&l->h.tcp, (struct sockaddr *)&a, &n);
    if (r < 0) {
        (void)err_set(e, err_code_from_errno(-r), -r, "listen on %s", address);
        if (r == UV_EADDRINUSE)
            (void)err_hint(e, "another program uses this port: stop it, or choose another port: "
                              "--listen 127.0.0.1:8123 (make run ARGS='--listen 127.0.0.1:8123')");
        return -1;
    }
    l->info.port = ntohs(a.ss_family == AF_INET ? ((struct sockaddr_in *)&a)->sin_port
                                                : ((struct sockaddr_in6 *)&a)->sin6_port);
    return 0;
}

/* Removes the socket file of a killed daemon: one that refuses connections.  Other files are not
 * ours to remove. */
static int remove_stale(const char *path, struct err *e)
{
    AUTO(fd_close) int fd = -1;
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    struct stat st;

    if (lstat(path, &st) < 0)
        return errno == ENOENT ? 0
                               : err_set(e, err_code_from_errno(errno), errno, "look at %s", path);
    if (!S_ISSOCK(st.st_mode))
        return err_set(e, ERR_CONFLICT, 0, "listen on %s: a file that is not a socket exists there",
                       path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_set(e, err_code_from_errno(errno), errno, "make a socket");
    (void)snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
    if (connect(fd, (const struct sockaddr *)&a, sizeof a) == 0 || errno != ECONNREFUSED) {
        (void)err_set(e, ERR_CONFLICT, EADDRINUSE, "listen on %s", path);
        return err_hint(e, "another program listens there");
    }
    if (unlink(path) < 0 && errno != ENOENT)
        return err_set(e, err_code_from_errno(errno), errno, "remove stale socket %s", path);
    return 0;
}

static int open_unix(struct listener *l, uv_loop_t *loop, const char *path, struct err *e)
{
    int r = uv_pipe_init(loop, &l->h.pipe, 0);

    assert(r == 0);
    l->is_unix = true;
    l->info.loopback = true;
    if (path[0] == '\0' || strlen(path) >= sizeof((struct sockaddr_un *)0)->sun_path)
        return err_set(e, ERR_INVALID, 0,
                       "'%s' is not a path for a Unix socket (at most %zu bytes)", path,
                       sizeof((struct sockaddr_un *)0)->sun_path - 1);
    if (remove_stale(path, e) < 0)
        return -1;
    r = uv_pipe_bind(&l->h.pipe, path);
    if (r == 0)
        r = uv_listen(&l->h.stream, BACKLOG, on_connection);
    return r < 0 ? err_set(e, err_code_from_errno(-r), -r, "listen on %s", path) : 0;
}

static void on_closed(uv_handle_t *h)
{
    struct listener *l = h->data;

    if (l->closed)
        l->closed(l);
    else
        listener_free(l);
}

int listener_new(uv_loop_t *loop, const char *address, void (*ready)(struct listener *l), void *arg,
                 struct listener **ret, struct err *e)
{
    struct listener *l = xzalloc(sizeof *l);
    struct str rest = str_of(address);
    int r;

    l->ready = ready;
    l->arg = arg;
    l->info.address = xstrdup(address);
    l->info.tls_only = str_starts(rest, STR("tls://"));
    if (l->info.tls_only)
        rest = str_skip(rest, 6);
    l->h.any.data = l;
    r = str_starts(rest, STR("unix:")) ? open_unix(l, loop, rest.p + 5, e)
                                       : open_tcp(l, loop, rest.p, e);
    if (r < 0) {
        if (l->h.any.type == UV_UNKNOWN_HANDLE)
            listener_free(l);
        else
            uv_close(&l->h.any, on_closed);
        return -1;
    }
    *ret = l;
    return 0;
}

void listener_close(struct listener *l, void (*closed)(struct listener *l))
{
    l->closed = closed;
    uv_close(&l->h.any, on_closed);
}

void listener_free(struct listener *l)
{
    if (!l)
        return;
    free(l->info.address);
    free(l);
}
