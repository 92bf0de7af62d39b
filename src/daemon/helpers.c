/* helpers: ends the helpers of an earlier holtd that this one cannot use. */
#include "daemon/helpers.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "wire/egress.h"
#include "wire/spawn.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define END_MS 5000
#define LOOK_MS 10
#define WELCOME_MS 2000

static const struct left {
    const char *socket;
    const struct packet_protocol *protocol;
} left[] = {{"spawn.sock", &spawn_protocol}, {"egress.sock", &egress_protocol}};

/* A connection to the process that listens there, or -1. */
static int connect_to(int dir, const char *name, pid_t *ret_pid)
{
    AUTO(fd_close) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct ucred peer;
    socklen_t size = sizeof peer;

    (void)snprintf(at.sun_path, sizeof at.sun_path, "/proc/self/fd/%d/%s", dir, name);
    if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at) < 0 ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
        return -1;
    *ret_pid = peer.pid;
    return TAKE_FD(fd);
}

static bool greet(int fd, const struct packet_protocol *p)
{
    union {
        struct spawn_msg spawn;
        struct egress_msg egress;
    } m = {0};
    uint8_t bytes[128];
    struct wire_out o = {.p = bytes, .size = sizeof bytes};
    struct err e = {0};

    if (p == &spawn_protocol) {
        m.spawn = (struct spawn_msg){.type = SPAWN_HELLO, .tag = PACKET_HELLO_TAG};
        m.spawn.u.hello = (struct spawn_hello){p->version, p->version, STR("version")};
    } else {
        m.egress = (struct egress_msg){.type = EGRESS_HELLO};
        m.egress.u.hello = (struct egress_hello){p->version, p->version};
    }
    return packet_encode(p, &m, PACKET_HOST, &o, &e) == 0 &&
           send(fd, bytes, o.n, MSG_NOSIGNAL) == (ssize_t)o.n;
}

/* False only if it says so: the welcome of every version begins with the version. */
static bool speaks_ours(int fd, const struct packet_protocol *p)
{
    static uint8_t bytes[PACKET_MAX];
    int64_t until = clock_mono_ms() + WELCOME_MS;
    int64_t rest = WELCOME_MS;
    uint32_t type;
    uint16_t version;
    ssize_t n;

    if (!greet(fd, p))
        return true;
    for (; rest > 0 && poll(&(struct pollfd){fd, POLLIN, 0}, 1, (int)rest) > 0;
         rest = until - clock_mono_ms()) {
        n = recv(fd, bytes, sizeof bytes, 0);
        if (n < PACKET_HEAD + (ssize_t)sizeof version)
            return true;
        memcpy(&type, bytes, sizeof type);
        memcpy(&version, bytes + PACKET_HEAD, sizeof version);
        if (type == p->welcome)
            return version == p->version;
    }
    return true;
}

static void end_process(int dir, const char *name, pid_t pid)
{
    int64_t until = clock_mono_ms() + END_MS;
    AUTO(fd_close) int pidfd = pid > 1 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    AUTO(fd_close) int again = -1;
    pid_t now = 0;

    if (pidfd < 0)
        return;
    again = connect_to(dir, name, &now); /* still the same: the pid was not reused */
    if (now != pid || syscall(SYS_pidfd_send_signal, pidfd, SIGTERM, NULL, 0) < 0)
        return;
    while (clock_mono_ms() < until && poll(&(struct pollfd){pidfd, POLLIN, 0}, 1, LOOK_MS) == 0)
        continue;
}

static void end_if_old(int dir, const struct left *l, uid_t uid)
{
    AUTO(fd_close) int fd = -1;
    bool ours, version;
    struct stat st;
    pid_t pid = 0;

    if (fstatat(dir, l->socket, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISSOCK(st.st_mode))
        return;
    fd = connect_to(dir, l->socket, &pid);
    if (fd < 0)
        return;
    ours = st.st_uid == uid;
    version = !ours || speaks_ours(fd, l->protocol);
    if (ours && version)
        return;
    log_info("ending a program of an earlier holtd", LOG_C("program", l->protocol->helper),
             LOG_N("pid", pid),
             LOG_C("why", ours ? "it belongs to another release" : "it serves another user"));
    end_process(dir, l->socket, pid);
}

void helpers_end_old(const char *state, uid_t uid)
{
    AUTO(fd_close) int dir = open(state, O_PATH | O_DIRECTORY | O_CLOEXEC);

    for (size_t i = 0; dir >= 0 && i < ARRAY_LEN(left); i++)
        end_if_old(dir, &left[i], uid);
}
