/* image_pull: pulls an image from a registry. */
#include "core/image/image_internal.h"

#include "base/mem.h"

/* A pull: manifest (perhaps an index first), config, then layer after layer, each streamed from the
 * network into its unpacker.  The network and the unpacker finish a layer in any order; both are
 * awaited. */
struct image_pull {
    struct image_job j;
    struct oci_ref ref;
    const struct image_remote_ops *ops;
    void *remote;
    struct buf doc; /* the document being received */
    size_t doc_max;
    void (*have)(struct image_pull *p, const char *digest, struct err *e);
    int depth; /* of nested indexes */
    struct oci_manifest manifest;
    size_t next;  /* layer */
    bool arrived; /* its last byte has arrived */
    bool unpacked;
    struct unpack_result result;
};

static struct image_pull *of(struct image_job *j)
{
    return CONTAINER_OF(j, struct image_pull, j);
}

static void pull_stop(struct image_job *j)
{
    struct image_pull *p = of(j);

    if (p->remote)
        p->ops->close(p->remote);
    p->remote = NULL;
}

static void pull_gone(struct image_job *j)
{
    struct image_pull *p = of(j);

    pull_stop(j);
    buf_done(&p->doc);
    oci_manifest_done(&p->manifest);
    mem_free(p);
}

static void fail(struct image_pull *p, struct err *e)
{
    err_wrap(e, "pull '%s'", p->j.i->name[0] ? p->j.i->name : p->ref.repository);
    job_end(&p->j, e);
}

/* --- documents --- */

static void doc_data(void *arg, struct str part)
{
    struct image_pull *p = arg;
    struct err e = {0};

    if (buf_len(&p->doc) + part.n > p->doc_max) {
        err_set(&e, ERR_TOO_LARGE, 0, "a document is larger than %zu bytes", p->doc_max);
        fail(p, &e);
        return;
    }
    buf_add_str(&p->doc, part);
    p->ops->consume(p->remote, part.n);
}

static void doc_end(void *arg, const char *digest, const struct err *e)
{
    struct image_pull *p = arg;
    struct err why = *e;

    if (e->code == ERR_NONE)
        p->have(p, digest, &why);
    if (why.code != ERR_NONE)
        fail(p, &why);
}

static const struct image_sink doc_sink = {.data = doc_data, .end = doc_end};

static int get_doc(struct image_pull *p, bool manifest, const char *what,
                   void (*have)(struct image_pull *, const char *, struct err *), struct err *e)
{
    buf_clear(&p->doc);
    p->doc_max = OCI_DOC_MAX;
    p->have = have;
    return p->ops->get(p->remote, manifest, what, OCI_DOC_MAX, &doc_sink, p, e);
}

/* --- layers --- */

static void next_layer(struct image_pull *p, struct err *e);

/* Network and unpacker have both finished the layer. */
static void layer_done(struct image_pull *p)
{
    const char *digest = p->manifest.layers[p->next].digest;
    char fed[OCI_DIGEST_SIZE];
    struct err e = {0};

    if (!p->arrived || !p->unpacked)
        return;
    /* The remote has verified it; this is the digest of the bytes the unpacker got. */
    job_digest(&p->j, fed);
    if (strcmp(fed, digest) != 0)
        err_set(&e, ERR_INVALID, 0, "the content of layer %.19s… does not match its digest",
                digest);
    else if (job_add_layer(&p->j, digest, &p->result, p->j.config.diff_ids[p->next], &e) == 0) {
        p->next++;
        next_layer(p, &e);
    }
    if (e.code != ERR_NONE)
        fail(p, &e);
}

static void layer_data(void *arg, struct str part)
{
    struct image_pull *p = arg;

    if (p->unpacked) { /* the unpacker is done: bytes after the tar's end are only hashed */
        sha256_add(p->j.hash, part.p, part.n);
        p->ops->consume(p->remote, part.n);
        return;
    }
    job_feed(&p->j, part);
}

static void layer_taken(struct image_job *j, size_t n)
{
    struct image_pull *p = of(j);

    job_progress(j, (int64_t)n);
    if (!p->arrived)
        p->ops->consume(p->remote, n);
}

static void layer_end(void *arg, const char *digest, const struct err *e)
{
    struct image_pull *p = arg;
    struct err why = *e;

    (void)digest;
    if (e->code != ERR_NONE) {
        fail(p, &why);
        return;
    }
    p->arrived = true;
    if (!p->unpacked)
        job_feed_end(&p->j);
    else
        layer_done(p);
}

static void layer_unpacked(struct image_job *j, const struct unpack_result *r)
{
    struct image_pull *p = of(j);

    p->result = *r;
    p->unpacked = true;
    layer_done(p);
}

static const struct image_sink layer_sink = {.data = layer_data, .end = layer_end};

static void next_layer(struct image_pull *p, struct err *e)
{
    while (
        p->next < p->manifest.layer_count &&
        job_sees_layer(&p->j, p->manifest.layers[p->next].digest, p->j.config.diff_ids[p->next])) {
        job_progress(&p->j, p->manifest.layers[p->next].size);
        p->next++;
    }
    if (p->next == p->manifest.layer_count) {
        pull_stop(&p->j);
        job_publish(&p->j);
        return;
    }
    p->arrived = p->unpacked = false;
    p->j.taken = layer_taken;
    p->j.unpacked = layer_unpacked;
    if (job_unpack(&p->j, UNPACK_LAYER, e) == 0)
        (void)!p->ops->get(p->remote, false, p->manifest.layers[p->next].digest,
                           p->manifest.layers[p->next].size, &layer_sink, p, e);
}

/* --- config and manifest --- */

static void have_config(struct image_pull *p, const char *digest, struct err *e)
{
    int64_t total = 0;

    (void)digest;
    if (oci_config_read(buf_str(&p->doc), &p->j.config, e) < 0)
        return;
    if (p->j.config.diff_count != p->manifest.layer_count) {
        err_set(e, ERR_INVALID, 0, "the image has %zu layers but %zu diff_ids",
                p->manifest.layer_count, p->j.config.diff_count);
        return;
    }
    for (size_t k = 0; k < p->manifest.layer_count; k++)
        total += p->manifest.layers[k].size;
    job_phase(&p->j, "pulling", total);
    next_layer(p, e);
}

static void have_manifest(struct image_pull *p, const char *digest, struct err *e)
{
    const struct oci_want want = {.os = "linux", .arch = oci_arch_of_host()};
    enum oci_media kind;
    struct oci_blob to;

    if (oci_kind(buf_str(&p->doc), &kind, e) < 0)
        return;
    if (kind == OCI_INDEX) {
        if (++p->depth > 3)
            err_set(e, ERR_INVALID, 0, "the image's indexes nest too deeply");
        else if (oci_index_pick(buf_str(&p->doc), &want, &to, e) == 0)
            (void)!get_doc(p, true, to.digest, have_manifest, e);
        return;
    }
    (void)snprintf(p->j.digest, sizeof p->j.digest, "%s", digest);
    if (oci_manifest_read(buf_str(&p->doc), &p->manifest, e) == 0)
        (void)!get_doc(p, false, p->manifest.config.digest, have_config, e);
}

int image_pull(struct images *l, const struct image_pull_spec *s, const struct principal *by,
               image_cb done, void *arg, struct image **ret, struct err *e)
{
    AUTO(mem_free) char *name = NULL;
    struct oci_ref ref;
    struct image_pull *p;
    void *remote;

    if (jobs_may_start(l, e) < 0 || oci_ref_parse(s->ref, &ref, e) < 0 ||
        image_normal_name(s->name.n > 0 ? s->name : s->ref, &name, e) < 0 ||
        s->remote->open(s->remote_arg, &ref, &remote, e) < 0)
        return -1;
    p = xzalloc(sizeof *p);
    p->ref = ref;
    p->ops = s->remote;
    p->remote = remote;
    p->j.stop = pull_stop;
    p->j.gone = pull_gone;
    if (get_doc(p, true, ref.digest[0] ? ref.digest : ref.tag, have_manifest, e) < 0) {
        pull_gone(&p->j);
        return -1;
    }
    p->j.done = done;
    p->j.arg = arg;
    job_start(&p->j, l, "pull", by);
    mem_free(p->j.i->name);
    p->j.i->name = TAKE(name);
    job_phase(&p->j, "resolving", 0);
    *ret = p->j.i;
    return 0;
}
