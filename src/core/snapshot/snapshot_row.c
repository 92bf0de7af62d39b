/* snapshot_row: snapshots as rows and events. */
#include "base/mem.h"
#include "core/event/event.h"
#include "core/snapshot/snapshot_internal.h"
#include "proto/json.h"

void snapshot_put_layers(const struct snapshot *s, struct buf *to)
{
    struct jw w = {.to = to};

    jw_array(&w);
    for (size_t i = 0; i < s->layer_count; i++)
        jw_c(&w, s->layers[i]);
    jw_array_end(&w);
}

static bool put_layers(const void *object, struct buf *to)
{
    snapshot_put_layers(object, to);
    return true;
}

static int get_layers(void *object, struct str text, struct err *e)
{
    struct snapshot *s = object;
    AUTO(json_decref) json_t *list = NULL;
    size_t n;
    char *at;

    if (json_read(text, &list, e) < 0)
        return -1;
    n = json_array_size(list);
    s->layers = xzalloc((n + 1) * sizeof *s->layers + n * ID_SIZE);
    at = (char *)(s->layers + n + 1);
    for (size_t i = 0; i < n; i++, at += ID_SIZE) {
        const char *id = json_string_value(json_array_get(list, i));

        (void)snprintf(at, ID_SIZE, "%s", id ? id : "");
        s->layers[i] = at;
    }
    s->layer_count = n;
    return 0;
}

int snapshot_set_layers(struct snapshot *s, struct str json, struct err *e)
{
    AUTO(mem_free) const char **old = s->layers;
    size_t n = s->layer_count;

    if (get_layers(s, json, e) < 0) {
        s->layers = TAKE(old);
        return -1;
    }
    for (size_t i = 0; i < s->layer_count; i++)
        images_hold(s->all->c.images, str_of(s->layers[i]));
    for (size_t i = 0; i < n; i++)
        images_release(s->all->c.images, str_of(old[i]));
    return 0;
}

#define HAS(member, kind, ...) COLUMN(struct snapshot, member, kind, __VA_ARGS__)
static const struct column snapshot_column_list[] = {
    HAS(id, COLUMN_CHARS, .flags = COLUMN_KEY),
    HAS(name, COLUMN_TEXT),
    HAS(sandbox, COLUMN_CHARS),
    HAS(sandbox_name, COLUMN_TEXT),
    HAS(owner, COLUMN_CHARS),
    HAS(tenant, COLUMN_TEXT),
    HAS(parent, COLUMN_CHARS),
    HAS(image, COLUMN_TEXT),
    HAS(runtime, COLUMN_TEXT),
    HAS(spec, COLUMN_TEXT),
    {.name = "layers", .type = COLUMN_MADE, .put = put_layers, .get = get_layers},
    HAS(on_host, COLUMN_BOOL),
    HAS(host, COLUMN_TEXT),
    HAS(labels, COLUMN_TEXT),
    HAS(digest, COLUMN_TEXT),
    HAS(bytes, COLUMN_INT),
    HAS(entries, COLUMN_INT),
    HAS(frozen_us, COLUMN_INT),
    HAS(automatic, COLUMN_BOOL),
    HAS(created_ms, COLUMN_INT),
};
static struct columns snapshot_columns = {.table = "snapshots",
                                          .list = snapshot_column_list,
                                          .count = ARRAY_LEN(snapshot_column_list),
                                          .order = "ORDER BY id",
                                          .prefix = "sn"};

/* --- reading --- */

static int load_one(void *arg, const struct store_rows *rows, struct err *e)
{
    AUTO(snapshot_free) struct snapshot *s = xzalloc(sizeof *s);

    if (columns_load(&snapshot_columns, rows, s, e) < 0)
        return -1;
    s->state = SNAPSHOT_READY;
    snapshot_read_defaults(s);
    snapshot_list(arg, TAKE(s));
    return 0;
}

static int load_work(struct store_tx *tx, void *arg, struct err *e)
{
    return columns_each(tx, &snapshot_columns, load_one, arg, e) < 0 ? -1
                                                                     : restores_load(arg, tx, e);
}

int snapshots_load(struct snapshots *l, struct err *e)
{
    return store_now(l->c.store, load_work, l, e);
}

/* --- writing --- */

struct row_job { /* the snapshot does not change meanwhile, and is not freed */
    struct snapshot *s;
    char actor[64];
    store_done done;
    void *arg;
};

/* Without its spec: in it is an environment. */
static void put_event(struct store_tx *tx, const struct row_job *j, const char *type)
{
    AUTO(buf_done) struct buf data = {0};
    struct jw w = {.to = &data};
    const struct snapshot *s = j->s;
    char object[ID_SIZE + 16];

    (void)snprintf(object, sizeof object, "snapshot/%s", s->id);
    jw_object(&w);
    jw_kc(&w, "id", s->id);
    jw_kc(&w, "name", s->name);
    jw_kc(&w, "sandbox", s->sandbox);
    jw_kc(&w, "parent", s->parent);
    jw_kc(&w, "owner", s->owner);
    jw_kc(&w, "tenant", s->tenant);
    jw_kc(&w, "digest", s->digest);
    jw_kint(&w, "bytes", s->bytes);
    jw_kint(&w, "entries", s->entries);
    jw_kint(&w, "frozen_us", s->frozen_us);
    jw_kbool(&w, "automatic", s->automatic);
    jw_ktime(&w, "created_at", s->created_ms);
    jw_object_end(&w);
    tx_event(tx,
             &(struct event_spec){
                 .type = type, .object = object, .actor = j->actor, .data = buf_str(&data)},
             NULL);
}

static int insert_work(struct store_tx *tx, void *arg, struct err *e)
{
    const struct row_job *j = arg;

    if (columns_insert(tx, &snapshot_columns, j->s, e) < 0 ||
        tx_run(tx, "DELETE FROM restores WHERE undo = :id", PARAMS(P_C("id", j->s->id)), e) < 0)
        return -1;
    put_event(tx, j, "snapshot.created");
    return 0;
}

static int delete_work(struct store_tx *tx, void *arg, struct err *e)
{
    const struct row_job *j = arg;

    if (columns_erase(tx, &snapshot_columns, j->s->id, e) < 0)
        return -1;
    put_event(tx, j, "snapshot.removed");
    return 0;
}

static void row_written(void *arg, const struct err *e)
{
    struct row_job *j = arg;

    j->done(j->arg, e);
    mem_free(j);
}

static struct row_job *job_of(struct snapshot *s, const char *actor, store_done done, void *arg)
{
    struct row_job *j = xzalloc(sizeof *j);

    *j = (struct row_job){.s = s, .done = done, .arg = arg};
    (void)snprintf(j->actor, sizeof j->actor, "%s", actor);
    return j;
}

void snapshot_insert(struct snapshot *s, const char *actor, store_done done, void *arg)
{
    store_write(s->all->c.store, STORE_DURABLE, insert_work, row_written,
                job_of(s, actor, done, arg));
}

void snapshot_delete(struct snapshot *s, const char *actor, store_done done, void *arg)
{
    store_write(s->all->c.store, STORE_DURABLE, delete_work, row_written,
                job_of(s, actor, done, arg));
}
