/* intercept: ends TLS on both sides of a connection and passes HTTP through an exchange. */

/* Client TLS ends here with a certificate of our own authority; TLS to the server begins anew, and
 * the server's certificate is checked.  Plain HTTP takes the same way without TLS.  No byte goes to
 * the server before its certificate was verified. */
#include "egress/ca.h"
#include "egress/conn.h"
#include "egress/exchange.h"
#include "egress/guards.h"

#include "base/mem.h"
#include "net/dial_tls.h"
#include "net/tls.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#define PLAIN_READ (32 * 1024)
#define READ_MAX (32 * 1024) /* per turn: the result may have to wait for its reader */
#define KEPT 4096            /* kept of a buffer between two requests */

struct intercept {
    struct exchange *x;
    struct tls *client;     /* NULL: plain */
    struct tls_end *server; /* NULL: plain */
    bool server_ready;
    bool server_said_end;
    bool closing;
};

/* ---- when it is needed ---- */

bool intercept_is_needed(const struct conn *c, const struct policy_verdict *v)
{
    struct binding_query q = {.host = &c->host, .tls = v->tls};

    if (v->intercept)
        return true;
    if (!v->tls && !v->http && c->via != EGRESS_HTTP)
        return false; /* there is no sign of HTTP */
    return bindings_know(c->box->bindings, &q);
}

/* ---- callbacks of the exchange ---- */

#define CAME_BACK_MS 60000
#define CAME_BACK_MAX 256 /* replies with values to one sandbox in that time */
#define CAME_BACK_TOLD                                                                             \
    "replies contained values of secrets too often within a minute: the sandbox could be "         \
    "guessing them"

/* Over the limit: until the minute is over. */
static bool is_guessing(struct box *b)
{
    int64_t now = (int64_t)uv_now(&b->all->loop);

    if (now - b->came_back_ms >= CAME_BACK_MS) {
        b->came_back_ms = now;
        b->came_back = 0;
    }
    return b->came_back > CAME_BACK_MAX && !guard_left_out("guessing");
}

static bool came_back(void *arg)
{
    struct conn *c = arg;

    (void)is_guessing(c->box); /* a new minute may have begun */
    c->box->came_back++;
    if (!is_guessing(c->box))
        return true;
    conn_tell(c, EGRESS_DENIED, CAME_BACK_TOLD);
    return false;
}

/* Each refusal is one bit about the guesses in a request: so few tell little about many. */
#define GUESSED_MAX 3
#define GUESSED_TOLD "requests contained values of secrets themselves: it could be guessing"

static void request_guessed(void *arg)
{
    struct conn *c = arg;

    c->box->guessed++;
}

static bool request_judge(void *arg, struct str method, struct str path,
                          char why_not[static EXCHANGE_RULE])
{
    struct conn *c = arg;
    struct policy_verdict v;
    const char *rule = v.rule;

    if (c->box->bindings && is_guessing(c->box)) {
        (void)snprintf(why_not, EXCHANGE_RULE, "%s", CAME_BACK_TOLD);
        return false;
    }
    if (c->box->bindings && c->box->guessed > GUESSED_MAX) {
        (void)snprintf(why_not, EXCHANGE_RULE, "%s", GUESSED_TOLD);
        return false;
    }
    policy_judge(
        c->box->policy,
        &(struct policy_query){.host = &c->host, .port = c->port, .method = method, .path = path},
        &v);
    if (v.answer == POLICY_ALLOW || (v.answer == POLICY_ASK && c->granted) ||
        guard_left_out("requests"))
        return true;
    if (v.answer == POLICY_ASK)
        rule = "no rule allows this method and path";
    (void)snprintf(why_not, EXCHANGE_RULE, STR_FMT " " STR_FMT ": %s", (int)size_min(method.n, 16),
                   method.p, (int)size_min(path.n, 96), path.p, rule);
    return false;
}

static void request_denied(void *arg, const char *why)
{
    conn_tell(arg, EGRESS_DENIED, why);
}

static const struct bindings *box_bindings(void *arg)
{
    const struct conn *c = arg;

    return c->box->bindings;
}

/* ---- input ---- */

static void server_failed(struct conn *c, const char *why)
{
    char text[400];

    (void)snprintf(text, sizeof text, "%s port %u: %s", c->host.name, c->port, why);
    exchange_server_failed(c->intercept->x, text);
    polled_close(&c->server.io);
}

/* False: it has ended. */
static bool from_client(struct conn *c, struct str bytes)
{
    static char plain[PLAIN_READ];
    struct intercept *t = c->intercept;
    struct err e;
    bool eof = false;
    int n;

    if (!t->client) {
        exchange_from_client(t->x, bytes);
        return true;
    }
    tls_input(t->client, bytes);
    while ((n = tls_read(t->client, plain, sizeof plain, &eof, &e)) > 0)
        exchange_from_client(t->x, str_make(plain, (size_t)n));
    if (n < 0) {
        char why[300];

        (void)snprintf(why, sizeof why, "the client ended TLS with holt's certificate: %s", e.msg);
        conn_reset(c, why);
        return false;
    }
    if (eof)
        c->client.eof = true;
    return true;
}

static void from_server(struct conn *c, struct str bytes)
{
    static char plain[PLAIN_READ];
    struct intercept *t = c->intercept;
    bool eof = false;
    struct err e;
    int n;

    if (!t->server) {
        exchange_from_server(t->x, bytes);
        return;
    }
    tls_end_feed(t->server, bytes);
    if (!t->server_ready) {
        n = tls_end_handshake(t->server, &e);
        if (n < 0)
            server_failed(c, e.msg);
        if (n <= 0)
            return;
        t->server_ready = true;
    }
    while ((n = tls_end_read(t->server, plain, sizeof plain, &eof, &e)) > 0)
        exchange_from_server(t->x, str_make(plain, (size_t)n));
    if (n < 0)
        c->server.eof = true;
    if (eof)
        t->server_said_end = c->server.eof = true;
    mem_wipe(plain, sizeof plain);
}

/* False: the connection has ended. */
static bool take(struct side *s)
{
    struct conn *c = s->c;
    bool client = s == &c->client;
    ssize_t n = recv(s->io.fd, c->box->all->scratch, READ_MAX, 0);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n <= 0) {
        if (n == 0 && !client && !c->intercept->server)
            c->intercept->server_said_end = true;
        s->eof = true;
        return true;
    }
    *(client ? &c->up : &c->down) += (uint64_t)n;
    c->moved_ms = (int64_t)uv_now(&c->box->all->loop);
    if (!conn_spend(c, (size_t)n)) {
        conn_reset(c, BUDGET_SPENT);
        return false;
    }
    if (client)
        return from_client(c, str_make(c->box->all->scratch, (size_t)n));
    from_server(c, str_make(c->box->all->scratch, (size_t)n));
    return true;
}

/* ---- output ---- */

static void move_all(struct buf *from, struct buf *to)
{
    buf_add_str(to, buf_str(from));
    buf_clear(from);
}

/* False: the connection has ended. */
static bool push(struct conn *c)
{
    struct intercept *t = c->intercept;
    struct buf *up = exchange_to_server(t->x), *down = exchange_to_client(t->x);
    struct err e;
    bool ok = true;

    if (t->client) {
        ok = tls_write(t->client, down, &e) == 0;
        tls_output(t->client, &c->client.out);
    } else {
        move_all(down, &c->client.out);
    }
    if (t->server && c->server.io.fd >= 0) {
        if (ok && t->server_ready && buf_len(up) > 0) {
            ok = tls_end_write(t->server, buf_data(up), buf_len(up), &e) == 0;
            mem_wipe(buf_data(up), buf_len(up));
            buf_clear(up);
        }
        tls_end_output(t->server, &c->server.out);
    } else if (c->server.io.fd >= 0) {
        move_all(up, &c->server.out);
    }
    buf_shrink(up, KEPT);
    buf_shrink(down, KEPT);
    if (ok && conn_flush(&c->client) && (c->server.io.fd < 0 || conn_flush(&c->server)))
        return true;
    conn_reset(c, "a peer broke the connection");
    return false;
}

static void finish(struct conn *c)
{
    struct intercept *t = c->intercept;

    if (t->client && !t->closing) {
        tls_shutdown(t->client);
        tls_output(t->client, &c->client.out);
    }
    t->closing = true;
    if (!c->client.eof) {
        conn_linger(c);
        return;
    }
    if (!conn_flush(&c->client) || buf_len(&c->client.out) == 0) {
        conn_end(c, "");
        return;
    }
    polled_want(&c->server.io, 0);
    polled_want(&c->client.io, EPOLLOUT);
}

static void update(struct conn *c)
{
    struct intercept *t = c->intercept;
    struct side *cl = &c->client, *sv = &c->server;

    if (cl->eof) {
        exchange_client_ended(t->x);
        conn_expire(c, CONN_HALF_MS);
    }
    if (sv->eof && sv->io.fd >= 0) {
        if (t->server && !t->server_ready)
            server_failed(c, "the server closed the connection before TLS was set up");
        else
            exchange_server_ended(t->x, t->server_said_end);
    }
    if (!push(c))
        return;
    if (exchange_end(t->x) == EXCHANGE_BROKE) {
        conn_reset(c, "the reply is incomplete");
        return;
    }
    if (exchange_end(t->x) == EXCHANGE_ENDS && buf_len(exchange_to_client(t->x)) == 0) {
        finish(c);
        return;
    }
    polled_want(&cl->io,
                (!cl->eof && exchange_wants_client(t->x) && buf_len(&sv->out) < EXCHANGE_HIGH
                     ? EPOLLIN
                     : 0) |
                    (buf_len(&cl->out) > 0 ? EPOLLOUT : 0));
    if (sv->io.fd >= 0)
        polled_want(&sv->io,
                    (!sv->eof && exchange_wants_server(t->x) && buf_len(&cl->out) < EXCHANGE_HIGH
                         ? EPOLLIN
                         : 0) |
                        (buf_len(&sv->out) > 0 ? EPOLLOUT : 0));
}

void intercept_ready(struct side *s, uint32_t events)
{
    struct conn *c = s->c;

    if (s->io.fd < 0)
        return;
    if ((events & EPOLLIN) && !s->eof && !take(s))
        return;
    update(c);
}

/* ---- life ---- */

bool intercept_is_late(struct conn *c)
{
    struct intercept *t = c->intercept;

    if (t->client && !tls_is_ready(t->client)) {
        conn_reset(c, "TLS with the client took too long");
        return true;
    }
    if (!t->server_ready && c->server.io.fd >= 0) {
        conn_expire(c, CONN_IDLE_MS);
        server_failed(c, "TLS with the server took too long");
        update(c);
        return true;
    }
    return false;
}

static int begin_tls(struct conn *c, struct err *e)
{
    struct intercept *t = c->intercept;
    SSL_CTX *ctx;

    if (ca_context(&c->host, &ctx, e) < 0 ||
        tls_end_new(c->box->all->trusted, c->host.name, &t->server, e) < 0)
        return -1;
    t->client = tls_new(ctx);
    return tls_end_handshake(t->server, e);
}

void intercept_begin(struct conn *c)
{
    static const struct exchange_ops ops = {request_judge, request_denied, box_bindings, came_back,
                                            request_guessed};
    AUTO(buf_done) struct buf first = c->in;
    struct exchange_config config = {.host = &c->host,
                                     .port = c->port,
                                     .tls = c->verdict.tls,
                                     .proxy = c->via == EGRESS_HTTP,
                                     .ops = &ops,
                                     .arg = c};
    struct intercept *t = c->intercept = xzalloc(sizeof *t);
    struct err e = {0};

    c->in = (struct buf){0};
    c->state = CONN_INTERCEPT;
    c->moved_ms = (int64_t)uv_now(&c->box->all->loop);
    c->up += buf_len(&first);
    if (!conn_spend(c, buf_len(&first))) {
        conn_reset(c, BUDGET_SPENT);
        return;
    }
    conn_expire(c, CONN_HEAD_MS);
    t->x = exchange_new(&config);
    t->server_ready = !config.tls;
    if (config.tls && begin_tls(c, &e) < 0) {
        conn_tell(c, EGRESS_DENIED, e.msg);
        conn_reset(c, e.msg);
        return;
    }
    if (buf_len(&first) == 0 || from_client(c, buf_str(&first)))
        update(c);
}

bool intercept_follows(struct conn *c)
{
    return exchange_follows(c->intercept->x);
}

void intercept_free(struct intercept *t)
{
    if (!t)
        return;
    exchange_free(t->x);
    tls_free(t->client);
    tls_end_free(t->server);
    mem_free(t);
}
