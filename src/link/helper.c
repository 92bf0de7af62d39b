/* helper: the link to a helper program: its calls, its connection, its start. */
#include "link/helper.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/launch.h"
#include "base/mem.h"
#include "base/starter.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define TRY_MS 20       /* between two tries to connect: at first, and … */
#define TRY_MAX_MS 200  /* … at most */
#define LAUNCH_MS 200   /* between two starts of the program: at first, and … */
#define LAUNCH_MAX 5000 /* … at most */
#define GREET_MS 5000   /* how long it may take to send welcome */
#define START_MS 15000  /* for a busy machine; one that ends at its start is noticed at once */
#define LOOK_MS 5
#define SAID_MAX 4096
#define RECEIVE_MAX 64 /* packets of one turn of the loop */

struct helper {
    struct helper_config c;
    char *state, *bindir, *log;
    int dir, fd;     /* fd: -1: no connection */
    uv_poll_t *poll; /* of fd */
    int events;      /* requested from it */
    uv_timer_t timer;
    int64_t due_ms; /* of the timer; INT64_MAX: it is not set */
    bool started, up, closed;
    int pidfd; /* of the process we started; -1: none */
    int64_t try_ms, next_try_ms, launch_ms, next_launch_ms, greet_until_ms;
    uint32_t last_tag;
    struct list calls;  /* in the order of the requests */
    struct list *first; /* while welcomed is called: where its calls go; else the list's end */
    size_t count;
    unsigned refs; /* held by itself, the timer, each poll handle */
    void *msg;
    char packet[PACKET_MAX];
};

static void on_timer(uv_timer_t *t);
static void on_poll(uv_poll_t *p, int status, int events);

void helper_fds_close(struct helper_fds *f)
{
    while (f->n > 0)
        fd_close(f->fd[--f->n]);
}

static void unref(struct helper *h)
{
    if (--h->refs > 0)
        return;
    mem_free(h->msg);
    mem_free(h);
}

/* Makes the timer fire then, unless it fires before. */
static void arm(struct helper *h, int64_t at_ms)
{
    int64_t now = clock_mono_ms();

    if (h->closed || at_ms >= h->due_ms)
        return;
    h->due_ms = at_ms;
    (void)uv_timer_start(&h->timer, on_timer, at_ms > now ? (uint64_t)(at_ms - now) : 0, 0);
}

static const char *program(const struct helper *h)
{
    return h->c.protocol->helper;
}

/* ---- calls ---- */

static void send_calls(struct helper *h);

static void *queue_call(struct helper *h, struct helper_call *c)
{
    list_push(h->first ? h->first : &h->calls, &c->node);
    if (++h->count > h->c.calls_max) {
        (void)err_set(&c->err, ERR_LIMIT, 0, "%zu requests wait for %s", h->c.calls_max,
                      program(h));
        (void)err_limit_fixed(&c->err, (int64_t)h->c.calls_max, "try again in a moment");
    }
    return c;
}

void *helper_call_new(struct helper *h, size_t size, unsigned flags)
{
    struct helper_call *c = xzalloc(size);

    assert(size >= sizeof *c && !h->closed);
    c->h = h;
    c->flags = flags;
    c->since_ms = clock_mono_ms();
    return queue_call(h, c);
}

void helper_call_deadline(struct helper_call *c, int64_t ms)
{
    c->until_ms = clock_mono_ms() + ms;
    arm(c->h, c->until_ms);
}

static void call_end(struct helper_call *c, const void *msg)
{
    list_unlink(&c->node);
    c->h->count--;
    helper_fds_close(&c->out);
    c->end(c, c->err.code == ERR_NONE ? msg : NULL);
    helper_fds_close(&c->in);
    if (c->packet)
        mem_wipe(c->packet, c->size);
    mem_free(c->packet);
    mem_free(c);
}

static void call_fail(struct helper_call *c, const struct err *e)
{
    c->err = *e;
    c->over = true;
    arm(c->h, clock_mono_ms());
}

void helper_call_send(struct helper_call *c, void *msg)
{
    static uint8_t bytes[PACKET_MAX];
    struct wire_out o = {.p = bytes, .size = sizeof bytes};
    struct helper *h = c->h;
    struct packet_head head;

    assert(c->end && !c->packet);
    memcpy(&head, msg, sizeof head);
    if (!h->c.protocol->types[head.type].untagged) {
        h->last_tag += h->last_tag >= PACKET_HELLO_TAG - 1 ? 2 : 1;
        h->last_tag += h->last_tag == 0;
        c->tag = head.tag = h->last_tag;
    }
    memcpy(msg, &head, sizeof head);
    if (c->err.code == ERR_NONE &&
        packet_encode(h->c.protocol, msg, PACKET_HOST, &o, &c->err) == 0) {
        c->packet = xmemdup(bytes, o.n);
        c->size = o.n;
    }
    mem_wipe(bytes, o.n);
    if (c->err.code != ERR_NONE) {
        c->over = true;
        arm(h, clock_mono_ms());
        return;
    }
    if (!h->up && h->c.lack_ms > 0 && !(c->flags & HELPER_PATIENT))
        arm(h, c->since_ms + h->c.lack_ms);
    helper_start(h);
    send_calls(h);
}

static struct helper_call *find_call(struct helper *h, uint32_t tag)
{
    LIST_EACH (&h->calls, node) {
        struct helper_call *c = LIST_ENTRY(node, struct helper_call, node);

        if (c->tag == tag && c->sent && !c->over)
            return c;
    }
    return NULL;
}

/* ---- packets ---- */

/* 1: sent; 0: not now.  A broken connection is noticed when reading. */
static int send_packet(int fd, struct str packet, const struct helper_fds *fds)
{
    union {
        char bytes[CMSG_SPACE(PACKET_FDS_MAX * sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    struct iovec iov = {.iov_base = (void *)(uintptr_t)packet.p, .iov_len = packet.n};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    size_t size = fds->n * sizeof(int);

    if (size > 0) {
        m.msg_control = control.bytes;
        m.msg_controllen = CMSG_SPACE(size);
        *CMSG_FIRSTHDR(&m) = (struct cmsghdr){
            .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(size)};
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), fds->fd, size);
    }
    return sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

static void take_passed(struct msghdr *m, struct helper_fds *to)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
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

static int no_descriptors(const struct helper *h, struct err *e)
{
    (void)err_set(e, ERR_LIMIT, EMFILE, "take the descriptors that %s sent", program(h));
    return err_hint(e, "raise holtd's limit of open files (LimitNOFILE=, ulimit -n)");
}

/* 1: a message in h->msg; 0: none has arrived. */
static int receive(struct helper *h, struct helper_fds *fds, struct err *e)
{
    union {
        char bytes[CMSG_SPACE(PACKET_FDS_MAX * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec iov = {.iov_base = h->packet, .iov_len = sizeof h->packet};
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof control.bytes};
    ssize_t n = recvmsg(h->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    int r;

    fds->n = 0;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        return err_set(e, ERR_UNAVAILABLE, n < 0 ? errno : 0, "%s closed its connection",
                       program(h));
    take_passed(&m, fds);
    if (m.msg_flags & MSG_TRUNC)
        r = err_set(e, ERR_INTERNAL, 0, "%s sent too large a packet", program(h));
    else if (m.msg_flags & MSG_CTRUNC) /* unix(7): descriptors that did not fit are lost */
        r = no_descriptors(h, e);
    else
        r = packet_decode(h->c.protocol, str_make(h->packet, (size_t)n), fds->n, PACKET_HELPER,
                          h->msg, e);
    if (r < 0)
        helper_fds_close(fds);
    return r < 0 ? -1 : 1;
}

/* ---- the connection ---- */

static void poll_closed(uv_handle_t *p)
{
    unref(p->data);
    mem_free(p);
}

/* Each start costs two system calls: only for a change. */
static void want(struct helper *h, bool write)
{
    int events = UV_READABLE | (write ? UV_WRITABLE : 0);

    if (h->poll && h->events != events && uv_poll_start(h->poll, events, on_poll) == 0)
        h->events = events;
}

static int watch(struct helper *h, struct err *e)
{
    uv_poll_t *p = xzalloc(sizeof *p);
    int r = uv_poll_init(h->c.loop, p, h->fd);

    if (r < 0) {
        mem_free(p);
        return err_set(e, ERR_INTERNAL, -r, "watch %s", program(h));
    }
    p->data = h;
    h->refs++;
    h->poll = p;
    h->events = 0;
    want(h, false);
    return 0;
}

static void close_connection(struct helper *h)
{
    h->up = false;
    if (h->poll)
        uv_close((uv_handle_t *)TAKE(h->poll), poll_closed);
    fd_close(TAKE_FD(h->fd));
}

static void disconnect(struct helper *h, const struct err *e)
{
    struct err why = *e;

    if (h->fd < 0)
        return;
    close_connection(h);
    LIST_EACH (&h->calls, node) {
        struct helper_call *c = LIST_ENTRY(node, struct helper_call, node);

        if (c->sent && (c->flags & HELPER_ONCE))
            call_fail(c, &why);
        else if (c->sent && h->c.lack_ms > 0)
            c->since_ms = clock_mono_ms();
        c->sent = false;
    }
    h->try_ms = TRY_MS;
    h->next_try_ms = clock_mono_ms() + h->try_ms;
    arm(h, h->next_try_ms);
    h->c.ops->down(h->c.arg, &why);
}

static void send_calls(struct helper *h)
{
    bool full = false;

    if (!h->up)
        return;
    LIST_EACH (&h->calls, node) {
        struct helper_call *c = LIST_ENTRY(node, struct helper_call, node);

        if (c->sent || c->over || !c->packet)
            continue;
        full = send_packet(h->fd, str_make(c->packet, c->size), &c->out) == 0;
        if (full)
            break;
        c->sent = true;
        helper_fds_close(&c->out);
        if (c->tag == 0) { /* no reply is expected */
            c->over = true;
            arm(h, clock_mono_ms());
        }
    }
    want(h, full);
}

static int say_hello(struct helper *h, struct err *e)
{
    const struct packet_protocol *p = h->c.protocol;
    struct packet_head head = {p->hello,
                               p->types[p->hello].untagged ? 0 : (uint32_t)PACKET_HELLO_TAG};
    uint8_t bytes[512];
    struct wire_out o = {.p = bytes, .size = sizeof bytes};

    memset(h->msg, 0, p->size);
    memcpy(h->msg, &head, sizeof head);
    h->c.ops->hello(h->c.arg, h->msg);
    if (packet_encode(p, h->msg, PACKET_HOST, &o, e) < 0)
        return err_wrap(e, "greet %s", program(h));
    if (!send_packet(h->fd, str_make(bytes, o.n), &(struct helper_fds){0}))
        return err_set(e, ERR_UNAVAILABLE, errno, "greet %s", program(h));
    return 0;
}

/* 1: welcome; 0: a packet that comes before it. */
static int check_welcome(struct helper *h, struct err *e)
{
    struct packet_head head;
    uint16_t version;

    memcpy(&head, h->msg, sizeof head);
    if (head.type != h->c.protocol->welcome)
        return 0;
    memcpy(&version, (const char *)h->msg + h->c.protocol->body, sizeof version);
    if (version != h->c.protocol->version) {
        (void)err_set(e, ERR_UNSUPPORTED, 0, "%s is of another release", program(h));
        return err_hint(e, "restart it: systemctl restart %s, or `holt down` and start holtd again",
                        program(h));
    }
    h->launch_ms = 0;
    h->first = h->calls.next;
    h->c.ops->welcomed(h->c.arg, h->msg);
    h->first = NULL;
    h->up = true;
    return 1;
}

static void on_message(struct helper *h, struct helper_fds *fds)
{
    struct helper_call *c;
    struct packet_head head;

    memcpy(&head, h->msg, sizeof head);
    if (head.tag == 0 || head.tag == PACKET_HELLO_TAG) {
        h->c.ops->event(h->c.arg, h->msg, fds);
        return;
    }
    c = find_call(h, head.tag);
    if (!c)
        return; /* its deadline has passed */
    c->in = *fds;
    fds->n = 0;
    call_end(c, h->msg);
}

static int take_message(struct helper *h, struct helper_fds *fds, struct err *e)
{
    int r = h->up ? 0 : check_welcome(h, e);

    if (r == 0)
        on_message(h, fds);
    else if (r > 0 && h->c.ops->up)
        h->c.ops->up(h->c.arg);
    return r;
}

static void on_poll(uv_poll_t *p, int status, int events)
{
    struct helper *h = p->data;
    struct helper_fds fds;
    struct err e = {0};
    int r = 1;

    (void)events;
    h->refs++;
    for (int i = 0; i < RECEIVE_MAX && r > 0 && p == h->poll; i++) {
        r = receive(h, &fds, &e);
        if (r > 0 && take_message(h, &fds, &e) < 0)
            r = -1;
        helper_fds_close(&fds);
    }
    if (r >= 0 && status < 0) /* its last packets were read; libuv stops watching */
        r = err_set(&e, ERR_UNAVAILABLE, -status, "wait for %s", program(h));
    if (p == h->poll && r < 0)
        disconnect(h, &e);
    else if (p == h->poll)
        send_calls(h);
    unref(h);
}

/* ---- start ---- */

int helper_connect_below(int dir, int type, const char *name)
{
    AUTO(fd_close) int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_un at = {.sun_family = AF_UNIX};

    (void)snprintf(at.sun_path, sizeof at.sun_path, "/proc/self/fd/%d/%s", dir, name);
    if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at) < 0)
        return -errno;
    return TAKE_FD(fd);
}

static int open_socket(struct helper *h, struct err *e)
{
    char name[64];

    (void)snprintf(name, sizeof name, "%s.sock", h->c.name);
    h->fd = helper_connect_below(h->dir, SOCK_SEQPACKET, name);
    if (h->fd >= 0)
        return 0;
    (void)err_set(e, ERR_UNAVAILABLE, -h->fd, "connect to %s", program(h));
    h->fd = -1;
    return -1;
}

static int launch(struct helper *h, struct err *e)
{
    int r = starter_start(h->c.name, &h->pidfd);

    if (r < 0)
        return err_set(e, ERR_UNSUPPORTED, -r, "run '%s/%s'", h->bindir, program(h));
    return 0;
}

/* A program that we started and that is alive will listen soon, or cannot: a second could not
 * either. */
static void relaunch(struct helper *h, int64_t now)
{
    struct err e = {0};

    if (starter_lives(&h->pidfd) || now < h->next_launch_ms)
        return;
    h->launch_ms = h->launch_ms == 0 ? LAUNCH_MS : i64_min(2 * h->launch_ms, LAUNCH_MAX);
    h->next_launch_ms = now + h->launch_ms;
    if (launch(h, &e) < 0)
        h->c.ops->down(h->c.arg, &e);
}

static void reconnect(struct helper *h, int64_t now)
{
    struct err e = {0};

    if (now < h->next_try_ms) {
        arm(h, h->next_try_ms);
        return;
    }
    if (open_socket(h, &e) == 0 && say_hello(h, &e) == 0 && watch(h, &e) == 0) {
        h->greet_until_ms = now + GREET_MS;
        arm(h, h->greet_until_ms);
        return;
    }
    close_connection(h);
    relaunch(h, now);
    h->try_ms = i64_min(h->try_ms == 0 ? TRY_MS : 2 * h->try_ms, TRY_MAX_MS);
    h->next_try_ms = now + h->try_ms;
    arm(h, h->next_try_ms);
}

/* ---- deadlines ---- */

static void check_greeting(struct helper *h, int64_t now)
{
    struct err e;

    if (now < h->greet_until_ms) {
        arm(h, h->greet_until_ms);
        return;
    }
    (void)err_set(&e, ERR_TIMEOUT, 0, "%s does not answer", program(h));
    disconnect(h, &e);
}

static void check_call(struct helper *h, struct helper_call *c, int64_t now)
{
    bool lacks =
        !h->up && !c->sent && c->packet && h->c.lack_ms > 0 && !(c->flags & HELPER_PATIENT);
    struct err e;

    if (c->over)
        return;
    if (c->until_ms > 0 && now >= c->until_ms) {
        (void)err_set(&e, ERR_TIMEOUT, 0, "%s did not answer in time", program(h));
        call_fail(c, &e);
    } else if (lacks && now - c->since_ms >= h->c.lack_ms) {
        (void)err_set(&e, ERR_UNAVAILABLE, 0, "%s is not running", program(h));
        call_fail(c, &e);
    } else {
        if (c->until_ms > 0)
            arm(h, c->until_ms);
        if (lacks)
            arm(h, c->since_ms + h->c.lack_ms);
    }
}

/* Ends one call that is due; false: there is none.  Its callback may change the list. */
static bool end_one(struct helper *h)
{
    LIST_EACH (&h->calls, node) {
        struct helper_call *c = LIST_ENTRY(node, struct helper_call, node);

        if (c->over) {
            call_end(c, NULL);
            return true;
        }
    }
    return false;
}

static void on_timer(uv_timer_t *t)
{
    struct helper *h = t->data;
    int64_t now = clock_mono_ms();

    h->due_ms = INT64_MAX;
    h->refs++;
    LIST_EACH (&h->calls, node)
        check_call(h, LIST_ENTRY(node, struct helper_call, node), now);
    while (!h->closed && end_one(h))
        ;
    if (!h->closed && h->started && h->fd < 0)
        reconnect(h, now);
    else if (!h->closed && h->fd >= 0 && !h->up)
        check_greeting(h, now);
    unref(h);
}

/* ---- blocking, at start-up ---- */

static int64_t log_size(const struct helper *h)
{
    struct stat st;

    return stat(h->log, &st) < 0 ? 0 : st.st_size;
}

/* The value of error="…" in a line of its log; else the line. */
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

/* Its log after `from` has the reason for its end. */
static int ended_at_start(const struct helper *h, int64_t from, struct err *e)
{
    AUTO(fd_close) int fd = starter_open(h->log); /* it may be root's */
    char said[SAID_MAX];
    ssize_t n = fd < 0 ? -1 : pread(fd, said, sizeof said, from > LAUNCH_LOG_MAX ? 0 : from);
    struct str rest, why;

    if (n <= 0)
        return err_set(e, ERR_UNSUPPORTED, 0, "%s ended at its start", program(h));
    why = reason_in(str_cut(str_make(said, (size_t)n), '\n', &rest));
    return err_set(e, ERR_UNSUPPORTED, 0, "%s ended at its start: " STR_FMT, program(h),
                   (int)size_min(why.n, 200), why.p);
}

static int connect_now(struct helper *h, struct err *e)
{
    int64_t until = clock_mono_ms() + START_MS, said = log_size(h);

    if (open_socket(h, e) == 0)
        return 0;
    if (!starter_lives(&h->pidfd) && launch(h, e) < 0)
        return -1;
    while (clock_mono_ms() < until) {
        if (open_socket(h, e) == 0)
            return 0;
        if (!starter_lives(&h->pidfd))
            return ended_at_start(h, said, e);
        (void)poll(NULL, 0, LOOK_MS);
    }
    return err_wrap(e, "wait for %s", program(h));
}

static int greet_now(struct helper *h, struct err *e)
{
    struct pollfd p = {.fd = h->fd, .events = POLLIN};
    struct helper_fds fds;
    int r = say_hello(h, e);

    while (r == 0) {
        if (poll(&p, 1, GREET_MS) == 0)
            return err_set(e, ERR_TIMEOUT, 0, "%s does not answer", program(h));
        r = receive(h, &fds, e);
        if (r > 0)
            r = take_message(h, &fds, e);
        helper_fds_close(&fds);
    }
    return r < 0 ? -1 : watch(h, e);
}

/* A program being killed may have accepted the connection: then try a new one. */
int helper_start_now(struct helper *h, struct err *e)
{
    int64_t until = clock_mono_ms() + GREET_MS;
    int r;

    do {
        r = connect_now(h, e);
        if (r == 0)
            r = greet_now(h, e);
        if (r < 0)
            close_connection(h);
    } while (r < 0 && e->code == ERR_UNAVAILABLE && clock_mono_ms() < until);
    h->started = r == 0;
    if (r == 0)
        send_calls(h);
    return r;
}

/* ---- life ---- */

struct helper *helper_new(const struct helper_config *c)
{
    struct helper *h = xzalloc(sizeof *h);

    h->c = *c;
    h->state = xstrdup(c->state);
    h->bindir = xstrdup(c->bindir);
    h->log = xasprintf("%s/%s.log", c->state, c->name);
    h->dir = open(c->state, O_PATH | O_DIRECTORY | O_CLOEXEC); /* -1: connecting will fail */
    h->fd = h->pidfd = -1;
    h->due_ms = INT64_MAX;
    h->msg = xzalloc(c->protocol->size);
    h->refs = 2; /* its own, the timer's */
    list_init(&h->calls);
    (void)uv_timer_init(c->loop, &h->timer);
    h->timer.data = h;
    return h;
}

int helper_define(struct helper *h, char *const *argv, struct err *e)
{
    AUTO(mem_free) char *path = xasprintf("%s/%s", h->bindir, program(h));
    int r = starter_define(h->c.name, path, argv, h->log);

    if (r == 0)
        r = starter_allow(h->log);
    return r < 0 ? err_set(e, ERR_INTERNAL, -r, "set the arguments of '%s'", path) : 0;
}

void helper_start(struct helper *h)
{
    if (h->started)
        return;
    h->started = true;
    arm(h, clock_mono_ms());
}

bool helper_is_up(const struct helper *h)
{
    return h->up;
}

int helper_dir(const struct helper *h)
{
    return h->dir;
}

static void timer_closed(uv_handle_t *t)
{
    unref(t->data);
}

struct helper *helper_free(struct helper *h)
{
    if (!h)
        return NULL;
    h->closed = true;
    while (!list_is_empty(&h->calls)) {
        struct helper_call *c = LIST_ENTRY(h->calls.next, struct helper_call, node);

        (void)err_set(&c->err, ERR_CANCELLED, 0, "holtd is stopping");
        call_end(c, NULL);
    }
    close_connection(h);
    fd_close(h->dir);
    fd_close(h->pidfd);
    mem_free(h->state);
    mem_free(h->bindir);
    mem_free(h->log);
    uv_close((uv_handle_t *)&h->timer, timer_closed);
    unref(h);
    return NULL;
}
