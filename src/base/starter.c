/* starter: the child that keeps the rights its parent drops, to start programs and open files. */
#include "base/starter.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/launch.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PACKET_MAX (32 * 1024)
#define PROGRAMS_MAX 40 /* holt-spawn, holt-egress, and a holt-virt for each host */
#define FILES_MAX 96
#define ARGS_MAX 128
#define REPLY_MS 5000 /* for a busy machine; the child never waits itself */

enum request { DEFINE = 'D', ALLOW = 'A', SEAL = 'S', START = 'R', OPEN = 'O' };

struct program {
    char *packet; /* "D" name\0 program\0 log\0 argv…\0 */
    const char *name, *program, *log;
    char *argv[ARGS_MAX + 1];
};

static struct {
    int fd; /* to the child; -1: there is none */
    uid_t uid;
    bool sealed;
    struct program programs[PROGRAMS_MAX];
    size_t program_n;
    char *files[FILES_MAX];
    size_t file_n;
} s = {.fd = -1};

/* ---- the allowed programs and files: in the child, or in this process ---- */

static int define(const char *packet, size_t n)
{
    struct program p = {.packet = xmemdup(packet, n)};
    char *at = p.packet + 1, *end = p.packet + n;
    const char **head[] = {&p.name, &p.program, &p.log};
    size_t argc = 0;

    for (size_t i = 0; at < end; i++, at += strlen(at) + 1) {
        if (i < ARRAY_LEN(head))
            *head[i] = at;
        else if (argc < ARGS_MAX)
            p.argv[argc++] = at;
        else
            argc = ARGS_MAX + 1;
    }
    if (s.sealed || argc == 0 || argc > ARGS_MAX) {
        mem_free(p.packet);
        return s.sealed ? -EPERM : -EINVAL;
    }
    for (size_t i = 0; i < s.program_n; i++)
        if (strcmp(s.programs[i].name, p.name) == 0) {
            mem_free(s.programs[i].packet);
            s.programs[i] = p;
            return 0;
        }
    if (s.program_n == PROGRAMS_MAX) {
        mem_free(p.packet);
        return -ENOSPC;
    }
    s.programs[s.program_n++] = p;
    return 0;
}

static bool is_allowed(const char *path)
{
    for (size_t i = 0; i < s.file_n; i++)
        if (strcmp(s.files[i], path) == 0)
            return true;
    return false;
}

static int allow(const char *path)
{
    if (is_allowed(path))
        return 0;
    if (s.sealed || s.file_n == FILES_MAX)
        return s.sealed ? -EPERM : -ENOSPC;
    s.files[s.file_n++] = xstrdup(path);
    return 0;
}

static int start(const char *name)
{
    for (size_t i = 0; i < s.program_n; i++) {
        const struct program *p = &s.programs[i];
        pid_t pid;
        int r;

        if (strcmp(p->name, name) != 0)
            continue;
        r = launch_detached(p->program, p->argv, p->log, &pid);
        if (r < 0)
            return r;
        r = (int)syscall(SYS_pidfd_open, pid, 0);
        return r < 0 ? -errno : r;
    }
    return -ENOENT;
}

static int open_file(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

    return fd < 0 ? -errno : fd;
}

/* ---- the child ---- */

static void send_reply(int to, int r)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    struct iovec iov = {.iov_base = &r, .iov_len = sizeof r};
    struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};
    int fd = r;

    if (fd >= 0) {
        r = 0;
        h.msg_control = control.bytes;
        h.msg_controllen = sizeof control.bytes;
        *CMSG_FIRSTHDR(&h) = (struct cmsghdr){
            .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof fd)};
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&h)), &fd, sizeof fd);
    }
    (void)!sendmsg(to, &h, MSG_NOSIGNAL);
    fd_close(fd);
}

static void serve_one(int from, char *packet, size_t n)
{
    int r;

    packet[n] = '\0';
    switch (packet[0]) {
    case DEFINE:
        (void)!define(packet, n);
        break;
    case ALLOW:
        (void)!allow(packet + 1);
        break;
    case SEAL:
        s.sealed = true;
        break;
    case START:
        send_reply(from, start(packet + 1));
        break;
    case OPEN:
        r = is_allowed(packet + 1) ? open_file(packet + 1) : -EPERM;
        send_reply(from, r);
        break;
    default:
        _exit(1); /* another process has become our parent */
    }
}

static void on_child(int number)
{
    (void)number;
}

static _Noreturn void serve(int from)
{
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    const struct sigaction wakes = {.sa_handler = on_child}; /* makes recv fail with EINTR */
    char *packet = xmalloc(PACKET_MAX + 1);
    AUTO(fd_close) int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    for (size_t i = 0; i < ARRAY_LEN(ignored); i++)
        (void)signal(ignored[i], SIG_IGN); /* the child must outlive signals to the group: it ends
                                              with its parent, which may take a while */
    (void)sigaction(SIGCHLD, &wakes, NULL);
    (void)prctl(PR_SET_NAME, "holtd-starter", 0, 0, 0);
    for (int i = 0; i < 3 && null >= 0; i++)
        (void)dup2(null, i); /* a reader of our parent's output must not wait for the child */
    if (dup2(from, 3) != 3 || syscall(SYS_close_range, 4U, ~0U, 0U) < 0)
        _exit(1);
    for (;;) {
        ssize_t n = recv(3, packet, PACKET_MAX, 0);

        if (n > 0)
            serve_one(3, packet, (size_t)n);
        else if (n == 0 || errno != EINTR)
            _exit(0);
        while (waitpid(-1, NULL, WNOHANG) > 0)
            continue;
    }
}

int starter_fork(void)
{
    int pair[2];
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    pid = fork();
    if (pid == 0)
        serve(pair[1]);
    fd_close(pair[1]);
    if (pid < 0) {
        fd_close(pair[0]);
        return -EAGAIN;
    }
    s.fd = pair[0];
    s.uid = geteuid();
    return 0;
}

uid_t starter_uid(void)
{
    return s.fd >= 0 ? s.uid : geteuid();
}

/* ---- the parent ---- */

static int ask(const char *packet, size_t n)
{
    return send(s.fd, packet, n, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int receive_reply(void)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    int r = 0, fd;
    struct iovec iov = {.iov_base = &r, .iov_len = sizeof r};
    struct msghdr h = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof control.bytes};
    struct pollfd p = {.fd = s.fd, .events = POLLIN};

    if (poll(&p, 1, REPLY_MS) <= 0 ||
        recvmsg(s.fd, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != sizeof r) {
        fd_close(TAKE_FD(s.fd)); /* a late reply would be taken for the reply to the next request */
        return -EPIPE;
    }
    if (r < 0)
        return r;
    if (!CMSG_FIRSTHDR(&h))
        return -EMFILE;
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&h)), sizeof fd);
    return fd;
}

static int ask_name(enum request what, const char *name)
{
    AUTO(mem_free) char *packet = xasprintf("%c%s", what, name);
    int r = ask(packet, strlen(packet));

    return r < 0 ? r : receive_reply();
}

int starter_define(const char *name, const char *program, char *const *argv, const char *log)
{
    AUTO(buf_done) struct buf b = {0};

    buf_printf(&b, "%c", DEFINE);
    buf_add(&b, name, strlen(name) + 1);
    buf_add(&b, program, strlen(program) + 1);
    buf_add(&b, log, strlen(log) + 1);
    for (; *argv; argv++)
        buf_add(&b, *argv, strlen(*argv) + 1);
    if (buf_len(&b) > PACKET_MAX)
        return -E2BIG;
    return s.fd >= 0 ? ask(buf_data(&b), buf_len(&b)) : define(buf_data(&b), buf_len(&b));
}

/* Known on both sides: a path that was not allowed is never requested. */
int starter_allow(const char *path)
{
    AUTO(mem_free) char *packet = xasprintf("%c%s", ALLOW, path);
    int r = allow(path);

    return r < 0 || s.fd < 0 ? r : ask(packet, strlen(packet));
}

void starter_seal(void)
{
    char seal = SEAL;

    s.sealed = s.fd >= 0;
    if (s.fd >= 0)
        (void)!ask(&seal, 1);
}

int starter_start(const char *name, int *ret_pidfd)
{
    int fd = s.fd >= 0 ? ask_name(START, name) : start(name);

    if (fd < 0)
        return fd;
    *ret_pidfd = fd;
    return 0;
}

bool starter_lives(int *pidfd)
{
    struct pollfd p = {.fd = *pidfd, .events = POLLIN};

    if (*pidfd < 0)
        return false;
    if (poll(&p, 1, 0) == 0)
        return true;
    (void)waitid((idtype_t)P_PIDFD, (id_t)*pidfd, &(siginfo_t){0}, WEXITED | WNOHANG);
    fd_close(TAKE_FD(*pidfd)); /* waitid(2) also when it is our own child */
    return false;
}

int starter_open(const char *path)
{
    return s.fd >= 0 && is_allowed(path) ? ask_name(OPEN, path) : open_file(path);
}

int starter_read(const char *path, size_t limit, struct buf *to)
{
    AUTO(fd_close) int fd = starter_open(path);

    return fd < 0 ? fd : fd_read_all(fd, limit, to);
}
