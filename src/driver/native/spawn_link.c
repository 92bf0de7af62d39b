#include "driver/native/spawn_link.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/launch.h"
#include "base/mem.h"
#include "base/starter.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define SPAWN_LINGER_MS                                                                            \
    "2000"             /* how long ours stays without any holtd and sandbox: a restart takes less */
#define START_MS 15000 /* on a busy machine; one that ends at its start is seen at once */
#define LOOK_MS 5
#define SAID_MAX 4096

/* Through /proc: sun_path holds 108 bytes, and the state directory may be anywhere. */
static int connect_below(const struct spawn_link_home *h, int type, const char *name)
{
    AUTO(fd_close) int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_un at = {.sun_family = AF_UNIX};

    (void)snprintf(at.sun_path, sizeof at.sun_path, "/proc/self/fd/%d/%s", h->state, name);
    if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at) < 0)
        return -errno;
    return TAKE_FD(fd);
}

int spawn_link_connect(const struct spawn_link_home *h, struct err *e)
{
    int fd = connect_below(h, SOCK_SEQPACKET, "spawn.sock");

    return fd < 0 ? err_set(e, ERR_UNAVAILABLE, -fd, "connect to holt-spawn") : fd;
}

int spawn_link_connect_init(const struct spawn_link_home *h, const char *id)
{
    char name[64];

    (void)snprintf(name, sizeof name, "sb/%s/init.sock", id);
    return connect_below(h, SOCK_STREAM, name);
}

/* ---- start ---- */

static int64_t log_size(const struct spawn_link_home *h)
{
    struct stat st;

    return fstatat(h->state, "spawn.log", &st, AT_SYMLINK_NOFOLLOW) < 0 ? 0 : st.st_size;
}

int spawn_link_define(const struct spawn_link_home *h, struct err *e)
{
    AUTO(mem_free) char *program = xasprintf("%s/holt-spawn", h->bindir);
    AUTO(mem_free) char *init = xasprintf("%s/holt-init", h->bindir);
    AUTO(mem_free) char *log = xasprintf("%s/spawn.log", h->path);
    AUTO(mem_free) char *state = xstrdup(h->path);
    char name[] = "holt-spawn", state_option[] = "--state", init_option[] = "--init";
    char linger_option[] = "--linger-ms", linger[] = SPAWN_LINGER_MS;
    char *const first[] = {name, state_option, state, init_option, init, linger_option, linger};
    char user_option[] = "--user", user[16];
    AUTO(mem_free) char **argv = xzalloc((ARRAY_LEN(first) + h->allowed_n + 3) * sizeof *argv);
    size_t n = ARRAY_LEN(first);
    int r;

    memcpy(argv, first, sizeof first);
    if (h->allowed_n > 0)
        memcpy(argv + n, h->allowed, h->allowed_n * sizeof *argv);
    n += h->allowed_n;
    if (starter_uid() != geteuid()) { /* it is root's, and serves us */
        (void)snprintf(user, sizeof user, "%u", geteuid());
        argv[n++] = user_option;
        argv[n++] = user;
    }
    r = starter_define("holt-spawn", program, argv, log);
    if (r == 0)
        r = starter_allow(log);
    return r < 0 ? err_set(e, ERR_INTERNAL, -r, "say how '%s' is started", program) : 0;
}

int spawn_link_start(const struct spawn_link_home *h, int *ret_pidfd, struct err *e)
{
    int r = starter_start("holt-spawn", ret_pidfd);

    return r < 0 ? err_set(e, ERR_UNSUPPORTED, -r, "run '%s/holt-spawn'", h->bindir) : 0;
}

/* Of a line of its log, the value of error="…"; else the line. */
static struct str reason_in(struct str line)
{
    static const char key[] = "error=\"";
    const char *at = memmem(line.p, line.n, key, sizeof key - 1), *end;

    if (!at)
        return line;
    at += sizeof key - 1;
    line = str_skip(line, (size_t)(at - line.p));
    end = memchr(line.p, '"', line.n);
    return str_make(line.p, end ? (size_t)(end - line.p) : line.n);
}

/* What it wrote before it ended, behind `from`, says why. */
static int died(const struct spawn_link_home *h, int64_t from, struct err *e)
{
    AUTO(mem_free) char *log = xasprintf("%s/spawn.log", h->path);
    AUTO(fd_close) int fd = starter_open(log); /* it may be root's */
    char said[SAID_MAX];
    ssize_t n = fd < 0 ? -1 : pread(fd, said, sizeof said, from > LAUNCH_LOG_MAX ? 0 : from);
    struct str rest, why;

    if (n <= 0)
        return err_set(e, ERR_UNSUPPORTED, 0, "holt-spawn ended at its start");
    why = reason_in(str_cut(str_make(said, (size_t)n), '\n', &rest));
    return err_set(e, ERR_UNSUPPORTED, 0, "holt-spawn ended at its start: " STR_FMT,
                   (int)size_min(why.n, 200), why.p);
}

int spawn_link_open(const struct spawn_link_home *h, int *pidfd, struct err *e)
{
    int64_t until = clock_mono_ms() + START_MS, said = log_size(h);
    int fd = spawn_link_connect(h, e);

    *pidfd = -1;
    if (fd >= 0)
        return fd;
    if (spawn_link_start(h, pidfd, e) < 0)
        return -1;
    while (clock_mono_ms() < until) {
        fd = spawn_link_connect(h, e);
        if (fd >= 0)
            return fd;
        if (!starter_lives(pidfd))
            return died(h, said, e);
        (void)poll(NULL, 0, LOOK_MS);
    }
    return err_wrap(e, "wait for holt-spawn");
}

/* ---- packets ---- */

int spawn_link_send(int fd, struct str packet, struct err *e)
{
    ssize_t n = send(fd, packet.p, packet.n, MSG_NOSIGNAL | MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    return n < 0 ? err_set(e, ERR_UNAVAILABLE, errno, "write to holt-spawn") : 1;
}

void spawn_link_fds_done(struct spawn_link_fds *f)
{
    while (f->n > 0)
        fd_close(f->fd[--f->n]);
}

static void take_passed(struct msghdr *h, struct spawn_link_fds *to)
{

    for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; i < n; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            if (to->n < ARRAY_LEN(to->fd))
                to->fd[to->n++] = fd;
            else
                fd_close(fd);
        }
    }
}

static int no_descriptors(struct err *e)
{
    (void)err_set(e, ERR_LIMIT, EMFILE, "take the descriptors that holt-spawn sent");
    return err_hint(e, "raise holtd's limit of open files (LimitNOFILE=, ulimit -n)");
}

int spawn_link_receive(int fd, char *bytes, struct spawn_msg *ret, struct spawn_link_fds *fds,
                       struct err *e)
{
    union {
        char bytes[CMSG_SPACE(SPAWN_LISTENER_COUNT * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec iov = {.iov_base = bytes, .iov_len = SPAWN_PACKET_MAX};
    struct msghdr h = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof control.bytes};
    ssize_t n = recvmsg(fd, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    int r;

    fds->n = 0;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        return err_set(e, ERR_UNAVAILABLE, n < 0 ? errno : 0, "holt-spawn closed its connection");
    take_passed(&h, fds);
    if (h.msg_flags & MSG_TRUNC)
        r = err_set(e, ERR_INTERNAL, 0, "holt-spawn sent too large a packet");
    else if (h.msg_flags & MSG_CTRUNC) /* unix(7): what did not fit is lost */
        r = no_descriptors(e);
    else
        r = spawn_decode(str_make(bytes, (size_t)n), fds->n, SPAWN_SPAWN, ret, e);
    if (r < 0)
        spawn_link_fds_done(fds);
    return r < 0 ? -1 : 1;
}

int spawn_link_hello(int fd, const char *installation, struct err *e)
{
    struct spawn_msg m = {.type = SPAWN_HELLO, .tag = UINT32_MAX};
    uint8_t packet[256];
    struct wire_out o = {.p = packet, .size = sizeof packet};

    m.u.hello = (struct spawn_hello){1, SPAWN_VERSION, str_of(installation)};
    if (spawn_encode(&m, SPAWN_HOST, &o, e) < 0 ||
        spawn_link_send(fd, str_make(packet, o.n), e) < 0)
        return err_wrap(e, "greet holt-spawn");
    return 0;
}

int spawn_link_welcomed(const struct spawn_msg *m, struct spawn_welcome *ret, struct err *e)
{
    if (m->type == SPAWN_EVENT)
        return 0; /* list tells the same */
    if (m->type != SPAWN_WELCOME || m->u.welcome.version != SPAWN_VERSION)
        return err_set(e, ERR_UNSUPPORTED, 0, "holt-spawn speaks another version: restart it");
    *ret = m->u.welcome;
    return 1;
}

int spawn_link_greet(int fd, const char *installation, struct spawn_welcome *ret, struct err *e)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    AUTO(mem_free) char *bytes = xmalloc(SPAWN_PACKET_MAX);
    struct spawn_link_fds fds;
    struct spawn_msg m;
    int r = spawn_link_hello(fd, installation, e);

    while (r == 0) {
        if (poll(&p, 1, SPAWN_LINK_MS) == 0)
            return err_set(e, ERR_TIMEOUT, 0, "holt-spawn does not answer");
        r = spawn_link_receive(fd, bytes, &m, &fds, e);
        spawn_link_fds_done(&fds);
        if (r > 0)
            r = spawn_link_welcomed(&m, ret, e);
    }
    return r < 0 ? -1 : 0;
}
