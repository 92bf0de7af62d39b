/* image_import: imports an image from an uploaded archive. */
#include "core/image/image_internal.h"

#include "base/enc.h"
#include "base/fd.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

/* An import: the archive is spooled while it arrives; then
 *   outer: unpacked as an image archive into a directory of its own; that decides what it is
 *   inner: each layer file in it is unpacked into a layer
 *   tree:  or the archive itself is the one layer */
struct image_import {
    struct image_job j;
    enum image_format format;
    char *name, *tag;
    void (*consumed)(void *arg, size_t n);
    char *spool_path;
    int spool;
    int64_t spooled;
    struct sha256_state *spool_hash;
    struct buf queue;   /* to be written … */
    struct buf writing; /* … being written */
    uv_fs_t req;
    bool is_writing, complete;

    char parts[ID_SIZE]; /* the directory of the unpacked image archive */
    char (*files)[OCI_FILE_SIZE];
    size_t file_count, next;
    struct file_feed *feed;
};

static struct image_import *of(struct image_job *j)
{
    return CONTAINER_OF(j, struct image_import, j);
}

static void import_stop(struct image_job *j)
{
    struct image_import *m = of(j);

    m->feed = file_feed_free(m->feed);
    if (m->parts[0])
        layers_clear(j->l, m->parts);
    m->parts[0] = '\0';
}

static void import_gone(struct image_job *j)
{
    struct image_import *m = of(j);

    m->feed = file_feed_free(m->feed);
    fd_close(m->spool);
    if (m->spool_path)
        (void)unlink(m->spool_path);
    mem_free(m->spool_path);
    mem_free(m->name);
    mem_free(m->tag);
    mem_free(m->files);
    buf_done(&m->queue);
    buf_done(&m->writing);
    sha256_free(m->spool_hash);
    mem_free(m);
}

static void fail(struct image_import *m, struct err *e)
{
    err_wrap(e, "import image '%s'", m->j.i->id);
    job_end(&m->j, e);
}

/* --- layers from files --- */

static void next_layer(struct image_import *m);

static void on_taken(struct image_job *j, size_t n)
{
    if (of(j)->feed)
        file_feed_taken(of(j)->feed, n);
}

static void begin_feed(struct image_import *m, int fd, enum unpack_mode mode,
                       void (*unpacked)(struct image_job *, const struct unpack_result *))
{
    struct err e = {0};

    m->feed = file_feed_free(m->feed);
    m->j.taken = on_taken;
    m->j.unpacked = unpacked;
    if (job_unpack(&m->j, mode, &e) < 0) {
        fd_close(fd);
        fail(m, &e);
        return;
    }
    m->feed = file_feed_start(&m->j, fd);
}

static void feed_spool(struct image_import *m, enum unpack_mode mode,
                       void (*unpacked)(struct image_job *, const struct unpack_result *))
{
    int fd = fcntl(m->spool, F_DUPFD_CLOEXEC, 3);
    struct err e = {0};

    if (fd >= 0) {
        begin_feed(m, fd, mode, unpacked);
        return;
    }
    err_set(&e, ERR_INTERNAL, errno, "open the archive again");
    fail(m, &e);
}

/* The unpacker's sandbox wrote these: follow no links. */
static int open_part(const struct image_import *m, const char *name)
{
    struct open_how how = {
        .flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
    };
    AUTO(mem_free) char *path = xasprintf("%s/layers/%s/fs", m->j.l->c.state, m->parts);
    AUTO(fd_close) int dir = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return dir < 0 ? -1 : (int)syscall(SYS_openat2, dir, name, &how, sizeof how);
}

static int read_part(const struct image_import *m, const char *name, struct buf *to, struct err *e)
{
    AUTO(fd_close) int fd = open_part(m, name);
    int r = fd < 0 ? -errno : fd_read_all(fd, OCI_DOC_MAX, to);

    return r < 0 ? err_set(e, ERR_INVALID, -r, "read '%s' of the archive", name) : 0;
}

static void layer_unpacked(struct image_job *j, const struct unpack_result *r)
{
    struct image_import *m = of(j);
    char digest[OCI_DIGEST_SIZE];
    struct err e = {0};

    job_digest(j, digest);
    if (str_starts(str_of(m->files[m->next]), STR("blobs/sha256/")) &&
        strcmp(m->files[m->next] + strlen("blobs/sha256/"), digest + strlen("sha256:")) != 0)
        err_set(&e, ERR_INVALID, 0, "the content of '%s' does not match its digest",
                m->files[m->next]);
    else if (job_add_layer(j, digest, r, j->config.diff_ids[m->next], &e) == 0) {
        m->next++;
        next_layer(m);
        return;
    }
    fail(m, &e);
}

static void next_layer(struct image_import *m)
{
    struct err e = {0};
    int fd;

    if (m->next == m->file_count) {
        import_stop(&m->j); /* the parts are no longer needed */
        job_publish(&m->j);
        return;
    }
    fd = open_part(m, m->files[m->next]);
    if (fd < 0) {
        err_set(&e, ERR_INVALID, errno, "open '%s' of the archive", m->files[m->next]);
        fail(m, &e);
        return;
    }
    begin_feed(m, fd, UNPACK_LAYER, layer_unpacked);
}

/* --- documents --- */

static void blob_file(const char *digest, char to[OCI_FILE_SIZE])
{
    (void)snprintf(to, OCI_FILE_SIZE, "blobs/sha256/%s", digest + strlen("sha256:"));
}

/* A document of an OCI layout, verified by its digest. */
static int read_blob(const struct image_import *m, const struct oci_blob *b, struct buf *to,
                     struct err *e)
{
    char file[OCI_FILE_SIZE], text[2 * SHA256_SIZE + 1];
    unsigned char digest[SHA256_SIZE];

    blob_file(b->digest, file);
    buf_clear(to);
    if (read_part(m, file, to, e) < 0)
        return -1;
    sha256(buf_str(to), digest);
    enc_hex(digest, sizeof digest, text);
    if (strcmp(text, b->digest + strlen("sha256:")) != 0)
        return err_set(e, ERR_INVALID, 0, "the content of '%s' does not match its digest", file);
    return 0;
}

static int read_oci(struct image_import *m, struct buf *config, struct err *e)
{
    AUTO(oci_manifest_done) struct oci_manifest manifest = {0};
    AUTO(buf_done) struct buf doc = {0};
    struct oci_want want = {.os = "linux", .arch = oci_arch_of_host(), .tag = str_of(m->tag)};
    struct oci_blob at;
    enum oci_media kind = OCI_INDEX;

    if (read_part(m, "index.json", &doc, e) < 0)
        return -1;
    for (int depth = 0; kind == OCI_INDEX; depth++) {
        if (depth == 4)
            return err_set(e, ERR_INVALID, 0, "the image's indexes nest too deeply");
        if (oci_index_pick(buf_str(&doc), &want, &at, e) < 0 || read_blob(m, &at, &doc, e) < 0 ||
            oci_kind(buf_str(&doc), &kind, e) < 0)
            return -1;
        want.tag = (struct str){0};
    }
    if (oci_manifest_read(buf_str(&doc), &manifest, e) < 0 ||
        read_blob(m, &manifest.config, config, e) < 0)
        return -1;
    memcpy(m->j.digest, at.digest, sizeof m->j.digest);
    m->files = xzalloc(manifest.layer_count * sizeof m->files[0]);
    for (; m->file_count < manifest.layer_count; m->file_count++)
        blob_file(manifest.layers[m->file_count].digest, m->files[m->file_count]);
    return 0;
}

static int read_docker(struct image_import *m, struct buf *config, struct err *e)
{
    AUTO(oci_docker_done) struct oci_docker d = {0};
    AUTO(buf_done) struct buf doc = {0};

    if (read_part(m, "manifest.json", &doc, e) < 0 ||
        oci_docker_read(buf_str(&doc), str_of(m->tag), &d, e) < 0 ||
        read_part(m, d.config, config, e) < 0)
        return -1;
    m->files = xmemdup(d.layers, d.layer_count * sizeof d.layers[0]);
    m->file_count = d.layer_count;
    if (!m->name[0] && d.name) {
        mem_free(m->name);
        m->name = TAKE(d.name);
    }
    return 0;
}

static int set_name(struct image_import *m, struct err *e)
{
    AUTO(mem_free) char *name = NULL;

    if (!m->name[0])
        return 0;
    if (image_normal_name(str_of(m->name), &name, e) < 0)
        return -1;
    mem_free(m->j.i->name);
    m->j.i->name = TAKE(name);
    return 0;
}

static int read_documents(struct image_import *m, bool docker, struct err *e)
{
    AUTO(buf_done) struct buf config = {0};

    if ((docker ? read_docker(m, &config, e) : read_oci(m, &config, e)) < 0)
        return -1;
    if (oci_config_read(buf_str(&config), &m->j.config, e) < 0 || set_name(m, e) < 0)
        return -1;
    if (m->j.config.diff_count != m->file_count)
        return err_set(e, ERR_INVALID, 0, "the image has %zu layers but %zu diff_ids",
                       m->file_count, m->j.config.diff_count);
    return 0;
}

/* --- the archive itself --- */

static void tree_unpacked(struct image_job *j, const struct unpack_result *r)
{
    struct image_import *m = of(j);
    struct err e = {0};

    if (job_add_layer(j, j->digest, r, NULL, &e) < 0 || set_name(m, &e) < 0)
        fail(m, &e);
    else
        job_publish(j);
}

static void begin_tree(struct image_import *m)
{
    job_phase(&m->j, "unpacking", m->spooled);
    feed_spool(m, UNPACK_ROOT, tree_unpacked);
}

static void outer_unpacked(struct image_job *j, const struct unpack_result *r)
{
    struct image_import *m = of(j);
    bool docker = strcmp(r->format, "docker") == 0, oci = strcmp(r->format, "oci") == 0;
    struct err e = {0};

    if (!docker && !oci) {
        job_drop_run(j);
        sha256_free(j->hash); /* half of the archive is in it */
        j->hash = NULL;
        if (m->format == IMAGE_AUTO) {
            begin_tree(m);
            return;
        }
        err_set(&e, ERR_INVALID, 0, "the archive is not an image archive but a plain tar");
        err_hint(&e, "import it with --format tar");
        fail(m, &e);
        return;
    }
    memcpy(m->parts, j->dir, sizeof m->parts);
    j->dir[0] = '\0';
    sha256_free(j->hash);
    j->hash = NULL;
    if (read_documents(m, m->format == IMAGE_OCI ? false : docker, &e) < 0) {
        fail(m, &e);
        return;
    }
    job_phase(j, "unpacking", r->bytes);
    next_layer(m);
}

/* --- the spool --- */

static void spool_complete(struct image_import *m)
{
    char text[2 * SHA256_SIZE + 1];
    unsigned char digest[SHA256_SIZE];

    sha256_end(m->spool_hash, digest);
    enc_hex(digest, sizeof digest, text);
    (void)snprintf(m->j.digest, sizeof m->j.digest, "sha256:%s", text);
    if (m->format == IMAGE_TAR) {
        if (job_has_layer(&m->j, m->j.digest, NULL)) {
            struct err e = {0};

            if (set_name(m, &e) < 0)
                fail(m, &e);
            else
                job_publish(&m->j);
            return;
        }
        begin_tree(m);
        return;
    }
    job_phase(&m->j, "reading", m->spooled);
    feed_spool(m, UNPACK_IMAGE, outer_unpacked);
}

static void write_next(struct image_import *m);

static void on_written(uv_fs_t *req)
{
    struct image_import *m = req->data;
    ssize_t n = req->result;
    struct err e = {0};

    uv_fs_req_cleanup(req);
    m->is_writing = false;
    if (m->j.ended) {
        job_idle(&m->j);
        return;
    }
    m->j.busy--;
    if (n <= 0) {
        err_set(&e, err_code_from_errno((int)-n), (int)-n, "keep the archive in '%s'",
                m->spool_path);
        fail(m, &e);
        return;
    }
    m->spooled += n;
    buf_take(&m->writing, (size_t)n);
    job_progress(&m->j, n);
    m->consumed(m->j.arg, (size_t)n);
    write_next(m);
}

static void write_next(struct image_import *m)
{
    uv_buf_t b;

    if (m->is_writing || m->j.ended)
        return;
    if (buf_len(&m->writing) == 0) {
        struct buf empty = m->writing;

        m->writing = m->queue;
        m->queue = empty;
    }
    if (buf_len(&m->writing) == 0) {
        if (m->complete)
            spool_complete(m);
        return;
    }
    b = uv_buf_init(buf_data(&m->writing), (unsigned)buf_len(&m->writing));
    m->req.data = m;
    m->is_writing = true;
    m->j.busy++;
    (void)uv_fs_write(m->j.l->c.loop, &m->req, m->spool, &b, 1, m->spooled, on_written);
}

void image_import_write(struct image_import *m, struct str part)
{
    struct err e = {0};

    if (m->j.ended)
        return;
    if (m->spooled + (int64_t)(buf_len(&m->queue) + buf_len(&m->writing) + part.n) >
        m->j.l->c.limits.bytes_max) {
        err_set(&e, ERR_TOO_LARGE, 0, "the archive is larger than %lld bytes",
                (long long)m->j.l->c.limits.bytes_max);
        fail(m, &e);
        return;
    }
    if (space_ask(m->j.l->c.space, part.n, &e) < 0) {
        fail(m, &e);
        return;
    }
    sha256_add(m->spool_hash, part.p, part.n);
    buf_add_str(&m->queue, part);
    write_next(m);
}

void image_import_end(struct image_import *m)
{
    m->complete = true;
    write_next(m);
}

void image_import_abort(struct image_import *m)
{
    struct err e = {0};

    err_set(&e, ERR_CANCELLED, 0, "the archive was not received completely");
    fail(m, &e);
}

int image_import_begin(struct images *l, const struct image_import_spec *s,
                       const struct principal *by, image_cb done, void *arg,
                       struct image_import **ret, struct image **ret_image, struct err *e)
{
    AUTO(mem_free) char *name = NULL;
    AUTO(mem_free) char *path = NULL;
    char id[ID_SIZE];
    struct image_import *m;
    int fd;

    if (jobs_may_start(l, e) < 0 || (s->name.n > 0 && image_normal_name(s->name, &name, e) < 0))
        return -1;
    path = xasprintf("%s/spool/%s", l->c.state, id_make("sp", id));
    fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_set(e, err_code_from_errno(errno), errno, "make '%s'", path);
    m = xzalloc(sizeof *m);
    *m = (struct image_import){.format = s->format, .consumed = s->consumed, .spool = fd};
    m->name = str_dup(s->name.p ? s->name : STR(""));
    m->tag = str_dup(s->tag.p ? s->tag : STR(""));
    m->spool_path = TAKE(path);
    m->spool_hash = sha256_new();
    m->j.done = done;
    m->j.arg = arg;
    m->j.stop = import_stop;
    m->j.gone = import_gone;
    job_start(&m->j, l, "import", by);
    if (name) {
        mem_free(m->j.i->name);
        m->j.i->name = TAKE(name);
    }
    job_phase(&m->j, "receiving", s->size);
    *ret = m;
    *ret_image = m->j.i;
    return 0;
}
