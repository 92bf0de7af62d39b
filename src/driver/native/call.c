/* call: the native runtime's requests to holt-spawn, and its connections to inits. */
#include "driver/native/native.h"

#include "base/fd.h"
#include "base/mem.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#define CONNECT_TRIES 25
#define CONNECT_MS 20
#define NETNS_AHEAD 8 /* network namespaces that holt-spawn makes in advance */

/* ---- live sandboxes ---- */

void native_box_add(struct native *n, const char *id)
{
    if (!map_get(&n->boxes, str_of(id)))
        (void)map_set(&n->boxes, str_of(id), xzalloc(sizeof(struct native_box)));
}

static void box_ended(struct native *n, const char *id, int status, bool known)
{
    const struct driver_events *ev = &n->c.events;
    struct native_box *b = map_remove(&n->boxes, str_of(id));

    if (b && !b->quiet && ev->init_ended)
        ev->init_ended(ev->arg, id, status, known);
    mem_free(b);
}

/* ---- calls ---- */

static void call_ended(struct helper_call *h, const void *msg)
{
    struct call *c = CONTAINER_OF(h, struct call, h);
    const struct spawn_msg *m = msg;

    if (m && m->type == SPAWN_DONE) {
        h->err = m->u.done.err;
        m = h->err.code == ERR_NONE ? m : NULL;
    }
    c->finish(c, m);
    mem_free(c->found);
}

/* Requests that can be retried do not fail for lack of a holt-spawn: their owner would only repeat
 * them.  A create is not repeated. */
static unsigned flags_of(enum spawn_type type)
{
    bool patient =
        type == SPAWN_DESTROY || type == SPAWN_CONFIRM || type == SPAWN_LIST || type == SPAWN_ADOPT;

    return (patient ? (unsigned)HELPER_PATIENT : 0) |
           (type == SPAWN_CREATE ? (unsigned)HELPER_ONCE : 0);
}

static void take_id(const char *from, char *to, struct err *e)
{
    if (strlen(from) < ID_SIZE && spawn_id_is_safe(str_of(from)))
        memcpy(to, from, strlen(from));
    else
        (void)err_set(e, ERR_INVALID, 0, "'%.64s' is not a sandbox id", from);
}

struct call *call_new(struct native *n, enum spawn_type type, const char *id, void *arg)
{
    struct call *c = helper_call_new(n->link, sizeof *c, flags_of(type));

    c->h.end = call_ended;
    c->n = n;
    c->type = type;
    c->arg = arg;
    if (id)
        take_id(id, c->id, &c->h.err);
    return c;
}

void call_ask(struct call *c, struct spawn_msg *m)
{
    m->type = c->type;
    helper_call_send(&c->h, m);
}

void call_ask_named(struct call *c)
{
    struct spawn_msg m = {0};

    m.u.name.id = str_of(c->id);
    call_ask(c, &m);
}

void call_finish_done(struct call *c, const struct spawn_msg *m)
{
    (void)m;
    if (c->cb.done)
        c->cb.done(c->arg, &c->h.err);
}

/* The reply comes later: the caller may still set the callback. */
struct call *native_make_ahead(struct native *n)
{
    struct call *c = call_new(n, SPAWN_POOL, NULL, NULL);
    struct spawn_msg m = {.u.pool = {.netns = NETNS_AHEAD, .spares = n->spares}};

    c->finish = call_finish_done;
    call_ask(c, &m);
    return c;
}

/* ---- the link ---- */

/* Sandboxes that ended while we were not connected: list shows them as dead, or not at all. */
static void ended_unseen(void *arg, const struct driver_found *f, size_t count, const struct err *e)
{
    struct native *n = arg;
    struct str key;
    size_t at = 0;
    void *box;

    if (e->code != ERR_NONE)
        return;
    while (map_next(&n->boxes, &at, &key, &box)) {
        char id[ID_SIZE] = "";
        bool runs = false;

        memcpy(id, key.p, size_min(key.n, sizeof id - 1));
        for (size_t i = 0; i < count; i++)
            runs = runs || (f[i].running && strcmp(f[i].id, id) == 0);
        if (!runs)
            box_ended(n, id, 0, false);
    }
}

static void link_hello(void *arg, void *msg)
{
    struct spawn_msg *m = msg;

    m->u.hello = (struct spawn_hello){SPAWN_VERSION, SPAWN_VERSION,
                                      str_of(((struct native *)arg)->installation)};
}

static void link_welcomed(void *arg, const void *msg)
{
    ((struct native *)arg)->features = ((const struct spawn_msg *)msg)->u.welcome.features;
}

static void link_up(void *arg)
{
    struct native *n = arg;
    const struct driver_events *ev = &n->c.events;

    (void)native_make_ahead(n);
    if (!n->opened)
        return; /* no request was made yet */
    native_list(n, NULL, ended_unseen, n);
    if (ev->health)
        ev->health(ev->arg, &(struct err){0});
}

static void link_event(void *arg, const void *msg, struct helper_fds *fds)
{
    struct native *n = arg;
    const struct spawn_msg *m = msg;
    const struct driver_events *ev = &n->c.events;
    char id[ID_SIZE] = "";

    (void)fds;
    if (m->type != SPAWN_EVENT || !helper_is_up(n->link))
        return; /* before welcome: list reports the same */
    memcpy(id, m->u.event.id.p, size_min(m->u.event.id.n, sizeof id - 1));
    if (m->u.event.kind == SPAWN_INIT_ENDED)
        box_ended(n, id, (int)m->u.event.status, m->u.event.status != 0);
    else if (ev->oom)
        ev->oom(ev->arg, id);
}

static void link_down(void *arg, const struct err *e)
{
    const struct driver_events *ev = &((struct native *)arg)->c.events;

    if (ev->health)
        ev->health(ev->arg, e);
}

const struct helper_ops native_link_ops = {
    .hello = link_hello,
    .welcomed = link_welcomed,
    .up = link_up,
    .event = link_event,
    .down = link_down,
};

/* ---- connections to inits: without holt-spawn ---- */

struct init_connect {
    struct list node;
    char id[ID_SIZE];
    int tries;
    struct err err;
    driver_fd_cb done;
    void *arg;
};

static void connect_end(struct init_connect *x, int fd)
{
    list_unlink(&x->node);
    x->done(x->arg, fd, &x->err);
    mem_free(x);
}

/* False: try again.  unix(7): EAGAIN is a full backlog. */
static bool connect_try(struct native *n, struct init_connect *x)
{
    char name[64];
    int fd = -1;

    (void)snprintf(name, sizeof name, "sb/%s/init.sock", x->id);
    if (x->err.code == ERR_NONE)
        fd = helper_connect_below(helper_dir(n->link), SOCK_STREAM, name);
    if (fd == -EAGAIN && ++x->tries <= CONNECT_TRIES)
        return false;
    if (fd < 0 && x->err.code == ERR_NONE)
        (void)err_set(&x->err,
                      fd == -ENOENT || fd == -ECONNREFUSED ? ERR_NOT_FOUND : ERR_UNAVAILABLE, -fd,
                      "connect to the init of sandbox '%s'", x->id);
    connect_end(x, fd < 0 ? -1 : fd);
    return true;
}

static void connect_due(uv_timer_t *t)
{
    struct native *n = t->data;
    struct list now;
    struct list *node;

    list_init(&now); /* a callback may request another */
    while ((node = list_pop(&n->connects)))
        list_push(&now, node);
    while (!n->closed && (node = list_pop(&now)))
        if (!connect_try(n, LIST_ENTRY(node, struct init_connect, node)))
            list_push(&n->connects, node);
    while ((node = list_pop(&now)))
        list_push(&n->connects, node);
    if (n->closed)
        native_connects_end(n);
    else if (!list_is_empty(&n->connects))
        (void)uv_timer_start(&n->timer, connect_due, CONNECT_MS, 0);
}

void native_connect(struct driver *d, const char *id, driver_fd_cb done, void *arg)
{
    struct native *n = native_of(d);
    struct init_connect *x = xzalloc(sizeof *x);

    x->done = done;
    x->arg = arg;
    take_id(id, x->id, &x->err);
    list_push(&n->connects, &x->node);
    (void)uv_timer_start(&n->timer, connect_due, 0, 0);
}

void native_connects_end(struct native *n)
{
    struct list *node;

    while ((node = list_pop(&n->connects))) {
        struct init_connect *x = LIST_ENTRY(node, struct init_connect, node);

        (void)err_set(&x->err, ERR_CANCELLED, 0, "the runtime is being closed");
        connect_end(x, -1);
    }
}
