#include "spawn_client.h"

#include "../check.h"
#include "../scratch.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* For what hangs: on a busy machine a start takes its time. */
#define START_TRIES 6000  /* of 10 ms */
#define SHELL_TRIES 60000 /* of 1 ms */

static void NORETURN die(const char *what, const char *why)
{
    (void)fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

pid_t spawn_client_start(const char *program, const char *state, const char *init)
{
    const char *const argv[] = {program, "--state", state, "--init", init, NULL};

    return spawn_client_start_with(argv, state);
}

pid_t spawn_client_start_with(const char *const *argv, const char *state)
{
    char path[128];
    pid_t pid;

    (void)snprintf(path, sizeof path, "%s/spawn.sock", state);
    (void)unlink(path); /* a killed one's child may still listen there for a moment */
    pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
        (void)execv(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    for (int i = 0; i < START_TRIES && access(path, F_OK) < 0; i++)
        (void)usleep(10000);
    return pid;
}

void spawn_client_connect(struct spawn_client *c, const char *state)
{
    spawn_client_connect_as(c, state, "in_test");
}

void spawn_client_connect_as(struct spawn_client *c, const char *state, const char *installation)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    struct spawn_msg m = {.type = SPAWN_HELLO};

    *c = (struct spawn_client){.fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)};
    (void)snprintf(to.sun_path, sizeof to.sun_path, "%s/spawn.sock", state);
    for (int i = 0; connect(c->fd, (struct sockaddr *)&to, sizeof to) < 0; i++) {
        if (i == START_TRIES) /* it may be starting: bound, not yet listening */
            die("connect to holt-spawn", strerror(errno));
        (void)usleep(10000);
    }
    m.u.hello = (struct spawn_hello){1, SPAWN_VERSION, str_of(installation)};
    m = spawn_client_call(c, &m, NULL);
    if (m.type != SPAWN_WELCOME || m.u.welcome.version != SPAWN_VERSION)
        die("greet holt-spawn", "no welcome");
    c->features = m.u.welcome.features;
    c->rootless = m.u.welcome.rootless;
    c->shells =
        getenv("HOLT_TEST_SHELLS") ? (uint32_t)strtoul(getenv("HOLT_TEST_SHELLS"), NULL, 10) : 0;
    if (c->shells > 0)
        (void)spawn_client_pool(c, c->shells);
}

struct spawn_pooled spawn_client_pool(struct spawn_client *c, uint32_t shells)
{
    struct spawn_msg m = {.type = SPAWN_POOL, .u.pool = {2, shells}};

    m = spawn_client_call(c, &m, NULL);
    if (m.type != SPAWN_POOLED)
        die("ask for shells", "no answer that fits");
    c->shells = shells;
    return m.u.pooled;
}

void spawn_client_wait_shell(struct spawn_client *c)
{
    for (int i = 0; spawn_client_pool(c, c->shells).ready == 0; i++) {
        if (i == SHELL_TRIES)
            die("wait for a shell", "there is none");
        (void)usleep(1000); /* less than SHELL_QUIET_MS: one is made in spite of it */
    }
}

static struct spawn_msg receive(struct spawn_client *c, int *ret_fd)
{
    static char bytes[SPAWN_PACKET_MAX];
    union {
        char bytes[CMSG_SPACE(SPAWN_LISTENER_COUNT * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec iov = {.iov_base = bytes, .iov_len = sizeof bytes};
    struct msghdr h = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof control.bytes};
    ssize_t n = recvmsg(c->fd, &h, MSG_CMSG_CLOEXEC);
    struct spawn_msg m;
    struct err e = {0};
    size_t fds = 0;
    int fd = -1;

    if (n <= 0)
        die("read from holt-spawn", n < 0 ? strerror(errno) : "it closed the connection");
    if (CMSG_FIRSTHDR(&h)) {
        fds = (CMSG_FIRSTHDR(&h)->cmsg_len - CMSG_LEN(0)) / sizeof fd;
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&h)), sizeof fd);
    }
    if (spawn_decode(str_make(bytes, (size_t)n), fds, SPAWN_SPAWN, &m, &e) < 0)
        die("decode", e.msg);
    if (fds > 1) {
        memcpy(c->fds, CMSG_DATA(CMSG_FIRSTHDR(&h)), fds * sizeof fd);
        c->fd_count = fds;
    } else if (ret_fd)
        *ret_fd = fd;
    else
        fd_close(fd);
    return m;
}

struct spawn_msg spawn_client_call(struct spawn_client *c, struct spawn_msg *m, int *ret_fd)
{
    static uint8_t bytes[SPAWN_PACKET_MAX];
    struct wire_out o = {.p = bytes, .size = sizeof bytes};
    struct spawn_msg reply;
    struct err e = {0};

    m->tag = ++c->tag;
    if (spawn_encode(m, SPAWN_HOST, &o, &e) < 0)
        die("encode", e.msg);
    if (send(c->fd, bytes, o.n, MSG_NOSIGNAL) < 0)
        die("write to holt-spawn", strerror(errno));
    do {
        reply = receive(c, ret_fd);
        c->ooms += reply.type == SPAWN_EVENT && reply.u.event.kind == SPAWN_OOM;
    } while (reply.tag != m->tag);
    return reply;
}

int spawn_client_create(struct spawn_client *c, const struct spawn_create *spec, int *ret_fd,
                        struct err *e)
{
    struct spawn_msg m = {.type = SPAWN_CREATE};

    if (c->shells > 0)
        spawn_client_wait_shell(c);
    m.u.create = *spec;
    m = spawn_client_call(c, &m, ret_fd);
    c->warm = m.type == SPAWN_CREATED && m.u.created.warm;
    if (m.type == SPAWN_CREATED)
        return 0;
    *e = m.u.done.err;
    return -1;
}

void spawn_client_destroy(struct spawn_client *c, const char *id)
{
    struct spawn_msg m = {.type = SPAWN_DESTROY};

    m.u.destroy.id = str_of(id);
    m = spawn_client_call(c, &m, NULL);
    if (m.type != SPAWN_DONE || m.u.done.err.code != ERR_NONE)
        die("destroy", m.u.done.err.msg);
}

int spawn_client_stop(struct spawn_client *c, const char *id, struct err *e)
{
    struct spawn_msg m = {.type = SPAWN_DESTROY};

    m.u.destroy = (struct spawn_destroy){str_of(id), 1};
    *e = spawn_client_call(c, &m, NULL).u.done.err;
    return e->code == ERR_NONE ? 0 : -1;
}

void spawn_client_remove_state(const char *state)
{
    if (scratch_remove(state) < 0)
        die("remove the state directory", strerror(errno));
}

void spawn_client_become(const char *uid_text, const char **programs, size_t n)
{
    static char paths[2][32];
    uint64_t uid;

    CHECK(n <= ARRAY_LEN(paths) && str_parse_u64(str_of(uid_text), &uid) == 0);
    for (size_t i = 0; i < n; i++) {
        int fd = open(programs[i], O_RDONLY);

        CHECK(fd >= 0);
        (void)snprintf(paths[i], sizeof paths[i], "/proc/self/fd/%d", fd);
        programs[i] = paths[i];
    }
    CHECK(setgroups(0, NULL) == 0 && setresgid((gid_t)uid, (gid_t)uid, (gid_t)uid) == 0 &&
          setresuid((uid_t)uid, (uid_t)uid, (uid_t)uid) == 0);
    CHECK(chdir("/tmp") == 0);
}
