/* blob: content-addressed files below the state directory. */
#include "core/blob.h"

#include "base/buf.h"
#include "base/enc.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "core/space.h"
#include "core/store.h"
#include "proto/digest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define INCOMING_MAX 64 /* concurrent */
#define TEMPORARY "in"  /* prefix of temporary names */

struct blobs {
    struct blobs_config c;
    int dir;
    struct map holds; /* name → struct hold */
    struct list steps;
    size_t incoming;
    bool stepping; /* a thread works on the first step */
};

struct hold {
    size_t n;
    bool unnamed; /* no row is known to name it: the last release removes it */
};

/* A change of the directory, made on a thread, one at a time. */
struct step {
    struct list link;
    uv_work_t req;
    struct blobs *all;
    void (*work)(struct step *s);
    void (*after)(struct step *s); /* on the loop; frees it */
    char temporary[ID_SIZE];       /* "": none */
    char name[BLOB_NAME_SIZE];     /* "": none */
    int fd;
    bool existed;
    struct err err;
};

struct blob_in {
    struct blobs *all;
    const struct blob_in_ops *ops;
    void *arg;
    int64_t size_max, size, written;
    struct sha256_state *hash;
    struct buf queue, writing;
    uv_fs_t req;
    int fd;
    char temporary[ID_SIZE];
    struct err err;
    bool busy, complete, aborted;
};

/* --- steps --- */

static void run_step(struct blobs *b);

static void step_worked(uv_work_t *req)
{
    struct step *s = req->data;

    s->work(s);
}

static void step_ended(uv_work_t *req, int status)
{
    struct step *s = req->data;
    struct blobs *b = s->all;

    (void)status;
    list_unlink(&s->link);
    b->stepping = false;
    run_step(b);
    s->after(s);
}

static void run_step(struct blobs *b)
{
    struct step *s;

    if (b->stepping || list_is_empty(&b->steps))
        return;
    s = LIST_ENTRY(b->steps.next, struct step, link);
    b->stepping = true;
    (void)uv_queue_work(b->c.loop, &s->req, step_worked, step_ended);
}

static struct step *step_new(struct blobs *b, void (*work)(struct step *s),
                             void (*after)(struct step *s))
{
    struct step *s = xzalloc(sizeof *s);

    *s = (struct step){.all = b, .work = work, .after = after, .fd = -1};
    s->req.data = s;
    return s;
}

static void step_queue(struct step *s)
{
    list_push(&s->all->steps, &s->link);
    run_step(s->all);
}

/* --- removing --- */

static void remove_work(struct step *s)
{
    fd_close(s->fd);
    if (unlinkat(s->all->dir, s->name[0] ? s->name : s->temporary, 0) < 0 && errno != ENOENT)
        err_set(&s->err, ERR_INTERNAL, errno, "remove '%s'", s->name[0] ? s->name : s->temporary);
}

static void blob_removed(struct step *s)
{
    if (s->err.code != ERR_NONE)
        log_warn("a stored file could not be removed; it is removed at the next start",
                 LOG_E(&s->err));
    mem_free(s);
}

static void remove_blob(struct blobs *b, struct str name)
{
    struct step *s = step_new(b, remove_work, blob_removed);

    assert(name.n < sizeof s->name);
    memcpy(s->name, name.p, name.n);
    step_queue(s);
}

void blob_unused(struct blobs *b, struct str name)
{
    struct hold *h = map_get(&b->holds, name);

    if (h)
        h->unnamed = true;
    else
        remove_blob(b, name);
}

static struct hold *hold(struct blobs *b, const char *name)
{
    struct hold *h = map_get(&b->holds, str_of(name));

    if (!h) {
        h = xzalloc(sizeof *h);
        (void)map_set(&b->holds, str_of(name), h);
    }
    h->n++;
    return h;
}

void blob_release(struct blobs *b, const char *name, bool kept)
{
    struct hold *h = map_get(&b->holds, str_of(name));

    assert(h && h->n > 0);
    if (kept)
        h->unnamed = false;
    if (--h->n > 0)
        return;
    if (h->unnamed)
        remove_blob(b, str_of(name));
    (void)map_remove(&b->holds, str_of(name));
    mem_free(h);
}

/* --- adding --- */

static void in_free(struct blob_in *in)
{
    in->all->incoming--;
    sha256_free(in->hash);
    buf_done(&in->queue);
    buf_done(&in->writing);
    mem_free(in);
}

/* Removes the temporary file; reports the error unless the caller aborted. */
static void in_fail(struct blob_in *in)
{
    struct step *s = step_new(in->all, remove_work, blob_removed);

    memcpy(s->temporary, in->temporary, sizeof s->temporary);
    s->fd = in->fd;
    step_queue(s);
    if (!in->aborted)
        in->ops->done(in->arg, NULL, &in->err);
    in_free(in);
}

/* An existing blob gets the new bytes: they are the same, unless the old ones were damaged. */
static void publish_work(struct step *s)
{
    struct stat st;

    s->existed = fstatat(s->all->dir, s->name, &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (fsync(s->fd) < 0 || renameat(s->all->dir, s->temporary, s->all->dir, s->name) < 0 ||
        fsync(s->all->dir) < 0) {
        err_set(&s->err, err_code_from_errno(errno), errno, "store a file");
        (void)unlinkat(s->all->dir, s->temporary, 0);
    }
    fd_close(s->fd);
}

struct publish {
    struct step step;
    struct blob_in *in;
};

static void blob_published(struct step *s)
{
    struct blob_in *in = ((struct publish *)s)->in;
    struct hold *h = map_get(&in->all->holds, str_of(s->name));
    struct blob b = {.size = in->size};

    h->unnamed = h->unnamed || !s->existed;
    memcpy(b.name, s->name, sizeof b.name);
    if (in->aborted || s->err.code != ERR_NONE)
        blob_release(in->all, s->name, false);
    if (!in->aborted)
        in->ops->done(in->arg, s->err.code == ERR_NONE ? &b : NULL, &s->err);
    in_free(in);
    mem_free(s);
}

static void publish(struct blob_in *in)
{
    struct publish *p = xzalloc(sizeof *p);
    unsigned char digest[SHA256_SIZE];

    p->in = in;
    p->step =
        (struct step){.all = in->all, .work = publish_work, .after = blob_published, .fd = in->fd};
    p->step.req.data = &p->step;
    memcpy(p->step.temporary, in->temporary, sizeof p->step.temporary);
    sha256_end(in->hash, digest);
    enc_hex(digest, sizeof digest, p->step.name);
    (void)hold(in->all, p->step.name);
    in->busy = true;
    step_queue(&p->step);
}

static void go_on(struct blob_in *in);

static void on_written(uv_fs_t *req)
{
    struct blob_in *in = req->data;
    ssize_t n = req->result;

    uv_fs_req_cleanup(req);
    in->busy = false;
    if (n < 0 && in->err.code == ERR_NONE)
        err_set(&in->err, err_code_from_errno((int)-n), (int)-n, "store a file");
    if (n > 0) {
        in->written += n;
        buf_take(&in->writing, (size_t)n);
        if (!in->aborted && in->err.code == ERR_NONE)
            in->ops->consumed(in->arg, (size_t)n);
    }
    go_on(in);
}

/* write ──▶ write … ──▶ publish, or fail; one operation at a time */
static void go_on(struct blob_in *in)
{
    uv_buf_t v;

    if (in->busy)
        return;
    if (in->aborted || in->err.code != ERR_NONE) {
        in_fail(in);
        return;
    }
    if (buf_len(&in->writing) == 0) {
        struct buf empty = in->writing;

        in->writing = in->queue;
        in->queue = empty;
    }
    if (buf_len(&in->writing) > 0) {
        v = uv_buf_init(buf_data(&in->writing), (unsigned)buf_len(&in->writing));
        in->busy = true;
        (void)uv_fs_write(in->all->c.loop, &in->req, in->fd, &v, 1, in->written, on_written);
    } else if (in->complete) {
        publish(in);
    }
}

int blob_in_new(struct blobs *b, int64_t size_max, const struct blob_in_ops *ops, void *arg,
                struct blob_in **ret, struct err *e)
{
    struct blob_in *in;
    char id[ID_SIZE];
    int fd;

    if (b->incoming >= INCOMING_MAX) {
        err_set(e, ERR_LIMIT, 0, "%d uploads are running already", INCOMING_MAX);
        return err_limit_fixed(e, INCOMING_MAX, "wait until one has ended");
    }
    if (space_ask(b->c.space, 0, e) < 0)
        return -1;
    fd = openat(b->dir, id_make(TEMPORARY, id), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_set(e, err_code_from_errno(errno), errno, "store a file");
    in = xzalloc(sizeof *in);
    *in = (struct blob_in){
        .all = b, .ops = ops, .arg = arg, .size_max = size_max, .hash = sha256_new(), .fd = fd};
    memcpy(in->temporary, id, sizeof in->temporary);
    in->req.data = in;
    b->incoming++;
    *ret = in;
    return 0;
}

static void in_refuse(struct blob_in *in, const struct err *e)
{
    in->err = *e;
    in->complete = true;
}

void blob_in_write(struct blob_in *in, struct str part)
{
    struct err e = {0};

    if (in->complete || in->aborted || in->err.code != ERR_NONE)
        return;
    in->size += (int64_t)part.n;
    if (in->size > in->size_max) {
        err_set(&e, ERR_TOO_LARGE, 0, "File too large (max %lld bytes)", (long long)in->size_max);
        in_refuse(in, &e);
    } else if (space_ask(in->all->c.space, part.n, &e) < 0) {
        in_refuse(in, &e);
    } else {
        sha256_add(in->hash, part.p, part.n);
        buf_add_str(&in->queue, part);
    }
    go_on(in);
}

void blob_in_end(struct blob_in *in)
{
    in->complete = true;
    go_on(in);
}

void blob_in_abort(struct blob_in *in)
{
    in->aborted = true;
    go_on(in);
}

/* --- reading --- */

struct opening {
    uv_work_t req;
    struct blobs *all;
    void (*done)(void *arg, int fd, const struct err *e);
    void *arg;
    char name[BLOB_NAME_SIZE];
    int fd;
    struct err err;
};

static int check(int fd, const char *name, struct err *e)
{
    struct sha256_state *hash = sha256_new();
    unsigned char digest[SHA256_SIZE];
    char piece[64 * 1024], text[BLOB_NAME_SIZE];
    ssize_t n;
    off_t at = 0;

    while ((n = pread(fd, piece, sizeof piece, at)) > 0) {
        sha256_add(hash, piece, (size_t)n);
        at += n;
    }
    sha256_end(hash, digest);
    sha256_free(hash);
    if (n < 0)
        return err_set(e, ERR_INTERNAL, errno, "read a stored file");
    enc_hex(digest, sizeof digest, text);
    return strcmp(text, name) == 0 ? 0 : err_set(e, ERR_INTERNAL, 0, BLOB_DAMAGED);
}

static void open_work(uv_work_t *req)
{
    struct opening *o = req->data;

    o->fd = openat(o->all->dir, o->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (o->fd < 0) {
        err_set(&o->err, err_code_from_errno(errno), errno, "open a stored file");
    } else if (check(o->fd, o->name, &o->err) < 0) {
        fd_close(o->fd);
        o->fd = -1;
    }
}

static void blob_opened(uv_work_t *req, int status)
{
    struct opening *o = req->data;

    (void)status;
    o->done(o->arg, o->fd, &o->err);
    mem_free(o);
}

void blob_open(struct blobs *b, struct str name,
               void (*done)(void *arg, int fd, const struct err *e), void *arg)
{
    struct opening *o = xzalloc(sizeof *o);

    assert(name.n < sizeof o->name);
    *o = (struct opening){.all = b, .done = done, .arg = arg, .fd = -1};
    memcpy(o->name, name.p, name.n);
    o->req.data = o;
    (void)uv_queue_work(b->c.loop, &o->req, open_work, blob_opened);
}

/* --- start-up --- */

static int read_names(struct store_tx *tx, void *arg, struct err *e)
{
    struct map *names = arg;
    struct store_rows *rows;
    int r;

    if (tx_query(tx, "SELECT DISTINCT hash FROM project_files", NO_PARAMS, &rows, e) < 0)
        return -1;
    while ((r = rows_step(rows, e)) > 0)
        (void)map_set(names, rows_text(rows, 0), names);
    rows_end(rows);
    return r;
}

static int remove_strays(struct blobs *b, const struct map *names, struct err *e)
{
    int fd = openat(b->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *en;

    if (!d) {
        fd_close(fd);
        return err_set(e, ERR_INTERNAL, errno, "read the directory of stored files");
    }
    while ((en = readdir(d))) {
        bool temporary = str_starts(str_of(en->d_name), STR(TEMPORARY "_"));
        bool blob = strlen(en->d_name) == BLOB_NAME_SIZE - 1;

        if (temporary || (blob && !b->c.keep_strays && !map_get(names, str_of(en->d_name))))
            (void)unlinkat(b->dir, en->d_name, 0);
    }
    (void)closedir(d);
    return 0;
}

int blobs_open(const struct blobs_config *c, struct blobs **ret, struct err *e)
{
    AUTO(mem_free) char *path = xasprintf("%s/blobs", c->state);
    AUTO(map_done) struct map names = {0};
    struct blobs *b = xzalloc(sizeof *b);

    b->c = *c;
    b->dir = -1;
    list_init(&b->steps);
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        err_set(e, err_code_from_errno(errno), errno, "make '%s'", path);
    else if ((b->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)) < 0)
        err_set(e, err_code_from_errno(errno), errno, "open '%s'", path);
    else if (store_now(c->store, read_names, &names, e) == 0 && remove_strays(b, &names, e) == 0) {
        *ret = b;
        return 0;
    }
    blobs_free(b);
    return err_wrap(e, "open the stored files");
}

struct blobs *blobs_free(struct blobs *b)
{
    struct str key;
    size_t at = 0;
    void *h;

    if (!b)
        return NULL;
    assert(list_is_empty(&b->steps) && b->incoming == 0);
    while (map_next(&b->holds, &at, &key, &h))
        mem_free(h);
    map_done(&b->holds);
    fd_close(b->dir);
    mem_free(b);
    return NULL;
}
