/* restore: brings a sandbox back to a snapshot, in place. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/point.h"
#include "core/snapshot/snapshot_internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#define UNDO_PREFIX "mv" /* of the directory: unknown ones are not removed at a start */

/* Restore.
 *
 *   row of the restore ─▶ stop ─▶ its files go to a layer, its base changes ─▶ start
 *                      ─▶ digest, layer ─▶ row of the automatic snapshot, the restore's is deleted
 *
 * A crash before the files went: the row is dropped, and nothing has happened (or, if the sandbox
 * had been stopped, it is finished).  After: it is finished. */
struct restore {
    struct list link;
    struct snapshots *l;
    struct sandbox *s; /* NULL: not found yet, after a restart */
    char sandbox[ID_SIZE], target[ID_SIZE], layer[ID_SIZE], undo[ID_SIZE];
    bool was_up;
    bool left; /* by a holtd of before: nobody goes on with it until it is recovered */
    char actor[64];
    int64_t created_ms;
    struct snapshot *kept; /* the automatic one; NULL: its sandbox is gone */
    char *base;            /* what its layers are, without its own; JSON */
    bool on_host;
    char parent[ID_SIZE];
    snapshot_cb done; /* NULL: nobody waits */
    void *arg;
};

struct undone {
    struct restore *r;
    struct err why;
};

/* --- the row --- */

#define HAS(member, kind, ...) COLUMN(struct restore, member, kind, __VA_ARGS__)
static const struct column restore_column_list[] = {
    HAS(sandbox, COLUMN_CHARS, .flags = COLUMN_KEY),
    HAS(target, COLUMN_CHARS),
    HAS(layer, COLUMN_CHARS),
    HAS(undo, COLUMN_CHARS),
    HAS(base, COLUMN_TEXT),
    HAS(on_host, COLUMN_BOOL),
    HAS(parent, COLUMN_CHARS),
    HAS(was_up, COLUMN_BOOL),
    HAS(actor, COLUMN_CHARS),
    HAS(created_ms, COLUMN_INT),
};
static struct columns restore_columns = {.table = "restores",
                                         .list = restore_column_list,
                                         .count = ARRAY_LEN(restore_column_list),
                                         .order = "ORDER BY sandbox"};

static struct restore *restore_new(struct snapshots *l)
{
    struct restore *r = xzalloc(sizeof *r);

    r->l = l;
    list_push(&l->restores, &r->link);
    return r;
}

static void restore_free(struct restore *r)
{
    list_unlink(&r->link);
    sandbox_unref(r->s);
    mem_free(r->base);
    mem_free(r);
}

void restores_free(struct snapshots *l)
{
    LIST_EACH (&l->restores, node)
        restore_free(LIST_ENTRY(node, struct restore, link));
}

static int load_one(void *arg, const struct store_rows *rows, struct err *e)
{
    struct restore *r = restore_new(arg);

    r->left = true;
    return columns_load(&restore_columns, rows, r, e);
}

int restores_load(struct snapshots *l, struct store_tx *tx, struct err *e)
{
    return columns_each(tx, &restore_columns, load_one, l, e);
}

static int insert_work(struct store_tx *tx, void *arg, struct err *e)
{
    return columns_insert(tx, &restore_columns, arg, e);
}

static int delete_work(struct store_tx *tx, void *arg, struct err *e)
{
    return columns_erase(tx, &restore_columns, ((struct undone *)arg)->r->sandbox, e);
}

bool restore_uses(const struct snapshots *l, const char *snapshot)
{
    LIST_EACH (&l->restores, node) {
        const struct restore *r = LIST_ENTRY(node, struct restore, link);

        if (strcmp(r->target, snapshot) == 0)
            return true;
    }
    return false;
}

/* --- the end --- */

static void restore_end(struct restore *r, const struct err *e)
{
    bool ready = r->kept && e->code == ERR_NONE && r->kept->state == SNAPSHOT_READY;

    if (r->done)
        r->done(r->arg, ready ? r->kept : NULL, e);
    else if (e->code != ERR_NONE)
        log_warn("a restore could not be finished", LOG_C("sandbox", r->sandbox), LOG_E(e));
    if (r->kept && !ready)
        snapshot_drop(r->kept);
    restore_free(r);
}

static void row_deleted(void *arg, const struct err *e)
{
    AUTO(mem_free) struct undone *u = arg;

    images_drop_dir(u->r->l->c.images, u->r->layer);
    restore_end(u->r, u->why.code == ERR_NONE ? e : &u->why);
}

/* Nothing has been moved: there is nothing to undo but the row. */
static void restore_undo(struct restore *r, const struct err *why)
{
    struct undone *u = xzalloc(sizeof *u);

    *u = (struct undone){r, *why};
    store_write(r->l->c.store, STORE_DURABLE, delete_work, row_deleted, u);
}

/* --- what was there becomes a snapshot --- */

static void kept_inserted(void *arg, const struct err *e)
{
    struct restore *r = arg;
    if (e->code == ERR_NONE) {
        r->kept->state = SNAPSHOT_READY;
        snapshot_retain(r->l, r->kept->sandbox);
    }
    restore_end(r, e);
}

static void layer_added(void *arg, const char *id, const struct err *e)
{
    struct restore *r = arg;

    point_reached("restore layer added");
    if (e->code != ERR_NONE) {
        restore_end(r, e);
        return;
    }
    snapshot_set_top(r->kept, id);
    images_release(r->l->c.images, str_of(id));
    snapshot_insert(r->kept, r->actor, kept_inserted, r);
}

static void layer_hashed(void *arg, const struct driver_snapped *d, const struct err *e)
{
    struct restore *r = arg;

    if (e->code != ERR_NONE) {
        restore_end(r, e);
        return;
    }
    r->kept->bytes = d->bytes;
    r->kept->entries = d->entries;
    mem_free(r->kept->digest);
    r->kept->digest = xasprintf("sha256:%s", d->digest);
    images_add_layer(
        r->l->c.images,
        &(struct image_layer){
            .dir = r->layer, .digest = d->digest, .bytes = d->bytes, .entries = d->entries},
        layer_added, r);
}

static void keep_old_files(struct restore *r)
{
    point_reached("restore started");
    sandbox_hash_layer(r->s, r->layer, layer_hashed, r);
}

static void started(void *arg, struct sandbox *s, const struct err *e)
{
    struct restore *r = arg;

    (void)s;
    if (e->code != ERR_NONE)
        log_warn("a restored sandbox could not be started", LOG_C("sandbox", r->sandbox), LOG_E(e));
    keep_old_files(r);
}

/* --- the change --- */

static void rebased(void *arg, struct sandbox *s, const struct err *e)
{
    struct restore *r = arg;

    if (e->code != ERR_NONE) {
        restore_undo(r, e);
        return;
    }
    point_reached("restore moved");
    if (r->was_up)
        sandbox_start(s, &principal_system, started, r);
    else
        keep_old_files(r);
}

static void change_base(struct restore *r)
{
    const struct snapshot *to = snapshot_by_id(r->l, str_of(r->target));
    struct principal by = principal_system;
    struct err e = {0};

    if (!to) {
        err_set(&e, ERR_GONE, 0, "snapshot '%s' is not there any more", r->target);
        restore_undo(r, &e);
        return;
    }
    (void)snprintf(by.actor, sizeof by.actor, "%s", r->actor);
    sandbox_rebase(r->s, r->layer,
                   &(struct sandbox_base){.layers = to->layers,
                                          .layer_count = to->layer_count,
                                          .on_host = to->on_host,
                                          .snapshot = to->id},
                   &by, rebased, r);
}

static void stopped(void *arg, struct sandbox *s, const struct err *e)
{
    struct restore *r = arg;

    (void)s;
    point_reached("restore stopped");
    if (e->code != ERR_NONE)
        restore_undo(r, e);
    else
        change_base(r);
}

static void row_inserted(void *arg, const struct err *e)
{
    struct restore *r = arg;
    struct principal by = principal_system;

    if (e->code != ERR_NONE) {
        images_drop_dir(r->l->c.images, r->layer);
        restore_end(r, e);
        return;
    }
    point_reached("restore row");
    (void)snprintf(by.actor, sizeof by.actor, "%s", r->actor);
    if (r->was_up)
        sandbox_stop(r->s, 0, true, &by, stopped, r);
    else
        change_base(r);
}

/* What is replaced, described before its base changes. */
static void describe_old(struct restore *r)
{
    AUTO(buf_done) struct buf base = {0};

    r->kept = snapshot_of(r->l, r->s, r->undo, &(struct snapshot_spec){.automatic = true});
    snapshot_put_layers(r->kept, &base);
    r->base = str_dup(buf_str(&base));
    r->on_host = r->kept->on_host;
    memcpy(r->parent, r->kept->parent, sizeof r->parent);
}

/* --- requests --- */

static bool is_up(const struct sandbox_info *i)
{
    return i->state == SANDBOX_RUNNING || i->state == SANDBOX_PAUSED;
}

static int check_restore(const struct snapshot *to, const struct sandbox_info *i,
                         const struct principal *by, struct err *e)
{
    LIST_EACH (&to->all->restores, node) {
        const struct restore *r = LIST_ENTRY(node, struct restore, link);

        if (strcmp(r->sandbox, i->id) == 0)
            return err_set(e, ERR_CONFLICT, 0, "sandbox '%s' is being restored already", i->id);
    }
    if (principal_is_inside(by))
        return err_set(e, ERR_FORBIDDEN, 0, "a sandbox cannot restore itself");
    if (!str_eq_c(i->image, to->image)) {
        err_set(e, ERR_CONFLICT, 0,
                "snapshot '%s' is of image '%s', but sandbox '%s' of '" STR_FMT "'", to->id,
                to->image, i->id, STR_ARG(i->image));
        return err_hint(e, "make a new sandbox of it: holt fork %s", to->id);
    }
    if (!is_up(i) && i->state != SANDBOX_STOPPED && i->state != SANDBOX_FAILED)
        return err_set(e, ERR_CONFLICT, 0, "sandbox '%s' is between two states", i->id);
    return 0;
}

int snapshot_restore(struct snapshot *to, struct sandbox *s, const struct snapshot_call *c,
                     struct err *e)
{
    struct snapshots *l = to->all;
    char layer[ID_SIZE];
    struct sandbox_info i;
    struct restore *r;

    sandbox_info(s, &i);
    if (check_restore(to, &i, c->by, e) < 0 ||
        images_make_dir(l->c.images, UNDO_PREFIX, layer, e) < 0)
        return err_wrap(e, "restore sandbox '%s'", i.id);
    r = restore_new(l);
    r->s = sandbox_ref(s);
    r->was_up = is_up(&i);
    r->done = c->done;
    r->arg = c->arg;
    r->created_ms = clock_wall_ms();
    memcpy(r->layer, layer, sizeof r->layer);
    id_make("sn", r->undo);
    (void)snprintf(r->sandbox, sizeof r->sandbox, "%s", i.id);
    (void)snprintf(r->target, sizeof r->target, "%s", to->id);
    (void)snprintf(r->actor, sizeof r->actor, "%s", c->by->actor);
    describe_old(r);
    store_write(l->c.store, STORE_DURABLE, insert_work, row_inserted, r);
    return 0;
}

/* --- after a restart --- */

static bool has_moved(const struct restore *r)
{
    AUTO(mem_free) char *path = xasprintf("%s/layers/%s/fs", r->l->c.state, r->layer);

    return access(path, F_OK) == 0;
}

/* At start-up: from here on the layers of before are held again. */
static int find_again(struct restore *r, struct err *e)
{
    struct err none = {0};
    struct sandbox *s =
        sandbox_find(r->l->c.sandboxes, &principal_system, str_of(r->sandbox), &none);

    if (!s)
        return 0;
    r->s = sandbox_ref(s);
    r->kept = snapshot_of(r->l, s, r->undo, &(struct snapshot_spec){.automatic = true});
    memcpy(r->kept->parent, r->parent, sizeof r->parent);
    r->kept->on_host = r->on_host;
    return snapshot_set_layers(r->kept, str_of(r->base), e);
}

static bool is_of_restore(const struct snapshots *l, const char *dir)
{
    LIST_EACH (&l->restores, node)
        if (strcmp(LIST_ENTRY(node, struct restore, link)->layer, dir) == 0)
            return true;
    return false;
}

/* Of restores that were cut off between their directory and their row: nothing is in them yet. */
static void remove_empty_dirs(const struct snapshots *l)
{
    AUTO(mem_free) char *path = xasprintf("%s/layers", l->c.state);
    DIR *d = opendir(path);
    const struct dirent *en;

    while (d && (en = readdir(d)))
        if (str_starts(str_of(en->d_name), STR(UNDO_PREFIX "_")) && !is_of_restore(l, en->d_name))
            (void)unlinkat(dirfd(d), en->d_name, AT_REMOVEDIR);
    if (d)
        (void)closedir(d);
}

int restores_open(struct snapshots *l, struct err *e)
{
    LIST_EACH (&l->restores, node)
        if (find_again(LIST_ENTRY(node, struct restore, link), e) < 0)
            return -1;
    remove_empty_dirs(l);
    return 0;
}

static void recover(struct restore *r)
{
    struct err e = {0};
    struct sandbox_info i;

    if (!r->s) {
        restore_undo(r, &e);
        return;
    }
    sandbox_info(r->s, &i);
    log_info("finishing a restore", LOG_C("sandbox", r->sandbox));
    if (!is_up(&i)) {
        change_base(r);
    } else if (has_moved(r)) {
        keep_old_files(r);
    } else {
        restore_undo(r, &e);
    }
}

void restores_recover(struct snapshots *l)
{
    LIST_EACH (&l->restores, node) {
        struct restore *r = LIST_ENTRY(node, struct restore, link);

        if (!r->left)
            continue; /* begun since the start */
        r->left = false;
        recover(r);
    }
}
