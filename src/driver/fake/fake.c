/* fake: a runtime without isolation: holt-init is an ordinary process (fake_box.c). */

/* For tests of the code above the guest protocol, and for hosts that allow no more. */
#include "driver/fake/fake.h"

#include "base/fd.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "driver/fake/fake_pool.h"
#include "driver/tree.h"
#include "wire/spawn.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define TURN_MS 5
#define TRIES_MAX 1000 /* turns until a surviving process is an error: 5 s */
#define PATIENCE 50    /* turns for init to reap killed processes */

struct fake {
    struct driver d;
    struct driver_config c;
    struct box_home home;
    char *init, *installation;
    struct map boxes; /* struct watched_box: made or adopted, and not yet removed */
    struct list ops, round;
    struct fake_pool pool;
    uv_timer_t timer;
    unsigned refs; /* held by the owner, each handle, each worker */
    bool closed;
};

struct watched_box {
    struct fake *f;
    struct box box;
    bool quiet; /* its end was requested: do not report it */
    bool watched;
    uv_poll_t watch; /* of its pidfd */
};

struct op { /* one call in progress */
    struct list node;
    struct fake *f;
    bool (*step)(struct op *o);   /* true: it is done.  NULL: at once */
    void (*finish)(struct op *o); /* calls back */
    char id[ID_SIZE];
    enum driver_scope scope;
    bool keep, working;
    struct sandbox_limits limits;
    int tries, result, fd;
    uv_work_t work;
    struct err err;
    struct driver_made made;
    struct driver_stats stats;
    struct driver_found *found;
    size_t found_count;
    void *arg;
    union {
        driver_done done;
        driver_made_cb made;
        driver_stats_cb stats;
        driver_fd_cb fd;
        driver_list_cb list;
        driver_pooled_cb pooled;
    } cb;
};

static struct fake *fake_of(const struct driver *d)
{
    return CONTAINER_OF(d, struct fake, d);
}

static void fake_unref(struct fake *f)
{
    if (--f->refs > 0)
        return;
    fd_close(f->home.dir);
    map_done(&f->boxes);
    mem_free(f->init);
    mem_free(f->installation);
    mem_free(f);
}

/* ---- calls in progress ---- */

static void op_over(struct op *o)
{
    list_unlink(&o->node);
    o->finish(o);
    mem_free(o->found);
    mem_free(o);
}

static void on_turn(uv_timer_t *t)
{
    struct fake *f = t->data;
    struct list *node;

    while ((node = list_pop(&f->ops)))
        list_push(&f->round, node);
    while ((node = list_pop(&f->round))) {
        struct op *o = LIST_ENTRY(node, struct op, node);

        if (o->working || (o->step && o->err.code == ERR_NONE && !o->step(o)))
            list_push(&f->ops, node);
        else
            op_over(o);
    }
    if (list_is_empty(&f->ops) && !f->closed)
        (void)uv_timer_stop(t);
}

static struct op *op_new(struct driver *d, const char *id, void (*finish)(struct op *), void *arg)
{
    struct fake *f = fake_of(d);
    struct op *o = xzalloc(sizeof *o);

    o->f = f;
    o->finish = finish;
    o->arg = arg;
    o->fd = -1;
    if (id && strlen(id) < sizeof o->id && spawn_id_is_safe(str_of(id)))
        memcpy(o->id, id, strlen(id));
    else if (id)
        (void)err_set(&o->err, ERR_INVALID, 0, "'%.64s' is not a sandbox id", id);
    if (list_is_empty(&f->ops) && list_is_empty(&f->round))
        (void)uv_timer_start(&f->timer, on_turn, 0, TURN_MS);
    list_push(&f->ops, &o->node);
    return o;
}

static void finish_done(struct op *o)
{
    if (o->cb.done)
        o->cb.done(o->arg, &o->err);
}

static void finish_made(struct op *o)
{
    o->cb.made(o->arg, o->err.code == ERR_NONE ? &o->made : NULL, &o->err);
}

static void finish_stats(struct op *o)
{
    o->cb.stats(o->arg, o->err.code == ERR_NONE ? &o->stats : NULL, &o->err);
}

static void finish_fd(struct op *o)
{
    o->cb.fd(o->arg, o->err.code == ERR_NONE ? TAKE_FD(o->fd) : -1, &o->err);
    fd_close(o->fd);
}

static void finish_list(struct op *o)
{
    o->cb.list(o->arg, o->found, o->found_count, &o->err);
}

/* ---- watching ---- */

static struct watched_box *find_box(struct op *o)
{
    return map_get(&o->f->boxes, str_of(o->id));
}

static void watch_closed(uv_handle_t *h)
{
    struct watched_box *w = h->data;

    box_done(&w->box);
    fake_unref(w->f);
    mem_free(w);
}

static void box_unwatch(struct watched_box *w)
{
    (void)map_remove(&w->f->boxes, str_of(w->box.id));
    if (w->watched) {
        uv_close((uv_handle_t *)&w->watch, watch_closed);
        return;
    }
    box_done(&w->box);
    mem_free(w);
}

static void on_pidfd(uv_poll_t *h, int status, int events)
{
    struct watched_box *w = h->data;
    const struct driver_events *ev = &w->f->c.events;
    int how = 0;
    bool known = false;

    (void)status;
    (void)events;
    if (box_reap(&w->box, &how, &known) == 0)
        return;
    (void)uv_poll_stop(h);
    if (!w->quiet && ev->init_ended)
        ev->init_ended(ev->arg, w->box.id, how, known);
}

static void box_watch(struct fake *f, const struct box *b)
{
    struct watched_box *w = xzalloc(sizeof *w);

    *w = (struct watched_box){.f = f, .box = *b};
    (void)map_set(&f->boxes, str_of(b->id), w);
    if (b->pidfd < 0 || uv_poll_init(f->c.loop, &w->watch, b->pidfd) < 0)
        return;
    w->watched = true;
    w->watch.data = w;
    f->refs++;
    (void)uv_poll_start(&w->watch, UV_READABLE, on_pidfd);
}

/* ---- create, adopt, list ---- */

static bool step_create(struct op *o)
{
    struct box b = {.pidfd = -1};
    bool warm;

    memcpy(b.id, o->id, sizeof b.id);
    if (find_box(o))
        return err_set(&o->err, ERR_CONFLICT, 0, "sandbox '%s' runs already", o->id) < 0;
    warm = !o->keep && fake_pool_take(&o->f->pool, &o->f->home, &o->limits, &b);
    if (!warm && box_start(&o->f->home, o->keep, &b, &o->err) < 0)
        return true;
    box_watch(o->f, &b);
    o->made = (struct driver_made){.pid = (uint32_t)b.pid, .warm = warm};
    return true;
}

static void fake_create(struct driver *d, const struct driver_spec *s, driver_made_cb done,
                        void *arg)
{
    struct op *o = op_new(d, s->id, finish_made, arg);

    o->cb.made = done;
    o->step = step_create;
    o->keep = s->restart;
    o->limits = s->traits.limits;
    if (s->layer_count > 0 || s->mount_count > 0)
        (void)err_set(&o->err, ERR_UNSUPPORTED, 0,
                      "the fake runtime has neither images nor mounts");
}

static void fake_confirm(struct driver *d, const char *id)
{
    struct fake *f = fake_of(d);
    struct watched_box *w = map_get(&f->boxes, str_of(id));

    if (!w)
        return;
    w->box.confirmed = true;
    (void)!box_save(&f->home, &w->box);
}

static bool step_adopt(struct op *o)
{
    struct watched_box *w = find_box(o);
    struct box b;

    if (!w) {
        if (box_load(&o->f->home, o->id, &b, &o->err) < 0)
            return true;
        if (b.pid == 0)
            return err_set(&o->err, ERR_GONE, 0, "the init of sandbox '%s' has ended", o->id) < 0;
        box_watch(o->f, &b);
        w = find_box(o);
    }
    o->made = (struct driver_made){.pid = (uint32_t)w->box.pid};
    return true;
}

static void fake_adopt(struct driver *d, const char *id, driver_made_cb done, void *arg)
{
    struct op *o = op_new(d, id, finish_made, arg);

    o->cb.made = done;
    o->step = step_adopt;
}

static bool step_list(struct op *o)
{
    int fd = openat(o->f->home.dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;
    size_t size = 0;

    if (!dir) {
        fd_close(fd);
        return err_set(&o->err, ERR_INTERNAL, errno, "list the sandboxes") < 0;
    }
    while ((entry = readdir(dir))) {
        struct driver_found *at;
        struct box b;
        struct err e;

        if (!spawn_id_is_safe(str_of(entry->d_name)) || strlen(entry->d_name) >= ID_SIZE ||
            box_load(&o->f->home, entry->d_name, &b, &e) < 0)
            continue;
        if (o->found_count == size) {
            size = size_max(16, size * 2);
            o->found = xrealloc(o->found, size * sizeof *o->found);
        }
        at = &o->found[o->found_count++];
        *at = (struct driver_found){.running = b.pid > 0, .confirmed = b.confirmed};
        memcpy(at->id, b.id, sizeof at->id);
        box_done(&b);
    }
    (void)closedir(dir);
    return true;
}

static void fake_list(struct driver *d, driver_list_cb done, void *arg)
{
    struct op *o = op_new(d, NULL, finish_list, arg);

    o->cb.list = done;
    o->step = step_list;
}

/* ---- made ahead ---- */

static bool step_pool(struct op *o)
{
    return fake_pool_step(&o->f->pool, &o->f->home) || ++o->tries > TRIES_MAX;
}

static void finish_pooled(struct op *o)
{
    struct fake_pool *p = &o->f->pool;
    struct driver_pooled r = {.ready = fake_pool_ready(p, &o->f->home)};

    r.broken = p->broken;
    o->cb.pooled(o->arg, o->err.code == ERR_NONE ? &r : NULL, &o->err);
}

static void fake_pool(struct driver *d, const struct driver_want *want, driver_pooled_cb done,
                      void *arg)
{
    struct fake *f = fake_of(d);
    struct op *o = op_new(d, NULL, finish_pooled, arg);

    fake_pool_want(&f->pool, &f->home, want);
    (void)fake_pool_ready(&f->pool, &f->home); /* broken ones make room */
    o->cb.pooled = done;
    o->step = step_pool;
}

/* ---- a running sandbox ---- */

static bool need_box(struct op *o, struct watched_box **ret)
{
    *ret = find_box(o);
    if (!*ret || (*ret)->box.pid == 0)
        return err_set(&o->err, ERR_NOT_FOUND, 0, "sandbox '%s' does not run", o->id) == 0;
    return true;
}

static bool step_connect(struct op *o)
{
    struct watched_box *w;

    if (!need_box(o, &w))
        return true;
    o->fd = box_connect(&o->f->home, o->id);
    if (o->fd == -EAGAIN && ++o->tries < TRIES_MAX) /* unix(7): the backlog is full */
        return false;
    if (o->fd < 0)
        (void)err_set(&o->err, ERR_UNAVAILABLE, -o->fd, "connect to the init of sandbox '%s'",
                      o->id);
    return true;
}

static void fake_connect(struct driver *d, const char *id, driver_fd_cb done, void *arg)
{
    struct op *o = op_new(d, id, finish_fd, arg);

    o->cb.fd = done;
    o->step = step_connect;
}

static bool too_long(struct op *o)
{
    return ++o->tries > TRIES_MAX &&
           err_set(&o->err, ERR_TIMEOUT, 0, "processes of sandbox '%s' do not end", o->id) < 0;
}

static bool step_kill(struct op *o)
{
    struct watched_box *w = find_box(o);

    return !w || w->box.pid == 0 || box_kill(&w->box, o->scope, o->tries < PATIENCE) || too_long(o);
}

static void fake_kill(struct driver *d, const char *id, enum driver_scope scope, driver_done done,
                      void *arg)
{
    struct op *o = op_new(d, id, finish_done, arg);

    o->cb.done = done;
    o->step = step_kill;
    o->scope = scope;
}

static bool step_pause(struct op *o)
{
    struct watched_box *w;

    if (need_box(o, &w))
        (void)!box_pause(&w->box, o->keep, &o->err);
    return true;
}

static void fake_pause(struct driver *d, const char *id, bool on, driver_done done, void *arg)
{
    struct op *o = op_new(d, id, finish_done, arg);

    o->cb.done = done;
    o->step = step_pause;
    o->keep = on;
}

static bool step_stats(struct op *o)
{
    struct watched_box *w;

    if (need_box(o, &w))
        (void)!box_stats(&o->f->home, &w->box, &o->stats, &o->err);
    return true;
}

static void fake_stats(struct driver *d, const char *id, driver_stats_cb done, void *arg)
{
    struct op *o = op_new(d, id, finish_stats, arg);

    o->cb.stats = done;
    o->step = step_stats;
}

/* ---- remove ---- */

static void remove_files(uv_work_t *work)
{
    struct op *o = work->data;

    o->result = tree_remove(o->f->home.dir, o->id);
}

static void files_removed(uv_work_t *work, int status)
{
    struct op *o = work->data;
    struct fake *f = o->f;

    o->working = false;
    if (status < 0 || o->result < 0)
        (void)err_set(&o->err, ERR_INTERNAL, status < 0 ? -status : -o->result,
                      "remove the files of sandbox '%s'", o->id);
    o->step = NULL;
    if (f->closed)
        op_over(o);
    fake_unref(f);
}

static void forget_process(struct op *o)
{
    AUTO(mem_free) char *sock = xasprintf("%s/init.sock", o->id);
    struct box b;
    struct err e;

    (void)unlinkat(o->f->home.dir, sock, 0);
    if (box_load(&o->f->home, o->id, &b, &e) < 0)
        return;
    box_done(&b);
    b.pid = 0;
    (void)!box_save(&o->f->home, &b);
}

/* One left by an earlier daemon is adopted first, so that it can be ended. */
static struct watched_box *take_up(struct op *o)
{
    struct watched_box *w = find_box(o);
    struct box b;
    struct err e;

    if (!w && o->tries == 0 && box_load(&o->f->home, o->id, &b, &e) == 0) {
        box_watch(o->f, &b);
        w = find_box(o);
    }
    return w;
}

static bool step_remove(struct op *o)
{
    struct watched_box *w = take_up(o);
    bool known;
    int how;

    if (w) {
        w->quiet = true;
        if (w->box.pid > 0 && !box_kill(&w->box, DRIVER_ALL, o->tries < PATIENCE) && !too_long(o))
            return false;
        if (o->err.code != ERR_NONE)
            return true;
        (void)box_reap(&w->box, &how, &known);
        box_unwatch(w);
    }
    if (o->keep) {
        forget_process(o);
        return true;
    }
    o->working = true;
    o->work.data = o;
    o->f->refs++;
    if (uv_queue_work(o->f->c.loop, &o->work, remove_files, files_removed) < 0)
        files_removed(&o->work, -ENOMEM);
    return false;
}

static void fake_remove(struct driver *d, const char *id, bool keep, driver_done done, void *arg)
{
    struct op *o = op_new(d, id, finish_done, arg);

    o->cb.done = done;
    o->step = step_remove;
    o->keep = keep;
}

/* ---- life ---- */

static int fake_open(const struct driver_config *c, struct driver **ret, struct err *e)
{
    AUTO(mem_free) char *path = xasprintf("%s/fake", c->state);
    AUTO(mem_free) char *there = xasprintf("%s/holt-init", c->bindir);
    AUTO(mem_free) char *init = realpath(there, NULL); /* it is run from another directory */
    AUTO(fd_close) int dir = -1;
    struct fake *f;
    int r = dir_make_all(path, 0700);

    if (!init || access(init, X_OK) < 0)
        return err_set(e, ERR_UNSUPPORTED, errno, "find '%s'", there);
    dir = r < 0 ? -1 : open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_set(e, ERR_INTERNAL, r < 0 ? -r : errno, "make the directory '%s'", path);
    f = xzalloc(sizeof *f);
    f->d.ops = &driver_fake;
    f->c = *c;
    f->init = TAKE(init);
    f->installation = xstrdup(c->installation);
    f->home = (struct box_home){TAKE_FD(dir), f->installation, f->init};
    fake_pool_sweep(&f->home);
    list_init(&f->ops);
    list_init(&f->round);
    (void)uv_timer_init(c->loop, &f->timer);
    f->timer.data = f;
    f->refs = 2;
    *ret = &f->d;
    return 0;
}

static void timer_closed(uv_handle_t *h)
{
    fake_unref(h->data);
}

static void cancel_all(struct list *ops)
{
    LIST_EACH (ops, node) {
        struct op *o = LIST_ENTRY(node, struct op, node);

        if (o->working)
            continue; /* its worker ends it */
        (void)err_set(&o->err, ERR_CANCELLED, 0, "the runtime is being closed");
        op_over(o);
    }
}

static void fake_close(struct driver *d)
{
    struct fake *f = fake_of(d);
    struct str key;
    size_t at = 0;
    void *w;

    f->closed = true;
    cancel_all(&f->ops);
    cancel_all(&f->round);
    while (map_next(&f->boxes, &at, &key, &w))
        box_unwatch(w);
    fake_pool_end(&f->pool, &f->home);
    uv_close((uv_handle_t *)&f->timer, timer_closed);
    fake_unref(f);
}

static uint32_t fake_enforces(const struct driver *d)
{
    (void)d;
    return 0;
}

const struct driver_ops driver_fake = {
    .name = "fake",
    .caps = DRIVER_CAN_PAUSE | DRIVER_CAN_STOP,
    .open = fake_open,
    .close = fake_close,
    .enforces = fake_enforces,
    .create = fake_create,
    .confirm = fake_confirm,
    .connect = fake_connect,
    .kill = fake_kill,
    .remove = fake_remove,
    .pause = fake_pause,
    .stats = fake_stats,
    .pool = fake_pool,
    .list = fake_list,
    .adopt = fake_adopt,
};
