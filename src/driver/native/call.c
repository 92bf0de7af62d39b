#include "driver/native/native.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/starter.h"

#include <errno.h>
#include <unistd.h>

#define RETRY_MS 200
#define CALLS_MAX 4096 /* under way at once */
#define CONNECT_TRIES 25
#define LACK_MS 10000 /* how long a request waits for a holt-spawn that is not there */
#define NETNS_AHEAD 8 /* network namespaces that holt-spawn makes before they are needed */

static void send_calls(struct native *n);
static void on_timer(uv_timer_t *t);

void native_wake(struct native *n, uint64_t ms)
{
    if (!n->closed)
        (void)uv_timer_start(&n->timer, on_timer, ms, 0);
}

/* ---- what runs ---- */

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

struct call *call_new(struct native *n, enum spawn_type type, const char *id, void *arg)
{
    struct call *c = xzalloc(sizeof *c);

    c->n = n;
    c->type = type;
    c->arg = arg;
    c->since_ms = clock_mono_ms();
    c->fd = -1;
    do
        c->tag = ++n->last_tag;
    while (c->tag == 0 || c->tag == UINT32_MAX); /* of events; of hello */
    if (id && strlen(id) < sizeof c->id && spawn_id_is_safe(str_of(id)))
        memcpy(c->id, id, strlen(id));
    else if (id)
        (void)err_set(&c->err, ERR_INVALID, 0, "'%.64s' is not a sandbox id", id);
    if (n->call_count >= CALLS_MAX) {
        (void)err_set(&c->err, ERR_LIMIT, 0, "%d requests to holt-spawn wait", CALLS_MAX);
        (void)err_limit_fixed(&c->err, CALLS_MAX, "try again in a moment");
    }
    list_push(&n->calls, &c->node);
    n->call_count++;
    return c;
}

void call_end(struct call *c, const struct spawn_msg *m)
{
    list_unlink(&c->node);
    c->n->call_count--;
    c->finish(c, c->err.code == ERR_NONE ? m : NULL);
    fd_close(c->fd);
    spawn_link_fds_done(&c->fds);
    mem_free(c->found);
    mem_free(c->packet);
    mem_free(c);
}

/* Encodes the call's request; what fails is told on the loop's next turn. */
void call_ask(struct call *c, struct spawn_msg *m)
{
    static uint8_t bytes[SPAWN_PACKET_MAX];
    struct wire_out o = {.p = bytes, .size = sizeof bytes};

    m->type = c->type;
    m->tag = c->tag;
    if (c->err.code == ERR_NONE && spawn_encode(m, SPAWN_HOST, &o, &c->err) == 0) {
        c->packet = xmemdup(bytes, o.n);
        c->size = o.n;
        send_calls(c->n);
    }
    c->over = c->err.code != ERR_NONE;
    if (c->over)
        native_wake(c->n, 0);
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
        c->cb.done(c->arg, &c->err);
}

/* ---- replies ---- */

static void on_event(struct native *n, const struct spawn_event *v)
{
    const struct driver_events *ev = &n->c.events;
    char id[ID_SIZE] = "";

    memcpy(id, v->id.p, size_min(v->id.n, sizeof id - 1));
    if (v->kind == SPAWN_INIT_ENDED)
        box_ended(n, id, (int)v->status, v->status != 0);
    else if (ev->oom)
        ev->oom(ev->arg, id);
}

static struct call *find_call(struct native *n, uint32_t tag)
{
    LIST_EACH (&n->calls, node) {
        struct call *c = LIST_ENTRY(node, struct call, node);

        if (c->tag == tag && c->sent && !c->over)
            return c;
    }
    return NULL;
}

static void on_packet(struct native *n, const struct spawn_msg *m, struct spawn_link_fds *fds)
{
    struct call *c;

    if (m->type == SPAWN_EVENT) {
        on_event(n, &m->u.event);
        return;
    }
    c = find_call(n, m->tag);
    if (!c)
        return;
    if (m->type == SPAWN_DONE)
        c->err = m->u.done.err;
    c->fds = *fds;
    fds->n = 0;
    call_end(c, m);
}

/* ---- the connection ---- */

static void on_poll(uv_poll_t *h, int status, int events);

void native_poll_closed(uv_handle_t *h)
{
    struct native *n = h->data;

    n->polled = false;
    if (--n->refs == 0)
        mem_free(n);
}

/* Each start costs two system calls: only for a change. */
static void want(struct native *n, bool write)
{
    int events = UV_READABLE | (write ? UV_WRITABLE : 0);

    if (!n->polled || n->fd < 0 || n->events == events)
        return;
    if (uv_poll_start(&n->poll, events, on_poll) == 0)
        n->events = events;
}

static void disconnect(struct native *n, const struct err *e)
{
    const struct driver_events *ev = &n->c.events;
    struct err why = *e;

    if (n->fd < 0)
        return;
    uv_close((uv_handle_t *)&n->poll, native_poll_closed);
    fd_close(TAKE_FD(n->fd));
    LIST_EACH (&n->calls, node) {
        struct call *c = LIST_ENTRY(node, struct call, node);

        if (c->type == SPAWN_CREATE && c->sent) {
            c->err = why;
            c->over = true;
        }
        c->sent = false;
    }
    n->greeted = false;
    native_wake(n, RETRY_MS);
    if (ev->health)
        ev->health(ev->arg, &why);
}

static void send_calls(struct native *n)
{
    struct err e = {0};
    bool full = false;
    int r = 0;

    if (n->fd < 0 || !n->greeted)
        return;
    LIST_EACH (&n->calls, node) {
        struct call *c = LIST_ENTRY(node, struct call, node);

        if (c->sent || c->over || !c->packet)
            continue;
        r = spawn_link_send(n->fd, str_make(c->packet, c->size), &e);
        full = r == 0;
        if (r <= 0)
            break; /* a failed write shows as a closed connection, on the loop's turn */
        c->sent = true;
    }
    want(n, full);
}

static int on_welcome(struct native *n, const struct spawn_msg *m, struct err *e);

static void on_poll(uv_poll_t *h, int status, int events)
{
    struct native *n = h->data;
    struct spawn_link_fds fds;
    struct spawn_msg m;
    struct err e = {0};
    int r = 1;

    (void)events;
    if (status < 0)
        r = err_set(&e, ERR_UNAVAILABLE, -status, "wait for holt-spawn");
    while (r > 0 && n->fd >= 0 && !n->closed) {
        r = spawn_link_receive(n->fd, n->packet, &m, &fds, &e);
        if (r > 0 && n->greeted)
            on_packet(n, &m, &fds);
        else if (r > 0 && on_welcome(n, &m, &e) < 0)
            r = -1;
        spawn_link_fds_done(&fds); /* those that nobody took: ends are told by events */
    }
    if (n->closed)
        return;
    if (r < 0)
        disconnect(n, &e);
    else
        send_calls(n);
}

/* The answer comes later: the caller may still say who is told. */
struct call *native_make_ahead(struct native *n)
{
    struct call *c = call_new(n, SPAWN_POOL, NULL, NULL);
    struct spawn_msg m = {.u.pool = {.netns = NETNS_AHEAD, .shells = n->shells}};

    c->finish = call_finish_done;
    call_ask(c, &m);
    return c;
}

int native_watch(struct native *n, int fd, struct err *e)
{
    AUTO(fd_close) int owned = fd;
    int r = uv_poll_init(n->c.loop, &n->poll, fd);

    if (r < 0)
        return err_set(e, ERR_INTERNAL, -r, "watch holt-spawn");
    n->fd = TAKE_FD(owned);
    n->poll.data = n;
    n->polled = true;
    n->events = 0;
    n->refs++;
    want(n, false);
    return 0;
}

/* Those that ended while nobody was there to tell: list shows them as dead, or not at all. */
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

static int on_welcome(struct native *n, const struct spawn_msg *m, struct err *e)
{
    const struct driver_events *ev = &n->c.events;
    struct spawn_welcome w;
    int r = spawn_link_welcomed(m, &w, e);

    if (r <= 0)
        return r;
    n->greeted = true;
    n->features = w.features;
    (void)native_make_ahead(n);
    native_list(&n->d, ended_unseen, n);
    send_calls(n);
    if (ev->health)
        ev->health(ev->arg, &(struct err){0});
    return 0;
}

/* One that we started and that still lives is on its way, or cannot: a second could not either. */
static void reconnect(struct native *n)
{
    const struct driver_events *ev = &n->c.events;
    struct err e = {0};
    int fd = n->polled ? -1 : spawn_link_connect(&n->home, &e);

    if (fd < 0 && !n->polled && !starter_lives(&n->spawned) &&
        spawn_link_start(&n->home, &n->spawned, &e) < 0 && ev->health)
        ev->health(ev->arg, &e);
    if (fd < 0 || native_watch(n, fd, &e) < 0) {
        native_wake(n, RETRY_MS);
        return;
    }
    n->greet_until = clock_mono_ms() + SPAWN_LINK_MS;
    if (spawn_link_hello(n->fd, n->installation, &e) < 0)
        disconnect(n, &e);
    else
        native_wake(n, SPAWN_LINK_MS);
}

static void not_welcome_yet(struct native *n)
{
    int64_t left = n->greet_until - clock_mono_ms();
    struct err e;

    if (left > 0) {
        native_wake(n, (uint64_t)left);
        return;
    }
    (void)err_set(&e, ERR_TIMEOUT, 0, "holt-spawn does not answer");
    disconnect(n, &e);
}

/* What can be asked later is not failed for want of a holt-spawn: its owner would only ask again.
 */
static void lacks_spawn(struct call *c)
{
    bool waits = c->type == SPAWN_DESTROY || c->type == SPAWN_CONFIRM || c->type == SPAWN_LIST ||
                 c->type == SPAWN_ADOPT || c->type == SPAWN_TYPE_END;

    if (waits || c->over || clock_mono_ms() - c->since_ms < LACK_MS)
        return;
    (void)err_set(&c->err, ERR_UNAVAILABLE, 0, "holt-spawn is not there");
    c->over = true;
}

/* A connect to an init needs no holt-spawn; unix(7): EAGAIN is a full backlog. */
static void try_connect(struct call *c)
{
    c->fd = spawn_link_connect_init(&c->n->home, c->id);
    c->over = c->fd != -EAGAIN || ++c->tries > CONNECT_TRIES;
    if (c->over && c->fd < 0)
        (void)err_set(&c->err,
                      c->fd == -ENOENT || c->fd == -ECONNREFUSED ? ERR_NOT_FOUND : ERR_UNAVAILABLE,
                      -c->fd, "connect to the init of sandbox '%s'", c->id);
}

static void on_timer(uv_timer_t *t)
{
    struct native *n = t->data;
    bool again = true, waits = false;

    while (again && !n->closed) { /* a callback may change the list: look from its start */
        again = waits = false;
        LIST_EACH (&n->calls, node) {
            struct call *c = LIST_ENTRY(node, struct call, node);

            if (c->type == SPAWN_TYPE_END && !c->over)
                try_connect(c);
            if (!n->greeted)
                lacks_spawn(c);
            waits = waits || (c->type == SPAWN_TYPE_END && !c->over);
            if (!c->over)
                continue;
            call_end(c, NULL);
            again = true;
            break;
        }
    }
    if (n->closed)
        return;
    if (n->fd < 0)
        reconnect(n);
    else if (!n->greeted)
        not_welcome_yet(n);
    if (waits)
        native_wake(n, RETRY_MS / 10);
}
