/* link: the connection to holtd: requests in, verdicts and questions out. */

/* One holtd at a time, the newest replaces it.  Verdicts wait in a bounded queue; answers to one
 * holtd are not for the next.  Nothing here ends a connection of a sandbox. */
#include "egress/egress.h"

#include "egress/ca.h"

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define QUEUE_MAX 4096 /* packets */

struct packet {
    struct list link;
    size_t n;
    uint8_t bytes[];
};

static struct {
    struct egress *all;
    uid_t served;
    int listener, client; /* client: -1: none */
    uv_poll_t listener_poll, *client_poll;
    uv_prepare_t prepare;
    bool greeted, waits; /* waits: until holtd reads more */
    struct list replies, verdicts;
    size_t reply_count, verdict_count;
    uint32_t dropped;
} l = {.listener = -1, .client = -1};

static void flush(void);

/* ---- the connection ---- */

static void on_poll_closed(uv_handle_t *h)
{
    mem_free(h);
}

static void clear(struct list *q, size_t *count)
{
    struct list *link;

    while ((link = list_pop(q)))
        mem_free(LIST_ENTRY(link, struct packet, link));
    *count = 0;
}

static void drop_client(void)
{
    if (l.client < 0)
        return;
    uv_close((uv_handle_t *)TAKE(l.client_poll), on_poll_closed);
    fd_close(TAKE_FD(l.client));
    l.greeted = l.waits = false;
    clear(&l.replies, &l.reply_count);
}

bool link_is_up(void)
{
    return l.greeted;
}

/* ---- sending ---- */

static void queue(struct list *q, size_t *count, const struct egress_msg *m)
{
    static uint8_t bytes[EGRESS_PACKET_MAX];
    struct wire_out o = {.p = bytes, .size = sizeof bytes};
    struct packet *p;
    struct err e;

    if (egress_encode(m, EGRESS_EGRESS, &o, &e) < 0) {
        log_error("encode a packet", LOG_E(&e));
        return;
    }
    p = xmalloc(sizeof *p + o.n);
    p->n = o.n;
    memcpy(p->bytes, bytes, o.n);
    list_push(q, &p->link);
    (*count)++;
}

/* A new holtd gets every sandbox and every open question at once. */
static bool is_full(void)
{
    return l.reply_count >= QUEUE_MAX + l.all->boxes.count + l.all->connections_max;
}

static void reply(const struct egress_msg *m)
{
    if (l.client < 0)
        return;
    if (is_full()) { /* it sends requests and does not read */
        drop_client();
        return;
    }
    queue(&l.replies, &l.reply_count, m);
    flush();
}

static bool send_all(struct list *q, size_t *count)
{
    while (!list_is_empty(q)) {
        struct packet *p = LIST_ENTRY(q->next, struct packet, link);

        if (send(l.client, p->bytes, p->n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
            return false; /* a broken connection is noticed when reading */
        list_unlink(&p->link);
        (*count)--;
        mem_free(p);
    }
    return true;
}

static void on_client(uv_poll_t *p, int status, int events);

static void flush(void)
{
    bool all;

    if (l.client < 0)
        return;
    all = send_all(&l.replies, &l.reply_count);
    if (all && l.greeted)
        all = send_all(&l.verdicts, &l.verdict_count);
    if (l.waits != all)
        return;
    l.waits = !all;
    (void)uv_poll_start(l.client_poll, UV_READABLE | (all ? 0 : UV_WRITABLE), on_client);
}

/* Verdicts are sent after the turn's connections were served: they are not urgent. */
static void on_prepare(uv_prepare_t *h)
{
    (void)h;
    if (l.verdict_count > 0 && !l.waits)
        flush();
}

void link_verdict(struct box *b, struct egress_verdict *v)
{
    struct egress_msg m = {.type = EGRESS_VERDICT};
    int64_t now = (int64_t)uv_now(&b->all->loop);

    if (now - b->second >= 1000) {
        b->second = now;
        b->verdicts = 0;
    }
    if (++b->verdicts > BOX_VERDICTS || l.verdict_count >= QUEUE_MAX) {
        b->folded++;
        l.dropped++;
        return;
    }
    v->id = str_of(b->id);
    v->folded = b->folded;
    b->folded = 0;
    m.u.verdict = *v;
    queue(&l.verdicts, &l.verdict_count, &m);
}

bool link_question(const struct egress_question *q)
{
    struct egress_msg m = {.type = EGRESS_QUESTION};

    if (is_full())
        return false;
    m.u.question = *q;
    reply(&m);
    return true;
}

/* ---- requests ---- */

static void reply_done(uint32_t tag, const struct err *e)
{
    struct egress_msg m = {.type = EGRESS_DONE, .tag = tag};

    m.u.done.err = *e;
    reply(&m);
}

static void on_hello(const struct egress_hello *h)
{
    struct egress_msg m = {.type = EGRESS_KNOWN};
    struct str key;
    void *value;
    bool fits = h->version_min <= EGRESS_VERSION && h->version_max >= EGRESS_VERSION;

    for (size_t at = 0; map_next(&l.all->boxes, &at, &key, &value) && l.client >= 0;) {
        if (!((const struct box *)value)->is_set)
            continue;
        m.u.name.id = key;
        queue(&l.replies, &l.reply_count, &m);
    }
    m.type = EGRESS_WELCOME;
    m.u.welcome = (struct egress_welcome){fits ? EGRESS_VERSION : 0, l.dropped, ca_is_there()};
    l.dropped = 0;
    reply(&m);
    l.greeted = fits && l.client >= 0;
    if (l.greeted)
        conn_ask_again(l.all);
    flush();
}

static void close_fds(const int *fds, size_t n)
{
    for (size_t i = 0; i < n; i++)
        fd_close(fds[i]);
}

/* fds are taken. */
static int set_box(const struct egress_set *set, const int *fds, size_t n, struct err *e)
{
    if (n == 0 || fd_spares_fill(&l.all->spares))
        return box_set(l.all, set, fds, e);
    close_fds(fds, n);
    (void)!fd_spares_fill(&l.all->spares);
    err_set(e, ERR_LIMIT, EMFILE, "holt-egress cannot listen for sandbox '" STR_FMT "'",
            STR_ARG(set->id));
    return err_hint(e, "destroy some, or raise the limit of open files (LimitNOFILE=, ulimit -n)");
}

static void dispatch(const struct egress_msg *m, const int *fds, size_t n)
{
    struct err e = {0};

    if (m->type == EGRESS_HELLO) {
        on_hello(&m->u.hello);
    } else if (!l.greeted) {
        close_fds(fds, n);
        drop_client();
    } else if (m->type == EGRESS_SET) {
        (void)!set_box(&m->u.set, fds, n, &e);
        reply_done(m->tag, &e);
    } else if (m->type == EGRESS_REMOVE) {
        box_remove(l.all, m->u.name.id);
        reply_done(m->tag, &e);
    } else if (m->type == EGRESS_LISTEN) {
        (void)!gate_open(l.all, &m->u.listen, &e);
        reply_done(m->tag, &e);
    } else if (m->type == EGRESS_CA) {
        (void)!ca_set(m->u.ca.cert, m->u.ca.key, &e);
        reply_done(m->tag, &e);
    } else if (m->type == EGRESS_SECRETS) {
        (void)!box_secrets(l.all, &m->u.secrets, &e);
        reply_done(m->tag, &e);
    } else if (m->type == EGRESS_LEAD) {
        box_lead(l.all, &m->u.lead, fds[0]);
    } else if (m->type == EGRESS_ANSWER) {
        conn_answer(l.all, &m->u.answer);
    }
}

static size_t take_fds(struct msghdr *h, int *to)
{
    size_t n = 0;

    for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
        size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof *to;

        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; i < count; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            if (n < EGRESS_FDS_MAX)
                to[n++] = fd;
            else
                fd_close(fd);
        }
    }
    return n;
}

static void on_client(uv_poll_t *p, int status, int events)
{
    static char bytes[EGRESS_PACKET_MAX];
    union {
        char bytes[CMSG_SPACE(EGRESS_FDS_MAX * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec iov = {.iov_base = bytes, .iov_len = sizeof bytes};
    struct msghdr h = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof control.bytes};
    int fds[EGRESS_FDS_MAX];
    struct egress_msg m;
    struct err e;
    ssize_t n;
    size_t fd_count;

    (void)status;
    if (p != l.client_poll)
        return;
    if (events & UV_WRITABLE)
        flush();
    fd_spares_free(&l.all->spares); /* otherwise they would be lost: unix(7), MSG_CTRUNC */
    n = recvmsg(l.client, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    (void)!fd_spares_fill(&l.all->spares);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        drop_client();
        return;
    }
    fd_count = take_fds(&h, fds);
    if ((h.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) ||
        egress_decode(str_make(bytes, (size_t)n), fd_count, EGRESS_HOST, &m, &e) < 0) {
        log_warn("holtd's connection is closed: a packet is malformed");
        close_fds(fds, fd_count);
        drop_client();
        return;
    }
    dispatch(&m, fds, fd_count);
    if (m.type == EGRESS_CA || m.type == EGRESS_SECRETS)
        mem_wipe(bytes, (size_t)n);
}

/* ---- listening ---- */

static void on_listener(uv_poll_t *p, int status, int events)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    int fd;

    fd_spares_free(&l.all->spares);
    fd = accept4(l.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    (void)!fd_spares_fill(&l.all->spares);
    (void)p;
    (void)status;
    (void)events;
    if (fd < 0)
        return;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 ||
        (peer.uid != l.served && peer.uid != 0)) {
        fd_close(fd);
        return;
    }
    drop_client();
    l.client_poll = xzalloc(sizeof *l.client_poll);
    if (uv_poll_init(&l.all->loop, l.client_poll, fd) < 0) {
        mem_free(TAKE(l.client_poll));
        fd_close(fd);
        return;
    }
    l.client = fd;
    (void)uv_poll_start(l.client_poll, UV_READABLE, on_client);
}

int link_open(struct egress *all, const char *state, uid_t served, struct err *e)
{
    AUTO(fd_close) int dir = open(state, O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    l.all = all;
    l.served = served;
    l.listener = fd;
    list_init(&l.replies);
    list_init(&l.verdicts);
    (void)!fd_spares_fill(&all->spares);
    if (dir < 0)
        return err_set(e, err_code_from_errno(errno), errno, "open '%s'", state);
    (void)unlinkat(dir, "egress.sock", 0);
    /* Through /proc: sun_path holds 108 bytes, and the state directory may be anywhere. */
    (void)snprintf(at.sun_path, sizeof at.sun_path, "/proc/self/fd/%d/egress.sock", dir);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) < 0 ||
        fchmodat(dir, "egress.sock", 0600, 0) < 0 ||
        (served != geteuid() &&
         fchownat(dir, "egress.sock", served, (gid_t)-1, AT_SYMLINK_NOFOLLOW) < 0) ||
        listen(fd, 8) < 0 || uv_poll_init(&all->loop, &l.listener_poll, fd) < 0)
        return err_set(e, err_code_from_errno(errno), errno, "listen on 'egress.sock'");
    (void)uv_poll_start(&l.listener_poll, UV_READABLE, on_listener);
    (void)uv_prepare_init(&all->loop, &l.prepare);
    (void)uv_prepare_start(&l.prepare, on_prepare);
    return 0;
}
