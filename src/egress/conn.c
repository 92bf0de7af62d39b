/* conn: one connection of a sandbox: accept, first bytes, timeouts, end. */
#include "egress/conn.h"

#include "base/fd.h"
#include "base/mem.h"
#include "base/ways.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

#define ACCEPTS 32 /* per turn */
#define FIRST_READ 16384

/* ---- events ---- */

void conn_tell(struct conn *c, enum egress_what what, const char *rule)
{
    struct egress_verdict v = {.host = str_of(c->host.name),
                               .port = (uint16_t)c->port,
                               .what = (uint8_t)what,
                               .via = (uint8_t)c->via,
                               .rule = str_of(rule),
                               .up = c->up,
                               .down = c->down};

    if (what == EGRESS_CLOSED)
        v.ms = (uint64_t)i64_max(0, (int64_t)uv_now(&c->box->all->loop) - c->begun_ms);
    link_verdict(c->box, &v);
}

bool conn_spend(struct conn *c, size_t n)
{
    uint64_t most = policy_bytes_max(c->box->policy);

    if (!c->spent)
        return true;
    c->spent->bytes += n;
    return most == 0 || c->spent->bytes <= most;
}

/* ---- the end ---- */

static void on_timer_closed(uv_handle_t *h)
{
    struct conn *c = h->data;

    buf_done(&c->in);
    buf_done(&c->head);
    buf_done(&c->client.out);
    buf_done(&c->server.out);
    http1_body_done(&c->body);
    intercept_free(c->intercept);
    box_unref(c->box);
    mem_free(c);
}

void conn_forget_question(struct conn *c)
{
    if (c->question)
        (void)map_remove(&c->box->all->questions, str_make(&c->question, sizeof c->question));
    c->question = 0;
}

void conn_end(struct conn *c, const char *why)
{
    struct egress *all = c->box->all;

    if (c->state == CONN_CLOSED)
        return;
    c->state = CONN_CLOSED;
    if (c->told)
        conn_tell(c, EGRESS_CLOSED, why[0] ? why : c->verdict.rule);
    lookup_cancel(c->lookup);
    conn_forget_question(c);
    list_unlink(&c->link);
    c->box->conn_count--;
    all->connections--;
    polled_close(&c->client.io);
    polled_close(&c->server.io);
    uv_close((uv_handle_t *)&c->timer, on_timer_closed);
}

void conn_reset(struct conn *c, const char *why)
{
    const struct linger now = {.l_onoff = 1};

    if (c->client.io.fd >= 0)
        (void)setsockopt(c->client.io.fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    conn_end(c, why);
}

void conn_close_all(struct box *b, const char *why)
{
    while (!list_is_empty(&b->conns))
        conn_reset(LIST_ENTRY(b->conns.next, struct conn, link), why);
}

/* Budgets of a new policy count from then on. */
static bool is_within_budget(struct conn *c)
{
    bool full = false;

    if (!c->spent) {
        c->spent = box_spent(c->box, &c->host, c->port, &full);
        if (c->spent)
            c->spent->connections++;
    }
    return !full && conn_spend(c, 0);
}

static void judge_again(struct conn *c)
{
    if (c->question || c->lookup)
        target_judge_again(c);
    else if (c->told && !target_is_allowed(c))
        conn_reset(c, "its network policy no longer allows it");
    else if (c->told && !is_within_budget(c))
        conn_reset(c, BUDGET_SPENT);
    else if (c->state == CONN_INTERCEPT && !intercept_follows(c))
        conn_reset(c, "its host got a secret in the meantime");
}

void conn_judge_all(struct box *b)
{
    LIST_EACH (&b->conns, node)
        judge_again(LIST_ENTRY(node, struct conn, link));
}

/* ---- timeouts ---- */

static void on_timer(uv_timer_t *t)
{
    struct conn *c = t->data;
    int64_t quiet = (int64_t)uv_now(t->loop) - c->moved_ms;
    bool half = c->client.eof || c->server.eof;

    if (c->state == CONN_INTERCEPT && intercept_is_late(c))
        return;
    if (c->state == CONN_RELAY || c->state == CONN_INTERCEPT) {
        if (quiet >= (half ? CONN_HALF_MS : CONN_IDLE_MS))
            conn_reset(c, "no data for too long");
        else
            conn_expire(c, (half ? CONN_HALF_MS : CONN_IDLE_MS) - quiet);
    } else if (c->state == CONN_WAITS) {
        request_failed(c, c->question ? "nobody decided in time"
                                      : "the server did not answer in time");
    } else if (c->state == CONN_LINGER) {
        conn_end(c, "");
    } else {
        conn_reset(c, "its first bytes did not arrive in time");
    }
}

void conn_expire(struct conn *c, int64_t ms)
{
    (void)uv_timer_start(&c->timer, on_timer, (uint64_t)ms, 0);
}

/* ---- bytes ---- */

bool conn_flush(struct side *s)
{
    while (buf_len(&s->out) > 0) {
        ssize_t n = send(s->io.fd, buf_data(&s->out), buf_len(&s->out), MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN;
        buf_take(&s->out, (size_t)n);
    }
    buf_shrink(&s->out, 0);
    return true;
}

void conn_send(struct side *to, struct str bytes)
{
    ssize_t n = 0;

    if (bytes.n > 0 && buf_len(&to->out) == 0)
        n = send(to->io.fd, bytes.p, bytes.n, MSG_NOSIGNAL);
    bytes = str_skip(bytes, n > 0 ? (size_t)n : 0);
    if (bytes.n > 0) /* an error shows at the next flush */
        buf_add_str(&to->out, bytes);
}

static void read_linger(struct conn *c)
{
    ssize_t n = recv(c->client.io.fd, c->box->all->scratch, EGRESS_SCRATCH, 0);

    c->lingered += n > 0 ? (size_t)n : 0;
    if ((n <= 0 && errno != EAGAIN) || n == 0 || c->lingered > CONN_LINGER_MAX)
        conn_end(c, "");
}

/* Closing with unread input would make the kernel discard the reply. */
void conn_linger(struct conn *c)
{
    polled_close(&c->server.io);
    conn_forget_question(c);
    lookup_cancel(TAKE(c->lookup));
    c->state = CONN_LINGER;
    if (!conn_flush(&c->client)) {
        conn_end(c, "");
        return;
    }
    conn_expire(c, CONN_LINGER_MS);
    if (buf_len(&c->client.out) > 0) {
        polled_want(&c->client.io, EPOLLIN | EPOLLOUT);
        return;
    }
    if (!c->client.shut)
        (void)shutdown(c->client.io.fd, SHUT_WR);
    c->client.shut = true;
    polled_want(&c->client.io, EPOLLIN);
}

/* Reads little at a time: each protocol limits its own start, and later bytes must wait. */
static void read_first(struct conn *c)
{
    ssize_t n = recv(c->client.io.fd, c->box->all->scratch, FIRST_READ, 0);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        conn_end(c, "it ended before it was connected");
        return;
    }
    buf_add(&c->in, c->box->all->scratch, (size_t)n);
    request_input(c);
}

static void on_ready(struct polled *p, uint32_t events)
{
    struct side *s = CONTAINER_OF(p, struct side, io);
    struct conn *c = s->c;

    if (events == 0)
        conn_reset(c, "the kernel cannot watch more connections");
    else if (s == &c->server && c->state == CONN_WAITS)
        target_dialled(c);
    else if (c->state == CONN_WAITS)
        conn_end(c, "the client closed it before the decision");
    else if (c->state == CONN_RELAY)
        relay_ready(s, events);
    else if (c->state == CONN_INTERCEPT)
        intercept_ready(s, events);
    else if (s == &c->server)
        conn_reset(c, "the server closed the connection");
    else if (c->state == CONN_LINGER && (events & EPOLLOUT) && buf_len(&s->out) > 0)
        conn_linger(c);
    else if (c->state == CONN_LINGER)
        read_linger(c);
    else
        read_first(c);
}

/* ---- start ---- */

static void set_target(struct conn *c, const struct ip *to, unsigned port)
{
    c->host.is_ip = true;
    c->host.ip = *to;
    c->port = port;
    c->via = EGRESS_PLAIN;
    (void)ip_text(&c->host.ip, c->host.name);
}

/* The original destination of a redirected connection; false: it was meant for the proxy itself. */
static bool find_target(struct conn *c, int fd, bool v6)
{
    struct sockaddr_storage to;
    const struct sockaddr_in *in4 = (void *)&to;
    const struct sockaddr_in6 *in6 = (void *)&to;
    struct ip ip;

    if (!ways_original(fd, v6, &to))
        return false;
    if (v6)
        memcpy(ip.bytes, &in6->sin6_addr, sizeof ip.bytes);
    else
        ip = ip_v4(ntohl(in4->sin_addr.s_addr));
    set_target(c, &ip, ntohs(v6 ? in6->sin6_port : in4->sin_port));
    return true;
}

static struct conn *conn_new(struct box *b, int fd)
{
    struct conn *c = xzalloc(sizeof *c);

    c->box = box_ref(b);
    c->client.c = c->server.c = c;
    polled_init(&c->client.io, on_ready);
    polled_init(&c->server.io, on_ready);
    polled_open(&c->client.io, fd);
    c->begun_ms = c->moved_ms = (int64_t)uv_now(&b->all->loop);
    (void)uv_timer_init(&b->all->loop, &c->timer);
    c->timer.data = c;
    list_push(&b->conns, &c->link);
    b->conn_count++;
    b->all->connections++;
    return c;
}

static void begin(struct conn *c)
{
    if (c->host.is_ip) {
        target_begin(c);
        return;
    }
    conn_expire(c, CONN_HEAD_MS);
    read_first(c); /* most clients send their request at once: it has already arrived */
    if (c->state < CONN_WAITS)
        polled_want(&c->client.io, EPOLLIN);
}

static void too_many(struct box *b)
{
    struct egress_verdict v = {.what = EGRESS_DENIED, .rule = STR("too many connections at once")};

    link_verdict(b, &v);
}

/* NULL: there are too many; fd is taken. */
static struct conn *admit(struct box *b, int fd)
{
    if (b->conn_count < BOX_CONNECTIONS && b->all->connections < b->all->connections_max)
        return conn_new(b, fd);
    fd_close(fd);
    too_many(b);
    return NULL;
}

void conn_accept(struct listener *l)
{
    AUTO(box_unref) struct box *b = box_ref(l->box);

    for (int i = 0; i < ACCEPTS && l->fd >= 0; i++) {
        int fd = box_accept(l);
        struct conn *c;

        if (fd < 0 && errno == EMFILE)
            too_many(b);
        if (fd < 0)
            return;
        gate_make_room(b, fd);
        c = admit(b, fd);
        if (!c)
            continue;
        if (gate_is_before(c))
            c->peer = gate_peer(fd);
        else
            (void)find_target(c, fd, l->kind == SPAWN_LISTENER_TCP6);
        begin(c);
    }
}

void conn_led(struct box *b, int fd, const struct ip *to, unsigned port)
{
    struct conn *c = admit(b, fd);

    if (!c)
        return;
    if (to)
        set_target(c, to, port);
    begin(c);
}

void conn_answer(struct egress *all, const struct egress_answer *a)
{
    struct conn *c = map_get(&all->questions, str_make(&a->question, sizeof a->question));

    if (!c)
        return;
    conn_forget_question(c);
    target_answered(c, a);
}

void conn_ask_again(struct egress *all)
{
    struct str key;
    void *c;

    for (size_t at = 0; map_next(&all->questions, &at, &key, &c);)
        (void)!target_ask(c); /* there is room: each connection asks each holtd once */
}
