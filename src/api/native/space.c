/* space: disk space: what uses it, and removing what is old. */
#include "ops/space.h"
#include "api/native/handlers.h"
#include "api/share/sandbox.h"
#include "base/fd.h"
#include "base/mem.h"
#include "core/event/event.h"
#include "core/exec/exec.h"
#include "core/sandbox/volume.h"
#include "proto/json.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- prune --- */

struct prune {
    struct waiter waiter;
    struct api *api;
    bool yes;
    int64_t older_ms;
    struct events_weight events;
    struct execs_pruned commands;
};

static void prune_reply(struct prune *p, const struct err *e)
{
    struct request *r = waiter_end(&p->waiter);
    struct jw w;

    if (r && e->code != ERR_NONE)
        request_fail(r, e);
    if (r && e->code == ERR_NONE) {
        w = request_json(r);
        jw_object(&w);
        jw_kbool(&w, "removed", p->yes);
        jw_kint(&w, "events", p->events.count);
        jw_kint(&w, "event_bytes", p->events.bytes);
        jw_kint(&w, "commands", p->commands.commands);
        jw_kint(&w, "output_bytes", p->commands.bytes);
        jw_kbool(&w, "more", p->commands.more);
        jw_object_end(&w);
        request_send_json(r, 0);
    }
    mem_free(p);
}

static void prune_retained(void *arg, const struct err *e)
{
    prune_reply(arg, e);
}

static void prune_weighed(void *arg, const struct events_weight *w, const struct err *e)
{
    struct prune *p = arg;

    p->events = *w;
    if (e->code != ERR_NONE || !p->yes)
        prune_reply(p, e);
    else
        events_retain(p->api->c.events, p->older_ms, 0, prune_retained, p);
}

static int read_what(const struct op_list *what, bool *ret_events, bool *ret_commands,
                     struct err *e)
{
    *ret_events = *ret_commands = what->n == 0;
    for (size_t i = 0; i < what->n; i++) {
        *ret_events |= str_eq_c(what->v[i], "events");
        *ret_commands |= str_eq_c(what->v[i], "commands");
        if (!str_eq_c(what->v[i], "events") && !str_eq_c(what->v[i], "commands"))
            return err_set(e, ERR_INVALID, 0, "field 'what': 'events' or 'commands', not '%.40s'",
                           what->v[i].p);
    }
    return 0;
}

void prune_run(struct request *r)
{
    const struct prune_in *in = r->in;
    bool events, commands;
    struct err e = {0};
    struct prune *p;

    if (read_what(&in->what, &events, &commands, &e) < 0) {
        request_fail(r, &e);
        return;
    }
    p = xzalloc(sizeof *p);
    *p = (struct prune){.api = r->api, .yes = in->yes, .older_ms = in->older_than_ms};
    request_wait(r, &p->waiter);
    if (commands)
        execs_prune(r->api->c.sandboxes, p->older_ms, !p->yes, &p->commands);
    if (events)
        events_weigh(r->api->c.events, p->older_ms, prune_weighed, p);
    else
        prune_reply(p, &e);
}

/* --- df --- */

struct use {
    int64_t count, bytes;
};

struct df {
    struct waiter waiter;
    struct api *api;
    uv_work_t work;
    char *state;
    struct use database, output, blobs, spool, layers, sandboxes, events;
    int64_t unmeasured; /* sandboxes: those that do not run */
    char at[ID_SIZE];   /* the sandbox measured last */
};

/* What is on disk, not what files say they hold. */
static void weigh_file(int dir, const char *name, struct use *u)
{
    struct stat st;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
        return;
    u->count++;
    u->bytes += (int64_t)st.st_blocks * 512;
}

static void weigh_dir(int above, const char *name, struct use *u, int depth)
{
    int fd = openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    if (!d) {
        fd_close(fd);
        return;
    }
    while ((entry = readdir(d))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (entry->d_type == DT_DIR && depth > 0)
            weigh_dir(dirfd(d), entry->d_name, u, depth - 1);
        else
            weigh_file(dirfd(d), entry->d_name, u);
    }
    (void)closedir(d);
}

static void df_walk(uv_work_t *work)
{
    struct df *d = CONTAINER_OF(work, struct df, work);
    AUTO(fd_close) int state = open(d->state, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (state < 0)
        return;
    weigh_file(state, "holt.db", &d->database);
    weigh_file(state, "holt.db-wal", &d->database);
    weigh_file(state, "holt.db-shm", &d->database);
    weigh_dir(state, "execs", &d->output, 2);
    weigh_dir(state, "blobs", &d->blobs, 4);
    weigh_dir(state, "spool", &d->spool, 4);
}

static void write_use(struct jw *w, const char *what, const struct use *u, bool known,
                      const char *text)
{
    jw_object(w);
    jw_kc(w, "what", what);
    jw_kint(w, "count", u->count);
    jw_kint_if(w, "bytes", known, u->bytes);
    jw_kc(w, "text", text);
    jw_object_end(w);
}

static struct use count_volumes(struct api *a)
{
    struct use u = {0};
    struct volume_info i;

    for (struct volume *v = volume_next(a->c.volumes, &principal_system, STR("")); v;
         v = volume_next(a->c.volumes, &principal_system, str_of(i.id))) {
        volume_info(v, &i);
        u.count++;
    }
    return u;
}

static void df_reply(struct df *d, const struct err *e)
{
    struct request *r = waiter_end(&d->waiter);
    const struct {
        const char *what;
        const struct use *use;
        const char *text;
    } rows[] = {
        {"database", &d->database, "files of the database; none if it is a server's"},
        {"output", &d->output, "output logs of commands; recordings are made from them"},
        {"files", &d->blobs, "files of the team's projects"},
        {"uploads", &d->spool, "uploads and images that are on their way"},
        {"images", &d->layers, "layers of images, each once"},
        {"sandboxes", &d->sandboxes, "files of sandboxes that run"},
    };
    struct use total = {0}, volumes = count_volumes(d->api);
    struct jw w;

    if (r && e->code != ERR_NONE)
        request_fail(r, e);
    if (r && e->code == ERR_NONE) {
        w = request_json(r);
        jw_object(&w);
        jw_key(&w, "use");
        jw_array(&w);
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
            write_use(&w, rows[i].what, rows[i].use, true, rows[i].text);
            total.count += rows[i].use->count;
            total.bytes += rows[i].use->bytes;
        }
        write_use(&w, "total", &total, true, "all rows above");
        write_use(&w, "events", &d->events, true, "part of the database");
        write_use(&w, "stopped", &(struct use){d->unmeasured, 0}, false,
                  "sandboxes that do not run: not measured");
        write_use(&w, "volumes", &volumes, false, "not measured");
        jw_array_end(&w);
        jw_kc(&w, "cursor", NULL);
        jw_object_end(&w);
        request_send_json(r, 0);
    }
    mem_free(d->state);
    mem_free(d);
}

static void df_next(struct df *d);

static void df_measured(void *arg, const struct driver_stats *s, const struct err *e)
{
    struct df *d = arg;

    if (e->code == ERR_CANCELLED) { /* the sandboxes are being closed: none may be looked up */
        df_reply(d, e);
        return;
    }
    if (e->code == ERR_NONE) {
        d->sandboxes.count++;
        d->sandboxes.bytes += s->disk_bytes;
    } else {
        d->unmeasured++;
    }
    df_next(d);
}

/* One after the other: a runtime answers many askers, and this one can wait. */
static void df_next(struct df *d)
{
    struct sandbox *s = sandbox_next(d->api->c.sandboxes, &principal_system, str_of(d->at));
    struct sandbox_info i;
    struct err none = {0};

    if (!s) {
        df_reply(d, &none);
        return;
    }
    sandbox_info(s, &i);
    (void)snprintf(d->at, sizeof d->at, "%s", i.id);
    sandbox_stats(s, df_measured, d);
}

static void df_weighed(void *arg, const struct events_weight *w, const struct err *e)
{
    struct df *d = arg;

    d->events = (struct use){w->count, w->bytes};
    if (e->code != ERR_NONE)
        df_reply(d, e);
    else
        df_next(d);
}

static void df_walked(uv_work_t *work, int status)
{
    struct df *d = CONTAINER_OF(work, struct df, work);

    if (status < 0 ||
        !d->waiter.r) { /* cancelled; or the client has left, maybe since holtd stops */
        df_reply(d, &(struct err){.code = ERR_CANCELLED});
        return;
    }
    events_weigh(d->api->c.events, 0, df_weighed, d);
}

static int layers_work(struct store_tx *tx, void *arg, struct err *e)
{
    struct df *d = arg;
    struct store_rows *rows;
    int more;

    if (tx_query(tx, "SELECT COUNT(*), COALESCE(SUM(bytes), 0) FROM layers", NO_PARAMS, &rows, e) <
        0)
        return -1;
    more = rows_step(rows, e);
    if (more > 0)
        d->layers = (struct use){rows_int(rows, 0), rows_int(rows, 1)};
    rows_end(rows);
    return more < 0 ? -1 : 0;
}

static void layers_weighed(void *arg, const struct err *e)
{
    struct df *d = arg;

    if (e->code != ERR_NONE)
        df_reply(d, e);
    else
        (void)uv_queue_work(store_loop(d->api->c.store), &d->work, df_walk, df_walked);
}

void df_run(struct request *r)
{
    struct df *d = xzalloc(sizeof *d);

    d->api = r->api;
    d->state = xstrdup(r->api->c.conf->state);
    request_wait(r, &d->waiter);
    store_read(r->api->c.store, layers_work, layers_weighed, d);
}
