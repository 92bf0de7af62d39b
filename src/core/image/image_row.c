/* image_row: images and layers as rows and events. */
#include "core/image/image_internal.h"

#include "base/mem.h"
#include "core/columns.h"
#include "proto/json.h"

/* --- reading --- */

static const struct column layer_column_list[] = {
    COLUMN(struct layer, id, COLUMN_CHARS, .flags = COLUMN_KEY),
    COLUMN(struct layer, digest, COLUMN_CHARS, .flags = COLUMN_ONCE),
    COLUMN(struct layer, diff_id, COLUMN_CHARS, .flags = COLUMN_ONCE),
    COLUMN(struct layer, bytes, COLUMN_INT, .flags = COLUMN_ONCE),
    COLUMN(struct layer, entries, COLUMN_INT, .flags = COLUMN_ONCE),
    COLUMN(struct layer, created_ms, COLUMN_INT, .flags = COLUMN_ONCE),
};
static struct columns layer_columns = {.table = "layers",
                                       .list = layer_column_list,
                                       .count = ARRAY_LEN(layer_column_list),
                                       .order = "ORDER BY id"};

static int load_layer(void *arg, const struct store_rows *rows, struct err *e)
{
    struct images *l = arg;
    AUTO(mem_free) struct layer *y = xzalloc(sizeof *y);

    if (columns_load(&layer_columns, rows, y, e) < 0)
        return -1;
    if (!oci_digest_is_valid(str_of(y->digest)) || !oci_digest_is_valid(str_of(y->diff_id)))
        return err_set(e, ERR_INTERNAL, 0, "layer row '%s' is damaged", y->id);
    map_set(&l->layers, str_of(y->id), y);
    y = NULL;
    return 0;
}

static int load_image_layers(struct images *l, struct image *i, struct store_tx *tx, struct err *e)
{
    struct layer *layers[OCI_LAYERS_MAX];
    struct store_rows *rows;
    size_t n = 0;
    int r;

    if (tx_query(tx, "SELECT layer FROM image_layers WHERE image = :image ORDER BY position",
                 PARAMS(P_C("image", i->id)), &rows, e) < 0)
        return -1;
    while ((r = rows_step(rows, e)) > 0) {
        struct layer *y = map_get(&l->layers, rows_text(rows, 0));

        if (!y || n == OCI_LAYERS_MAX)
            return err_set(e, ERR_INTERNAL, 0, "image row '%s' is damaged: a layer has no row",
                           i->id);
        layers[n++] = y;
    }
    rows_end(rows);
    if (r == 0)
        image_set_layers(i, layers, n);
    return r;
}

#define HAS(member, kind, ...) COLUMN(struct image, member, kind, __VA_ARGS__)
static const struct column image_column_list[] = {
    HAS(id, COLUMN_CHARS, .flags = COLUMN_KEY),
    HAS(name, COLUMN_TEXT),
    HAS(source, COLUMN_TEXT),
    HAS(digest, COLUMN_TEXT),
    HAS(os, COLUMN_TEXT),
    HAS(arch, COLUMN_TEXT),
    HAS(defaults, COLUMN_TEXT),
    HAS(created_ms, COLUMN_INT),
    HAS(owner, COLUMN_CHARS),
    HAS(tenant, COLUMN_CHARS),
    HAS(on_host, COLUMN_BOOL),
};
static struct columns image_columns = {.table = "images",
                                       .list = image_column_list,
                                       .count = ARRAY_LEN(image_column_list),
                                       .prefix = "im",
                                       .order = "ORDER BY id"};

static int load_image(void *arg, const struct store_rows *rows, struct err *e)
{
    AUTO(image_free) struct image *i = image_new("");

    if (columns_load(&image_columns, rows, i, e) < 0)
        return -1;
    i->state = IMAGE_READY;
    images_add(arg, TAKE(i));
    return 0;
}

static int load_images(struct images *l, struct store_tx *tx, struct err *e)
{
    int r = columns_each(tx, &image_columns, load_image, l, e);

    for (size_t k = 0; r == 0 && k < l->count; k++)
        r = load_image_layers(l, l->sorted[k], tx, e);
    return r;
}

static int load_rows(struct store_tx *tx, void *arg, struct err *e)
{
    return columns_each(tx, &layer_columns, load_layer, arg, e) < 0 || load_images(arg, tx, e) < 0
               ? -1
               : 0;
}

int images_load(struct images *l, struct err *e)
{
    return store_now(l->c.store, load_rows, l, e);
}

/* --- writing --- */

void image_write_event(struct store_tx *tx, const char *type, const struct image *i,
                       const char *actor)
{
    AUTO(buf_done) struct buf data = {0};
    struct jw w = {.to = &data};
    char object[ID_SIZE + 8];

    (void)snprintf(object, sizeof object, "image/%s", i->id);
    jw_object(&w);
    jw_kc(&w, "id", i->id);
    jw_kc(&w, "name", i->name);
    jw_kc(&w, "source", i->source);
    jw_kc(&w, "digest", i->digest);
    jw_kc(&w, "state", image_state_name(i->state));
    jw_kc(&w, "phase", i->phase);
    jw_kint(&w, "done_bytes", i->done_bytes);
    jw_kint(&w, "total_bytes", i->total_bytes);
    jw_key(&w, "layers");
    jw_array(&w);
    for (size_t k = 0; k < i->layer_count; k++)
        jw_c(&w, i->layers[k]->digest);
    jw_array_end(&w);
    if (i->failure[0])
        jw_kc(&w, "failure", i->failure);
    jw_object_end(&w);
    tx_event(tx,
             &(struct event_spec){
                 .type = type, .object = object, .actor = actor, .data = buf_str(&data)},
             NULL);
}

int layer_insert(struct store_tx *tx, const struct layer *y, struct err *e)
{
    return columns_save(tx, &layer_columns, y, e);
}

static int insert_layer(struct store_tx *tx, const struct image *i, size_t k, struct err *e)
{
    const struct layer *y = i->layers[k];

    if (layer_insert(tx, y, e) < 0)
        return -1;
    return tx_run(tx,
                  "INSERT INTO image_layers (image, position, layer) VALUES (:image, :at, :layer)",
                  PARAMS(P_C("image", i->id), P_INT("at", (int64_t)k), P_C("layer", y->id)), e) < 0
               ? -1
               : 0;
}

static int insert_image(struct store_tx *tx, void *arg, struct err *e)
{
    const struct image_job *j = arg;
    const struct image *i = j->i;

    if (tx_run(tx,
               "UPDATE images SET name = '' WHERE name = :name AND name <> '' AND tenant = :tenant",
               PARAMS(P_C("name", i->name), P_C("tenant", i->tenant)), e) < 0)
        return -1;
    if (columns_insert(tx, &image_columns, i, e) < 0)
        return -1;
    for (size_t k = 0; k < i->layer_count; k++)
        if (insert_layer(tx, i, k, e) < 0)
            return -1;
    image_write_event(tx, "image.created", i, j->by.actor);
    return 0;
}

void image_commit(struct image_job *j, store_done done)
{
    store_write(j->l->c.store, STORE_DURABLE, insert_image, done, j);
}

/* --- removing --- */

struct remove_job {
    struct images *l;
    struct image *i;
    char actor[64];
    store_done done;
    void *arg;
};

static int delete_image(struct store_tx *tx, void *arg, struct err *e)
{
    const struct remove_job *r = arg;

    if (tx_run(tx, "DELETE FROM image_layers WHERE image = :id", PARAMS(P_C("id", r->i->id)), e) <
            0 ||
        columns_erase(tx, &image_columns, r->i->id, e) < 0)
        return -1;
    image_write_event(tx, "image.removed", r->i, r->actor);
    return 0;
}

static void image_deleted(void *arg, const struct err *e)
{
    struct remove_job *r = arg;
    struct image *i = r->i;

    i->removing = false;
    if (e->code == ERR_NONE) {
        for (size_t k = 0; k < i->layer_count; k++) {
            assert(i->layers[k]->images > 0);
            i->layers[k]->images--;
        }
        for (size_t k = 0; k < i->layer_count; k++) {
            bool again = false; /* an image may have a layer twice */

            for (size_t m = k + 1; m < i->layer_count; m++)
                again |= i->layers[m] == i->layers[k];
            if (!again)
                layer_unneeded(r->l, i->layers[k]);
        }
        images_drop(r->l, i);
    }
    r->done(r->arg, e);
    mem_free(r);
}

void image_remove(struct images *l, struct str ref, const struct principal *by, store_done done,
                  void *arg)
{
    struct err e = {0};
    struct image *i;
    struct remove_job *r;

    if (str_eq_c(ref, "host")) {
        err_set(&e, ERR_CONFLICT, 0,
                "the image 'host' is this machine itself: it cannot be removed");
        done(arg, &e);
        return;
    }
    i = image_find(l, by, IMAGE_CHANGE, ref, &e);
    if (i && i->state == IMAGE_WORKING) {
        /* Ends the job; the row stays as failed, so that waiting clients see the reason. */
        err_set(&e, ERR_CANCELLED, 0, "image '%s' was removed during its pull or import", i->id);
        job_end(i->job, &e);
        done(arg, &(struct err){0});
        return;
    }
    if (!i) {
        done(arg, &e);
        return;
    }
    r = xzalloc(sizeof *r);
    *r = (struct remove_job){.l = l, .i = i, .done = done, .arg = arg};
    (void)snprintf(r->actor, sizeof r->actor, "%s", by->actor);
    i->removing = true;
    store_write(l->c.store, STORE_DURABLE, delete_image, image_deleted, r);
}
