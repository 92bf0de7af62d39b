/* box: a sandbox's policy, listeners, secrets and budgets. */
#include "egress/egress.h"

#include "base/fd.h"
#include "base/mem.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>

struct box *box_ref(struct box *b)
{
    b->refs++;
    return b;
}

static void forget_spent(struct box *b)
{
    struct str key;
    void *value;

    for (size_t at = 0; map_next(&b->spent, &at, &key, &value);)
        mem_free(value);
    map_done(&b->spent);
}

struct box *box_unref(struct box *b)
{
    if (!b || --b->refs > 0)
        return NULL;
    forget_spent(b);
    policy_free(b->policy);
    bindings_free(b->bindings);
    names_free(b->names);
    mem_free(b);
    return NULL;
}

/* ---- listeners ---- */

static void on_ready(uv_poll_t *p, int status, int events)
{
    struct listener *l = CONTAINER_OF(p, struct listener, poll);

    (void)events;
    if (status < 0 || l->fd < 0)
        return;
    if (l->kind == SPAWN_LISTENER_DNS_UDP)
        dnsd_datagrams(l);
    else if (l->kind == SPAWN_LISTENER_DNS_TCP)
        dnsd_accept(l);
    else
        conn_accept(l);
}

static void on_listener_closed(uv_handle_t *h)
{
    struct listener *l = CONTAINER_OF(h, struct listener, poll);

    box_unref(l->box);
}

static void close_listener(struct listener *l)
{
    if (l->fd < 0)
        return;
    uv_close((uv_handle_t *)&l->poll, on_listener_closed);
    fd_close(TAKE_FD(l->fd));
}

static int open_listener(struct box *b, enum spawn_listener kind, int fd, struct err *e)
{
    struct listener *l = &b->listeners[kind];
    int r = uv_poll_init_socket(&b->all->loop, &l->poll, fd), on = 1;

    if (r < 0) {
        fd_close(fd);
        return err_set(e, ERR_INTERNAL, -r, "watch a listener of sandbox '%s'", b->id);
    }
    l->box = box_ref(b);
    l->kind = kind;
    l->fd = fd;
    if (kind != SPAWN_LISTENER_DNS_UDP) /* accepted sockets inherit it (tcp(7), Linux) */
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)uv_poll_start(&l->poll, UV_READABLE, on_ready);
    return 0;
}

static int open_listeners(struct box *b, uint32_t kinds, const int *fds, struct err *e)
{
    int r = 0;
    size_t at = 0;

    for (unsigned kind = 0; kind < SPAWN_LISTENER_COUNT; kind++) {
        if (!(kinds & (1u << kind)))
            continue;
        if (r < 0 || b->listeners[kind].fd >= 0)
            fd_close(fds[at++]);
        else
            r = open_listener(b, (enum spawn_listener)kind, fds[at++], e);
    }
    return r;
}

int box_accept(struct listener *l)
{
    struct fd_spares *spares = &l->box->all->spares;
    int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd >= 0 || (errno != EMFILE && errno != ENFILE))
        return fd;
    fd_spares_free(spares);
    fd_close(accept4(l->fd, NULL, NULL, SOCK_CLOEXEC));
    (void)!fd_spares_fill(spares);
    errno = EMFILE;
    return -1;
}

/* ---- life ---- */

static struct box *make(struct egress *all, struct str id)
{
    struct box *b = xzalloc(sizeof *b);

    b->refs = 1;
    b->all = all;
    (void)snprintf(b->id, sizeof b->id, STR_FMT, STR_ARG(id));
    b->names = names_new();
    list_init(&b->conns);
    list_init(&b->dns_conns);
    for (size_t i = 0; i < SPAWN_LISTENER_COUNT; i++)
        b->listeners[i].fd = -1;
    return b;
}

static struct box *add(struct egress *all, struct str id)
{
    struct box *b = make(all, id);
    struct err e;
    int r = policy_parse(STR("none"), false, &b->policy, &e);

    assert(r == 0);
    (void)map_set(&all->boxes, id, b);
    return b;
}

struct box *box_new_nobody(struct egress *all, int fd)
{
    struct box *b = make(all, STR("nobody"));
    struct err e;
    int r = policy_parse(STR("none"), false, &b->policy, &e);

    assert(r == 0);
    /* on failure, no connection is accepted */
    (void)!open_listener(b, SPAWN_LISTENER_TCP4, fd, &e);
    return b;
}

void box_close(struct box *b)
{
    b->removed = true;
    for (size_t i = 0; i < SPAWN_LISTENER_COUNT; i++)
        close_listener(&b->listeners[i]);
    conn_close_all(b, "its sandbox was destroyed");
    dnsd_close_all(b);
}

/* Skips lines that do not parse: the sandbox then asks again. */
static void learn(struct policy *p, struct str lines)
{
    struct err e;

    while (lines.n > 0) {
        struct str port_text, line = str_cut(lines, '\n', &lines);
        struct str name = str_cut(str_skip(line, 1), ':', &port_text);
        struct host h;
        uint64_t port;

        if (line.n > 1 && line.p[0] == '=') {
            struct str net, host = str_cut(str_skip(line, 1), ' ', &net);

            (void)!policy_add_internal(p, host, net);
            continue;
        }
        if (line.n > 1 && str_parse_u64(port_text, &port) == 0 && port <= 65535 &&
            host_parse(name, &h, &e) == 0)
            policy_learn(p, &h, (unsigned)port, line.p[0] == '+');
    }
}

int box_set(struct egress *all, const struct egress_set *set, const int *fds, struct err *e)
{
    AUTO(policy_free) struct policy *policy = NULL;
    struct box *b = map_get(&all->boxes, set->id);

    if (policy_parse(set->policy, true, &policy, e) < 0) {
        for (int i = 0; i < __builtin_popcount(set->kinds); i++)
            fd_close(fds[i]);
        return err_wrap(e, "set the policy of sandbox '" STR_FMT "'", STR_ARG(set->id));
    }
    if ((!b || !b->is_set) && set->kinds == 0 && !set->led)
        return err_set(e, ERR_NOT_FOUND, 0, "sandbox '" STR_FMT "' has no listeners",
                       STR_ARG(set->id));
    if (!b)
        b = add(all, set->id);
    learn(policy, set->learned);
    policy_free(b->policy);
    b->policy = TAKE(policy);
    b->is_set = true;
    (void)snprintf(b->alias, sizeof b->alias, STR_FMT, STR_ARG(set->alias));
    conn_judge_all(b);
    if (open_listeners(b, set->kinds, fds, e) < 0) {
        box_remove(all, set->id);
        return -1;
    }
    return 0;
}

int box_secrets(struct egress *all, const struct egress_secrets *s, struct err *e)
{
    struct bindings *fresh;
    struct box *b = map_get(&all->boxes, s->id);

    if (bindings_parse(s->json, &fresh, e) < 0)
        return err_wrap(e, "take the secrets of sandbox '" STR_FMT "'", STR_ARG(s->id));
    if (!b)
        b = add(all, s->id);
    bindings_retire(fresh, b->bindings);
    bindings_free(b->bindings);
    b->bindings = fresh;
    conn_judge_all(b);
    return 0;
}

/* The guest names the destination: only an address counts, and the policy judges it as any other.
 */
void box_lead(struct egress *all, const struct egress_lead *m, int fd)
{
    AUTO(box_unref) struct box *b = map_get(&all->boxes, m->id);
    struct ip to;

    if (b)
        (void)box_ref(b);
    if (!b || !b->is_set || (m->host.n > 0 && !ip_parse(m->host, &to)))
        fd_close(fd);
    else if (m->dns)
        dnsd_led(b, fd);
    else
        conn_led(b, fd, m->host.n > 0 ? &to : NULL, m->port);
}

void box_remove(struct egress *all, struct str id)
{
    struct box *b = map_remove(&all->boxes, id);

    if (!b)
        return;
    box_close(b);
    box_unref(b);
}

struct spent *box_spent(struct box *b, const struct host *h, unsigned port, bool *ret_full)
{
    char key[HOST_NAME_MAX_LEN + 8];
    struct spent *s;

    *ret_full = false;
    if (policy_bytes_max(b->policy) == 0 && policy_connections_max(b->policy) == 0)
        return NULL;
    (void)snprintf(key, sizeof key, "%s:%u", h->name, port);
    s = map_get(&b->spent, str_of(key));
    if (s)
        return s;
    *ret_full = b->spent.count >= BOX_DESTINATIONS;
    if (*ret_full)
        return NULL;
    s = xzalloc(sizeof *s);
    (void)map_set(&b->spent, str_of(key), s);
    return s;
}
