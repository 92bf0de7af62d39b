/* resolver: asynchronous DNS lookups by c-ares. */
#include "net/resolver.h"

#include "base/map.h"
#include "base/mem.h"

#include <ares.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/stat.h>

#define TICK_MS 100 /* granularity of c-ares's retries */
#define CONF "/etc/resolv.conf"
#define TRY_MS 2000
#define TRIES 3

struct resolver {
    uv_loop_t *loop;
    ares_channel channel;
    uv_timer_t timer; /* for c-ares's timeouts */
    char *servers;
    struct timespec conf_changed;
    size_t pending;
    struct map shares; /* struct share, by client */
    int inside;        /* nested calls of c-ares: keep the channel while > 0 */
    bool freed;
};

struct watched { /* one socket of c-ares */
    uv_poll_t poll;
    struct resolver *r;
    int fd;
    struct watched *next;
};
static struct watched *all_watched; /* for all resolvers of this thread: a handful at most */

struct share { /* lookups in progress of one client; freed with the last */
    size_t pending;
    char who[];
};

struct lookup {
    struct resolver *r;
    struct share *share; /* NULL: no client named */
    lookup_cb done;      /* NULL: cancelled */
    void *arg;
    char *name;
    bool *returned; /* set while resolver_ask runs */
};

/* ---- sockets ---- */

static void update_timer(struct resolver *r);

static void process(struct resolver *r, ares_socket_t readable, ares_socket_t writable)
{
    r->inside++;
    ares_process_fd(r->channel, readable, writable);
    r->inside--;
    update_timer(r);
}

static void on_ready(uv_poll_t *p, int status, int events)
{
    struct watched *w = CONTAINER_OF(p, struct watched, poll);
    struct resolver *r = w->r;
    int fd = w->fd;

    if (status < 0)
        events = UV_READABLE | UV_WRITABLE; /* c-ares finds the error */
    process(r, events & UV_READABLE ? fd : ARES_SOCKET_BAD,
            events & UV_WRITABLE ? fd : ARES_SOCKET_BAD);
}

static void on_watched_closed(uv_handle_t *h)
{
    mem_free(CONTAINER_OF(h, struct watched, poll));
}

static struct watched **find_watched(const struct resolver *r, int fd)
{
    struct watched **at = &all_watched;

    while (*at && ((*at)->r != r || (*at)->fd != fd))
        at = &(*at)->next;
    return at;
}

static void socket_state(void *arg, ares_socket_t fd, int readable, int writable)
{
    struct resolver *r = arg;
    struct watched **at = find_watched(r, fd), *w = *at;

    if (!readable && !writable) {
        if (!w)
            return;
        *at = w->next;
        (void)uv_poll_stop(&w->poll);
        uv_close((uv_handle_t *)&w->poll, on_watched_closed);
        return;
    }
    if (!w) {
        w = xzalloc(sizeof *w);
        w->r = r;
        w->fd = fd;
        if (uv_poll_init_socket(r->loop, &w->poll, fd) < 0) {
            mem_free(w);
            return; /* the timeout ends the lookup */
        }
        w->next = all_watched;
        all_watched = w;
    }
    (void)uv_poll_start(&w->poll, (readable ? UV_READABLE : 0) | (writable ? UV_WRITABLE : 0),
                        on_ready);
}

static void on_timer(uv_timer_t *t)
{
    struct resolver *r = t->data;

    process(r, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
}

/* Not with ares_timeout(3), which walks all lookups in progress each time. */
static void update_timer(struct resolver *r)
{
    if (r->freed)
        return;
    if (r->pending == 0)
        (void)uv_timer_stop(&r->timer);
    else if (!uv_is_active((uv_handle_t *)&r->timer))
        (void)uv_timer_start(&r->timer, on_timer, TICK_MS, 0);
}

/* ---- the channel ---- */

static struct timespec conf_time(void)
{
    struct stat st;

    return stat(CONF, &st) < 0 ? (struct timespec){0} : st.st_mtim;
}

static int open_channel(struct resolver *r, struct err *e)
{
    struct ares_options o = {.timeout = TRY_MS,
                             .tries = TRIES,
                             .sock_state_cb = socket_state,
                             .sock_state_cb_data = r,
                             .lookups = (char *)"b"};
    int mask = ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB;
    int s;

#ifdef ARES_OPT_QUERY_CACHE /* since 1.31 c-ares caches answers for an hour: query each time */
    o.qcache_max_ttl = 0;
    mask |= ARES_OPT_QUERY_CACHE;
#endif
    s = ares_init_options(&r->channel, &o, mask | (r->servers ? ARES_OPT_LOOKUPS : 0));
    if (s == ARES_SUCCESS && r->servers) {
        s = ares_set_servers_ports_csv(r->channel, r->servers);
        if (s != ARES_SUCCESS)
            ares_destroy(TAKE(r->channel));
    }
    if (s != ARES_SUCCESS)
        return err_set(e, ERR_INVALID, 0, "set up the resolver%s%s: %s", r->servers ? " with " : "",
                       r->servers ? r->servers : "", ares_strerror(s));
    r->conf_changed = conf_time();
    return 0;
}

/* Only without lookups in progress, so that none is lost. */
static void follow_conf(struct resolver *r)
{
    bool busy = r->servers || r->pending > 0 || r->inside > 0;
    struct timespec now = busy ? r->conf_changed : conf_time();
    ares_channel old = r->channel;
    struct err ignored;

    if (now.tv_sec == r->conf_changed.tv_sec && now.tv_nsec == r->conf_changed.tv_nsec)
        return;
    if (open_channel(r, &ignored) < 0)
        r->channel = old;
    else
        ares_destroy(old);
}

int resolver_new(uv_loop_t *loop, const char *servers, struct resolver **ret, struct err *e)
{
    struct resolver *r;

    if (ares_library_init(ARES_LIB_INIT_ALL) != ARES_SUCCESS)
        return err_set(e, ERR_INTERNAL, 0, "start c-ares");
    r = xzalloc(sizeof *r);
    r->loop = loop;
    r->servers = servers && servers[0] ? xstrdup(servers) : NULL;
    if (open_channel(r, e) < 0) {
        mem_free(r->servers);
        mem_free(r);
        return -1;
    }
    (void)uv_timer_init(loop, &r->timer);
    r->timer.data = r;
    *ret = r;
    return 0;
}

static void on_timer_closed(uv_handle_t *h)
{
    struct resolver *r = h->data;

    ares_destroy(r->channel); /* closes its sockets; lookups end without a callback */
    map_done(&r->shares);
    mem_free(r->servers);
    mem_free(r);
}

struct resolver *resolver_free(struct resolver *r)
{
    if (!r)
        return NULL;
    r->freed = true; /* the channel is freed after the last call of c-ares returns */
    uv_close((uv_handle_t *)&r->timer, on_timer_closed);
    return NULL;
}

/* ---- lookups ---- */

static size_t take_addresses(const struct ares_addrinfo *all, struct ip *to)
{
    size_t n = 0;

    for (const struct ares_addrinfo_node *a = all ? all->nodes : NULL; a && n < RESOLVER_ADDRESSES;
         a = a->ai_next) {
        if (a->ai_family == AF_INET) {
            struct sockaddr_in in;

            memcpy(&in, a->ai_addr, sizeof in);
            to[n++] = ip_v4(ntohl(in.sin_addr.s_addr));
        } else if (a->ai_family == AF_INET6) {
            struct sockaddr_in6 in;

            memcpy(&in, a->ai_addr, sizeof in);
            memcpy(to[n++].bytes, &in.sin6_addr, sizeof to->bytes);
        }
    }
    return n;
}

static struct share *share_take(struct resolver *r, const char *who)
{
    struct share *s = map_get(&r->shares, str_of(who));

    if (!s) {
        s = xzalloc(sizeof *s + strlen(who) + 1);
        memcpy(s->who, who, strlen(who) + 1);
        (void)map_set(&r->shares, str_of(who), s);
    }
    s->pending++;
    return s;
}

static void share_drop(struct resolver *r, struct share *s)
{
    if (!s || --s->pending > 0)
        return;
    (void)map_remove(&r->shares, str_of(s->who));
    mem_free(s);
}

static bool is_too_many(const struct resolver *r, const char *who)
{
    const struct share *s = who ? map_get(&r->shares, str_of(who)) : NULL;
    size_t left = RESOLVER_PENDING_MAX - r->pending;

    return left == 0 || (s && s->pending >= left / RESOLVER_SHARE);
}

static void on_found(void *arg, int status, int timeouts, struct ares_addrinfo *all)
{
    struct lookup *l = arg;
    struct ip addresses[RESOLVER_ADDRESSES];
    size_t n = status == ARES_SUCCESS ? take_addresses(all, addresses) : 0;
    struct err e = {0};

    (void)timeouts;
    if (all)
        ares_freeaddrinfo(all);
    l->r->pending--;
    share_drop(l->r, l->share);
    if (l->returned)
        *l->returned = true;
    if (n == 0)
        (void)err_set(&e,
                      status == ARES_ENOTFOUND || status == ARES_ENODATA || status == ARES_SUCCESS
                          ? ERR_NOT_FOUND
                          : ERR_UNAVAILABLE,
                      0, "look up the name '%s': %s", l->name,
                      status == ARES_SUCCESS ? "it has no address" : ares_strerror(status));
    if (l->done && !l->r->freed)
        l->done(l->arg, addresses, n, &e);
    mem_free(l->name);
    mem_free(l);
}

struct lookup *resolver_ask(struct resolver *r, const char *who, const char *name, lookup_cb done,
                            void *arg)
{
    const struct ares_addrinfo_hints hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct lookup *l;
    bool returned = false;

    if (is_too_many(r, who)) {
        struct err e = {0};

        (void)err_set(&e, ERR_LIMIT, 0, "look up the name '%s': too many names are being looked up",
                      name);
        (void)err_limit_fixed(&e, RESOLVER_PENDING_MAX, "try again in a moment");
        done(arg, NULL, 0, &e);
        return NULL;
    }
    l = xzalloc(sizeof *l);
    follow_conf(r);
    *l = (struct lookup){.r = r,
                         .share = who ? share_take(r, who) : NULL,
                         .done = done,
                         .arg = arg,
                         .name = xstrdup(name),
                         .returned = &returned};
    r->pending++;
    ares_getaddrinfo(r->channel, name, NULL, &hints, on_found, l);
    if (!returned)
        l->returned = NULL;
    update_timer(r);
    return returned ? NULL : l;
}

void lookup_cancel(struct lookup *l)
{
    if (l)
        l->done = NULL;
}
