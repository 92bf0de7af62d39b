/* host: the hosts of machines: health, capacity, placement, drain. */
#include "core/sandbox/host.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/sandbox/sandbox_internal.h"
#include "wire/virt.h"

#include <inttypes.h>
#include <stdio.h>

#define ASK_MS 10000     /* between two questions to a host that answers */
#define ASK_DOWN_MS 2000 /* … and to one that does not: its helper has a back-off of its own */
#define MIB (1 << 20)

struct host {
    struct driver_host conf; /* texts owned */
    enum host_state state;
    struct err why;
    bool drained, asking;
    int64_t since_ms, next_ms;
    struct driver_capacity has;
};

struct host *host_new(const struct driver_host *conf)
{
    struct host *h = xzalloc(sizeof *h);

    h->conf = *conf;
    h->conf.name = xstrdup(conf->name);
    h->conf.uri = xstrdup(conf->uri);
    h->conf.pool_dir = xstrdup(conf->pool_dir);
    h->conf.network = xstrdup(conf->network);
    h->conf.ssh_config = xstrdup(conf->ssh_config);
    return h;
}

struct host *host_free(struct host *h)
{
    if (!h)
        return NULL;
    mem_free((char *)(uintptr_t)h->conf.name);
    mem_free((char *)(uintptr_t)h->conf.uri);
    mem_free((char *)(uintptr_t)h->conf.pool_dir);
    mem_free((char *)(uintptr_t)h->conf.network);
    mem_free((char *)(uintptr_t)h->conf.ssh_config);
    mem_free(h);
    return NULL;
}

const char *host_name(const struct driver_slot *slot)
{
    return slot->host ? slot->host->conf.name : "";
}

/* Rows of a time when there was one host have no name. */
struct driver_slot *host_slot(struct sandboxes *all, struct str runtime, struct str host)
{
    for (size_t i = 0; i < all->driver_count; i++) {
        struct driver_slot *slot = &all->drivers[i];

        if (str_eq_c(runtime, slot->ops->name) &&
            (!slot->host ||
             str_eq_c(host.n > 0 ? host : STR(VIRT_HOST_PRESET), slot->host->conf.name)))
            return slot;
    }
    return NULL;
}

/* --- events and rows --- */

struct host_job {
    char name[VIRT_HOST_MAX + 1], actor[64];
    const char *type;
    char *why;
    enum { HOST_EVENT, HOST_DRAIN, HOST_OPEN } what;
    host_cb done;
    void *arg;
};

static int host_work(struct store_tx *tx, void *arg, struct err *e)
{
    const struct host_job *j = arg;
    AUTO(buf_done) struct buf data = {0};
    struct jw w = {.to = &data};
    char object[VIRT_HOST_MAX + 8];

    if (j->what != HOST_EVENT &&
        tx_run(tx, "DELETE FROM hosts WHERE name = :name", PARAMS(P_C("name", j->name)), e) < 0)
        return -1;
    if (j->what == HOST_DRAIN &&
        tx_run(tx, "INSERT INTO hosts (name, drained_ms) VALUES (:name, :at)",
               PARAMS(P_C("name", j->name), P_INT("at", clock_wall_ms())), e) < 0)
        return -1;
    (void)snprintf(object, sizeof object, "host/%s", j->name);
    jw_object(&w);
    jw_kc(&w, "name", j->name);
    if (j->why)
        jw_kc(&w, "reason", j->why);
    jw_object_end(&w);
    tx_event(tx,
             &(struct event_spec){
                 .type = j->type, .object = object, .actor = j->actor, .data = buf_str(&data)},
             NULL);
    return 0;
}

static void host_written(void *arg, const struct err *e)
{
    struct host_job *j = arg;

    if (j->done)
        j->done(j->arg, e);
    else if (e->code != ERR_NONE)
        log_warn("an event of a host could not be written", LOG_C("host", j->name), LOG_E(e));
    mem_free(j->why);
    mem_free(j);
}

static struct host_job *host_job_new(const struct host *h, const char *type, const char *actor)
{
    struct host_job *j = xzalloc(sizeof *j);

    (void)snprintf(j->name, sizeof j->name, "%s", h->conf.name);
    (void)snprintf(j->actor, sizeof j->actor, "%s", actor);
    j->type = type;
    return j;
}

static int load_work(struct store_tx *tx, void *arg, struct err *e)
{
    struct sandboxes *all = arg;
    struct store_rows *rows;
    int r;

    if (tx_query(tx, "SELECT name FROM hosts", NULL, 0, &rows, e) < 0)
        return -1;
    while ((r = rows_step(rows, e)) > 0)
        for (size_t i = 0; i < all->driver_count; i++)
            if (str_eq_c(rows_text(rows, 0), host_name(&all->drivers[i])))
                all->drivers[i].host->drained = true;
    rows_end(rows);
    return r;
}

int hosts_load(struct sandboxes *all, struct err *e)
{
    return store_now(all->store, load_work, all, e) < 0 ? err_wrap(e, "read the hosts") : 0;
}

/* --- health --- */

static void host_move(struct sandboxes *all, struct host *h, enum host_state to,
                      const struct err *why)
{
    enum host_state from = h->state;
    struct host_job *j;

    h->why = *why;
    if (to == from)
        return;
    h->state = to;
    h->since_ms = clock_wall_ms();
    if (to == HOST_DOWN)
        log_warn("a host of machines does not answer", LOG_C("host", h->conf.name), LOG_E(why));
    else if (from == HOST_DOWN)
        log_info("a host of machines answers again", LOG_C("host", h->conf.name));
    j = host_job_new(h, to == HOST_UP ? "host.up" : "host.down", "system");
    if (to == HOST_DOWN)
        j->why = xstrdup(why->msg);
    store_write(all->store, STORE_RELAXED, host_work, host_written, j);
}

static void host_measured(void *arg, const struct driver_capacity *c, const struct err *e)
{
    struct driver_slot *slot = arg;
    struct sandboxes *all = slot->all;
    struct host *h = slot->host;

    if (!all->closed) {
        h->asking = false;
        if (e->code == ERR_NONE)
            h->has = *c;
        host_move(all, h, e->code == ERR_NONE ? HOST_UP : HOST_DOWN, e);
        h->next_ms = clock_mono_ms() + (h->state == HOST_UP ? ASK_MS : ASK_DOWN_MS);
    }
    sandboxes_unref(all);
}

void hosts_tick(struct sandboxes *all)
{
    int64_t now = clock_mono_ms();

    for (size_t i = 0; i < all->driver_count; i++) {
        struct driver_slot *slot = &all->drivers[i];

        if (!slot->host || !slot->driver || slot->host->asking || now < slot->host->next_ms)
            continue;
        slot->host->asking = true;
        all->refs++;
        slot->ops->capacity(slot->driver, host_measured, slot);
    }
}

/* --- what is used --- */

struct use {
    int64_t machines, cpus, memory;
};

static int64_t cpus_of(const struct sandbox_limits *l)
{
    return l->cpu_millis > 0 ? (l->cpu_millis + 999) / 1000 : 1;
}

static int64_t memory_of(const struct driver_slot *slot, const struct sandbox_limits *l)
{
    return l->memory_bytes > 0 ? l->memory_bytes : slot->ops->memory_preset;
}

static struct use use_of(const struct sandboxes *all, const struct driver_slot *slot)
{
    struct use u = {0};

    for (size_t i = 0; slot->driver && i < all->count; i++) {
        const struct sandbox *s = all->sorted[i];

        if (s->driver != slot->driver || s->sm.state == SANDBOX_STOPPED ||
            s->sm.state == SANDBOX_FAILED || s->sm.state == SANDBOX_DESTROYED)
            continue;
        u.machines++;
        u.cpus += cpus_of(&s->traits.limits);
        u.memory += memory_of(slot, &s->traits.limits);
    }
    return u;
}

static int64_t memory_max(const struct host *h)
{
    return h->conf.memory_bytes > 0 ? h->conf.memory_bytes : h->has.memory_bytes;
}

/* --- placement --- */

/* Why a host cannot take it; the later, the more is to be hoped for. */
enum lack { LACK_NOTHING, LACK_SIZE, LACK_ROOM, LACK_OPEN, LACK_ANSWER };

struct wish {
    int64_t cpus, memory, disk;
};

static enum lack lacks(const struct driver_slot *slot, const struct wish *w, const struct use *u,
                       char *why, size_t size)
{
    const struct host *h = slot->host;
    int64_t cpus = h->conf.cpus > 0 ? h->conf.cpus : h->has.cpus, memory = memory_max(h);

    why[0] = '\0';
    if (h->drained)
        (void)snprintf(why, size, "drained");
    else if (h->state == HOST_DOWN)
        (void)snprintf(why, size, "does not answer");
    if (why[0])
        return h->drained ? LACK_OPEN : LACK_ANSWER;
    if (cpus > 0 && w->cpus > cpus)
        (void)snprintf(why, size, "%" PRId64 " CPUs", cpus);
    else if (memory > 0 && w->memory > memory)
        (void)snprintf(why, size, "%" PRId64 " MiB of memory", memory / MIB);
    else if (h->has.disk_bytes > 0 && w->disk > h->has.disk_bytes)
        (void)snprintf(why, size, "%" PRId64 " MiB of disk", h->has.disk_bytes / MIB);
    if (why[0])
        return LACK_SIZE;
    if (memory > 0 && u->memory + w->memory > memory)
        (void)snprintf(why, size, "%" PRId64 " of %" PRId64 " MiB of memory are taken",
                       u->memory / MIB, memory / MIB);
    else if (h->conf.cpus > 0 && u->cpus + w->cpus > h->conf.cpus)
        (void)snprintf(why, size, "%" PRId64 " of %" PRId64 " CPUs are taken", u->cpus,
                       h->conf.cpus);
    else if (h->conf.machines > 0 && u->machines >= h->conf.machines)
        (void)snprintf(why, size, "%" PRId64 " machines are the most", h->conf.machines);
    return why[0] ? LACK_ROOM : LACK_NOTHING;
}

/* In thousandths of what it has; of one that was not measured yet, behind the others. */
static int64_t load_of(const struct host *h, const struct use *u)
{
    int64_t memory = memory_max(h), cpus = h->conf.cpus > 0 ? h->conf.cpus : h->has.cpus;
    int64_t by_memory = memory > 0 ? u->memory * 1000 / memory : 1000 + u->machines;

    return cpus > 0 ? i64_max(by_memory, u->cpus * 1000 / cpus / 4) : by_memory;
}

static void no_place(struct err *e, enum lack best, const struct wish *w, const char *why)
{
    static const enum err_code codes[] = {[LACK_SIZE] = ERR_INVALID,
                                          [LACK_ROOM] = ERR_LIMIT,
                                          [LACK_OPEN] = ERR_LIMIT,
                                          [LACK_ANSWER] = ERR_UNAVAILABLE};

    err_set(e, codes[best], 0,
            "no host has room for a machine of %" PRId64 " CPUs, %" PRId64 " MiB: %s", w->cpus,
            w->memory / MIB, why);
    err_hint(e, best == LACK_SIZE ? "ask for less, or add a larger host to the setting 'hosts'"
                                  : "holt host ls shows the hosts; destroy or stop machines, or "
                                    "open a drained host: holt host drain NAME --off");
}

struct driver_slot *host_place(struct sandboxes *all, const struct driver_ops *ops,
                               struct str wanted, const struct sandbox_limits *limits,
                               struct err *e)
{
    struct driver_slot *best = NULL;
    AUTO(buf_done) struct buf whys = {0};
    struct wish w = {.cpus = cpus_of(limits), .disk = limits->disk_bytes};
    enum lack hope = LACK_NOTHING;
    int64_t least = 0;

    for (size_t i = 0; i < all->driver_count; i++) {
        struct driver_slot *slot = &all->drivers[i];
        struct use u;
        enum lack lack;
        char why[96];
        int64_t load;

        if (slot->ops != ops || !slot->host || !slot->driver ||
            (wanted.n > 0 && !str_eq_c(wanted, slot->host->conf.name)))
            continue;
        w.memory = memory_of(slot, limits);
        u = use_of(all, slot);
        lack = lacks(slot, &w, &u, why, sizeof why);
        load = load_of(slot->host, &u);
        if (lack != LACK_NOTHING) {
            buf_printf(&whys, "%s'%s': %s", buf_len(&whys) > 0 ? "; " : "", slot->host->conf.name,
                       why);
            hope = lack > hope ? lack : hope;
        } else if (!best || load < least) {
            best = slot;
            least = load;
        }
    }
    if (!best && hope == LACK_NOTHING) {
        err_set(e, ERR_INVALID, 0, "field 'host': there is no host '" STR_FMT "'",
                (int)size_min(wanted.n, 64), wanted.p);
        err_hint(e, "holt host ls lists them");
    } else if (!best) {
        no_place(e, hope, &w, buf_cstr(&whys));
    }
    return best;
}

/* --- for people --- */

static void host_tell(const struct sandboxes *all, const struct driver_slot *slot,
                      struct host_info *ret)
{
    const struct host *h = slot->host;
    const struct use u = use_of(all, slot);

    *ret = (struct host_info){.conf = &h->conf,
                              .runtime = slot->ops->name,
                              .state = slot->driver ? h->state : HOST_DOWN,
                              .drained = h->drained,
                              .since_ms = h->since_ms,
                              .has = h->has,
                              .machines = u.machines,
                              .cpus_used = u.cpus,
                              .memory_used = u.memory,
                              .memory_max = memory_max(h),
                              .cpus_max = h->conf.cpus > 0 ? h->conf.cpus : h->has.cpus};
    ret->reason = str_of(!slot->driver ? slot->why.msg : h->state == HOST_DOWN ? h->why.msg : "");
}

bool host_next(const struct sandboxes *all, size_t n, struct host_info *ret)
{
    for (size_t i = 0; i < all->driver_count; i++)
        if (all->drivers[i].host && n-- == 0) {
            host_tell(all, &all->drivers[i], ret);
            return true;
        }
    return false;
}

static struct driver_slot *slot_named(const struct sandboxes *all, struct str name, struct err *e)
{
    for (size_t i = 0; i < all->driver_count; i++)
        if (all->drivers[i].host && str_eq_c(name, all->drivers[i].host->conf.name))
            return (struct driver_slot *)(uintptr_t)&all->drivers[i];
    err_set(e, ERR_NOT_FOUND, 0, "there is no host '" STR_FMT "'", (int)size_min(name.n, 64),
            name.p);
    err_hint(e, "hosts are in the setting 'hosts'; holt host ls lists them");
    return NULL;
}

int host_find(const struct sandboxes *all, struct str name, struct host_info *ret, struct err *e)
{
    const struct driver_slot *slot = slot_named(all, name, e);

    if (!slot)
        return -1;
    host_tell(all, slot, ret);
    return 0;
}

int host_drain(struct sandboxes *all, struct str name, bool on, const struct principal *by,
               host_cb done, void *arg, struct err *e)
{
    struct driver_slot *slot = slot_named(all, name, e);
    struct host_job *j;

    if (!slot)
        return -1;
    slot->host->drained = on;
    j = host_job_new(slot->host, on ? "host.drained" : "host.opened", by->actor);
    j->what = on ? HOST_DRAIN : HOST_OPEN;
    j->done = done;
    j->arg = arg;
    store_write(all->store, STORE_RELAXED, host_work, host_written, j);
    return 0;
}
