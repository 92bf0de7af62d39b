/* image_made: layers made of a sandbox's files, and images made of such layers. */
#include "core/image/image_internal.h"

#include "base/clock.h"
#include "base/mem.h"

/* --- a layer --- */

struct made {
    uv_work_t req;
    struct images *l;
    struct layer *y;
    char dir[ID_SIZE];
    image_layer_cb done;
    void *arg;
    struct err err;
    char id[ID_SIZE];
};

int images_make_dir(struct images *l, const char *prefix, char ret[ID_SIZE], struct err *e)
{
    return layers_make_dir(l, prefix, ret, e);
}

void images_drop_dir(struct images *l, const char *dir)
{
    layers_clear(l, dir);
}

int64_t images_layer_bytes(const struct images *l, struct str layer)
{
    const struct layer *y = map_get(&l->layers, layer);

    return y ? y->bytes : 0;
}

static void made_end(struct made *m, const struct err *e)
{
    m->done(m->arg, e->code == ERR_NONE ? m->id : NULL, e);
    mem_free(m);
}

static int insert_made(struct store_tx *tx, void *arg, struct err *e)
{
    return layer_insert(tx, ((struct made *)arg)->y, e);
}

static void made_inserted(void *arg, const struct err *e)
{
    struct made *m = arg;

    if (e->code != ERR_NONE)
        images_release(m->l, str_of(m->id));
    made_end(m, e);
}

/* Its directory has its name.  Held before the row is written, so that nothing removes it. */
static void made_stored(uv_work_t *req, int status)
{
    struct made *m = req->data;
    struct layer *there = layer_by_digest(m->l, m->y->digest);

    (void)status;
    if (m->err.code != ERR_NONE || m->l->closing) {
        mem_free(m->y);
        if (m->err.code == ERR_NONE)
            err_set(&m->err, ERR_CANCELLED, 0, "holtd is stopping");
        made_end(m, &m->err);
        return;
    }
    layers_clear(m->l, m->dir); /* the directory that was there before, if any */
    if (there) {
        mem_free(m->y);
        m->y = there;
    } else {
        map_set(&m->l->layers, str_of(m->y->id), m->y);
    }
    m->y->holds++;
    store_write(m->l->c.store, STORE_DURABLE, insert_made, made_inserted, m);
}

static void store_made(uv_work_t *req)
{
    struct made *m = req->data;

    (void)!layer_store(m->l, m->y, m->dir, &m->err);
}

/* The content is there already: the new directory is not needed. */
static void use_other(struct made *m, struct layer *there)
{
    layers_clear(m->l, m->dir);
    m->y = there;
    there->holds++;
    store_write(m->l->c.store, STORE_DURABLE, insert_made, made_inserted, m);
}

void images_add_layer(struct images *l, const struct image_layer *from, image_layer_cb done,
                      void *arg)
{
    struct made *m = xzalloc(sizeof *m);
    struct layer *y = xzalloc(sizeof *y), *there;

    (void)snprintf(y->digest, sizeof y->digest, "sha256:%s", from->digest);
    memcpy(y->diff_id, y->digest, sizeof y->diff_id);
    layer_id_of(y->digest, y->id);
    y->bytes = from->bytes;
    y->entries = from->entries;
    y->created_ms = clock_wall_ms();
    *m = (struct made){.l = l, .y = y, .done = done, .arg = arg};
    memcpy(m->id, y->id, sizeof m->id);
    (void)snprintf(m->dir, sizeof m->dir, "%s", from->dir);
    there = layer_by_digest(l, y->digest);
    if (there) {
        mem_free(y);
        use_other(m, there);
        return;
    }
    m->req.data = m;
    (void)uv_queue_work(l->c.loop, &m->req, store_made, made_stored);
}

/* --- an image --- */

struct commit {
    struct image_job j;
};

static void commit_gone(struct image_job *j)
{
    mem_free(CONTAINER_OF(j, struct commit, j));
}

int images_check_name(struct str name, struct err *e)
{
    AUTO(mem_free) char *normal = NULL;

    return image_normal_name(name, &normal, e);
}

int image_from_layers(struct images *l, const struct image_commit_spec *s,
                      const struct principal *by, image_cb done, void *arg, struct err *e)
{
    AUTO(mem_free) char *name = NULL;
    const struct layer *top = NULL;
    struct commit *c;

    if (jobs_may_start(l, e) < 0 || image_normal_name(s->name, &name, e) < 0)
        return -1;
    for (size_t i = 0; i < s->layer_count; i++)
        if (!(top = map_get(&l->layers, str_of(s->layers[i]))))
            return err_set(e, ERR_GONE, 0, "layer '%s' is not there any more", s->layers[i]);
    if (!top)
        return err_set(e, ERR_INVALID, 0, "there is nothing to commit");
    c = xzalloc(sizeof *c);
    c->j.done = done;
    c->j.arg = arg;
    c->j.gone = commit_gone;
    job_start(&c->j, l, s->source ? s->source : "commit", by);
    mem_free(c->j.i->name);
    c->j.i->name = TAKE(name);
    c->j.i->on_host = s->on_host;
    if (s->defaults.n > 0) {
        mem_free(c->j.i->defaults);
        c->j.i->defaults = str_dup(s->defaults);
    }
    (void)snprintf(c->j.digest, sizeof c->j.digest, "%s", top->digest);
    for (size_t i = 0; i < s->layer_count; i++)
        job_use_layer(&c->j, map_get(&l->layers, str_of(s->layers[i])));
    job_publish(&c->j);
    return 0;
}
