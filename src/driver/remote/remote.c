/* The runtime of machines that joined: binds a sandbox to the agent of its name. */
#include "driver/remote/remote.h"

#include "base/fd.h"
#include "base/list.h"
#include "base/mem.h"
#include "core/remote/remote.h"
#include "link/timers.h"
#include "wire/spawn.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define NEW ".new" /* behind the name of a file whose sandbox is not confirmed */

struct remote_driver {
    struct driver d;
    struct remotes *all;
    struct timers *timers;
    struct list calls;
    int dir;
};

struct call { /* its answer is known: called back in the next turn */
    struct list node;
    struct timer timer;
    struct err err;
    void (*finish)(struct call *c);
    void *arg;
    int fd;
    struct driver_made made;
    struct driver_stats stats;
    struct driver_found *found;
    size_t found_count;
    union {
        driver_done done;
        driver_made_cb made;
        driver_stats_cb stats;
        driver_fd_cb fd;
        driver_list_cb list;
    } cb;
};

static struct remote_driver *driver_of(struct driver *d)
{
    return CONTAINER_OF(d, struct remote_driver, d);
}

static void call_over(struct call *c)
{
    list_unlink(&c->node);
    c->finish(c);
    fd_close(c->fd);
    mem_free(c->found);
    mem_free(c);
}

static void call_due(struct timer *t)
{
    call_over(CONTAINER_OF(t, struct call, timer));
}

static struct call *call_new(struct remote_driver *v, void (*finish)(struct call *), void *arg)
{
    struct call *c = xzalloc(sizeof *c);

    c->finish = finish;
    c->arg = arg;
    c->fd = -1;
    list_push(&v->calls, &c->node);
    timer_set(v->timers, &c->timer, TIMER_SOON, call_due);
    return c;
}

static void finish_done(struct call *c)
{
    if (c->cb.done)
        c->cb.done(c->arg, &c->err);
}

static void finish_made(struct call *c)
{
    c->cb.made(c->arg, c->err.code == ERR_NONE ? &c->made : NULL, &c->err);
}

static void finish_stats(struct call *c)
{
    c->cb.stats(c->arg, c->err.code == ERR_NONE ? &c->stats : NULL, &c->err);
}

static void finish_fd(struct call *c)
{
    c->cb.fd(c->arg, c->err.code == ERR_NONE ? TAKE_FD(c->fd) : -1, &c->err);
}

static void finish_list(struct call *c)
{
    c->cb.list(c->arg, c->found, c->found_count, &c->err);
}

static void call_done(struct driver *d, driver_done done, void *arg)
{
    call_new(driver_of(d), finish_done, arg)->cb.done = done;
}

/* --- the files: which sandbox is which agent --- */

struct file_name {
    char text[ID_SIZE + sizeof NEW];
};

static struct file_name file_name(const char *id, bool confirmed)
{
    struct file_name n;

    (void)snprintf(n.text, sizeof n.text, "%s%s", id, confirmed ? "" : NEW);
    return n;
}

static int file_save(struct remote_driver *v, const char *id, const char *agent, struct err *e)
{
    const struct file_name n = file_name(id, false);
    AUTO(fd_close)
    int fd = openat(v->dir, n.text, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    size_t len = strlen(agent);

    if (fd < 0 || write(fd, agent, len) != (ssize_t)len)
        return err_set(e, ERR_INTERNAL, errno, "write STATE/remote/%s", n.text);
    return 0;
}

static void file_remove(struct remote_driver *v, const char *id)
{
    for (int i = 0; i < 2; i++) {
        const struct file_name n = file_name(id, i);

        (void)unlinkat(v->dir, n.text, 0);
    }
}

/* Its create was told to a client: what undoes one before that says nothing about the agent. */
static bool file_is_confirmed(struct remote_driver *v, const char *id)
{
    return faccessat(v->dir, file_name(id, true).text, F_OK, 0) == 0;
}

static bool file_load(struct remote_driver *v, const char *name, struct driver_found *ret,
                      char *agent, size_t size)
{
    AUTO(fd_close) int fd = openat(v->dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct str id = str_of(name);
    ssize_t n;

    *ret = (struct driver_found){.running = true, .confirmed = true};
    if (str_ends(id, STR(NEW))) {
        id.n -= strlen(NEW);
        ret->confirmed = false;
    }
    if (fd < 0 || !id_is_valid("sb", id) || id.n >= sizeof ret->id)
        return false;
    memcpy(ret->id, id.p, id.n);
    n = read(fd, agent, size - 1);
    agent[n > 0 ? n : 0] = '\0';
    return n > 0;
}

static int files_each(struct remote_driver *v, struct call *c, struct err *e)
{
    int fd = openat(v->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    char agent[REMOTE_ID_MAX + 1];
    struct driver_found f;
    struct dirent *at;

    if (!dir) {
        fd_close(fd);
        return err_set(e, ERR_INTERNAL, errno, "list STATE/remote");
    }
    while ((at = readdir(dir))) {
        if (!file_load(v, at->d_name, &f, agent, sizeof agent))
            continue;
        if (!c) {
            remote_known(v->all, str_of(agent), f.id);
            continue;
        }
        c->found = xrealloc(c->found, (c->found_count + 1) * sizeof *c->found);
        c->found[c->found_count++] = f;
    }
    (void)closedir(dir);
    return 0;
}

/* --- operations --- */

static int check_spec(const struct driver_spec *s, struct err *e)
{
    if (s->layer_count == 0 && s->mount_count == 0 && !s->traits.rootfs_ro)
        return 0;
    return err_set(e, ERR_UNSUPPORTED, 0, "a remote agent has neither images nor mounts of holt");
}

static void remote_create(struct driver *d, const struct driver_spec *s, driver_made_cb done,
                          void *arg)
{
    struct remote_driver *v = driver_of(d);
    struct call *c = call_new(v, finish_made, arg);

    c->cb.made = done;
    if (check_spec(s, &c->err) < 0 ||
        remote_bind(v->all, str_of(s->hostname), s->id, s->restart, &c->err) < 0)
        return;
    if (!s->restart)
        (void)!file_save(v, s->id, s->hostname, &c->err);
}

static void remote_confirm(struct driver *d, const char *id)
{
    const struct file_name from = file_name(id, false), to = file_name(id, true);
    struct remote_driver *v = driver_of(d);

    (void)renameat(v->dir, from.text, v->dir, to.text);
}

static void driver_connect(struct driver *d, const char *id, driver_fd_cb done, void *arg)
{
    struct remote_driver *v = driver_of(d);
    struct call *c = call_new(v, finish_fd, arg);

    c->cb.fd = done;
    (void)!remote_connect(v->all, str_of(id), &c->fd, &c->err);
}

static void driver_kill(struct driver *d, const char *id, enum driver_scope scope, driver_done done,
                        void *arg)
{
    (void)scope; /* its agent is not ours to kill */
    remote_kill(driver_of(d)->all, str_of(id));
    call_done(d, done, arg);
}

static void driver_remove(struct driver *d, const char *id, bool keep, driver_done done, void *arg)
{
    struct remote_driver *v = driver_of(d);

    remote_release(v->all, str_of(id),
                   keep                       ? REMOTE_STOPPED
                   : file_is_confirmed(v, id) ? REMOTE_DESTROYED
                                              : REMOTE_UNDONE);
    if (!keep)
        file_remove(v, id);
    call_done(d, done, arg);
}

static void driver_pause(struct driver *d, const char *id, bool on, driver_done done, void *arg)
{
    struct call *c = call_new(driver_of(d), finish_done, arg);

    (void)on;
    c->cb.done = done;
    (void)err_set(&c->err, ERR_UNSUPPORTED, 0, "sandbox '%s' is a machine of somebody else", id);
}

static void driver_measure(struct driver *d, const char *id, driver_stats_cb done, void *arg)
{
    struct remote_driver *v = driver_of(d);
    struct call *c = call_new(v, finish_stats, arg);
    const struct remote *r = remotes_of_sandbox(v->all, str_of(id));
    struct remote_info i;

    c->cb.stats = done;
    if (!r) {
        (void)err_set(&c->err, ERR_UNAVAILABLE, 0, "its agent is not known");
        return;
    }
    remote_info(r, &i);
    c->stats.memory_bytes = i.numbers.memory_used;
    c->stats.disk_bytes = i.numbers.disk_used;
}

static void driver_list(struct driver *d, driver_list_cb done, void *arg)
{
    struct remote_driver *v = driver_of(d);
    struct call *c = call_new(v, finish_list, arg);

    c->cb.list = done;
    (void)!files_each(v, c, &c->err);
}

/* Whether it is still there, its agent says when it connects. */
static void driver_adopt(struct driver *d, const char *id, driver_made_cb done, void *arg)
{
    struct call *c = call_new(driver_of(d), finish_made, arg);

    (void)id;
    c->cb.made = done;
}

/* --- life --- */

static int driver_open(const struct driver_config *c, struct driver **ret, struct err *e)
{
    AUTO(mem_free) char *path = xasprintf("%s/remote", c->state);
    struct remote_driver *v;
    int r, dir;

    if (!c->remotes)
        return err_set(e, ERR_UNSUPPORTED, 0, "no agents are accepted");
    r = dir_make_all(path, 0700);
    dir = r < 0 ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_set(e, ERR_INTERNAL, r < 0 ? -r : errno, "make the directory '%s'", path);
    v = xzalloc(sizeof *v);
    v->d.ops = &driver_remote;
    v->all = c->remotes;
    v->dir = dir;
    v->timers = timers_new(c->loop);
    list_init(&v->calls);
    if (files_each(v, NULL, e) < 0) {
        v->timers = timers_free(v->timers);
        fd_close(v->dir);
        mem_free(v);
        return -1;
    }
    *ret = &v->d;
    return 0;
}

static void driver_close(struct driver *d)
{
    struct remote_driver *v = driver_of(d);

    while (!list_is_empty(&v->calls)) {
        struct call *c = LIST_ENTRY(v->calls.next, struct call, node);

        timer_stop(&c->timer);
        (void)err_set(&c->err, ERR_CANCELLED, 0, "the runtime is being closed");
        call_over(c);
    }
    v->timers = timers_free(v->timers);
    fd_close(v->dir);
    mem_free(v);
}

static uint32_t driver_enforces(const struct driver *d)
{
    (void)d;
    return 0;
}

const struct driver_ops driver_remote = {
    .name = "remote",
    .caps = DRIVER_CAN_STOP | DRIVER_JOINS,
    .open = driver_open,
    .close = driver_close,
    .enforces = driver_enforces,
    .create = remote_create,
    .confirm = remote_confirm,
    .connect = driver_connect,
    .kill = driver_kill,
    .remove = driver_remove,
    .pause = driver_pause,
    .stats = driver_measure,
    .list = driver_list,
    .adopt = driver_adopt,
};
