/* server: holtd's requests to holt-spawn. */
#include "spawn/server.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/rnd.h"
#include "spawn/discard.h"
#include "spawn/measure.h"
#include "spawn/sandbox.h"
#include "spawn/snapshot.h"
#include "spawn/spare.h"
#include "wire/init_order.h"

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define PACKETS_AT_ONCE 64

static struct watch listener = {.fd = -1}, client = {.fd = -1};
static bool greeted;
static char installation[SPAWN_ID_MAX + 1];
static uint8_t epoch[16];
static int64_t alone_since_ms;

int64_t server_alone_ms(void)
{
    return client.fd >= 0 ? -1 : clock_mono_ms() - alone_since_ms;
}

static void drop_client(void)
{
    loop_remove(&client);
    alone_since_ms = clock_mono_ms();
    greeted = false;
    sandbox_forget_tags();
}

const char *server_installation(void)
{
    return installation;
}

static bool is_theirs(const struct sandbox *s)
{
    return s->installation[0] == '\0' || strcmp(s->installation, installation) == 0;
}

static void send_fds(const struct spawn_msg *m, const int *fds, size_t n)
{
    static uint8_t bytes[SPAWN_PACKET_MAX];
    struct wire_out o = {.p = bytes, .size = sizeof bytes};
    struct iovec iov = {.iov_base = bytes};
    union {
        char bytes[CMSG_SPACE(SPAWN_LISTENER_COUNT * sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};
    struct err e;

    if (client.fd < 0)
        return;
    if (spawn_encode(m, SPAWN_SPAWN, &o, &e) < 0) {
        log_error("encode a reply", LOG_E(&e));
        return;
    }
    iov.iov_len = o.n;
    if (n > 0) {
        h.msg_control = control.bytes;
        h.msg_controllen = CMSG_SPACE(n * sizeof *fds);
        *CMSG_FIRSTHDR(&h) = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
                                              .cmsg_type = SCM_RIGHTS,
                                              .cmsg_len = CMSG_LEN(n * sizeof *fds)};
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&h)), fds, n * sizeof *fds);
    }
    /* A full socket means that the client does not read its replies: drop it instead of waiting. */
    if (sendmsg(client.fd, &h, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        drop_client();
}

void server_send(const struct spawn_msg *m, int fd)
{
    send_fds(m, &fd, fd >= 0 ? 1 : 0);
}

void server_done(uint32_t tag, const struct err *e)
{
    struct spawn_msg m = {.type = SPAWN_DONE, .tag = tag};

    if (tag == 0)
        return;
    if (e)
        m.u.done.err = *e;
    server_send(&m, -1);
}

static void fail_errno(uint32_t tag, int r, const char *what, struct str id)
{
    struct err e;

    if (r == 0) {
        server_done(tag, NULL);
        return;
    }
    (void)err_set(&e, r == -ENOSYS ? ERR_UNSUPPORTED : err_code_from_errno(-r), -r,
                  "%s sandbox '" STR_FMT "'", what, STR_ARG(id));
    server_done(tag, &e);
}

/* ---- requests ---- */

static void on_hello(const struct spawn_msg *m)
{
    struct spawn_msg reply = {.type = SPAWN_WELCOME, .tag = m->tag};

    greeted = m->u.hello.version_min <= SPAWN_VERSION && m->u.hello.version_max >= SPAWN_VERSION;
    reply.u.welcome = (struct spawn_welcome){.version = greeted ? SPAWN_VERSION : 0,
                                             .rootless = host.rootless,
                                             .features = host.features};
    memcpy(reply.u.welcome.epoch, epoch, sizeof epoch);
    (void)snprintf(installation, sizeof installation, STR_FMT, STR_ARG(m->u.hello.installation));
    server_send(&reply, -1);
}

static void on_list(const struct spawn_msg *m)
{
    static struct spawn_list_row rows[SPAWN_LIST_MAX];
    struct spawn_msg reply = {.type = SPAWN_LISTED, .tag = m->tag};
    struct sandbox *s = sandbox_after(m->u.list.after);
    uint32_t n = 0;

    for (; s && n < SPAWN_LIST_MAX; s = sandbox_after(str_of(s->id)))
        if (is_theirs(s))
            rows[n++] = (struct spawn_list_row){str_of(s->id), (uint8_t)s->state, s->confirmed,
                                                str_of(s->oci ? s->oci->name : "")};
    reply.u.listed = (struct spawn_listed){s != NULL, {.count = n, .items = rows}};
    server_send(&reply, -1);
}

static void on_adopt(const struct spawn_msg *m, struct sandbox *s)
{
    struct spawn_msg reply = {.type = SPAWN_CREATED, .tag = m->tag};
    char path[64];

    (void)snprintf(path, sizeof path, "sb/%s/init.sock", s->id);
    reply.u.created = (struct spawn_created){(uint32_t)s->pid, s->enforced, str_of(path), false};
    if (s->state == SPAWN_RUNNING)
        server_send(&reply, s->ended.fd);
    else
        fail_errno(m->tag, -ESRCH, "adopt", m->u.name.id);
}

static int signal_init(struct sandbox *s, int signal)
{
    return s->pid == 0 || syscall(SYS_pidfd_send_signal, s->ended.fd, signal, NULL, 0) == 0
               ? 0
               : -errno;
}

/* Without a cgroup, init does it to everything it has started.  pause: on or off, or -1:
 * unchanged. */
static int order_init(struct sandbox *s, bool kill, int pause)
{
    struct init_order order;
    struct rlimit l;

    if (s->pid == 0)
        return 0;
    if (prlimit(s->pid, RLIMIT_LOCKS, NULL, &l) < 0)
        return -errno;
    order = init_order_from(l.rlim_cur);
    order.kills += kill;
    order.paused = pause < 0 ? order.paused : pause;
    l.rlim_cur = init_order_to(order);
    return prlimit(s->pid, RLIMIT_LOCKS, &l, NULL) < 0 ? -errno : signal_init(s, INIT_LOOK);
}

static void on_kill(const struct spawn_msg *m, struct sandbox *s)
{
    bool only_work = m->u.kill.scope == SPAWN_WORK;
    int r = cgroup_kill(s, only_work);

    if (r < 0)
        r = only_work ? order_init(s, true, -1) : signal_init(s, SIGKILL);
    fail_errno(m->tag, r, "kill", m->u.kill.id);
}

static void on_pause(const struct spawn_msg *m, struct sandbox *s)
{
    int r = cgroup_freeze(s, m->u.pause.on);

    if (r == -ENOSYS)
        r = order_init(s, false, m->u.pause.on);
    fail_errno(m->tag, r, m->u.pause.on ? "pause" : "resume", m->u.pause.id);
}

/* Given away: they are holt-egress's alone, and cost nothing here. */
static void on_listen(const struct spawn_msg *m, struct sandbox *s)
{
    struct spawn_msg reply = {.type = SPAWN_LISTENERS, .tag = m->tag};
    int fds[SPAWN_LISTENER_COUNT];
    size_t n = 0;
    struct err e;

    if (sandbox_listeners(s, &reply.u.listeners, &e) < 0) {
        server_done(m->tag, &e);
        return;
    }
    for (size_t i = 0; i < SPAWN_LISTENER_COUNT; i++)
        if (s->net[i] >= 0)
            fds[n++] = s->net[i];
    send_fds(&reply, fds, n);
    (void)undo_network(s);
}

/* In requests about one sandbox the id is the first field. */
static void on_named(const struct spawn_msg *m)
{
    struct sandbox *s = sandbox_find(m->u.name.id);
    struct err e;

    if (s && !is_theirs(s)) {
        (void)err_set(&e, ERR_FORBIDDEN, 0, "sandbox '%s' belongs to installation '%s'", s->id,
                      s->installation);
        server_done(m->tag, &e);
    } else if (!s) {
        if (m->type == SPAWN_DESTROY)
            sandbox_cancel(m->u.name.id);
        fail_errno(m->tag, m->type == SPAWN_DESTROY ? 0 : -ENOENT, "find", m->u.name.id);
    } else if (m->type == SPAWN_ADOPT) {
        on_adopt(m, s);
    } else if (m->type == SPAWN_CONFIRM) {
        fail_errno(m->tag, record_confirm(s), "confirm", m->u.name.id);
    } else if (m->type == SPAWN_OOMS) {
        oom_look(s);
        server_done(m->tag, NULL);
    } else if (m->type == SPAWN_KILL) {
        on_kill(m, s);
    } else if (m->type == SPAWN_PAUSE) {
        on_pause(m, s);
    } else if (m->type == SPAWN_STATS_GET) {
        sandbox_stats(s, m->tag);
    } else if (m->type == SPAWN_LISTEN) {
        on_listen(m, s);
    } else if (m->type == SPAWN_SNAPSHOT) {
        snapshot_begin(&m->u.snapshot, s, m->tag);
    } else {
        sandbox_destroy(s, m->tag, m->u.destroy.keep);
    }
}

static void on_pool(const struct spawn_msg *m)
{
    struct spawn_msg reply = {.type = SPAWN_POOLED, .tag = m->tag};

    host.netns_want = m->u.pool.netns;
    if (m->u.pool.spares != SPAWN_SPARES_KEEP)
        spare_want(m->u.pool.spares);
    reply.u.pooled = (struct spawn_pooled){spare_ready_count(), spare_broken_count()};
    server_send(&reply, -1);
}

static void dispatch(const struct spawn_msg *m)
{
    if (m->type == SPAWN_HELLO) {
        on_hello(m);
    } else if (!greeted) {
        drop_client();
    } else if (m->type == SPAWN_CREATE) {
        sandbox_create(&m->u.create, m->tag);
    } else if (m->type == SPAWN_LIST) {
        on_list(m);
    } else if (m->type == SPAWN_DISCARD) {
        discard_begin(&m->u.discard, m->tag);
    } else if (m->type == SPAWN_MEASURE) {
        measure_begin(&m->u.measure, m->tag);
    } else if (m->type == SPAWN_SNAPSHOT && m->u.snapshot.mode == SPAWN_SNAPSHOT_HASH) {
        snapshot_begin(&m->u.snapshot, NULL, m->tag);
    } else if (m->type == SPAWN_POOL) {
        on_pool(m);
    } else {
        on_named(m);
    }
}

/* False: there are no more for now, or no client. */
static bool take_packet(struct watch *w)
{
    static char bytes[SPAWN_PACKET_MAX + 1];
    ssize_t n = recv(w->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    struct spawn_msg m;
    struct err e;

    /* descriptors sent to us are never received: there is no room for them */
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0) {
        drop_client();
        return false;
    }
    if (spawn_decode(str_make(bytes, (size_t)n), 0, SPAWN_HOST, &m, &e) < 0) {
        log_warn("drop holtd's connection", LOG_E(&e));
        drop_client();
        return false;
    }
    dispatch(&m);
    return w->fd >= 0;
}

/* Some at a time: a later one may have a fitting spare. */
static void on_client(struct watch *w, uint32_t events)
{
    (void)events;
    for (int i = 0; i < PACKETS_AT_ONCE && take_packet(w); i++)
        ;
}

static void on_accept(struct watch *w, uint32_t events)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    int fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    (void)events;
    if (fd < 0)
        return;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 ||
        (peer.uid != host.served && peer.uid != geteuid())) {
        fd_close(fd);
        return;
    }
    drop_client(); /* the newest replaces it */
    loop_add(&client, fd, on_client);
    loop_want(&client, EPOLLIN);
}

int server_listen(int state_dir, struct err *e)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    rnd_bytes(epoch, sizeof epoch);
    alone_since_ms = clock_mono_ms();
    (void)unlinkat(state_dir, "spawn.sock", 0);
    (void)snprintf(at.sun_path, sizeof at.sun_path, "/proc/self/fd/%d/spawn.sock", state_dir);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) < 0 ||
        host_hand_over(state_dir, "spawn.sock") < 0 || listen(fd, 8) < 0)
        return err_set(e, err_code_from_errno(errno), errno, "listen on 'spawn.sock'");
    loop_add(&listener, fd, on_accept);
    loop_want(&listener, EPOLLIN);
    return 0;
}
