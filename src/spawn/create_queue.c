/* create_queue: creates that wait for an empty image, or for cheaper ones. */
#include "base/mem.h"
#include "spawn/disk.h"
#include "spawn/sandbox.h"
#include "spawn/server.h"
#include "spawn/spare.h"

struct waiting {
    struct list node;
    uint32_t tag;
    struct buf packet;
};
static struct list waiting = {&waiting, &waiting}; /* for an image */
static struct list cold = {&cold, &cold}; /* without a fitting spare: one per turn of the loop */

/* The sizes of its images without duplicates; returns their number. */
static size_t image_sizes(const struct spawn_create *c, uint64_t sizes[SPAWN_MOUNTS_MAX + 1])
{
    struct wire_rows rows = c->mounts;
    struct spawn_mount_row row;
    size_t n = 0;

    if ((c->flags & SPAWN_UPPER_DISK) && !(c->flags & SPAWN_RESTART) && c->disk_bytes > 0)
        sizes[n++] = c->disk_bytes;
    while (wire_rows_next(&spawn_mount_row_layout, &rows, &row)) {
        bool known = row.kind != SPAWN_MOUNT_OWN || row.size == 0;

        for (size_t i = 0; !known && i < n; i++)
            known = sizes[i] == row.size;
        if (!known && n <= SPAWN_MOUNTS_MAX)
            sizes[n++] = row.size;
    }
    return n;
}

static int check_sizes(const struct spawn_create *c, struct err *e)
{
    uint64_t sizes[SPAWN_MOUNTS_MAX + 1];
    size_t n = image_sizes(c, sizes);
    struct wire_rows rows = c->mounts;
    struct spawn_mount_row row;

    if (n > DISK_SIZES_MAX) {
        (void)err_set(e, ERR_LIMIT, 0, "mounts of %zu different sizes", n);
        return err_limit_fixed(e, DISK_SIZES_MAX, "give some the same size");
    }
    while (wire_rows_next(&spawn_mount_row_layout, &rows, &row))
        if (row.kind == SPAWN_MOUNT_OWN && row.size > 0 && !disk_has_room(row.size))
            return err_set(e, ERR_INVALID, 0,
                           "mount '" STR_FMT "': %llu bytes are more than the size of the disk",
                           STR_ARG(row.target), (unsigned long long)row.size);
    return 0;
}

/* The first of its sizes that is not ready, or 0. */
static uint64_t lacking_size(const struct spawn_create *c)
{
    uint64_t sizes[SPAWN_MOUNTS_MAX + 1];
    size_t n = image_sizes(c, sizes);
    uint64_t lacks = 0;

    for (size_t i = 0; i < n; i++)
        if (!disk_is_ready(sizes[i]) && lacks == 0)
            lacks = sizes[i];
    return lacks;
}

/* The oldest first: later ones may need other sizes, which would push out its own. */
static void on_image_made(void)
{
    while (!list_is_empty(&waiting)) {
        struct waiting *w = LIST_ENTRY(waiting.next, struct waiting, node);
        struct spawn_msg m;
        struct err e = {0};
        int r = spawn_decode(buf_str(&w->packet), 0, SPAWN_HOST, &m, &e);

        if (r == 0 && lacking_size(&m.u.create) != 0) {
            disk_prepare(lacking_size(&m.u.create), on_image_made);
            return;
        }
        list_unlink(&w->node);
        if (r == 0)
            sandbox_create_now(&m.u.create, w->tag);
        else
            server_done(w->tag, &e);
        buf_done(&w->packet);
        mem_free(w);
    }
}

static int wait_in(struct list *list, const struct spawn_create *c, uint32_t tag, struct err *e)
{
    struct waiting *w = xzalloc(sizeof *w);

    if (sandbox_keep_packet(&w->packet, c, e) < 0) {
        mem_free(w);
        return -1;
    }
    w->tag = tag;
    list_push(list, &w->node);
    return 0;
}

static int wait_for_image(const struct spawn_create *c, uint32_t tag, struct err *e)
{
    bool first = list_is_empty(&waiting);

    if (wait_in(&waiting, c, tag, e) < 0)
        return -1;
    if (first)
        disk_prepare(lacking_size(c), on_image_made);
    return 0;
}

static void drop_waiting(struct waiting *w)
{
    list_unlink(&w->node);
    buf_done(&w->packet);
    mem_free(w);
}

void create_queue_forget(void)
{
    while (!list_is_empty(&waiting))
        drop_waiting(LIST_ENTRY(waiting.next, struct waiting, node));
    while (!list_is_empty(&cold))
        drop_waiting(LIST_ENTRY(cold.next, struct waiting, node));
}

static void cancel_in(struct list *list, struct str id)
{
    LIST_EACH (list, node) {
        struct waiting *w = LIST_ENTRY(node, struct waiting, node);
        struct spawn_msg m;
        struct err e;

        if (spawn_decode(buf_str(&w->packet), 0, SPAWN_HOST, &m, &e) < 0 ||
            !str_eq(m.u.create.id, id))
            continue;
        (void)err_set(&e, ERR_CANCELLED, 0, "sandbox '" STR_FMT "' was destroyed meanwhile",
                      STR_ARG(id));
        server_done(w->tag, &e);
        drop_waiting(w);
    }
}

void sandbox_cancel(struct str id)
{
    cancel_in(&waiting, id);
    cancel_in(&cold, id);
}

bool sandbox_cold_waits(void)
{
    return !list_is_empty(&cold);
}

void sandbox_cold_next(void)
{
    struct waiting *w;
    struct spawn_msg m;
    struct err e = {0};

    if (list_is_empty(&cold))
        return;
    w = LIST_ENTRY(cold.next, struct waiting, node);
    list_unlink(&w->node); /* the create may drop waiting ones */
    if (spawn_decode(buf_str(&w->packet), 0, SPAWN_HOST, &m, &e) == 0)
        sandbox_create_now(&m.u.create, w->tag);
    else
        server_done(w->tag, &e);
    buf_done(&w->packet);
    mem_free(w);
}

void sandbox_create(const struct spawn_create *c, uint32_t tag)
{
    struct err e = {0};

    if (sandbox_check_create(c, &e) < 0 || check_sizes(c, &e) < 0) {
        server_done(tag, &e);
        return;
    }
    if (lacking_size(c) != 0) {
        if (wait_for_image(c, tag, &e) < 0)
            server_done(tag, &e);
    } else if (spare_fits(c)) {
        sandbox_create_now(c, tag);
    } else if (wait_in(&cold, c, tag, &e) < 0) {
        server_done(tag, &e);
    }
}
