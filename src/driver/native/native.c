/* The native runtime: the driver's operations as requests to holt-spawn. */
#include "driver/native/native.h"

#include "base/fd.h"
#include "base/mem.h"
#include "base/starter.h"

#include <inttypes.h>
#include <unistd.h>

#define LIMITS (LIMIT_MEMORY | LIMIT_CPU | LIMIT_PIDS | LIMIT_DISK) /* the same bits in both */
_Static_assert(LIMIT_MEMORY == (int)SPAWN_CAN_MEMORY && LIMIT_CPU == (int)SPAWN_CAN_CPU &&
                   LIMIT_PIDS == (int)SPAWN_CAN_PIDS && LIMIT_DISK == (int)SPAWN_CAN_DISK,
               "limits and features are the same bits");

_Static_assert(DRIVER_POOL_MAX == SPAWN_SPARES_MAX, "as many as holt-spawn takes");
_Static_assert(EGRESS_LISTENERS == (int)SPAWN_LISTENER_COUNT, "one descriptor a kind");

static uint32_t limits_of(uint32_t features)
{
    return (features & LIMITS) | (features & SPAWN_CAN_NOFILE ? LIMIT_NOFILE : 0) |
           (features & SPAWN_CAN_KILL_TREE ? LIMIT_KILL : 0) |
           (features & SPAWN_CAN_FREEZE ? LIMIT_PAUSE : 0);
}

static void finish_made(struct call *c, const struct spawn_msg *m)
{
    struct driver_made made = {0};

    if (m && m->type == SPAWN_CREATED) {
        made.pid = m->u.created.pid;
        made.enforced = limits_of(m->u.created.enforced);
        made.warm = m->u.created.warm;
        native_box_add(c->n, c->id);
    } else if (c->h.err.code == ERR_NONE) {
        (void)err_set(&c->h.err, ERR_INTERNAL, 0, "holt-spawn sent an unexpected reply");
    }
    c->cb.made(c->arg, c->h.err.code == ERR_NONE ? &made : NULL, &c->h.err);
}

/* ---- operations ---- */

static int mount_kind(struct str kind, uint8_t *ret, struct err *e)
{
    static const char *const names[SPAWN_MOUNT_COUNT] = {
        [SPAWN_MOUNT_TMPFS] = "tmpfs",   [SPAWN_MOUNT_VOLUME] = "volume",
        [SPAWN_MOUNT_SHARED] = "shared", [SPAWN_MOUNT_HOST] = "host",
        [SPAWN_MOUNT_LAYER] = "layer",   [SPAWN_MOUNT_OWN] = "own",
        [SPAWN_MOUNT_BASE] = "base",     [SPAWN_MOUNT_UPPER] = "upper",
    };

    for (size_t i = 0; i < SPAWN_MOUNT_COUNT; i++) {
        if (!str_eq_c(kind, names[i]))
            continue;
        *ret = (uint8_t)i;
        return 0;
    }
    return err_set(e, ERR_INVALID, 0, "there is no mount kind '" STR_FMT "'", STR_ARG(kind));
}

static int mount_rows(const struct driver_spec *s, struct spawn_mount_row *rows, struct err *e)
{
    for (size_t i = 0; i < s->mount_count; i++) {
        const struct sandbox_mount *m = &s->mounts[i];

        rows[i] = (struct spawn_mount_row){.source = m->source,
                                           .target = m->target,
                                           .readonly = m->readonly,
                                           .size = (uint64_t)m->size_bytes};
        if (mount_kind(m->kind, &rows[i].kind, e) < 0)
            return -1;
    }
    return 0;
}

static uint32_t flags_of(const struct driver_spec *s)
{
    const struct sandbox_traits *t = &s->traits;
    const struct {
        bool on;
        enum spawn_create_flag flag;
    } flags[] = {
        {s->restart, SPAWN_RESTART},
        {t->rootfs_ro, SPAWN_ROOTFS_RO},
        {t->nesting, SPAWN_NESTING},
        {t->wide, SPAWN_WIDE},
        {t->relay, SPAWN_RELAY},
        {t->hub, SPAWN_HUB},
        {t->process_api, SPAWN_PROCESS},
        {t->reach == SANDBOX_REACHES_PROXY, SPAWN_NETWORK},
        {t->reach == SANDBOX_REACHES_RAW, SPAWN_RAW},
        {!t->memory_upper, SPAWN_UPPER_DISK},
        {s->on_host, SPAWN_ON_HOST},
    };
    uint32_t all = 0;

    for (size_t i = 0; i < ARRAY_LEN(flags); i++)
        all |= flags[i].on ? (uint32_t)flags[i].flag : 0;
    return all;
}

void native_create(struct driver *d, const struct driver_spec *s, driver_made_cb done, void *arg)
{
    struct call *c = call_new(native_of(d), SPAWN_CREATE, s->id, arg);
    struct wire_text layers[SPAWN_LAYERS_MAX];
    struct spawn_mount_row mounts[SPAWN_MOUNTS_MAX];
    struct spawn_msg m = {0};

    c->finish = finish_made;
    c->cb.made = done;
    if (s->layer_count > ARRAY_LEN(layers) || s->mount_count > ARRAY_LEN(mounts))
        (void)err_set(&c->h.err, ERR_INVALID, 0, "more than %zu layers or %zu mounts",
                      ARRAY_LEN(layers), ARRAY_LEN(mounts));
    else if (mount_rows(s, mounts, &c->h.err) == 0)
        for (size_t i = 0; i < s->layer_count; i++)
            layers[i].text = s->layers[i];
    m.u.create = (struct spawn_create){
        .id = str_of(c->id),
        .hostname = str_of(s->hostname),
        .flags = flags_of(s),
        .memory_bytes = (uint64_t)s->traits.limits.memory_bytes,
        .disk_bytes = (uint64_t)s->traits.limits.disk_bytes,
        .cpu_millis = (uint32_t)s->traits.limits.cpu_millis,
        .pids = (uint32_t)s->traits.limits.pids,
        .nofile = (uint32_t)s->traits.limits.nofile,
        .layers = {.count = (uint32_t)s->layer_count, .items = layers},
        .mounts = {.count = (uint32_t)s->mount_count, .items = mounts},
        .ca = s->ca,
        .runtime = str_of(CONTAINER_OF(d, struct native_driver, d)->runtime),
    };
    call_ask(c, &m);
}

void native_confirm(struct driver *d, const char *id)
{
    struct call *c = call_new(native_of(d), SPAWN_CONFIRM, id, NULL);

    c->finish = call_finish_done;
    call_ask_named(c);
}

void native_adopt(struct driver *d, const char *id, driver_made_cb done, void *arg)
{
    struct call *c = call_new(native_of(d), SPAWN_ADOPT, id, arg);

    c->finish = finish_made;
    c->cb.made = done;
    call_ask_named(c);
}

static void finish_listeners(struct call *c, const struct spawn_msg *m)
{
    struct egress_listeners l = {0};

    if (m && m->type == SPAWN_LISTENERS) {
        l.kinds = m->u.listeners.kinds;
        l.n = c->h.in.n;
        memcpy(l.fds, c->h.in.fd, sizeof c->h.in.fd);
        c->h.in.n = 0;
    } else if (c->h.err.code == ERR_NONE) {
        (void)err_set(&c->h.err, ERR_INTERNAL, 0, "holt-spawn sent an unexpected reply");
    }
    c->cb.listeners(c->arg, c->h.err.code == ERR_NONE ? &l : NULL, &c->h.err);
}

void native_listen(struct driver *d, const char *id, driver_listeners_cb done, void *arg)
{
    struct call *c = call_new(native_of(d), SPAWN_LISTEN, id, arg);

    c->finish = finish_listeners;
    c->cb.listeners = done;
    call_ask_named(c);
}

void native_kill(struct driver *d, const char *id, enum driver_scope scope, driver_done done,
                 void *arg)
{
    struct call *c = call_new(native_of(d), SPAWN_KILL, id, arg);
    struct spawn_msg m = {0};

    c->finish = call_finish_done;
    c->cb.done = done;
    m.u.kill = (struct spawn_kill){str_of(c->id),
                                   (uint8_t)(scope == DRIVER_WORK ? SPAWN_WORK : SPAWN_ALL)};
    call_ask(c, &m);
}

static void finish_removed(struct call *c, const struct spawn_msg *m)
{
    (void)m;
    if (c->h.err.code == ERR_NONE)
        mem_free(map_remove(&c->n->boxes, str_of(c->id)));
    c->cb.done(c->arg, &c->h.err);
}

void native_remove(struct driver *d, const char *id, bool keep, driver_done done, void *arg)
{
    struct native *n = native_of(d);
    struct call *c = call_new(n, SPAWN_DESTROY, id, arg);
    struct native_box *b = map_get(&n->boxes, str_of(c->id));
    struct spawn_msg m = {0};

    if (b)
        b->quiet = true;
    c->finish = finish_removed;
    c->cb.done = done;
    m.u.destroy = (struct spawn_destroy){str_of(c->id), keep};
    call_ask(c, &m);
}

void native_pause(struct driver *d, const char *id, bool on, driver_done done, void *arg)
{
    struct call *c = call_new(native_of(d), SPAWN_PAUSE, id, arg);
    struct spawn_msg m = {0};

    c->finish = call_finish_done;
    c->cb.done = done;
    m.u.pause = (struct spawn_pause){str_of(c->id), on};
    call_ask(c, &m);
}

static void finish_stats(struct call *c, const struct spawn_msg *m)
{
    struct driver_stats s = {0};

    if (m && m->type == SPAWN_STATS)
        s = (struct driver_stats){.memory_bytes = (int64_t)m->u.stats.memory_bytes,
                                  .memory_peak_bytes = (int64_t)m->u.stats.memory_peak_bytes,
                                  .cpu_us = (int64_t)m->u.stats.cpu_us,
                                  .pids = (int64_t)m->u.stats.pids,
                                  .oom_kills = (int64_t)m->u.stats.oom_kills,
                                  .disk_bytes = (int64_t)m->u.stats.disk_bytes,
                                  .net_rx_bytes = (int64_t)m->u.stats.net_rx_bytes,
                                  .net_tx_bytes = (int64_t)m->u.stats.net_tx_bytes};
    else if (c->h.err.code == ERR_NONE)
        (void)err_set(&c->h.err, ERR_INTERNAL, 0, "holt-spawn sent no stats");
    c->cb.stats(c->arg, c->h.err.code == ERR_NONE ? &s : NULL, &c->h.err);
}

void native_stats(struct driver *d, const char *id, driver_stats_cb done, void *arg)
{
    struct call *c = call_new(native_of(d), SPAWN_STATS_GET, id, arg);

    c->finish = finish_stats;
    c->cb.stats = done;
    call_ask_named(c);
}

void native_ooms(struct driver *d, const char *id, driver_done done, void *arg)
{
    struct call *c = call_new(native_of(d), SPAWN_OOMS, id, arg);

    c->finish = call_finish_done;
    c->cb.done = done;
    call_ask_named(c);
}

/* ---- made ahead ---- */

static void finish_pooled(struct call *c, const struct spawn_msg *m)
{
    struct driver_pooled p = {0};

    if (m && m->type == SPAWN_POOLED)
        p = (struct driver_pooled){m->u.pooled.ready, (int64_t)m->u.pooled.broken};
    else if (c->h.err.code == ERR_NONE)
        (void)err_set(&c->h.err, ERR_INTERNAL, 0, "holt-spawn sent an unexpected reply");
    c->cb.pooled(c->arg, c->h.err.code == ERR_NONE ? &p : NULL, &c->h.err);
}

/* Of any kind: the claim brings everything. */
static void native_pool(struct driver *d, const struct driver_want *want, driver_pooled_cb done,
                        void *arg)
{
    struct call *c;

    native_of(d)->spares = want->size < SPAWN_SPARES_MAX ? want->size : SPAWN_SPARES_MAX;
    c = native_make_ahead(native_of(d));
    c->finish = finish_pooled;
    c->arg = arg;
    c->cb.pooled = done;
}

/* ---- volumes ---- */

void native_volume_remove(struct driver *d, const struct driver_volume *v, driver_done done,
                          void *arg)
{
    struct call *c = call_new(native_of(d), SPAWN_DISCARD, v->id, arg);
    struct spawn_msg m = {0};

    c->finish = call_finish_done;
    c->cb.done = done;
    m.u.discard = (struct spawn_discard){str_of(c->id), SPAWN_DISCARD_VOLUME};
    call_ask(c, &m);
}

void native_layer_remove(struct driver *d, const char *id, driver_done done, void *arg)
{
    struct call *c = call_new(native_of(d), SPAWN_DISCARD, NULL, arg);
    struct spawn_msg m = {0};

    c->finish = call_finish_done;
    c->cb.done = done;
    m.u.discard = (struct spawn_discard){str_of(id), SPAWN_DISCARD_LAYER};
    call_ask(c, &m);
}

static void finish_bytes(struct call *c, const struct spawn_msg *m)
{
    bool fits = m && m->type == SPAWN_MEASURED;

    if (!fits && c->h.err.code == ERR_NONE)
        (void)err_set(&c->h.err, ERR_INTERNAL, 0, "holt-spawn sent no size");
    c->cb.bytes(c->arg, fits ? (int64_t)m->u.measured.bytes : 0, &c->h.err);
}

void native_volume_measure(struct driver *d, const struct driver_volume *v, driver_bytes_cb done,
                           void *arg)
{
    struct call *c = call_new(native_of(d), SPAWN_MEASURE, v->id, arg);
    struct spawn_msg m = {0};

    c->finish = finish_bytes;
    c->cb.bytes = done;
    m.u.measure = (struct spawn_measure){
        str_of(c->id), (uint8_t)(v->memory ? SPAWN_MOUNT_SHARED : SPAWN_MOUNT_VOLUME)};
    call_ask(c, &m);
}

/* ---- snapshots ---- */

static void finish_snapped(struct call *c, const struct spawn_msg *m)
{
    struct driver_snapped s = {0};

    if (m && m->type == SPAWN_SNAPSHOTTED) {
        s = (struct driver_snapped){.entries = (int64_t)m->u.snapshotted.entries,
                                    .bytes = (int64_t)m->u.snapshotted.bytes,
                                    .frozen_us = (int64_t)m->u.snapshotted.frozen_us};
        (void)snprintf(s.digest, sizeof s.digest, STR_FMT, STR_ARG(m->u.snapshotted.digest));
    } else if (c->h.err.code == ERR_NONE) {
        (void)err_set(&c->h.err, ERR_INTERNAL, 0, "holt-spawn sent an unexpected reply");
    }
    c->cb.snapped(c->arg, &s, &c->h.err);
}

void native_snapshot(struct driver *d, const struct driver_snapshot *s, driver_snapped_cb done,
                     void *arg)
{
    static const uint8_t modes[] = {[DRIVER_COPY] = SPAWN_SNAPSHOT_COPY,
                                    [DRIVER_MOVE] = SPAWN_SNAPSHOT_MOVE,
                                    [DRIVER_HASH] = SPAWN_SNAPSHOT_HASH};
    struct call *c = call_new(native_of(d), SPAWN_SNAPSHOT, s->id, arg);
    struct spawn_msg m = {0};

    c->finish = finish_snapped;
    c->cb.snapped = done;
    m.u.snapshot = (struct spawn_snapshot){.id = str_of(c->id),
                                           .layer = str_of(s->layer),
                                           .mode = modes[s->how],
                                           .bytes_max = (uint64_t)s->bytes_max};
    if (s->how == DRIVER_COPY)
        c->h.flags |= HELPER_ONCE; /* half a copy is in the way of another */
    call_ask(c, &m);
}

/* ---- list: page by page ---- */

static void ask_page(struct call *c)
{
    struct spawn_msg m = {0};

    m.u.list.after = str_of(c->after);
    call_ask(c, &m);
}

static void next_page(struct call *old)
{
    struct call *c = call_new(old->n, SPAWN_LIST, NULL, old->arg);

    c->finish = old->finish;
    c->cb = old->cb;
    c->found = TAKE(old->found);
    c->found_count = old->found_count;
    c->runtime = old->runtime;
    memcpy(c->after, old->after, sizeof c->after);
    ask_page(c);
}

static void finish_list(struct call *c, const struct spawn_msg *m)
{
    struct wire_rows rows = {0};
    struct spawn_list_row row;

    if (m && m->type == SPAWN_LISTED)
        rows = m->u.listed.sandboxes;
    c->found = xrealloc(c->found, (c->found_count + rows.count + 1) * sizeof *c->found);
    while (wire_rows_next(&spawn_list_row_layout, &rows, &row)) {
        struct driver_found *f = &c->found[c->found_count];

        if (row.id.n >= sizeof f->id)
            continue;
        (void)snprintf(c->after, sizeof c->after, STR_FMT, STR_ARG(row.id));
        if (c->runtime && !str_eq_c(row.runtime, c->runtime))
            continue;
        *f = (struct driver_found){.running = row.state == SPAWN_RUNNING,
                                   .confirmed = row.confirmed};
        memcpy(f->id, row.id.p, row.id.n);
        c->found_count++;
    }
    if (m && m->type == SPAWN_LISTED && m->u.listed.more && m->u.listed.sandboxes.count > 0)
        next_page(c);
    else
        c->cb.list(c->arg, c->found, c->found_count, &c->h.err);
}

void native_list(struct native *n, const char *runtime, driver_list_cb done, void *arg)
{
    struct call *c = call_new(n, SPAWN_LIST, NULL, arg);

    c->runtime = runtime;
    c->finish = finish_list;
    c->cb.list = done;
    ask_page(c);
}

void native_list_own(struct driver *d, driver_list_cb done, void *arg)
{
    native_list(native_of(d), CONTAINER_OF(d, struct native_driver, d)->runtime, done, arg);
}

/* ---- life ---- */

/* How long ours stays without holtd and sandboxes: a restart takes less. */
#define LINGER_MS "2000"
#define CALLS_MAX 4096
#define LACK_MS 10000 /* how long a request waits for a missing holt-spawn */

struct args { /* owned texts, NULL at the end */
    char **v;
    size_t n;
};

static void args_done(struct args *a)
{
    for (size_t i = 0; i < a->n; i++)
        mem_free(a->v[i]);
    mem_free(a->v);
}
static inline void args_done_p(struct args *a)
{
    args_done(a);
}

static void args_take(struct args *a, char *text)
{
    a->v = xrealloc(a->v, (a->n + 2) * sizeof *a->v);
    a->v[a->n++] = text;
    a->v[a->n] = NULL;
}

static void args_add(struct args *a, const char *option, char *value)
{
    args_take(a, xstrdup(option));
    args_take(a, value);
}

/* What the operator allows, as arguments of holt-spawn, which checks it itself. */
static void args_allowed(struct args *to, const struct driver_allows *a)
{
    for (size_t i = 0; i < a->host_dir_count; i++) {
        struct str dir = str_of(a->host_dirs[i]);
        bool readonly = str_ends(dir, STR(":ro"));

        args_add(to, readonly ? "--allow" : "--allow-write",
                 xasprintf(STR_FMT, (int)(dir.n - (readonly ? strlen(":ro") : 0)), dir.p));
    }
    if (a->nesting)
        args_add(to, "--nesting", xstrdup("yes"));
    if (a->syscalls)
        args_add(to, "--syscalls", xstrdup(a->syscalls));
    if (a->pids > 0)
        args_add(to, "--pids", xasprintf("%" PRId64, a->pids));
    if (a->bridge)
        args_add(to, "--bridge", xstrdup(a->bridge));
    for (size_t i = 0; i < a->runtime_count; i++)
        args_add(to, "--runtime", xstrdup(a->runtimes[i]));
}

static int define(struct native *n, const struct driver_config *c, struct err *e)
{
    AUTO(args_done) struct args a = {0};

    args_take(&a, xstrdup("holt-spawn"));
    args_add(&a, "--state", xstrdup(c->state));
    args_add(&a, "--init", xasprintf("%s/holt-init", c->bindir));
    args_add(&a, "--linger-ms", xstrdup(LINGER_MS));
    args_allowed(&a, &c->allows);
    if (starter_uid() != geteuid()) /* it runs as root, and serves us */
        args_add(&a, "--user", xasprintf("%u", geteuid()));
    return helper_define(n->link, a.v, e);
}

static void native_done(struct native *n)
{
    struct str key;
    size_t at = 0;
    void *box;

    while (map_next(&n->boxes, &at, &key, &box))
        mem_free(box);
    map_done(&n->boxes);
    mem_free(n->installation);
    mem_free(n->state);
}

static void timer_closed(uv_handle_t *h)
{
    mem_free(h->data);
}

static void link_close(struct native *n)
{
    n->closed = true;
    n->link = helper_free(n->link);
    native_connects_end(n);
    native_done(n);
    uv_close((uv_handle_t *)&n->timer, timer_closed);
}

static int open_link(struct native *n, const struct driver_config *c, struct err *e)
{
    struct helper_config link = {
        .loop = c->loop,
        .protocol = &spawn_protocol,
        .state = c->state,
        .bindir = c->bindir,
        .name = "spawn",
        .calls_max = CALLS_MAX,
        .lack_ms = LACK_MS,
        .ops = &native_link_ops,
        .arg = n,
    };

    n->link = helper_new(&link);
    return define(n, c, e) < 0 ? -1 : helper_start_now(n->link, e);
}

static int link_new(const struct driver_config *c, struct native **ret, struct err *e)
{
    int r = dir_make_all(c->state, 0700);
    struct native *n;

    if (r < 0)
        return err_set(e, ERR_INTERNAL, -r, "open '%s'", c->state);
    n = xzalloc(sizeof *n);
    n->spares = SPAWN_SPARES_KEEP;
    n->c = *c;
    n->c.allows = (struct driver_allows){0}; /* the caller's */
    n->installation = xstrdup(c->installation);
    n->state = xstrdup(c->state);
    list_init(&n->connects);
    (void)uv_timer_init(c->loop, &n->timer);
    n->timer.data = n;
    if (open_link(n, c, e) < 0) {
        link_close(n);
        return err_wrap(e, "open the native runtime");
    }
    n->opened = true;
    *ret = n;
    return 0;
}

static struct native *links; /* of this process: one for each state directory */

static struct native *link_find(const struct driver_config *c)
{
    struct native *n = links;

    while (n && (n->c.loop != c->loop || strcmp(n->state, c->state) != 0))
        n = n->next;
    return n;
}

int native_open_as(const struct driver_config *c, const struct driver_ops *ops, const char *runtime,
                   struct driver **ret, struct err *e)
{
    struct native *n = link_find(c);
    struct native_driver *d;

    if (!n) {
        if (link_new(c, &n, e) < 0)
            return -1;
        n->next = links;
        links = n;
    }
    n->users++;
    d = xzalloc(sizeof *d);
    *d = (struct native_driver){.d.ops = ops, .n = n, .runtime = runtime};
    *ret = &d->d;
    return 0;
}

static int native_open(const struct driver_config *c, struct driver **ret, struct err *e)
{
    return native_open_as(c, c->ops, "", ret, e);
}

/* Calls of one that is closed while others go on are told as they end. */
void native_close(struct driver *d)
{
    struct native *n = native_of(d), **at = &links;

    mem_free(CONTAINER_OF(d, struct native_driver, d));
    if (--n->users > 0)
        return;
    while (*at != n)
        at = &(*at)->next;
    *at = n->next;
    link_close(n);
}

uint32_t native_enforces(const struct driver *d)
{
    return limits_of(native_of(d)->features);
}

const struct driver_ops driver_native = {
    .name = "native",
    .strength = 2,
    .caps = DRIVER_CAN_PAUSE | DRIVER_CAN_STOP | DRIVER_ISOLATES | DRIVER_CAN_RELAY |
            DRIVER_CAN_RAW | DRIVER_RUNS_TOOLS | DRIVER_CAN_SNAPSHOT | DRIVER_SNAPSHOTS_LIVE,
    .open = native_open,
    .pool = native_pool,
    NATIVE_OPS,
};
