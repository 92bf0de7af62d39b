/* server: listeners, admission limits, the sweep of timeouts, shutdown. */
#include "net/server.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "net/conn.h"
#include "net/listener.h"
#include "net/metrics.h"
#include "net/tls.h"
#include "proto/json.h"

#include <arpa/inet.h>

#define SWEEP_MS 250
#define REFUSED_MAX 256 /* refused connections that get an error reply; more are just closed */

struct server {
    struct server_config config;
    char *tls_cert, *tls_key;
    SSL_CTX *tls;
    struct stream_hub *hub;
    struct listener **listeners;
    size_t listener_count, listeners_open;
    struct list conns[CONN_WAIT_REQUEST + 1]; /* by their wait, longest first */
    int64_t connections;
    size_t refused;      /* connections being refused */
    struct map per_peer; /* struct peer_use, while there are connections */
    int64_t pending[2];  /* held for external peers, and for sandboxes: separate budgets */
    uv_timer_t timer;
    int64_t next_sweep_ns;
    int64_t cut_at_ms; /* 0: not stopping */
    bool stopping, cutting;
    void (*stopped)(void *arg);
    void *stopped_arg;
};

struct list *server_conns(struct server *s, enum conn_wait wait)
{
    return &s->conns[wait];
}

struct stream_hub *server_streams(const struct server *s)
{
    return s->hub;
}

bool server_is_stopping(const struct server *s)
{
    return s->stopping;
}

bool server_is_cutting(const struct server *s)
{
    return s->cutting;
}

static void json_error_at(struct buf *to, struct str path, const struct err *e)
{
    (void)path;
    json_error(to, e);
}

void server_handle(struct server *s, struct xchg *x)
{
    s->config.handler(x, s->config.arg);
}

/* Calls f for every connection; f may close it, which frees it only in a later turn. */
static void each_conn(struct server *s, void (*f)(struct conn *c))
{
    for (size_t i = 0; i < ARRAY_LEN(s->conns); i++)
        LIST_EACH (&s->conns[i], node)
            f(LIST_ENTRY(node, struct conn, link));
}

static void cut_all(struct server *s)
{
    s->cutting = true;
    each_conn(s, conn_cut);
}

static void on_sweep(uv_timer_t *t)
{
    struct server *s = t->data;
    int64_t now_ns = clock_mono_ns(), now_ms = (int64_t)uv_now(s->config.loop);

    metric_observe(&metric_loop_lag, i64_max(0, now_ns - s->next_sweep_ns));
    s->next_sweep_ns = now_ns + SWEEP_MS * 1000000LL;
    conn_sweep(s, now_ms);
    xchg_free_spares(false);
    if (s->hub)
        stream_hub_sweep(s->hub, s->config.limits->write_ms);
    if (s->cut_at_ms != 0 && now_ms >= s->cut_at_ms)
        cut_all(s);
}

int server_reload_tls(struct server *s, struct err *e)
{
    SSL_CTX *fresh;

    if (!s->tls_cert)
        return 0;
    if (tls_context_new(s->tls_cert, s->tls_key, &fresh, e) < 0)
        return -1;
    SSL_CTX_free(s->tls);
    s->tls = fresh;
    return 0;
}

static void server_free(struct server *s)
{
    for (size_t i = 0; i < s->listener_count; i++)
        listener_free(s->listeners[i]);
    free(s->listeners);
    free(s->tls_cert);
    free(s->tls_key);
    SSL_CTX_free(s->tls);
    map_done(&s->per_peer);
    xchg_free_spares(true);
    free(s);
}

int server_new(const struct server_config *c, struct server **ret, struct err *e)
{
    struct server *s = xzalloc(sizeof *s);

    assert(c->loop && c->limits && c->handler);
    s->config = *c;
    if (c->tls_cert && c->tls_key) {
        s->tls_cert = xstrdup(c->tls_cert);
        s->tls_key = xstrdup(c->tls_key);
    }
    if (server_reload_tls(s, e) < 0) {
        server_free(s);
        return -1;
    }
    net_metrics_add();
    for (size_t i = 0; i < ARRAY_LEN(s->conns); i++)
        list_init(&s->conns[i]);
    s->hub = stream_hub_new(c->loop);
    (void)uv_timer_init(c->loop, &s->timer);
    s->timer.data = s;
    s->next_sweep_ns = clock_mono_ns() + SWEEP_MS * 1000000LL;
    (void)uv_timer_start(&s->timer, on_sweep, SWEEP_MS, SWEEP_MS);
    uv_unref((uv_handle_t *)&s->timer);
    *ret = s;
    return 0;
}

/* Peers are counted by address, local ones by user.  An IPv6 peer owns its /64. */
static struct str peer_key(const struct peer *p, char *to, size_t n)
{
    const char *colon = strrchr(p->address, ':');
    char text[INET6_ADDRSTRLEN];
    struct in6_addr v6;

    if (p->kind == PEER_UNIX)
        return str_make(to, (size_t)snprintf(to, n, "uid %u", p->uid));
    if (p->kind == PEER_INSIDE || !colon)
        return str_of(p->address);
    (void)snprintf(text, sizeof text, "%.*s", (int)(colon - p->address) - 2, p->address + 1);
    if (p->address[0] != '[' || inet_pton(AF_INET6, text, &v6) != 1 || IN6_IS_ADDR_V4MAPPED(&v6))
        return str_make(p->address, (size_t)(colon - p->address));
    memset(&v6.s6_addr[8], 0, 8);
    return inet_ntop(AF_INET6, &v6, to, (socklen_t)n) ? str_of(to) : str_of(p->address);
}

static struct peer_use *use_of(struct server *s, const struct peer *p)
{
    char text[64];
    struct str key = peer_key(p, text, sizeof text);
    struct peer_use *u = map_get(&s->per_peer, key);

    if (!u) {
        u = xzalloc(sizeof *u);
        (void)map_set(&s->per_peer, key, u);
    }
    return u;
}

static void drop_use(struct server *s, const struct peer *p, struct peer_use *u)
{
    char text[64];

    if (u->connections > 0)
        return;
    (void)map_remove(&s->per_peer, peer_key(p, text, sizeof text));
    free(u);
}

void server_conn_gone(struct server *s, struct conn *c)
{
    s->connections--;
    metric_inc(&metric_connections, -1);
    c->use->connections--;
    drop_use(s, stream_peer(c->stream), c->use);
}

int server_hold(struct server *s, struct conn *c, int64_t change, struct err *e)
{
    const struct server_limits *l = s->config.limits;
    int64_t *all = &s->pending[stream_peer(c->stream)->kind == PEER_INSIDE];
    struct peer_use *u = c->use;

    if (change > 0 && l->pending_per_peer > 0 && u->pending + change > l->pending_per_peer) {
        (void)err_set(e, ERR_LIMIT, 0, "requests of this client use more than %lld bytes",
                      (long long)l->pending_per_peer);
        return err_limit(e, "pending_per_peer", l->pending_per_peer, "send less at once");
    }
    if (change > 0 && l->pending_max > 0 && *all + change > l->pending_max) {
        (void)err_set(e, ERR_UNAVAILABLE, 0,
                      "requests of clients that have not authenticated use more than %lld bytes",
                      (long long)l->pending_max);
        return err_limit(e, "pending_max", l->pending_max, "try again");
    }
    u->pending += change;
    *all += change;
    metric_inc(&metric_pending, change);
    assert(u->pending >= 0 && *all >= 0);
    return 0;
}

static size_t refused_data(struct stream *st, struct str bytes)
{
    (void)st;
    return bytes.n;
}

static void refused_event(struct stream *st)
{
    (void)st;
}

static void refused_closed(struct stream *st, const struct err *e)
{
    struct server *s = stream_arg(st);

    (void)e;
    s->refused--;
}

/* Replies in clear text before the peer has sent anything: a TLS peer sees a broken handshake. */
static void refuse(struct server *s, struct stream *st, int status, const char *why,
                   const char *setting, int64_t max)
{
    static const struct stream_ops ops = {
        .data = refused_data,
        .eof = refused_event,
        .writable = refused_event,
        .closed = refused_closed,
    };
    AUTO(buf_done) struct buf body = {0};
    struct buf *out = stream_out(st);
    struct err e;

    metric_inc(&metric_refused, 1);
    stream_handle(st, &ops, s);
    if (++s->refused > REFUSED_MAX) {
        stream_cut(st);
        return;
    }
    (void)err_set(&e, ERR_LIMIT, 0, "%s", why);
    (void)err_limit(&e, setting, max, "close some");
    json_error(&body, &e);
    buf_printf(out,
               "HTTP/1.1 %d %s\r\ncontent-type: application/json\r\nretry-after: 1\r\n"
               "content-length: %zu\r\nconnection: close\r\n\r\n",
               status, http_status_text(status), buf_len(&body));
    buf_add_str(out, buf_str(&body));
    stream_flush_soon(st);
    stream_close(st);
}

/* Accepts a connection within the limits; otherwise replies with the reason. */
static void admit(struct server *s, struct stream *st, const struct listener_info *l)
{
    const struct server_limits *limits = s->config.limits;

    struct peer_use *u;

    if (s->connections >= limits->connections_max) {
        refuse(s, st, 503, "too many connections", "connections_max", limits->connections_max);
        return;
    }
    u = use_of(s, stream_peer(st));
    if (u->connections >= limits->connections_per_peer) {
        refuse(s, st, 429, "too many connections from this address", "connections_per_peer",
               limits->connections_per_peer);
        return;
    }
    s->connections++;
    metric_inc(&metric_connections, 1);
    u->connections++;
    conn_new(s, st, l, u);
}

static void on_ready(struct listener *l)
{
    struct server *s = l->arg;
    struct stream *st;
    struct err e;

    st = stream_accept(s->hub, &l->h.stream, s->tls, &e);
    if (st)
        admit(s, st, &l->info);
    else
        log_warn("a connection could not be accepted", LOG_E(&e));
}

int server_adopt(struct server *s, int fd, const char *peer, const struct listener_info *l,
                 struct err *e)
{
    struct stream *st;

    if (s->stopping) {
        fd_close(fd);
        return err_set(e, ERR_UNAVAILABLE, 0, "holtd is stopping");
    }
    st = stream_adopt(s->hub, fd, peer, e);
    if (!st)
        return -1;
    admit(s, st, l);
    return 0;
}

int server_listen(struct server *s, const char *address, enum listener_role role, struct err *e)
{
    struct listener *l;

    if (str_starts(str_of(address), STR("tls://")) && !s->tls) {
        (void)err_set(e, ERR_INVALID, 0, "listen on %s: no TLS certificate is configured", address);
        return err_hint(e, "set the certificate and key files");
    }
    if (listener_new(s->config.loop, address, on_ready, s, &l, e) < 0)
        return -1;
    l->info.role = role;
    s->listeners = xrealloc(s->listeners, (s->listener_count + 1) * sizeof *s->listeners);
    s->listeners[s->listener_count++] = l;
    s->listeners_open++;
    return 0;
}

size_t server_listener_count(const struct server *s)
{
    return s->listener_count;
}

const struct listener_info *server_listener(const struct server *s, size_t i)
{
    assert(i < s->listener_count);
    return &s->listeners[i]->info;
}

uv_loop_t *server_loop(const struct server *s)
{
    return s->config.loop;
}

void server_write_error(const struct server *s, struct buf *to, struct str path,
                        const struct err *e)
{
    (s->config.error ? s->config.error : json_error_at)(to, path, e);
}

const struct server_limits *server_limits(const struct server *s)
{
    return s->config.limits;
}

int64_t server_connection_count(const struct server *s)
{
    return s->connections;
}

static void on_timer_closed(uv_handle_t *h)
{
    struct server *s = h->data;
    void (*stopped)(void *arg) = s->stopped;
    void *arg = s->stopped_arg;

    server_free(s);
    if (stopped)
        stopped(arg);
}

static void finish_stop(struct server *s)
{
    if (!s->hub && s->listeners_open == 0)
        uv_close((uv_handle_t *)&s->timer, on_timer_closed);
}

static void on_hub_freed(void *arg)
{
    struct server *s = arg;

    s->hub = NULL;
    finish_stop(s);
}

static void on_listener_closed(struct listener *l)
{
    struct server *s = l->arg;

    s->listeners_open--;
    finish_stop(s);
}

void server_stop(struct server *s, int64_t grace_ms, void (*done)(void *arg), void *arg)
{
    assert(!s->stopping);
    s->stopping = true;
    s->stopped = done;
    s->stopped_arg = arg;
    s->cut_at_ms = (int64_t)uv_now(s->config.loop) + grace_ms;
    uv_ref((uv_handle_t *)&s->timer);
    for (size_t i = 0; i < s->listener_count; i++)
        listener_close(s->listeners[i], on_listener_closed);
    each_conn(s, conn_shutdown);
    if (grace_ms <= 0)
        cut_all(s);
    stream_hub_free(s->hub, on_hub_freed, s);
}
