/* The runtime of virtual machines: the driver's operations as requests to a host's holt-virt. */
#include "driver/vm/vm.h"

#include "base/fd.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/starter.h"
#include "link/helper.h"
#include "wire/virt.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define CALLS_MAX 1024
#define LACK_MS 10000
#define ANSWER_MS 35000  /* holt-virt keeps a deadline of 30 s itself */
#define CREATE_MS 155000 /* … and of 150 s for a create */
#define LINGER_MS "2000"

struct vm {
    struct driver d;
    struct driver_events events;
    struct helper *link;
    char *installation;
    char name[VIRT_FILE_MAX]; /* of the link */
    struct map boxes;         /* those that run; the value: its end was asked for */
    bool opened;
};

struct call {
    struct helper_call h;
    struct vm *v;
    enum virt_type type;
    char id[ID_SIZE];
    uint32_t enforced;
    struct driver_found *found;
    size_t found_count;
    void *arg;
    void (*finish)(struct call *c, const struct virt_msg *m); /* m: NULL after a failure */
    union {
        driver_done done;
        driver_made_cb made;
        driver_stats_cb stats;
        driver_fd_cb fd;
        driver_list_cb list;
        driver_capacity_cb capacity;
    } cb;
};

static char runs, quiet; /* values of the map */

static struct vm *vm_of(const struct driver *d)
{
    return CONTAINER_OF(d, struct vm, d);
}

static void box_ended(struct vm *v, const char *id)
{
    void *how = map_remove(&v->boxes, str_of(id));

    if (how == &runs && v->events.init_ended)
        v->events.init_ended(v->events.arg, id, 0, false);
}

/* ---- calls ---- */

static void call_ended(struct helper_call *h, const void *msg)
{
    struct call *c = CONTAINER_OF(h, struct call, h);
    const struct virt_msg *m = msg;

    if (m && m->type == VIRT_DONE) {
        h->err = m->u.done.err;
        m = h->err.code == ERR_NONE ? m : NULL;
    }
    c->finish(c, m);
    mem_free(c->found);
}

static struct call *call_new(struct vm *v, enum virt_type type, const char *id, void *arg)
{
    bool patient = type == VIRT_REMOVE || type == VIRT_CONFIRM;
    struct call *c = helper_call_new(v->link, sizeof *c,
                                     (patient ? (unsigned)HELPER_PATIENT : 0) |
                                         (type == VIRT_CREATE ? (unsigned)HELPER_ONCE : 0));

    c->h.end = call_ended;
    c->v = v;
    c->type = type;
    c->arg = arg;
    if (id && strlen(id) < sizeof c->id && virt_id_is_safe(str_of(id)))
        memcpy(c->id, id, strlen(id));
    else if (id)
        (void)err_set(&c->h.err, ERR_INVALID, 0, "'%.64s' is not a sandbox id", id);
    if (!patient)
        helper_call_deadline(&c->h, type == VIRT_CREATE ? CREATE_MS : ANSWER_MS);
    return c;
}

static void ask(struct call *c, struct virt_msg *m)
{
    m->type = c->type;
    helper_call_send(&c->h, m);
}

static void ask_named(struct call *c)
{
    struct virt_msg m = {0};

    m.u.name.id = str_of(c->id);
    ask(c, &m);
}

static void finish_done(struct call *c, const struct virt_msg *m)
{
    (void)m;
    if (c->cb.done)
        c->cb.done(c->arg, &c->h.err);
}

static bool fits(struct call *c, const struct virt_msg *m, enum virt_type type)
{
    if (m && m->type == type)
        return true;
    if (c->h.err.code == ERR_NONE)
        (void)err_set(&c->h.err, ERR_INTERNAL, 0, "holt-virt sent an unexpected reply");
    return false;
}

/* ---- create ---- */

/* What a machine cannot be, said with the runtime that can. */
static int check_spec(const struct driver_spec *s, struct err *e)
{
    const char *lacks = NULL;

    if (s->layer_count > 0)
        lacks = "images other than its base";
    else if (s->mount_count > 0)
        lacks = "volumes and mounts";
    else if (s->traits.rootfs_ro)
        lacks = "a read-only root";
    if (!lacks)
        return 0;
    (void)err_set(e, ERR_UNSUPPORTED, 0, "the runtime 'vm' has no %s", lacks);
    return err_hint(e, "use --runtime native for that");
}

static void finish_made(struct call *c, const struct virt_msg *m)
{
    struct driver_made made = {.enforced = c->enforced};
    bool good = fits(c, m, VIRT_CREATED);

    if (good)
        (void)map_set(&c->v->boxes, str_of(c->id), &runs);
    c->cb.made(c->arg, good ? &made : NULL, &c->h.err);
}

static uint32_t flags_of(const struct driver_spec *s)
{
    return (s->restart ? (uint32_t)VIRT_RESTART : 0) |
           (s->traits.relay ? (uint32_t)VIRT_RELAY : 0) | (s->traits.hub ? (uint32_t)VIRT_HUB : 0) |
           (s->traits.process_api ? (uint32_t)VIRT_PROCESS : 0) |
           (s->traits.reach == SANDBOX_REACHES_PROXY ? (uint32_t)VIRT_NETWORK : 0);
}

/* Memory, disk and whole processors hold by what the machine is made of. */
static uint32_t enforced_of(const struct sandbox_limits *l)
{
    return (l->memory_bytes > 0 ? (uint32_t)LIMIT_MEMORY : 0) |
           (l->disk_bytes > 0 ? (uint32_t)LIMIT_DISK : 0) |
           (l->nofile > 0 ? (uint32_t)LIMIT_NOFILE : 0) |
           (l->cpu_millis > 0 && l->cpu_millis % 1000 == 0 ? (uint32_t)LIMIT_CPU : 0) | LIMIT_KILL |
           LIMIT_PAUSE;
}

static void vm_create(struct driver *d, const struct driver_spec *s, driver_made_cb done, void *arg)
{
    struct call *c = call_new(vm_of(d), VIRT_CREATE, s->id, arg);
    const struct sandbox_limits *l = &s->traits.limits;
    struct virt_msg m = {0};

    c->finish = finish_made;
    c->cb.made = done;
    c->enforced = enforced_of(l);
    if (c->h.err.code == ERR_NONE)
        (void)!check_spec(s, &c->h.err);
    m.u.create = (struct virt_create){
        .id = str_of(c->id),
        .hostname = str_of(s->hostname),
        .flags = flags_of(s),
        .memory_bytes = (uint64_t)l->memory_bytes,
        .disk_bytes = (uint64_t)l->disk_bytes,
        .cpus = (uint32_t)((l->cpu_millis + 999) / 1000),
        .files = (uint32_t)l->nofile,
        .ca = s->ca,
    };
    ask(c, &m);
}

/* ---- the other operations ---- */

static void vm_confirm(struct driver *d, const char *id)
{
    struct call *c = call_new(vm_of(d), VIRT_CONFIRM, id, NULL);

    c->finish = finish_done;
    ask_named(c);
}

static void finish_fd(struct call *c, const struct virt_msg *m)
{
    bool good = fits(c, m, VIRT_CHANNEL);

    c->cb.fd(c->arg, good ? c->h.in.fd[--c->h.in.n] : -1, &c->h.err);
}

static void vm_connect(struct driver *d, const char *id, driver_fd_cb done, void *arg)
{
    struct call *c = call_new(vm_of(d), VIRT_CONNECT, id, arg);

    c->finish = finish_fd;
    c->cb.fd = done;
    ask_named(c);
}

static void vm_kill(struct driver *d, const char *id, enum driver_scope scope, driver_done done,
                    void *arg)
{
    struct call *c = call_new(vm_of(d), VIRT_KILL, id, arg);
    struct virt_msg m = {0};

    c->finish = finish_done;
    c->cb.done = done;
    m.u.kill =
        (struct virt_kill){str_of(c->id), (uint8_t)(scope == DRIVER_WORK ? VIRT_WORK : VIRT_ALL)};
    ask(c, &m);
}

static void finish_removed(struct call *c, const struct virt_msg *m)
{
    (void)m;
    if (c->h.err.code == ERR_NONE)
        (void)map_remove(&c->v->boxes, str_of(c->id));
    c->cb.done(c->arg, &c->h.err);
}

static void vm_remove(struct driver *d, const char *id, bool keep, driver_done done, void *arg)
{
    struct vm *v = vm_of(d);
    struct call *c = call_new(v, VIRT_REMOVE, id, arg);
    struct virt_msg m = {0};

    if (map_get(&v->boxes, str_of(c->id)))
        (void)map_set(&v->boxes, str_of(c->id), &quiet);
    c->finish = finish_removed;
    c->cb.done = done;
    m.u.remove = (struct virt_remove){str_of(c->id), keep};
    ask(c, &m);
}

static void vm_pause(struct driver *d, const char *id, bool on, driver_done done, void *arg)
{
    struct call *c = call_new(vm_of(d), VIRT_PAUSE, id, arg);
    struct virt_msg m = {0};

    c->finish = finish_done;
    c->cb.done = done;
    m.u.pause = (struct virt_pause){str_of(c->id), on};
    ask(c, &m);
}

static void finish_stats(struct call *c, const struct virt_msg *m)
{
    struct driver_stats s = {0};
    bool good = fits(c, m, VIRT_STATS);

    if (good)
        s = (struct driver_stats){.memory_bytes = (int64_t)m->u.stats.memory_bytes,
                                  .cpu_us = (int64_t)m->u.stats.cpu_us,
                                  .disk_bytes = (int64_t)m->u.stats.disk_bytes};
    c->cb.stats(c->arg, good ? &s : NULL, &c->h.err);
}

static void vm_stats(struct driver *d, const char *id, driver_stats_cb done, void *arg)
{
    struct call *c = call_new(vm_of(d), VIRT_STATS_GET, id, arg);

    c->finish = finish_stats;
    c->cb.stats = done;
    ask_named(c);
}

static void take_text(char *to, size_t size, struct str from)
{
    (void)snprintf(to, size, STR_FMT, STR_ARG(from));
}

static void finish_capacity(struct call *c, const struct virt_msg *m)
{
    static const char *const accels[] = {NULL, "kvm", "tcg"};
    struct driver_capacity has = {0};
    bool good = fits(c, m, VIRT_HOST);

    if (good) {
        const struct virt_host *h = &m->u.host;

        has = (struct driver_capacity){.memory_bytes = (int64_t)h->memory_bytes,
                                       .memory_free_bytes = (int64_t)h->memory_free_bytes,
                                       .disk_bytes = (int64_t)h->disk_bytes,
                                       .disk_free_bytes = (int64_t)h->disk_free_bytes,
                                       .cpus = h->cpus,
                                       .running = h->running,
                                       .accel = accels[h->accel]};
        take_text(has.name, sizeof has.name, h->name);
        take_text(has.version, sizeof has.version, h->version);
    }
    c->cb.capacity(c->arg, good ? &has : NULL, &c->h.err);
}

static void vm_capacity(struct driver *d, driver_capacity_cb done, void *arg)
{
    struct call *c = call_new(vm_of(d), VIRT_HOST_GET, NULL, arg);
    struct virt_msg m = {0};

    c->finish = finish_capacity;
    c->cb.capacity = done;
    ask(c, &m);
}

/* ---- list: page by page ---- */

static void finish_list(struct call *c, const struct virt_msg *m);

static void ask_page(struct vm *v, struct driver_found *found, size_t n, driver_list_cb done,
                     void *arg)
{
    struct call *c = call_new(v, VIRT_LIST, NULL, arg);
    struct virt_msg m = {0};

    c->finish = finish_list;
    c->cb.list = done;
    c->found = found;
    c->found_count = n;
    m.u.list.after = n > 0 ? str_of(found[n - 1].id) : STR("");
    ask(c, &m);
}

static void finish_list(struct call *c, const struct virt_msg *m)
{
    struct wire_rows rows = {0};
    struct virt_list_row row;

    if (fits(c, m, VIRT_LISTED))
        rows = m->u.listed.machines;
    c->found = xrealloc(c->found, (c->found_count + rows.count + 1) * sizeof *c->found);
    while (wire_rows_next(&virt_list_row_layout, &rows, &row)) {
        struct driver_found *f = &c->found[c->found_count++];

        *f = (struct driver_found){.running = row.running, .confirmed = row.confirmed};
        memcpy(f->id, row.id.p, size_min(row.id.n, sizeof f->id - 1));
    }
    if (m && m->u.listed.more)
        ask_page(c->v, TAKE(c->found), c->found_count, c->cb.list, c->arg);
    else
        c->cb.list(c->arg, c->found, c->found_count, &c->h.err);
}

static void vm_list(struct driver *d, driver_list_cb done, void *arg)
{
    ask_page(vm_of(d), NULL, 0, done, arg);
}

/* ---- adopt: one that runs is known again ---- */

struct adoption {
    struct vm *v;
    char id[ID_SIZE];
    driver_made_cb done;
    void *arg;
};

static void adopt_found(void *arg, const struct driver_found *f, size_t n, const struct err *e)
{
    AUTO(mem_free) struct adoption *a = arg;
    struct driver_made made = {.enforced = LIMIT_KILL | LIMIT_PAUSE};
    struct err why = *e;
    bool lives = false;

    for (size_t i = 0; i < n; i++)
        lives = lives || (f[i].running && strcmp(f[i].id, a->id) == 0);
    if (why.code == ERR_NONE && !lives)
        (void)err_set(&why, ERR_NOT_FOUND, 0, "machine '%s' is not running", a->id);
    if (why.code == ERR_NONE)
        (void)map_set(&a->v->boxes, str_of(a->id), &runs);
    a->done(a->arg, why.code == ERR_NONE ? &made : NULL, &why);
}

static void vm_adopt(struct driver *d, const char *id, driver_made_cb done, void *arg)
{
    struct adoption *a = xzalloc(sizeof *a);

    *a = (struct adoption){.v = vm_of(d), .done = done, .arg = arg};
    (void)snprintf(a->id, sizeof a->id, "%s", id);
    vm_list(d, adopt_found, a);
}

/* ---- the link ---- */

static void link_hello(void *arg, void *msg)
{
    struct virt_msg *m = msg;

    m->u.hello = (struct virt_hello){1, VIRT_VERSION, str_of(((struct vm *)arg)->installation)};
}

static void link_welcomed(void *arg, const void *msg)
{
    (void)arg;
    (void)msg;
}

/* Those that ended while nobody was there to tell. */
static void ended_unseen(void *arg, const struct driver_found *f, size_t n, const struct err *e)
{
    struct vm *v = arg;
    struct str key;
    size_t at = 0;
    void *how;

    while (e->code == ERR_NONE && map_next(&v->boxes, &at, &key, &how)) {
        char id[ID_SIZE] = "";
        bool lives = false;

        memcpy(id, key.p, size_min(key.n, sizeof id - 1));
        for (size_t i = 0; i < n; i++)
            lives = lives || (f[i].running && strcmp(f[i].id, id) == 0);
        if (!lives)
            box_ended(v, id);
    }
}

static void link_up(void *arg)
{
    struct vm *v = arg;

    vm_list(&v->d, ended_unseen, v);
    if (v->events.health)
        v->events.health(v->events.arg, &(struct err){0});
}

/* The event is of the past: a machine that was stopped since then must not start again. */
static void booted_found(void *arg, const struct driver_found *f, size_t n, const struct err *e)
{
    AUTO(mem_free) struct adoption *a = arg;
    bool lives = false;

    (void)e;
    for (size_t i = 0; i < n; i++)
        lives = lives || (f[i].running && f[i].confirmed && strcmp(f[i].id, a->id) == 0);
    if (lives && !map_get(&a->v->boxes, str_of(a->id)) && a->v->events.started)
        a->v->events.started(a->v->events.arg, a->id);
}

static void box_booted(struct vm *v, const char *id)
{
    struct adoption *a = xzalloc(sizeof *a);

    a->v = v;
    (void)snprintf(a->id, sizeof a->id, "%s", id);
    vm_list(&v->d, booted_found, a);
}

static void link_event(void *arg, const void *msg, struct helper_fds *fds)
{
    struct vm *v = arg;
    const struct virt_msg *m = msg;
    char id[ID_SIZE] = "";

    (void)fds;
    if (m->type != VIRT_EVENT)
        return;
    memcpy(id, m->u.event.id.p, size_min(m->u.event.id.n, sizeof id - 1));
    if (m->u.event.what == VIRT_OFF)
        box_ended(v, id);
    else if (m->u.event.what == VIRT_BOOTED)
        box_booted(v, id);
    else if (map_get(&v->boxes, str_of(id)) && v->events.paused)
        v->events.paused(v->events.arg, id, m->u.event.what == VIRT_PAUSED);
}

static void link_down(void *arg, const struct err *e)
{
    struct vm *v = arg;

    if (v->events.health)
        v->events.health(v->events.arg, e);
}

static const struct helper_ops link_ops = {
    .hello = link_hello,
    .welcomed = link_welcomed,
    .up = link_up,
    .event = link_event,
    .down = link_down,
};

/* ---- life ---- */

static int define(struct vm *v, const struct driver_config *c, struct err *e)
{
    const struct driver_host *h = c->host;
    char user[16];
    const char *argv[] = {
        "holt-virt",    "--state",     c->state,    "--linger-ms", LINGER_MS,
        "--for",        user,          "--host",    h->name,       "--uri",
        h->uri,         "--pool-dir",  h->pool_dir, "--accel",     c->allows.machines.accel,
        "--ssh-config", h->ssh_config, NULL};

    (void)snprintf(user, sizeof user, "%u", geteuid());
    return helper_define(v->link, (char *const *)(uintptr_t)argv, e);
}

/* Without a base nothing of this is used: holt-virt is not started. */
static int check_host(const struct driver_config *c, struct err *e)
{
    AUTO(mem_free) char *program = xasprintf("%s/holt-virt", c->bindir);
    AUTO(mem_free) char *base = xasprintf("%s/vm/base/id", c->state);

    /* EACCES: this process gave up the right to look there; its starter did not. */
    if (access(program, X_OK) < 0 && errno != EACCES) {
        (void)err_set(e, ERR_UNSUPPORTED, errno, "virtual machines need '%s'", program);
        return err_hint(e, "install libvirt-dev and build holt again, or the package holt-virt");
    }
    if (access(base, R_OK) < 0) {
        (void)err_set(e, ERR_UNSUPPORTED, 0, "there is no base of virtual machines");
        return err_hint(e,
                        "build one with holt image build-vm (docs/vm.md), then start holtd again");
    }
    return 0;
}

static int vm_open(const struct driver_config *c, struct driver **ret, struct err *e)
{
    struct vm *v;
    struct helper_config link = {
        .loop = c->loop,
        .protocol = &virt_protocol,
        .state = c->state,
        .bindir = c->bindir,
        .calls_max = CALLS_MAX,
        .lack_ms = LACK_MS,
        .ops = &link_ops,
    };

    if (check_host(c, e) < 0)
        return -1;
    v = xzalloc(sizeof *v);
    v->d.ops = &driver_vm;
    v->events = c->events;
    virt_file_name(c->host->name, v->name);
    link.name = v->name;
    v->installation = xstrdup(c->installation);
    link.arg = v;
    v->link = helper_new(&link);
    if (define(v, c, e) < 0) {
        v->d.ops->close(&v->d);
        return -1;
    }
    *ret = &v->d;
    return 0;
}

static void vm_close(struct driver *d)
{
    struct vm *v = vm_of(d);

    helper_free(v->link);
    map_done(&v->boxes);
    mem_free(v->installation);
    mem_free(v);
}

static uint32_t vm_enforces(const struct driver *d)
{
    (void)d;
    return LIMIT_MEMORY | LIMIT_CPU | LIMIT_DISK | LIMIT_NOFILE | LIMIT_KILL | LIMIT_PAUSE;
}

const struct driver_ops driver_vm = {
    .name = "vm",
    .caps = DRIVER_CAN_PAUSE | DRIVER_CAN_STOP | DRIVER_ISOLATES | DRIVER_CAN_RELAY |
            DRIVER_LEADS_OUT | DRIVER_HAS_HOSTS,
    .memory_preset = VIRT_MEMORY_PRESET,
    .open = vm_open,
    .close = vm_close,
    .enforces = vm_enforces,
    .create = vm_create,
    .confirm = vm_confirm,
    .connect = vm_connect,
    .kill = vm_kill,
    .remove = vm_remove,
    .pause = vm_pause,
    .stats = vm_stats,
    .list = vm_list,
    .adopt = vm_adopt,
    .capacity = vm_capacity,
};
