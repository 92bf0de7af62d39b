#include "core/network/egress.h"

#include "base/clock.h"
#include "base/enc.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/rnd.h"
#include "base/starter.h"
#include "proto/jwt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define TRY_MS 20
#define TRIES 250 /* then it is started again */
#define CALLS_MAX 8192

struct call {
    struct list link;
    uint32_t tag;     /* 0: no answer comes */
    char id[ID_SIZE]; /* of put: whom it makes known */
    char *packet;
    size_t size;
    struct driver_listeners listeners;
    bool sent;
    struct err failed; /* before it could be sent */
    driver_done done;
    void *arg;
};

struct egress {
    struct egress_config c;
    char *state, *bindir, *user, *dns, *ca_file, *proxy_host, *proxy_key;
    int dir, fd; /* fd: -1: no connection */
    uv_poll_t *poll;
    bool started, greeted;
    int pidfd; /* of the one that we started; -1: none */
    int tries;
    struct timer again, soon;
    uint32_t last_tag;
    struct list calls; /* in the order they were made */
    size_t count;
    struct map known;
    char packet[EGRESS_PACKET_MAX];
};

static void try_connect(struct egress *g);
static void send_calls(struct egress *g);

/* ---- calls ---- */

static void call_end(struct egress *g, struct call *x, const struct err *e)
{
    if (e->code != ERR_NONE && x->id[0])
        (void)map_remove(&g->known, str_of(x->id));
    list_unlink(&x->link);
    g->count--;
    while (x->listeners.n > 0)
        fd_close(x->listeners.fds[--x->listeners.n]);
    if (x->done)
        x->done(x->arg, e);
    if (x->packet)
        mem_wipe(x->packet, x->size); /* it may hold a key or secrets */
    mem_free(x->packet);
    mem_free(x);
}

static void soon_due(struct timer *t)
{
    struct egress *g = CONTAINER_OF(t, struct egress, soon);

    LIST_EACH (&g->calls, node) {
        struct call *x = LIST_ENTRY(node, struct call, link);
        struct err e = x->failed;

        if (e.code != ERR_NONE)
            call_end(g, x, &e);
    }
}

static struct call *call_new(struct egress *g, driver_done done, void *arg)
{
    struct call *x = xzalloc(sizeof *x);

    x->done = done;
    x->arg = arg;
    list_push(&g->calls, &x->link);
    if (++g->count > CALLS_MAX) {
        (void)err_set(&x->failed, ERR_LIMIT, 0, "%d requests to holt-egress wait", CALLS_MAX);
        (void)err_limit_fixed(&x->failed, CALLS_MAX, "try again in a moment");
    }
    return x;
}

static void call_ask(struct egress *g, struct call *x, struct egress_msg *m)
{
    static uint8_t bytes[EGRESS_PACKET_MAX];
    struct wire_out o = {.p = bytes, .size = sizeof bytes};

    if (egress_types[m->type].tagged) {
        g->last_tag += g->last_tag == UINT32_MAX ? 2 : 1;
        x->tag = m->tag = g->last_tag;
    }
    if (x->failed.code == ERR_NONE && egress_encode(m, EGRESS_HOST, &o, &x->failed) == 0) {
        x->packet = xmemdup(bytes, o.n);
        x->size = o.n;
    }
    mem_wipe(bytes, o.n);
    if (x->failed.code != ERR_NONE) {
        timer_set(g->c.timers, &g->soon, TIMER_SOON, soon_due);
        return;
    }
    egress_start(g);
    send_calls(g);
}

bool egress_is_up(const struct egress *g)
{
    return g->greeted;
}

bool egress_knows(const struct egress *g, const char *id)
{
    return g->greeted && map_get(&g->known, str_of(id)) != NULL;
}

void egress_put(struct egress *g, const char *id, const struct egress_terms *terms,
                driver_done done, void *arg)
{
    const struct driver_listeners *l = terms->l;
    struct call *x = call_new(g, done, arg);
    struct egress_msg m = {.type = EGRESS_SET};

    if (l) {
        x->listeners = *l;
        (void)snprintf(x->id, sizeof x->id, "%s", id);
    }
    m.u.set = (struct egress_set){
        .id = str_of(id),
        .kinds = l ? l->kinds : 0,
        .policy = str_of(terms->policy),
        .learned = terms->learned.p ? terms->learned : STR(""),
        .alias = terms->alias.p ? terms->alias : STR(""),
    };
    (void)map_set(&g->known, str_of(id), g);
    call_ask(g, x, &m);
}

void egress_put_secrets(struct egress *g, const char *id, struct str list, driver_done done,
                        void *arg)
{
    struct egress_msg m = {.type = EGRESS_SECRETS};

    m.u.secrets = (struct egress_secrets){str_of(id), list};
    call_ask(g, call_new(g, done, arg), &m);
}

void egress_drop(struct egress *g, const char *id)
{
    struct egress_msg m = {.type = EGRESS_REMOVE};

    if (!g->started)
        return;
    m.u.name.id = str_of(id);
    (void)map_remove(&g->known, str_of(id));
    call_ask(g, call_new(g, NULL, NULL), &m);
}

void egress_reply(struct egress *g, uint64_t question, bool allow, const char *reason)
{
    struct egress_msg m = {.type = EGRESS_ANSWER};

    m.u.answer = (struct egress_answer){question, allow, str_of(reason)};
    call_ask(g, call_new(g, NULL, NULL), &m);
}

/* ---- the connection ---- */

static void on_poll_closed(uv_handle_t *h)
{
    mem_free(h);
}

static void again_due(struct timer *t)
{
    try_connect(CONTAINER_OF(t, struct egress, again));
}

static void disconnect(struct egress *g, const char *why)
{
    struct err e;

    if (g->fd < 0)
        return;
    uv_close((uv_handle_t *)TAKE(g->poll), on_poll_closed);
    fd_close(TAKE_FD(g->fd));
    g->greeted = false;
    map_done(&g->known);
    g->known = (struct map){0};
    log_warn("holt-egress is gone", LOG_C("why", why));
    (void)err_set(&e, ERR_UNAVAILABLE, 0, "holt-egress is gone: %s", why);
    LIST_EACH (&g->calls, node) {
        struct call *x = LIST_ENTRY(node, struct call, link);

        if (x->sent)
            x->failed = e;
    }
    timer_set(g->c.timers, &g->soon, TIMER_SOON, soon_due);
    g->tries = 0;
    timer_set(g->c.timers, &g->again, clock_mono_ms() + TRY_MS, again_due);
}

static ssize_t send_packet(struct egress *g, const struct call *x)
{
    union {
        char bytes[CMSG_SPACE(DRIVER_LISTENERS * sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    struct iovec iov = {.iov_base = x->packet, .iov_len = x->size};
    struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};
    size_t size = x->listeners.n * sizeof(int);

    if (size > 0) {
        h.msg_control = control.bytes;
        h.msg_controllen = CMSG_SPACE(size);
        *CMSG_FIRSTHDR(&h) = (struct cmsghdr){
            .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(size)};
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&h)), x->listeners.fds, size);
    }
    return sendmsg(g->fd, &h, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void on_poll(uv_poll_t *p, int status, int events);

static void send_calls(struct egress *g)
{
    bool full = false;

    if (!g->greeted)
        return;
    LIST_EACH (&g->calls, node) {
        struct call *x = LIST_ENTRY(node, struct call, link);

        if (x->sent || x->failed.code != ERR_NONE)
            continue;
        full = send_packet(g, x) < 0;
        if (full)
            break; /* a broken one shows when it is read from */
        x->sent = true;
        while (x->listeners.n > 0)
            fd_close(x->listeners.fds[--x->listeners.n]);
        if (x->tag == 0)
            call_end(g, x, &(struct err){0});
    }
    (void)uv_poll_start(g->poll, UV_READABLE | (full ? UV_WRITABLE : 0), on_poll);
}

/* Before what waits to be told of sandboxes. */
static struct call *call_first(struct egress *g, driver_done done, void *arg)
{
    struct call *x = call_new(g, done, arg);

    list_unlink(&x->link);
    list_push(g->calls.next, &x->link);
    return x;
}

static void proxy_opened(void *arg, const struct err *e)
{
    const struct egress *g = arg;

    if (e->code != ERR_NONE && e->code != ERR_CANCELLED)
        log_error("the proxy's TCP form is not there", LOG_C("host", g->proxy_host), LOG_E(e));
}

/* Also where there is to be none: holt-egress may have one from an earlier holtd. */
static void open_proxy(struct egress *g)
{
    struct egress_msg m = {.type = EGRESS_LISTEN};

    m.u.listen = (struct egress_listen){str_of(g->proxy_host), (uint16_t)g->c.proxy_port,
                                        str_of(g->proxy_key)};
    call_ask(g, call_first(g, proxy_opened, g), &m);
}

static void authority_taken(void *arg, const struct err *e)
{
    (void)arg;
    if (e->code != ERR_NONE && e->code != ERR_CANCELLED)
        log_error("holt-egress did not take the certificate authority", LOG_E(e));
}

static void put_authority(struct egress *g)
{
    struct egress_msg m = {.type = EGRESS_CA};

    if (!g->c.authority)
        return;
    m.u.ca = (struct egress_ca){buf_str(&g->c.authority->cert), buf_str(&g->c.authority->key)};
    call_ask(g, call_first(g, authority_taken, NULL), &m);
}

static void on_done(struct egress *g, const struct egress_msg *m)
{
    LIST_EACH (&g->calls, node) {
        struct call *x = LIST_ENTRY(node, struct call, link);

        if (x->tag == m->tag && x->sent) {
            call_end(g, x, &m->u.done.err);
            return;
        }
    }
}

static void on_packet(struct egress *g, const struct egress_msg *m)
{
    if (m->type == EGRESS_KNOWN) {
        (void)map_set(&g->known, m->u.name.id, g);
    } else if (m->type == EGRESS_WELCOME) {
        if (m->u.welcome.version != EGRESS_VERSION) {
            disconnect(g, "it speaks another version: restart it");
            return;
        }
        if (m->u.welcome.dropped > 0)
            log_warn("egress verdicts were lost while nobody took them",
                     LOG_N("count", m->u.welcome.dropped));
        open_proxy(g);
        put_authority(g);
        g->greeted = true; /* from here on what is asked is sent */
        g->c.ops->ready(g->c.arg);
        send_calls(g);
    } else if (m->type == EGRESS_DONE) {
        on_done(g, m);
    } else if (m->type == EGRESS_VERDICT) {
        g->c.ops->verdict(g->c.arg, &m->u.verdict);
    } else if (m->type == EGRESS_QUESTION) {
        g->c.ops->question(g->c.arg, &m->u.question);
    }
}

static void on_poll(uv_poll_t *p, int status, int events)
{
    struct egress *g = p->data;
    struct egress_msg m;
    struct err e;

    (void)status;
    for (int i = 0; i < 64 && g->fd >= 0 && p == g->poll; i++) {
        ssize_t n = recv(g->fd, g->packet, sizeof g->packet, MSG_DONTWAIT);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (n <= 0)
            disconnect(g, n < 0 ? strerror(errno) : "it closed its connection");
        else if (egress_decode(str_make(g->packet, (size_t)n), 0, EGRESS_EGRESS, &m, &e) < 0)
            disconnect(g, e.msg);
        else
            on_packet(g, &m);
    }
    if ((events & UV_WRITABLE) && g->fd >= 0)
        send_calls(g);
}

static int greet(struct egress *g, int fd)
{
    struct egress_msg m = {.type = EGRESS_HELLO};
    uint8_t bytes[64];
    struct wire_out o = {.p = bytes, .size = sizeof bytes};
    struct err e;

    m.u.hello = (struct egress_hello){EGRESS_VERSION, EGRESS_VERSION};
    if (egress_encode(&m, EGRESS_HOST, &o, &e) < 0 ||
        send(fd, bytes, o.n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return -1;
    g->poll = xzalloc(sizeof *g->poll);
    if (uv_poll_init(g->c.loop, g->poll, fd) < 0) {
        mem_free(TAKE(g->poll));
        return -1;
    }
    g->poll->data = g;
    g->fd = fd;
    (void)uv_poll_start(g->poll, UV_READABLE, on_poll);
    return 0;
}

/* How it is started: before the starter's seal. */
static void define(struct egress *g)
{
    AUTO(mem_free) char *program = xasprintf("%s/holt-egress", g->bindir);
    AUTO(mem_free) char *log = xasprintf("%s/egress.log", g->state);
    char name[] = "holt-egress", state_option[] = "--state", dns_option[] = "--dns";
    char ca_option[] = "--cacert", user_option[] = "--user", for_option[] = "--for", served[16];
    char *argv[12] = {name, state_option, g->state};
    size_t n = 3;
    int r;

    if (*g->dns) {
        argv[n++] = dns_option;
        argv[n++] = g->dns;
    }
    if (*g->ca_file) {
        argv[n++] = ca_option;
        argv[n++] = g->ca_file;
    }
    if (starter_uid() != geteuid()) { /* it begins as root, and becomes a user of its own */
        (void)snprintf(served, sizeof served, "%u", geteuid());
        argv[n++] = for_option;
        argv[n++] = served;
        argv[n++] = user_option;
        argv[n++] = g->user;
    }
    r = starter_define("holt-egress", program, argv, log);
    if (r < 0)
        log_error("holt-egress cannot be started", LOG_C("program", program),
                  LOG_C("error", strerror(-r)));
}

static void launch(struct egress *g)
{
    int r = starter_start("holt-egress", &g->pidfd);

    if (r < 0)
        log_error("holt-egress does not start", LOG_C("directory", g->bindir),
                  LOG_C("error", strerror(-r)));
}

/* Through /proc: sun_path holds 108 bytes, and the state directory may be anywhere. */
static void try_connect(struct egress *g)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    AUTO(fd_close) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (g->fd >= 0)
        return;
    (void)snprintf(at.sun_path, sizeof at.sun_path, "/proc/self/fd/%d/egress.sock", g->dir);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof at) == 0 && greet(g, fd) == 0) {
        fd = -1;
        return;
    }
    if (!starter_lives(&g->pidfd) && g->tries++ % TRIES == 0)
        launch(g);
    timer_set(g->c.timers, &g->again, clock_mono_ms() + TRY_MS, again_due);
}

void egress_start(struct egress *g)
{
    if (g->started)
        return;
    g->started = true;
    try_connect(g);
}

/* Nobody else has it: all credentials are refused. */
static char *random_key(void)
{
    unsigned char bytes[32];
    char *key = xmalloc(2 * sizeof bytes + 1);

    rnd_bytes(bytes, sizeof bytes);
    enc_hex(bytes, sizeof bytes, key);
    return key;
}

struct egress *egress_new(const struct egress_config *c)
{
    struct egress *g = xzalloc(sizeof *g);

    g->c = *c;
    g->state = xstrdup(c->state);
    g->bindir = xstrdup(c->bindir);
    g->user = xstrdup(c->user ? c->user : "");
    g->dns = xstrdup(c->dns ? c->dns : "");
    g->ca_file = xstrdup(c->ca_file ? c->ca_file : "");
    g->proxy_host = xstrdup(c->proxy_host ? c->proxy_host : "");
    g->proxy_key = c->proxy_key && *c->proxy_key ? xstrdup(c->proxy_key) : random_key();
    g->dir = open(c->state, O_PATH | O_DIRECTORY | O_CLOEXEC);
    g->fd = g->pidfd = -1;
    list_init(&g->calls);
    define(g);
    return g;
}

bool egress_proxy_url(const struct egress *g, struct jwt_claims *c, struct buf *to)
{
    bool v6 = strchr(g->proxy_host, ':') != NULL;

    if (!*g->proxy_host)
        return false;
    c->exp_s = clock_wall_ms() / 1000 + JWT_LIFE_S;
    buf_add_c(to, "http://sandbox:jwt_");
    jwt_mint(c, str_of(g->proxy_key), to);
    buf_printf(to, "@%s%s%s:%d", v6 ? "[" : "", g->proxy_host, v6 ? "]" : "", (int)g->c.proxy_port);
    return true;
}

struct egress *egress_free(struct egress *g)
{
    struct err gone = {.code = ERR_CANCELLED, .msg = "holtd is ending"};

    if (!g)
        return NULL;
    if (g->fd >= 0) {
        uv_close((uv_handle_t *)g->poll, on_poll_closed);
        fd_close(g->fd);
    }
    timer_stop(&g->again);
    timer_stop(&g->soon);
    while (!list_is_empty(&g->calls))
        call_end(g, LIST_ENTRY(g->calls.next, struct call, link), &gone);
    map_done(&g->known);
    fd_close(g->dir);
    mem_free(g->state);
    mem_free(g->bindir);
    fd_close(g->pidfd);
    mem_free(g->user);
    mem_free(g->dns);
    mem_free(g->ca_file);
    mem_free(g->proxy_host);
    mem_wipe(g->proxy_key, strlen(g->proxy_key));
    mem_free(g->proxy_key);
    mem_free(g);
    return NULL;
}
