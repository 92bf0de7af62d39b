/* image_job: a pull or import in progress: progress, layers, commit. */
#include "core/image/image_internal.h"

#include "base/clock.h"
#include "base/enc.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "proto/json.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define FAILED_KEPT 32 /* failed images kept, so that people see the reason */
#define FAILED_KEPT_MS (3600LL * 1000)
#define PROGRESS_MS 1000 /* between two progress events */

/* --- the start --- */

/* Drops the oldest first: those older than an hour, and those beyond the limit. */
static void drop_old_failures(struct images *l)
{
    int64_t since = clock_wall_ms() - FAILED_KEPT_MS;
    size_t failed = 0;

    for (size_t k = 0; k < l->count; k++)
        failed += l->sorted[k]->state == IMAGE_FAILED;
    for (size_t k = 0; k < l->count;) {
        struct image *i = l->sorted[k];

        if (i->state == IMAGE_FAILED && !i->removing &&
            (failed >= FAILED_KEPT || i->created_ms < since)) {
            images_drop(l, i);
            failed--;
        } else {
            k++;
        }
    }
}

int jobs_may_start(const struct images *l, struct err *e)
{
    if (l->closing)
        return err_set(e, ERR_UNAVAILABLE, 0, "holtd is stopping");
    if ((int64_t)l->job_count >= l->c.jobs_max) {
        err_set(e, ERR_LIMIT, 0, "%zu pulls and imports are running already", l->job_count);
        return err_limit_fixed(e, l->c.jobs_max, "wait until one has ended");
    }
    if ((int64_t)l->count >= l->c.images_max) {
        err_set(e, ERR_LIMIT, 0, "there are %zu images already", l->count);
        return err_limit(e, "images_max", l->c.images_max, "remove some (holt image rm)");
    }
    return space_ask(l->c.space, 0, e);
}

void job_start(struct image_job *j, struct images *l, const char *source,
               const struct principal *by)
{
    drop_old_failures(l);
    j->l = l;
    j->i = image_new(NULL);
    j->i->created_ms = clock_wall_ms();
    j->i->job = j;
    mem_free(j->i->source);
    j->i->source = xstrdup(source);
    j->by = *by;
    j->by.token = NULL;
    (void)snprintf(j->i->owner, sizeof j->i->owner, "%s", principal_owner(by));
    (void)snprintf(j->i->tenant, sizeof j->i->tenant, "%s", by->tenant);
    list_push(&l->jobs, &j->link);
    l->job_count++;
    images_add(l, j->i);
}

/* --- progress --- */

struct told {
    struct image i; /* owns copies of the texts */
    char actor[64];
};

static int tell_progress(struct store_tx *tx, void *arg, struct err *e)
{
    struct told *t = arg;

    (void)e;
    image_write_event(tx, "image.progress", &t->i, t->actor);
    return 0;
}

static void progress_told(void *arg, const struct err *e)
{
    struct told *t = arg;

    if (e->code != ERR_NONE)
        log_debug("a progress event could not be written", LOG_E(e));
    mem_free(t->i.name);
    mem_free(t->i.source);
    mem_free(t->i.digest);
    mem_free(t);
}

static void tell(struct image_job *j)
{
    struct told *t = xzalloc(sizeof *t);

    j->told_ms = clock_mono_ms();
    t->i.state = j->i->state;
    memcpy(t->i.id, j->i->id, sizeof t->i.id);
    memcpy(t->i.failure, j->i->failure, sizeof t->i.failure);
    memcpy(t->actor, j->by.actor, sizeof t->actor);
    t->i.name = xstrdup(j->i->name);
    t->i.source = xstrdup(j->i->source);
    t->i.digest = xstrdup(j->i->digest);
    t->i.phase = j->i->phase; /* a literal */
    t->i.done_bytes = j->i->done_bytes;
    t->i.total_bytes = j->i->total_bytes;
    store_write(j->l->c.store, STORE_RELAXED, tell_progress, progress_told, t);
}

void job_phase(struct image_job *j, const char *phase, int64_t total)
{
    j->i->phase = phase;
    j->i->done_bytes = 0;
    j->i->total_bytes = total;
    tell(j);
}

void job_progress(struct image_job *j, int64_t more)
{
    j->i->done_bytes += more;
    if (clock_mono_ms() - j->told_ms >= PROGRESS_MS)
        tell(j);
}

/* --- the end --- */

static void release_layers(struct image_job *j)
{
    for (size_t k = 0; k < j->layer_count; k++) {
        struct job_layer *y = &j->layers[k];

        if (y->dir[0]) { /* it never became a layer of the registry */
            layers_clear(j->l, y->dir);
            mem_free(y->layer);
        } else if (y->layer) {
            images_release(j->l, str_of(y->layer->id));
        }
    }
    mem_free(j->layers);
    j->layers = NULL;
    j->layer_count = 0;
}

static void settle(struct image_job *j)
{
    struct image *i = j->i;
    bool failed = j->err.code != ERR_NONE;

    assert(j->ended && j->busy == 0);
    list_unlink(&j->link);
    assert(j->l->job_count > 0 && i->job == j && thread_is_loop());
    j->l->job_count--;
    release_layers(j);
    i->job = NULL;
    i->phase = "";
    if (failed) {
        i->state = IMAGE_FAILED;
        (void)snprintf(i->failure, sizeof i->failure, "%s", j->err.msg);
        if (!j->l->closing)
            tell(j);
    }
    if (j->done)
        j->done(j->arg, failed ? NULL : i, &j->err);
    oci_config_done(&j->config);
    buf_done(&j->pending);
    sha256_free(j->hash);
    j->gone(j);
}

void job_drop_run(struct image_job *j)
{
    if (j->run)
        j->l->c.unpacker->ops->cancel(j->run);
    j->run = NULL;
    if (j->dir[0])
        layers_clear(j->l, j->dir);
    j->dir[0] = '\0';
}

void job_end(struct image_job *j, const struct err *e)
{
    if (j->ended)
        return;
    j->ended = true;
    j->err = *e;
    job_drop_run(j);
    if (j->stop)
        j->stop(j);
    if (j->busy == 0)
        settle(j);
}

void job_idle(struct image_job *j)
{
    assert(j->busy > 0);
    j->busy--;
    if (j->ended && j->busy == 0)
        settle(j);
}

/* --- one run of the unpacker --- */

static void pump(struct image_job *j)
{
    size_t n;

    if (!j->run)
        return;
    n = buf_len(&j->pending) > 0 ? j->l->c.unpacker->ops->write(j->run, buf_str(&j->pending)) : 0;
    buf_take(&j->pending, n);
    if (buf_len(&j->pending) == 0 && j->eof)
        j->l->c.unpacker->ops->eof(j->run);
    if (n > 0 && j->taken)
        j->taken(j, n);
}

static void on_room(void *arg)
{
    pump(arg);
}

static void on_unpacked(void *arg, const struct unpack_result *r, const struct err *e)
{
    struct image_job *j = arg;
    struct err why = *e;

    j->run = NULL;
    if (e->code == ERR_NONE) {
        j->unpacked(j, r);
        return;
    }
    err_wrap(&why, "unpack image '%s'", j->i->id);
    job_end(j, &why);
}

int job_unpack(struct image_job *j, enum unpack_mode mode, struct err *e)
{
    struct unpack_spec s = {.mode = mode,
                            .limits = j->l->c.limits,
                            .events = {.room = on_room, .done = on_unpacked, .arg = j}};

    assert(!j->run && !j->dir[0]);
    if (layers_make_dir(j->l, "tmp", j->dir, e) < 0)
        return -1;
    if (!j->hash)
        j->hash = sha256_new();
    buf_clear(&j->pending);
    j->eof = false;
    j->fed = 0;
    s.layer = j->dir;
    return j->l->c.unpacker->ops->start(j->l->c.unpacker, &s, &j->run, e);
}

void job_feed(struct image_job *j, struct str part)
{
    struct err e = {0};

    if (space_ask(j->l->c.space, part.n, &e) < 0) {
        job_end(j, &e);
        return;
    }
    sha256_add(j->hash, part.p, part.n);
    j->fed += (int64_t)part.n;
    buf_add_str(&j->pending, part);
    pump(j);
}

void job_feed_end(struct image_job *j)
{
    j->eof = true;
    pump(j);
}

void job_digest(struct image_job *j, char to[OCI_DIGEST_SIZE])
{
    unsigned char digest[SHA256_SIZE];

    sha256_end(j->hash, digest);
    memcpy(to, "sha256:", 7);
    enc_hex(digest, sizeof digest, to + 7);
}

/* --- layers --- */

static struct job_layer *add_layer(struct image_job *j)
{
    if (!j->layers)
        j->layers = xzalloc(OCI_LAYERS_MAX * sizeof j->layers[0]);
    assert(j->layer_count < OCI_LAYERS_MAX);
    return &j->layers[j->layer_count++];
}

void job_use_layer(struct image_job *j, struct layer *y)
{
    y->holds++;
    add_layer(j)->layer = y;
}

bool job_has_layer(struct image_job *j, const char *digest, const char *want_diff)
{
    struct layer *y = layer_by_digest(j->l, digest);

    if (!y || (want_diff && strcmp(want_diff, y->diff_id) != 0))
        return false;
    job_use_layer(j, y);
    return true;
}

bool job_sees_layer(struct image_job *j, const char *digest, const char *want_diff)
{
    const struct layer *y = layer_by_digest(j->l, digest);

    return y && images_show_layer(j->l, y, &j->by) && job_has_layer(j, digest, want_diff);
}

int job_add_layer(struct image_job *j, const char *digest, const struct unpack_result *r,
                  const char *want_diff, struct err *e)
{
    struct job_layer *to;
    struct layer *y;
    char id[ID_SIZE];

    if (!r->diff_id[0])
        return err_set(e, ERR_INTERNAL, 0, "the report of holt-unpack is incomplete");
    if (want_diff && strcmp(want_diff, r->diff_id) != 0)
        return err_set(e, ERR_INVALID, 0,
                       "the content of layer %.19s… does not match the image's config", digest);
    layer_id_of(digest, id);
    y = map_get(&j->l->layers, str_of(id));
    if (y && strcmp(y->digest, digest) != 0)
        return err_set(e, ERR_CONFLICT, 0, "layer %s has the same id as another layer", digest);
    y = xzalloc(sizeof *y);
    memcpy(y->id, id, sizeof y->id);
    (void)snprintf(y->digest, sizeof y->digest, "%s", digest);
    (void)snprintf(y->diff_id, sizeof y->diff_id, "%s", r->diff_id);
    y->bytes = r->bytes;
    y->entries = r->entries;
    y->created_ms = clock_wall_ms();
    to = add_layer(j);
    to->layer = y;
    memcpy(to->dir, j->dir, sizeof to->dir);
    j->dir[0] = '\0';
    return 0;
}

/* --- committing --- */

struct publish {
    uv_work_t req;
    struct image_job *j;
    struct err err;
};

static int write_meta(const struct images *l, const struct layer *y, const char *dir, struct err *e)
{
    AUTO(mem_free) char *path = xasprintf("%s/layers/%s/meta", l->c.state, dir);
    AUTO(buf_done) struct buf b = {0};
    struct jw w = {.to = &b};
    int r;

    jw_object(&w);
    jw_kint(&w, "version", 1);
    jw_kc(&w, "digest", y->digest);
    jw_kc(&w, "diff_id", y->diff_id);
    jw_kint(&w, "bytes", y->bytes);
    jw_kint(&w, "entries", y->entries);
    jw_object_end(&w);
    buf_add_char(&b, '\n');
    r = file_replace(path, 0644, buf_str(&b));
    return r < 0 ? err_set(e, err_code_from_errno(-r), -r, "write '%s'", path) : 0;
}

/* An existing directory of that name is about to be removed: it gets our temporary name, under
 * which it is removed. */
static int move_layer(const struct images *l, const struct layer *y, const char *dir, struct err *e)
{
    AUTO(mem_free) char *from = xasprintf("%s/layers/%s", l->c.state, dir);
    AUTO(mem_free) char *to = xasprintf("%s/layers/%s", l->c.state, y->id);

    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno == EEXIST && renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE) == 0)
        return 0;
    return err_set(e, err_code_from_errno(errno), errno, "name the layer '%s'", to);
}

static int sync_layers(const struct images *l, struct err *e)
{
    AUTO(mem_free) char *path = xasprintf("%s/layers", l->c.state);
    AUTO(fd_close) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 || syncfs(fd) < 0)
        return err_set(e, err_code_from_errno(errno), errno, "sync '%s'", path);
    return 0;
}

int layer_store(const struct images *l, const struct layer *y, const char *dir, struct err *e)
{
    return write_meta(l, y, dir, e) < 0 || sync_layers(l, e) < 0 || move_layer(l, y, dir, e) < 0 ||
                   sync_layers(l, e) < 0
               ? -1
               : 0;
}

/* On a worker thread; the job's layers do not change meanwhile. */
static void publish_work(uv_work_t *req)
{
    struct publish *p = req->data;
    const struct image_job *j = p->j;
    bool fresh = false;

    for (size_t k = 0; k < j->layer_count; k++) {
        const struct job_layer *y = &j->layers[k];

        if (!y->dir[0])
            continue;
        fresh = true;
        if (write_meta(j->l, y->layer, y->dir, &p->err) < 0)
            return;
    }
    if (!fresh || sync_layers(j->l, &p->err) < 0)
        return;
    for (size_t k = 0; k < j->layer_count; k++)
        if (j->layers[k].dir[0] &&
            move_layer(j->l, j->layers[k].layer, j->layers[k].dir, &p->err) < 0)
            return;
    (void)sync_layers(j->l, &p->err);
}

static void take_name(struct images *l, const struct image *i)
{
    for (size_t k = 0; k < l->count; k++)
        if (l->sorted[k] != i && l->sorted[k]->state == IMAGE_READY && i->name[0] &&
            strcmp(l->sorted[k]->name, i->name) == 0 &&
            strcmp(l->sorted[k]->tenant, i->tenant) == 0)
            l->sorted[k]->name[0] = '\0';
}

static void row_committed(void *arg, const struct err *e)
{
    struct image_job *j = arg;
    struct image *i = j->i;
    struct err why = *e;

    if (e->code == ERR_NONE) {
        i->state = IMAGE_READY;
        i->phase = "";
        take_name(j->l, i);
    } else {
        for (size_t k = 0; k < i->layer_count; k++) {
            assert(i->layers[k]->images > 0);
            i->layers[k]->images--;
        }
        i->layer_count = 0;
        err_wrap(&why, "store image '%s'", i->id);
    }
    if (!j->ended) { /* once it is stored, it is too late to cancel */
        j->ended = true;
        j->err = why;
    }
    if (e->code == ERR_NONE)
        j->err = (struct err){0};
    job_idle(j);
}

/* The directories have their names: from here on they are layers of the registry, held by us. */
static void adopt_layers(struct image_job *j)
{
    struct layer *layers[OCI_LAYERS_MAX];

    for (size_t k = 0; k < j->layer_count; k++) {
        struct job_layer *y = &j->layers[k];

        if (y->dir[0]) {
            struct layer *there = layer_by_digest(j->l, y->layer->digest);

            layers_clear(j->l, y->dir); /* the directory that was there before, if any */
            y->dir[0] = '\0';
            if (there) { /* another job was faster: the same content under the same name */
                mem_free(y->layer);
                y->layer = there;
            } else {
                map_set(&j->l->layers, str_of(y->layer->id), y->layer);
            }
            y->layer->holds++;
        }
        layers[k] = y->layer;
    }
    image_set_layers(j->i, layers, j->layer_count);
}

static void layer_published(uv_work_t *req, int status)
{
    struct publish *p = req->data;
    struct image_job *j = p->j;
    struct err e = p->err;

    (void)status;
    mem_free(p);
    if (j->ended || e.code != ERR_NONE) {
        job_end(j, &e);
        job_idle(j);
        return;
    }
    adopt_layers(j);
    image_commit(j, row_committed); /* still busy */
}

/* Another job may have made the same layer meanwhile, or this image has one twice. */
static void drop_doubles(struct image_job *j)
{
    for (size_t k = 0; k < j->layer_count; k++) {
        struct job_layer *y = &j->layers[k];
        struct layer *there = y->dir[0] ? layer_by_digest(j->l, y->layer->digest) : NULL;

        if (!there)
            continue;
        layers_clear(j->l, y->dir);
        y->dir[0] = '\0';
        mem_free(y->layer);
        y->layer = there;
        there->holds++;
    }
}

void job_publish(struct image_job *j)
{
    struct publish *p = xzalloc(sizeof *p);
    struct image *i = j->i;

    i->phase = "storing";
    mem_free(i->digest);
    i->digest = xstrdup(j->digest);
    if (j->config.defaults) {
        mem_free(i->os);
        mem_free(i->arch);
        mem_free(i->defaults);
        i->os = xstrdup(j->config.os);
        i->arch = xstrdup(j->config.arch);
        i->defaults = xstrdup(j->config.defaults);
    }
    drop_doubles(j);
    p->j = j;
    p->req.data = p;
    j->busy++;
    (void)uv_queue_work(j->l->c.loop, &p->req, publish_work, layer_published);
}
